// The node's part of the extension module, as store/_kernel.pyi describes it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "store/native/bind.h"
#include "store/native/bind_gil.h"
#include "store/native/node.h"
#include "store/native/node_statistics.h"
#include "store/native/resp_command.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kvstrata {

namespace {

EvictionKind eviction_kind(const std::string& name) {
  if (name == "lru") return EvictionKind::Lru;
  if (name == "s3fifo") return EvictionKind::S3Fifo;
  if (name == "none") return EvictionKind::None;
  throw nb::value_error(("eviction is 'lru', 's3fifo' or 'none', not '" + name + "'").c_str());
}

PoolSettings make_pool(std::string name, bool immutable, const std::string& eviction,
                       uint64_t quota_bytes, uint64_t ttl_ms_default,
                       const std::vector<std::pair<std::string, uint32_t>>& secrets,
                       uint32_t open_rights) {
  PoolSettings settings{std::move(name), immutable,      eviction_kind(eviction),
                        quota_bytes,     ttl_ms_default, {},
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

nb::dict resp_commands_of(const ShardStatistics& shard) {
  nb::dict commands;
  for (const RespCommand& command : resp_commands()) {
    const RespCommandCounters& counters = shard.resp_commands[static_cast<size_t>(command.id)];
    if (counters.calls.value() == 0 && counters.rejected.value() == 0) continue;
    nb::list buckets;
    for (uint32_t bucket = 0; bucket < LatencyHistogram::kBucketCount; ++bucket) {
      buckets.append(counters.latency.bucket(bucket));
    }
    nb::dict each;
    each["calls"] = counters.calls.value();
    each["nanoseconds"] = counters.latency.sum_ns();
    each["failed"] = counters.failed.value();
    each["rejected"] = counters.rejected.value();
    each["buckets"] = buckets;
    commands[nb::str(command.name.data(), command.name.size())] = each;
  }
  return commands;
}

nb::dict resp_errors_of(const ShardStatistics& shard) {
  nb::dict errors;
  for (const auto& [code, count] : shard.resp_errors.counts()) {
    errors[nb::steal<nb::str>(PyUnicode_DecodeUTF8(
        code.data(), static_cast<Py_ssize_t>(code.size()), "backslashreplace"))] = count;
  }
  return errors;
}

nb::dict report_of(const ConnectionReport& report) {
  nb::dict each;
  each["client_id"] = report.client_id;
  each["shard"] = report.shard;
  each["fd"] = report.fd;
  each["peer"] = report.peer;
  each["local"] = report.local;
  each["pool"] = report.pool;
  each["protocol"] = report.speaks_resp ? "resp" : "capsule";
  each["age_s"] = static_cast<double>(report.age_ms) / 1000;
  each["idle_s"] = static_cast<double>(report.idle_ms) / 1000;
  each["input_bytes"] = report.input_bytes;
  each["input_capacity"] = report.input_capacity;
  each["output_bytes"] = report.output_bytes;
  each["received_bytes"] = report.received_bytes;
  each["sent_bytes"] = report.sent_bytes;
  each["commands"] = report.commands;
  each["name"] = report.name;
  each["lib_name"] = report.library_name;
  each["lib_version"] = report.library_version;
  each["last_command"] = report.last_command;
  each["resp_version"] = report.resp_version;
  each["multi_count"] = report.multi_count;
  each["watch_count"] = report.watch_count;
  each["no_evict"] = report.no_evict;
  each["no_touch"] = report.no_touch;
  each["replies_off"] = report.replies_off;
  return each;
}

nb::list connections(Node& node) {
  std::vector<ConnectionReport> reports;
  {
    WithoutGil without_gil;
    reports = node.connections();
  }
  nb::list all;
  for (const ConnectionReport& report : reports) all.append(report_of(report));
  return all;
}

nb::list slow_commands(const Node& node) {
  nb::list all;
  for (const RespJournal::SlowCommand& slow : node.resp_journal().slow_commands()) {
    nb::list arguments;
    for (const std::string& text : slow.arguments) {
      arguments.append(nb::bytes(text.data(), text.size()));
    }
    nb::dict each;
    each["id"] = slow.id;
    each["time_s"] = slow.time_s;
    each["microseconds"] = slow.microseconds;
    each["arguments"] = arguments;
    each["peer"] = slow.peer;
    each["name"] = slow.name;
    each["pool"] = slow.pool;
    all.append(each);
  }
  return all;
}

nb::dict latency_spikes(const Node& node) {
  nb::dict all;
  for (const auto& [event, spikes] : node.resp_journal().spikes()) {
    nb::list each;
    for (const auto& [time_s, milliseconds] : spikes) {
      each.append(nb::make_tuple(time_s, milliseconds));
    }
    all[event.c_str()] = each;
  }
  return all;
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
  options.huge_pages = flag("huge_pages");
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

// The node and, until they are answered, the administrative calls Python has taken.
class PythonNode {
 public:
  PythonNode(const NodeOptions& options, const std::vector<PoolSettings>& pools) {
    std::string error;
    {
      WithoutGil without_gil;
      node_ = Node::create(options, &error);
    }
    if (node_ == nullptr) {
      PyErr_SetString(PyExc_OSError, error.c_str());
      throw nb::python_error();
    }
    for (const PoolSettings& pool : pools) {
      error = node_->set_pool(pool);
      if (!error.empty()) throw nb::value_error(error.c_str());
    }
  }
  ~PythonNode() {
    WithoutGil without_gil;
    // A forked child has none of the threads, and what it shares with them must be left alone.
    if (::getpid() != process_) static_cast<void>(node_.release());
    node_.reset();
  }

  Node& node() noexcept { return *node_; }
  bool stop(uint64_t timeout_ms) {
    WithoutGil without_gil;
    return node_->stop(timeout_ms);
  }
  nb::object next_admin_call() {
    std::optional<AdminCall> call = node_->admin().pop();
    return call.has_value() ? nb::cast(std::move(*call)) : nb::none();
  }

 private:
  std::unique_ptr<Node> node_;
  pid_t process_ = ::getpid();
};

}  // namespace

void bind_node(nb::module_& module) {
  nb::class_<PoolSettings>(module, "PoolOptions", nb::is_final())
      .def(
          "__init__",
          [](PoolSettings* self, std::string name, bool immutable, const std::string& eviction,
             uint64_t quota_bytes, uint64_t ttl_ms_default,
             const std::vector<std::pair<std::string, uint32_t>>& secrets, uint32_t open_rights) {
            new (self) PoolSettings(make_pool(std::move(name), immutable, eviction, quota_bytes,
                                              ttl_ms_default, secrets, open_rights));
          },
          "name"_a, nb::kw_only(), "immutable"_a, "eviction"_a, "quota_bytes"_a, "ttl_ms_default"_a,
          "secrets"_a, "open_rights"_a);
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
  nb::class_<PythonNode>(module, "Node", nb::is_final())
      .def(nb::init<const NodeOptions&, const std::vector<PoolSettings>&>(), "options"_a, "pools"_a)
      .def_prop_ro("port", [](PythonNode& self) { return self.node().port(); })
      .def_prop_ro("node_id", [](PythonNode& self) { return to_bytes(self.node().node_id()); })
      .def("start", [](PythonNode& self) { self.node().start(); })
      .def("stop", &PythonNode::stop, "timeout_ms"_a)
      .def("set_pool",
           [](PythonNode& self, const PoolSettings& pool) { return self.node().set_pool(pool); })
      .def("drop_pool",
           [](PythonNode& self, const std::string& name) { return self.node().drop_pool(name); })
      .def("statistics", [](PythonNode& self) { return statistics(self.node()); })
      .def("connections", [](PythonNode& self) { return connections(self.node()); })
      .def(
          "kill_connections",
          [](PythonNode& self, const std::vector<uint64_t>& client_ids) {
            WithoutGil without_gil;
            return self.node().kill_connections(client_ids);
          },
          "client_ids"_a)
      .def("slow_commands", [](PythonNode& self) { return slow_commands(self.node()); })
      .def("clear_slow_commands",
           [](PythonNode& self) { self.node().resp_journal().clear_slow_commands(); })
      .def(
          "set_slow_log",
          [](PythonNode& self, int64_t threshold_us, uint64_t length_max) {
            self.node().resp_journal().set_slow_log(threshold_us, length_max);
          },
          "threshold_us"_a, "length_max"_a)
      .def("latency_spikes", [](PythonNode& self) { return latency_spikes(self.node()); })
      .def(
          "clear_latency_spikes",
          [](PythonNode& self, const std::vector<std::string>& events) {
            return self.node().resp_journal().clear_spikes(events);
          },
          "events"_a)
      .def(
          "set_latency_threshold",
          [](PythonNode& self, uint64_t milliseconds) {
            self.node().resp_journal().set_spike_threshold(milliseconds);
          },
          "milliseconds"_a)
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
