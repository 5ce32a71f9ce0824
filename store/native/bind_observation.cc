// What a node tells of its connections and of Valkey clients' commands, as store/_kernel.pyi
// describes it.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "store/native/bind_python_node.h"
#include "store/native/resp_command.h"

using namespace nanobind::literals;

namespace kvstrata {

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

namespace {

nb::dict report_of(const ConnectionReport& report) {
  nb::dict each;
  each["client_id"] = report.client_id;
  each["shard"] = report.shard;
  each["fd"] = report.fd;
  each["peer"] = report.peer.name;
  each["peer_uid"] = report.peer.uid;
  std::string_view transport = transport_name(report.peer.transport);
  each["transport"] = nb::str(transport.data(), transport.size());
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

}  // namespace

void bind_observation(nb::class_<PythonNode>& node) {
  node.def("connections", [](PythonNode& self) { return connections(self.node()); })
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
          "milliseconds"_a);
}

}  // namespace kvstrata
