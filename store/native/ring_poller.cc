#include "store/native/ring_poller.h"

#include <algorithm>

#include "store/native/ring_channel.h"
#include "transport/native/spin.h"

namespace kvstrata {

namespace {

// One that had no work for so long is not worth a look in every turn.
constexpr uint64_t kRestNs = 200'000;
constexpr int kLooks = 32;

}  // namespace

void RingPoller::add(RingChannel* channel) {
  if (channel->is_polled) return;
  channel->is_polled = true;
  channel->worked_ns = 0;
  polled_.push_back(channel);
}

void RingPoller::remove(RingChannel* channel) noexcept {
  if (!channel->is_polled) return;
  channel->is_polled = false;
  std::erase(polled_, channel);
}

bool RingPoller::has_work() const noexcept {
  return std::ranges::any_of(polled_, [](RingChannel* channel) { return channel->has_work(); });
}

bool RingPoller::linger() const noexcept {
  for (int look = 0; look < kLooks && !polled_.empty(); ++look) {
    if (has_work()) return true;
    relax();
  }
  return false;
}

bool RingPoller::visit(RingChannel* channel, uint64_t now_ns) {
  if (channel->has_work()) {
    channel->worked_ns = now_ns;
    channel->work();
    return true;
  }
  if (channel->worked_ns == 0) channel->worked_ns = now_ns;
  if (now_ns - channel->worked_ns > kRestNs && channel->may_sleep()) remove(channel);
  return false;
}

bool RingPoller::may_sleep() noexcept {
  for (RingChannel* channel : polled_) {
    if (!channel->may_sleep()) return false;
  }
  for (RingChannel* channel : polled_) channel->is_polled = false;
  polled_.clear();
  return true;
}

}  // namespace kvstrata
