// When a client waits for an answer by looking again and again instead of sleeping: as long as
// recent answers came about as fast as it is willing to spin.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kvstrata {

// Lets others on this processor go first, and costs next to nothing when nobody waits. Without it a
// spinning or copying thread would keep one that just woke up out for a whole slice: milliseconds.
inline void give_way() noexcept { ::sched_yield(); }

// A moment of a loop that only looks: leaves the core's units to whoever shares them.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SpinPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SpinPolicy(uint32_t spin_us) : budget_(std::chrono::microseconds(spin_us)) {}

  // A slept-through wait contains the wake-up, which spinning would have saved: hence twice the
  // budget.
  bool worthwhile() const noexcept { return average_ <= 2 * budget_; }
  bool enabled() const noexcept { return budget_.count() != 0; }
  Clock::duration budget() const noexcept { return budget_; }
  void observe(Clock::duration wait) noexcept {
    average_ += (std::min(wait, 16 * budget_) - average_) / 8;
  }

 private:
  Clock::duration budget_;
  Clock::duration average_{};
};

}  // namespace kvstrata
