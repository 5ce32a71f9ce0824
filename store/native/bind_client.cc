// The client's part of the extension module, as store/_kernel.pyi describes it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "store/native/bind.h"
#include "store/native/bind_connection.h"
#include "store/native/bind_keys.h"
#include "store/native/bind_reads.h"
#include "store/native/bind_region.h"
#include "store/native/bind_writes.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kvstrata {

namespace {

void bind_operation(nb::module_* module) {
  nb::class_<Operation>(*module, "Operation")
      .def_prop_ro("done", &Operation::done)
      .def_prop_ro("status", [](const Operation& self) { return static_cast<int>(self.status()); })
      .def_prop_ro("message", &Operation::message)
      .def_prop_ro("statuses", &Operation::statuses)
      .def_prop_ro("status_set", &Operation::status_set)
      .def_prop_ro("unsent", &Operation::unsent);
}

void bind_reads(nb::module_* module) {
  nb::class_<Get, Operation>(*module, "Get", nb::is_final())
      .def(nb::init<nb::handle, nb::handle, nb::handle, uint64_t, std::optional<uint64_t>>(),
           "key"_a, "buffer"_a = nb::none(), nb::kw_only(), "allocate"_a = nb::none(),
           "offset"_a = 0, "length"_a = nb::none())
      .def_prop_ro("value", &Get::value)
      .def_prop_ro("length", &Get::length)
      .def_prop_ro("value_length", &Get::value_length)
      .def_prop_ro("version", &Get::version)
      .def_prop_ro("attributes", &Get::reply);
  nb::class_<GetMany, Operation>(*module, "GetMany", nb::is_final())
      .def(nb::init<nb::handle, nb::handle>(), "keys"_a, "buffers"_a = nb::none())
      .def_prop_ro("values", &GetMany::values)
      .def_prop_ro("lengths", &GetMany::lengths);
}

void bind_writes(nb::module_* module) {
  nb::class_<FileSource>(*module, "FileSource", nb::is_final())
      .def("__init__", construct_file_source, "descriptor"_a, "length"_a, "checksums"_a);
  nb::class_<Put, Operation>(*module, "Put", nb::is_final())
      .def(nb::init<nb::handle, nb::handle, uint64_t, bool, std::optional<uint64_t>, nb::bytes>(),
           "key"_a, "value"_a, nb::kw_only(), "ttl_ms"_a = 0, "if_absent"_a = false,
           "append_at"_a = nb::none(), "attributes"_a = nb::bytes("", 0))
      .def_prop_ro("result", &Put::result)
      .def_prop_ro("value_length", &Put::value_length)
      .def_prop_ro("version", &Put::version);
  nb::class_<PutMany, Operation>(*module, "PutMany", nb::is_final())
      .def(nb::init<nb::handle, nb::handle, uint64_t, bool>(), "keys"_a, "values"_a, nb::kw_only(),
           "ttl_ms"_a = 0, "if_absent"_a = false)
      .def_prop_ro("results", &PutMany::results);
}

void bind_keys(nb::module_* module) {
  nb::class_<KeysOnly, Operation>(*module, "KeysOnly", nb::is_final())
      .def(nb::init<int, nb::handle, uint64_t>(), "opcode"_a, "keys"_a, nb::kw_only(),
           "ttl_ms"_a = 0)
      .def_prop_ro("prefix_length", &KeysOnly::prefix_length)
      .def_prop_ro("present", &KeysOnly::present);
  nb::class_<Retain, Operation>(*module, "Retain", nb::is_final())
      .def(nb::init<nb::handle, uint64_t, bool>(), "keys"_a, nb::kw_only(), "ttl_ms"_a, "hard"_a)
      .def_prop_ro("handles", &Retain::handles);
  nb::class_<Stat, Operation>(*module, "Stat", nb::is_final())
      .def(nb::init<nb::handle>(), "key"_a)
      .def_prop_ro("location", [](const Stat& self) { return self.outcome().location; })
      .def_prop_ro("chunk_count", [](const Stat& self) { return self.outcome().chunk_count; })
      .def_prop_ro("ttl_left_ms", [](const Stat& self) { return self.outcome().ttl_left_ms; })
      .def_prop_ro("value_length", &Stat::value_length)
      .def_prop_ro("version", &Stat::version)
      .def_prop_ro("attributes", &Stat::reply);
  nb::class_<Scan, Operation>(*module, "Scan", nb::is_final())
      .def(nb::init<nb::handle, uint64_t, uint32_t>(), "prefix"_a, "cursor"_a, "count"_a)
      .def_prop_ro("cursor", &Scan::cursor)
      .def_prop_ro("keys", &Scan::keys);
  nb::class_<Admin, Operation>(*module, "Admin", nb::is_final())
      .def(nb::init<nb::str, nb::bytes>(), "name"_a, "payload"_a)
      .def_prop_ro("payload", &Admin::reply);
}

void construct_connection(Connection* self, const std::string& host, uint16_t port,
                          const std::string& unix_path, bool trusts_any_owner,
                          const PythonRegions* regions, const std::string& pool,
                          const std::string& secret, const std::string& client_name,
                          uint32_t credits, std::optional<uint32_t> shard, bool verify,
                          uint32_t spin_us, int64_t timeout_ms) {
  ConnectionOptions options;
  options.host = host;
  options.port = port;
  options.unix_path = unix_path;
  options.trusts_any_owner = trusts_any_owner;
  if (regions != nullptr) {
    options.hello.features = kFeatureRings;
    options.regions = regions->set;
  }
  options.hello.pool = pool;
  options.hello.secret = secret;
  options.hello.client_name = client_name;
  options.hello.credits = credits;
  options.hello.shard = shard.value_or(kNoShard);
  options.verify = verify;
  options.spin_us = spin_us;
  options.timeout_ms = timeout_ms;
  new (self) Connection(options);
}

// What the hello brought, as read-only attributes.
template <auto Member>
auto of_node(const Connection& self) {
  return self.node().*Member;
}

void bind_connection(nb::module_* module) {
  nb::class_<Connection>(*module, "Connection", nb::is_final())
      .def("__init__", construct_connection, "host"_a, "port"_a, nb::kw_only(), "unix_path"_a = "",
           "trusts_any_owner"_a = false, "regions"_a = nb::none(), "pool"_a, "secret"_a,
           "client_name"_a, "credits"_a, "shard"_a.none(), "verify"_a, "spin_us"_a, "timeout_ms"_a)
      .def_prop_ro(
          "status",
          [](const Connection& self) { return static_cast<int>(self.initiator().status()); })
      .def_prop_ro("message", [](const Connection& self) { return self.initiator().message(); })
      .def_prop_ro("credits", [](const Connection& self) { return self.initiator().credits(); })
      .def_prop_ro("shard", of_node<&NodeHello::shard>)
      .def_prop_ro("shard_count", of_node<&NodeHello::shard_count>)
      .def_prop_ro("chunk_bytes", of_node<&NodeHello::chunk_bytes>)
      .def_prop_ro("value_bytes_max", of_node<&NodeHello::value_bytes_max>)
      .def_prop_ro("epoch", of_node<&NodeHello::epoch>)
      .def_prop_ro("rights", of_node<&NodeHello::rights>)
      .def_prop_ro("pool_kind", of_node<&NodeHello::pool_kind>)
      .def_prop_ro("unix_path", of_node<&NodeHello::unix_path>)
      .def_prop_ro("stays_on_host", &Connection::stays_on_host)
      .def_prop_ro("shares_memory", &Connection::shares_memory)
      .def_prop_ro("node_id",
                   [](const Connection& self) {
                     return nb::bytes(self.node().node_id.data(), self.node().node_id.size());
                   })
      .def("execute", &Connection::execute, "operations"_a, "timeout_ms"_a)
      .def("execute_one", &Connection::execute_one, "operation"_a, "timeout_ms"_a)
      .def("fileno", [](const Connection& self) { return self.initiator().fd(); })
      .def("submit", &Connection::submit, "operation"_a)
      .def("progress", &Connection::progress)
      .def("tend", &Connection::tend)
      .def_prop_ro("wants_write",
                   [](const Connection& self) { return self.initiator().wants_write(); })
      .def_prop_ro("unfinished",
                   [](const Connection& self) { return self.initiator().is_unfinished(); })
      .def_prop_ro("in_flight", [](const Connection& self) { return self.initiator().in_flight(); })
      .def("close", &Connection::close)
      .def("abandon", &Connection::abandon);
}

}  // namespace

void bind_client(nb::module_& module) {
  bind_operation(&module);
  bind_reads(&module);
  bind_writes(&module);
  bind_keys(&module);
  bind_connection(&module);
  module.attr("CLOSED") = static_cast<int>(kStatusClosed);
  module.attr("TIMED_OUT") = static_cast<int>(kStatusTimedOut);
}

}  // namespace kvstrata
