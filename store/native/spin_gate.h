// Decides whether a shard looks for work again at once instead of sleeping.
//
// Spinning pays where the next request comes within the budget, which is seen from the gaps of
// late; it never pays while bulk data flows, since the peer needs the core to read them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvstrata {

class SpinGate {
 public:
  explicit SpinGate(uint64_t budget_ns) : budget_ns_(budget_ns) {}

  void note_work(uint64_t now_ns, bool bulk) noexcept {
    uint64_t gap = now_ns - last_work_ns_;
    // A few requests in close order open the gate, one long gap shuts it.
    if (bulk || gap > 2 * budget_ns_) {
      close_gaps_ = 0;
    } else {
      close_gaps_ = std::min(close_gaps_ + 1, kOpenAt);
    }
    last_work_ns_ = now_ns;
  }
  // `now_ns` may be the time of a turn's beginning, with the work noted at its end.
  bool open(uint64_t now_ns) const noexcept {
    return close_gaps_ == kOpenAt && now_ns <= last_work_ns_ + budget_ns_;
  }

 private:
  static constexpr uint32_t kOpenAt = 4;
  uint64_t budget_ns_;
  uint64_t last_work_ns_ = 0;
  uint32_t close_gaps_ = 0;
};

}  // namespace kvstrata
