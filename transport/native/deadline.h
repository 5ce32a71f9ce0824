// A point in time by which a wait must have ended.
#pragma once

#include <chrono>
#include <cstdint>

namespace kvstrata {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after_ms(int64_t milliseconds) {
    return Deadline(Clock::now() + std::chrono::milliseconds(milliseconds));
  }
  // The nearer of this deadline and `milliseconds` from now.
  Deadline at_most_ms(int64_t milliseconds) const {
    Deadline other = after_ms(milliseconds);
    return other.end_ < end_ ? other : *this;
  }
  bool passed() const { return Clock::now() >= end_; }
  // Rounded up, so that a wait of this length ends behind the deadline; never negative.
  int64_t left_ms() const {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return left > 0 ? left : 0;
  }

 private:
  explicit Deadline(Clock::time_point end) : end_(end) {}
  Clock::time_point end_;
};

}  // namespace kvstrata
