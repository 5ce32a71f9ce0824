// A load generator: one thread, many connections, each with so many commands in flight, for keys
// drawn at random or in turn. Native, so that a node can be measured instead of an interpreter.
//
// The first command that fails ends the run; absent keys are counted, not failures.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/native/statistics.h"
#include "transport/native/hello.h"
#include "transport/native/initiator.h"

namespace kvstrata {

struct LoadOptions {
  std::string host;
  uint16_t port = 0;
  ClientHello hello;
  bool verify = true;
  int64_t timeout_ms = 0;  // For connecting, and until some command completes.
  uint32_t connection_count = 0;
  uint32_t depth = 0;      // Commands in flight on each connection.
  std::string key_prefix;  // Followed by the key's number in 12 decimal digits.
  uint64_t key_count = 0;
  bool in_turn = false;  // Keys one after another, not at random.
  Opcode opcode = Opcode::Get;
  uint32_t put_percent = 0;  // Of the commands, puts instead of `opcode`.
  uint64_t value_bytes = 0;  // Size of what is put; no value that is read may be larger.
  uint64_t command_count = 0;
  uint64_t seed = 0;
};

struct LoadReport {
  uint64_t completed_count = 0;
  uint64_t absent_count = 0;
  uint64_t value_bytes = 0;  // Read and written.
  uint64_t elapsed_ns = 0;
  LatencyHistogram latency;
};

class LoadDriver {
 public:
  // Connects. Null on failure; `error` says why.
  static std::unique_ptr<LoadDriver> create(LoadOptions options, Status* status,
                                            std::string* error);
  ~LoadDriver();

  // Drives the load for about so long. Returns: Ok when all commands have completed; Busy while
  // some are left; the status of the first that failed, and `error` says why.
  Status advance(int64_t milliseconds, std::string* error);
  // Begins no further commands; those in flight still complete.
  void finish_early() noexcept { begun_count_ = options_.command_count; }

  const LoadReport& report() const noexcept { return report_; }

 private:
  class Lane;
  class Link;
  using Clock = std::chrono::steady_clock;

  explicit LoadDriver(LoadOptions options);
  bool connect(Status* status, std::string* error);
  bool wait_and_work(Clock::time_point until);
  bool work(Link* link);
  void begin(Lane* lane);
  void finished(const Lane& lane);

  LoadOptions options_;
  LoadReport report_;
  std::mt19937_64 random_;
  std::vector<std::byte> value_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Link*> eager_;  // Had more to do when others got their turn.
  int epoll_ = -1;
  uint64_t begun_count_ = 0;
  uint64_t in_flight_count_ = 0;
  Clock::time_point last_completion_;
  Status failure_ = Status::Ok;
  std::string why_;
};

}  // namespace kvstrata
