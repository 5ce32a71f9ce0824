// The rings of a shard that were in use of late: a turn of its loop looks at each, which takes a
// load and no system call. All others sleep, and cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvstrata {

class RingChannel;

class RingPoller {
 public:
  void add(RingChannel* channel);
  void remove(RingChannel* channel) noexcept;

  bool empty() const noexcept { return polled_.empty(); }
  bool has_work() const noexcept;
  // Looks for a moment, of about a microsecond, whether work comes.
  bool linger() const noexcept;
  // Does the work of those that have some, each in turn, until `enough()`. Puts to sleep those that
  // had none for a while. Returns how many had some.
  template <typename Enough>
  uint32_t work(uint64_t now_ns, Enough enough) {
    uint32_t worked = 0;
    for (size_t left = polled_.size(); left != 0 && !polled_.empty() && !enough(); --left) {
      next_ = next_ < polled_.size() ? next_ : 0;
      if (visit(polled_[next_], now_ns)) ++worked;
      ++next_;
    }
    return worked;
  }
  // True if all of them sleep now. Else some has work.
  bool may_sleep() noexcept;

 private:
  bool visit(RingChannel* channel, uint64_t now_ns);

  std::vector<RingChannel*> polled_;
  size_t next_ = 0;  // Whose turn it is.
};

}  // namespace kvstrata
