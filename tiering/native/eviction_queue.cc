#include "tiering/native/eviction_queue.h"

#include <cassert>
#include <new>

namespace kvstrata {
namespace {

constexpr uint32_t kChunkEntryCount = 256;
constexpr uint32_t kNoChunk = UINT32_MAX;
// The last chunk id would make a position look like kNoPosition.
constexpr uint32_t kChunkCountMax = UINT32_MAX / kChunkEntryCount;

}  // namespace

struct EvictionQueue::Chunk {
  uint32_t previous = kNoChunk;
  uint32_t next = kNoChunk;
  uint32_t begin = 0;  // The first entry that is not a hole, or `end`.
  uint32_t end = 0;    // Entries are appended here.
  uint32_t count = 0;  // Without holes.
  // Location / 8 in 40 bits; 0 is a hole.
  uint32_t low[kChunkEntryCount];
  uint8_t high[kChunkEntryCount];

  uint64_t at(uint32_t index) const { return (uint64_t{high[index]} << 32 | low[index]) << 3; }
  void set(uint32_t index, uint64_t location) {
    low[index] = static_cast<uint32_t>(location >> 3);
    high[index] = static_cast<uint8_t>(location >> 35);
  }
  void skip_holes() {
    while (begin < end && at(begin) == 0) ++begin;
  }
};

EvictionQueue::EvictionQueue(EvictionSource* source)
    : source_(source), first_free_(kNoChunk), head_(kNoChunk), tail_(kNoChunk) {}
EvictionQueue::~EvictionQueue() = default;

uint64_t EvictionQueue::memory_bytes() const {
  return chunk_count_ * sizeof(Chunk) + places_.capacity() * sizeof(Place);
}

uint64_t EvictionQueue::front() const {
  return size_ == 0 ? 0 : chunk(head_).at(chunk(head_).begin);
}

uint32_t EvictionQueue::push(uint64_t location) {
  assert(location != 0 && location % 8 == 0);
  if (tail_ == kNoChunk || chunk(tail_).end == kChunkEntryCount) {
    if (!append_chunk()) return kNoPosition;
  }
  Chunk& tail = chunk(tail_);
  const uint32_t index = tail.end++;
  tail.set(index, location);
  ++tail.count;
  ++size_;
  return tail_ * kChunkEntryCount + index;
}

void EvictionQueue::remove(uint32_t position) {
  const uint32_t id = position / kChunkEntryCount;
  Chunk& holder = chunk(id);
  assert(holder.at(position % kChunkEntryCount) != 0);
  holder.set(position % kChunkEntryCount, 0);
  holder.skip_holes();
  --holder.count;
  --size_;
  if (holder.count == 0) {
    release(id);
    return;
  }
  const uint32_t next = holder.next;
  join_if_small(holder.previous, id);
  if (places_[id].chunk != nullptr) join_if_small(id, next);
}

void EvictionQueue::replace(uint32_t position, uint64_t location) {
  assert(chunk(position / kChunkEntryCount).at(position % kChunkEntryCount) != 0);
  chunk(position / kChunkEntryCount).set(position % kChunkEntryCount, location);
}

bool EvictionQueue::append_chunk() {
  uint32_t id = first_free_;
  try {
    if (id == kNoChunk) {
      id = static_cast<uint32_t>(places_.size());
      if (id == kChunkCountMax) return false;
      places_.push_back({std::make_unique<Chunk>()});
    } else {
      places_[id].chunk = std::make_unique<Chunk>();
      first_free_ = places_[id].next_free;
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  chunk(id).previous = tail_;
  (tail_ == kNoChunk ? head_ : chunk(tail_).next) = id;
  tail_ = id;
  ++chunk_count_;
  return true;
}

void EvictionQueue::release(uint32_t id) {
  const uint32_t previous = chunk(id).previous;
  const uint32_t next = chunk(id).next;
  (previous == kNoChunk ? head_ : chunk(previous).next) = next;
  (next == kNoChunk ? tail_ : chunk(next).previous) = previous;
  places_[id].chunk = nullptr;
  places_[id].next_free = first_free_;
  first_free_ = id;
  --chunk_count_;
}

// Not the head, which empties by itself, nor the tail, which fills.
void EvictionQueue::join_if_small(uint32_t left_id, uint32_t right_id) {
  if (left_id == kNoChunk || right_id == kNoChunk || left_id == head_ || right_id == tail_) return;
  Chunk& left = chunk(left_id);
  const Chunk& right = chunk(right_id);
  if (left.count + right.count > kChunkEntryCount) return;
  uint32_t end = 0;
  const auto append = [&](uint64_t location) {
    if (location == 0) return;
    left.set(end, location);
    EvictionState state = source_->state(location);
    state.word = left_id * kChunkEntryCount + end++;
    source_->set_state(location, state);
  };
  for (uint32_t index = left.begin; index < left.end; ++index) append(left.at(index));
  for (uint32_t index = right.begin; index < right.end; ++index) append(right.at(index));
  left.begin = 0;
  left.end = left.count = end;
  release(right_id);
}

}  // namespace kvstrata
