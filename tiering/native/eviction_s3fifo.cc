#include "tiering/native/eviction_s3fifo.h"

namespace kvstrata {
namespace {

constexpr uint8_t kUsesMask = 3;
constexpr uint8_t kInMain = 4;
constexpr uint8_t kUsesToStay = 2;
constexpr uint64_t kSmallShare = 10;
// A call gives up looking for an unused record after so many that were used: each costs a visit
// to memory, and the shard has others to serve.
constexpr uint32_t kStepCountMax = 128;

}  // namespace

void S3FifoPolicy::on_insert(uint64_t location, uint64_t hash, uint64_t) noexcept {
  const uint8_t flags = ghosts_.erase(hash) ? kInMain : 0;
  EvictionState state{.frequency = flags};
  state.word = queue_of(state).push(location);
  source_->set_state(location, state);
}

void S3FifoPolicy::on_access(uint64_t location) noexcept {
  EvictionState state = source_->state(location);
  if ((state.frequency & kUsesMask) == kUsesMask) return;
  ++state.frequency;
  source_->set_state(location, state);
}

void S3FifoPolicy::on_remove(uint64_t location, uint64_t) noexcept {
  const EvictionState state = source_->state(location);
  if (state.word != EvictionQueue::kNoPosition) queue_of(state).remove(state.word);
}

void S3FifoPolicy::on_move(uint64_t, uint64_t new_location) noexcept {
  const EvictionState state = source_->state(new_location);
  if (state.word != EvictionQueue::kNoPosition) queue_of(state).replace(state.word, new_location);
}

// Without a place in a queue, like a record that found no memory for one.
void S3FifoPolicy::set_aside(uint64_t location) noexcept {
  EvictionState state = source_->state(location);
  if (state.word == EvictionQueue::kNoPosition) return;
  queue_of(state).remove(state.word);
  state.word = EvictionQueue::kNoPosition;
  source_->set_state(location, state);
}

// At the end of the queue that it was in, with the uses it had and those since.
void S3FifoPolicy::put_back(uint64_t location) noexcept {
  EvictionState state = source_->state(location);
  state.word = queue_of(state).push(location);
  source_->set_state(location, state);
}

uint64_t S3FifoPolicy::victim() noexcept {
  for (uint32_t step = 0; step < kStepCountMax; ++step) {
    const bool from_small = is_small_due();
    const uint64_t location = (from_small ? small_ : main_).front();
    if (location == 0) break;
    const EvictionState state = source_->state(location);
    const uint8_t uses = state.frequency & kUsesMask;
    if (from_small) {
      if (uses >= kUsesToStay && requeue_in_main(location, state, 0)) continue;
      ghosts_.fit(small_.size() + main_.size());
      ghosts_.insert(source_->hash(location));
      return location;
    }
    if (uses == 0 || !requeue_in_main(location, state, uses - 1)) return location;
  }
  if (main_.size() > 0) return main_.front();
  if (small_.size() > 0) return small_.front();
  // Only records that found no memory for a queue entry can be left.
  uint64_t location = 0;
  source_->sample(1, &location);
  return location;
}

uint64_t S3FifoPolicy::memory_bytes() const noexcept {
  return sizeof(*this) + small_.memory_bytes() + main_.memory_bytes() + ghosts_.memory_bytes();
}

bool S3FifoPolicy::is_small_due() const {
  if (small_.size() == 0) return false;
  return main_.size() == 0 || small_.size() * kSmallShare >= small_.size() + main_.size();
}

// False when the heap is exhausted; nothing has changed then.
bool S3FifoPolicy::requeue_in_main(uint64_t location, EvictionState state, uint8_t uses) {
  const uint32_t position = main_.push(location);
  if (position == EvictionQueue::kNoPosition) return false;
  queue_of(state).remove(state.word);
  source_->set_state(location,
                     {.word = position, .frequency = static_cast<uint8_t>(kInMain | uses)});
  return true;
}

EvictionQueue& S3FifoPolicy::queue_of(EvictionState state) {
  return (state.frequency & kInMain) != 0 ? main_ : small_;
}

}  // namespace kvstrata
