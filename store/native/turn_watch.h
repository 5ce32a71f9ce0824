// Counts turns of a loop that took too long of the thread's own time.
//
// On a shared machine a thread is preempted in the middle of a turn; that is not the loop's doing.
// So a long turn by the clock counts only if the processor time agrees; the latter costs a system
// call and is sampled when turns are long or bulk data flow.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <cstdint>

namespace kvstrata {

class TurnWatch {
 public:
  static constexpr uint64_t kStallNs = 200'000;

  static uint64_t monotonic_ns() noexcept { return read(CLOCK_MONOTONIC); }
  static uint64_t thread_ns() noexcept { return read(CLOCK_THREAD_CPUTIME_ID); }

  void begin(uint64_t now_ns) noexcept {
    begin_ns_ = now_ns;
    sampled_ = sample_next_;
    if (sampled_) thread_begin_ns_ = thread_ns();
  }
  // Returns the turn's length if it was a stall, else 0.
  uint64_t end(uint64_t now_ns) noexcept {
    uint64_t length = now_ns - begin_ns_;
    sample_next_ = length > kStallNs / 8;
    if (length <= kStallNs) return 0;
    // A first long turn has no sample: it counts by the clock, unless the thread was preempted of
    // late.
    if (!sampled_) return preempted() ? 0 : length;
    uint64_t own = thread_ns() - thread_begin_ns_;
    return own > kStallNs ? own : 0;
  }

 private:
  static uint64_t read(clockid_t clock) noexcept {
    timespec time;
    ::clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<uint64_t>(time.tv_nsec);
  }
  bool preempted() noexcept {
    rusage usage;
    ::getrusage(RUSAGE_THREAD, &usage);
    bool changed = usage.ru_nivcsw != preemptions_;
    preemptions_ = usage.ru_nivcsw;
    return changed;
  }
  uint64_t begin_ns_ = 0;
  long preemptions_ = 0;
  uint64_t thread_begin_ns_ = 0;
  bool sampled_ = false;
  bool sample_next_ = false;
};

}  // namespace kvstrata
