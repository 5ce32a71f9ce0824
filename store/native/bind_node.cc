// The node's part of the extension module, as store/_kernel.pyi describes it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cerrno>
#include <utility>

#include "store/native/bind.h"
#include "store/native/bind_gil.h"
#include "store/native/bind_python_node.h"
#include "store/native/node.h"
#include "store/native/node_statistics.h"

using namespace nanobind::literals;

namespace kvstrata {

namespace {

EvictionKind eviction_kind(const std::string& name) {
  if (name == "lru") return EvictionKind::Lru;
  if (name == "s3fifo") return EvictionKind::S3Fifo;
  if (name == "none") return EvictionKind::None;
  throw nb::value_error(("eviction is 'lru', 's3fifo' or 'none', not '" + name + "'").c_str());
}

HugePages huge_pages(const std::string& name) {
  if (name == "auto") return HugePages::Auto;
  if (name == "off") return HugePages::Off;
  if (name == "transparent") return HugePages::Transparent;
  if (name == "explicit") return HugePages::Explicit;
  throw nb::value_error(
      ("huge_pages is 'auto', 'off', 'transparent' or 'explicit', not '" + name + "'").c_str());
}

PoolSettings make_pool(std::string name, bool immutable, const std::string& eviction,
                       uint64_t quota_bytes, uint64_t ttl_ms_default, uint64_t retained_bytes_max,
                       const std::vector<std::pair<std::string, uint32_t>>& secrets,
                       uint32_t open_rights) {
  PoolSettings settings{std::move(name),
                        immutable,
                        eviction_kind(eviction),
                        quota_bytes,
                        ttl_ms_default,
                        retained_bytes_max,
                        {},
                        open_rights};
  for (const auto& [text, rights] : secrets) settings.secrets.push_back({text, rights});
  return settings;
}

nb::bytes to_bytes(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// `owners` are pointers of some kind to what has the counters.
template <typename Table, typename Owners>
void add_counters(const Table& table, const Owners& owners, nb::dict* into) {
  for (const auto& [name, member] : table) {
    uint64_t sum = 0;
    for (const auto& owner : owners) sum += ((*owner).*member).value();
    (*into)[nb::str(name.data(), name.size())] = sum;
  }
}

nb::dict latency_of(const ShardStatistics& shard) {
  nb::dict latency;
  for (size_t kind = 0; kind < kLatencyNames.size(); ++kind) {
    nb::list buckets;
    for (uint32_t bucket = 0; bucket < LatencyHistogram::kBucketCount; ++bucket) {
      buckets.append(shard.latency[kind].bucket(bucket));
    }
    nb::dict histogram;
    histogram["buckets"] = buckets;
    histogram["sum_ns"] = shard.latency[kind].sum_ns();
    latency[nb::str(kLatencyNames[kind].data(), kLatencyNames[kind].size())] = histogram;
  }
  return latency;
}

nb::dict memory_of(const Node& node) {
  SegmentPoolStatistics memory = node.memory();
  nb::dict result;
  result["memory_bytes"] = memory.memory_bytes;
  result["segment_bytes"] = memory.segment_bytes;
  result["segment_count"] = memory.segment_count;
  result["free_count"] = memory.free_count;
  result["populated_count"] = memory.populated_count;
  result["huge_pages"] = memory.huge_pages;
  result["buffered_bytes"] = node.buffered_bytes();
  result["region_bytes"] = node.region_bytes();
  return result;
}

nb::dict statistics(const Node& node) {
  nb::list shards;
  for (const ShardStatistics* shard : node.shards()) {
    nb::dict each;
    add_counters(kShardCounters, std::array{shard}, &each);
    each["latency"] = latency_of(*shard);
    each["resp_commands"] = resp_commands_of(*shard);
    each["errors"] = resp_errors_of(*shard);
    shards.append(each);
  }
  nb::dict pools;
  for (const Node::PoolReport& pool : node.pools()) {
    nb::dict each;
    each["immutable"] = pool.settings.immutable;
    each["quota_bytes"] = pool.settings.quota_bytes;
    add_counters(kPoolCounters, pool.by_shard, &each);
    pools[pool.settings.name.c_str()] = each;
  }
  nb::dict result;
  result["memory"] = memory_of(node);
  result["shards"] = shards;
  result["pools"] = pools;
  return result;
}

NodeOptions make_options(const nb::kwargs& arguments) {
  auto text = [&](const char* name) { return nb::cast<std::string>(arguments[name]); };
  auto number = [&](const char* name) { return nb::cast<uint64_t>(arguments[name]); };
  auto flag = [&](const char* name) { return nb::cast<bool>(arguments[name]); };
  NodeOptions options;
  options.host = text("host");
  options.port = nb::cast<uint16_t>(arguments["port"]);
  options.shard_count = nb::cast<uint32_t>(arguments["shard_count"]);
  options.memory_bytes = number("memory_bytes");
  options.populate_full = flag("populate_full");
  options.huge_pages = huge_pages(text("huge_pages"));
  options.reactor = flag("uring") ? ReactorKind::Uring : ReactorKind::Epoll;
  options.spin_us = nb::cast<uint32_t>(arguments["spin_us"]);
  options.credits = nb::cast<uint32_t>(arguments["credits"]);
  options.connection_count_max = nb::cast<uint32_t>(arguments["connection_count_max"]);
  options.connection_bytes_max = number("connection_bytes_max");
  options.buffer_bytes_max = number("buffer_bytes_max");
  options.minimum_rate = number("minimum_rate");
  options.stall_ms_max = number("stall_ms_max");
  return options;
}

}  // namespace

void bind_node(nb::module_& module) {
  nb::class_<PoolSettings>(module, "PoolOptions", nb::is_final())
      .def(
          "__init__",
          [](PoolSettings* self, std::string name, bool immutable, const std::string& eviction,
             uint64_t quota_bytes, uint64_t ttl_ms_default, uint64_t retained_bytes_max,
             const std::vector<std::pair<std::string, uint32_t>>& secrets, uint32_t open_rights) {
            new (self)
                PoolSettings(make_pool(std::move(name), immutable, eviction, quota_bytes,
                                       ttl_ms_default, retained_bytes_max, secrets, open_rights));
          },
          "name"_a, nb::kw_only(), "immutable"_a, "eviction"_a, "quota_bytes"_a, "ttl_ms_default"_a,
          "retained_bytes_max"_a, "secrets"_a, "open_rights"_a);
  nb::class_<NodeOptions>(module, "NodeOptions", nb::is_final())
      .def("__init__", [](NodeOptions* self, const nb::kwargs& arguments) {
        new (self) NodeOptions(make_options(arguments));
      });
  nb::class_<AdminCall>(module, "AdminCall", nb::is_final())
      .def_ro("call_id", &AdminCall::id)
      .def_prop_ro(
          "name",
          [](const AdminCall& self) {
            // Whatever bytes a client sent: nothing in them may stop who answers.
            return nb::steal<nb::str>(PyUnicode_DecodeUTF8(
                self.name.data(), static_cast<Py_ssize_t>(self.name.size()), "backslashreplace"));
          })
      .def_prop_ro("payload", [](const AdminCall& self) { return to_bytes(self.payload); })
      .def_prop_ro("arguments",
                   [](const AdminCall& self) {
                     nb::list all;
                     for (const std::string& text : self.arguments) {
                       all.append(nb::bytes(text.data(), text.size()));
                     }
                     return all;
                   })
      .def_ro("resp_version", &AdminCall::resp_version)
      .def_ro("client_id", &AdminCall::client_id)
      .def_ro("pool", &AdminCall::pool)
      .def_ro("rights", &AdminCall::rights)
      .def_ro("peer", &AdminCall::peer);
  nb::class_<PythonNode> node(module, "Node", nb::is_final());
  bind_observation(node);
  node.def(nb::init<const NodeOptions&, const std::vector<PoolSettings>&>(), "options"_a, "pools"_a)
      .def_prop_ro("port", [](PythonNode& self) { return self.node().port(); })
      .def_prop_ro("node_id", [](PythonNode& self) { return to_bytes(self.node().node_id()); })
      .def("listen_unix", &PythonNode::listen_unix, "path"_a)
      .def_prop_ro("unix_path", [](PythonNode& self) { return self.node().unix_path(); })
      .def("start", [](PythonNode& self) { self.node().start(); })
      .def("stop", &PythonNode::stop, "timeout_ms"_a)
      .def("set_pool",
           [](PythonNode& self, const PoolSettings& pool) { return self.node().set_pool(pool); })
      .def("drop_pool",
           [](PythonNode& self, const std::string& name) { return self.node().drop_pool(name); })
      .def("statistics", [](PythonNode& self) { return statistics(self.node()); })
      .def("admin_fileno", [](PythonNode& self) { return self.node().admin().fd(); })
      .def("next_admin_call", &PythonNode::next_admin_call)
      .def(
          "complete",
          [](PythonNode& self, const AdminCall& call, int status, const nb::bytes& payload) {
            auto* data = static_cast<const std::byte*>(payload.data());
            self.node().complete_admin(call, static_cast<Status>(status),
                                       {data, data + payload.size()});
          },
          "call"_a, "status"_a, "payload"_a);
}

}  // namespace kvstrata
