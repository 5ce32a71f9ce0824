// The load generator's part of the extension module.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "store/native/bind.h"
#include "store/native/bind_gil.h"
#include "store/native/load_driver.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kvstrata {

namespace {

LoadOptions make_options(const nb::kwargs& arguments) {
  auto text = [&](const char* name) { return nb::cast<std::string>(arguments[name]); };
  auto number = [&](const char* name) { return nb::cast<uint64_t>(arguments[name]); };
  LoadOptions options;
  options.host = text("host");
  options.port = nb::cast<uint16_t>(arguments["port"]);
  options.hello.pool = text("pool");
  options.hello.secret = text("secret");
  options.hello.client_name = "kvstrata bench";
  options.verify = nb::cast<bool>(arguments["verify"]);
  options.timeout_ms = nb::cast<int64_t>(arguments["timeout_ms"]);
  options.connection_count = nb::cast<uint32_t>(arguments["connection_count"]);
  options.depth = nb::cast<uint32_t>(arguments["depth"]);
  options.hello.credits = options.depth;
  options.key_prefix = text("key_prefix");
  options.key_count = number("key_count");
  options.in_turn = nb::cast<bool>(arguments["in_turn"]);
  options.opcode = static_cast<Opcode>(nb::cast<uint8_t>(arguments["opcode"]));
  options.put_percent = nb::cast<uint32_t>(arguments["put_percent"]);
  options.value_bytes = number("value_bytes");
  options.command_count = number("command_count");
  options.seed = number("seed");
  return options;
}

// Failures are kept as status and message, as those of a Connection are.
class PythonLoadDriver {
 public:
  explicit PythonLoadDriver(const nb::kwargs& arguments) {
    LoadOptions options = make_options(arguments);
    WithoutGil without_gil;
    driver_ = LoadDriver::create(std::move(options), &status_, &message_);
  }

  bool advance(int64_t milliseconds) {
    if (driver_ == nullptr || status_ != Status::Ok) return true;
    WithoutGil without_gil;
    Status status = driver_->advance(milliseconds, &message_);
    if (status == Status::Busy && message_.empty()) return false;
    status_ = status;
    return true;
  }

  void finish_early() {
    if (driver_ != nullptr) driver_->finish_early();
  }

  int status() const { return static_cast<int>(status_); }
  const std::string& message() const { return message_; }

  nb::dict report() const {
    nb::dict result;
    if (driver_ == nullptr) return result;
    const LoadReport& report = driver_->report();
    nb::list buckets;
    for (uint32_t i = 0; i < LatencyHistogram::kBucketCount; ++i) {
      buckets.append(report.latency.bucket(i));
    }
    result["completed_count"] = report.completed_count;
    result["absent_count"] = report.absent_count;
    result["value_bytes"] = report.value_bytes;
    result["elapsed_ns"] = report.elapsed_ns;
    result["latency_buckets"] = buckets;
    result["latency_sum_ns"] = report.latency.sum_ns();
    return result;
  }

 private:
  std::unique_ptr<LoadDriver> driver_;
  Status status_ = Status::Ok;
  std::string message_;
};

}  // namespace

void bind_load(nb::module_& module) {
  nb::class_<PythonLoadDriver>(module, "LoadDriver", nb::is_final())
      .def(nb::init<nb::kwargs>())
      .def("advance", &PythonLoadDriver::advance, "milliseconds"_a)
      .def("finish_early", &PythonLoadDriver::finish_early)
      .def("report", &PythonLoadDriver::report)
      .def_prop_ro("status", &PythonLoadDriver::status)
      .def_prop_ro("message", &PythonLoadDriver::message);
}

}  // namespace kvstrata
