// What a node remembers of Valkey clients' commands that were slow: the latest of them, and delays.
//
// Shared by all shards under a lock, which only what is slow takes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/native/resp_arguments.h"

namespace kvstrata {

class RespJournal {
 public:
  struct SlowCommand {
    uint64_t id = 0;
    int64_t time_s = 0;  // Unix time.
    uint64_t microseconds = 0;
    std::vector<std::string> arguments;  // Shortened.
    std::string peer;
    std::string name;  // Of the client.
    std::string pool;
  };
  // (Unix time in seconds, the longest delay of that second in milliseconds.)
  using Spikes = std::deque<std::pair<int64_t, uint64_t>>;

  // Whether a command that took so long is of any interest here.
  bool is_slow(uint64_t nanoseconds) const noexcept {
    return nanoseconds >= interesting_ns_.load(std::memory_order_relaxed);
  }
  void note_slow(const RespArguments& arguments, uint64_t nanoseconds, const std::string& peer,
                 const std::string& name, const std::string& pool, bool is_fast_command);

  // Newest first.
  std::vector<SlowCommand> slow_commands() const;
  void clear_slow_commands();
  // Microseconds from which a command is slow, negative for none; how many are kept.
  void set_slow_log(int64_t threshold_us, uint64_t length_max);

  std::map<std::string, Spikes> spikes() const;
  // All of them if none is named; how many there were.
  uint64_t clear_spikes(const std::vector<std::string>& events);
  // 0: none are noted.
  void set_spike_threshold(uint64_t milliseconds);

 private:
  void update_interest() noexcept;

  mutable std::mutex mutex_;
  std::atomic<uint64_t> interesting_ns_{10'000'000};
  int64_t slow_us_ = 10'000;
  uint64_t slow_count_max_ = 128;
  uint64_t spike_ms_ = 0;
  uint64_t next_id_ = 0;
  std::deque<SlowCommand> slow_;  // Oldest first.
  std::map<std::string, Spikes> spikes_;
};

}  // namespace kvstrata
