// Making room: evicting by the pools' policies, draining a segment whose free bytes lie scattered,
// expiry, dropped pools.
//
// Eviction alone may not help: a shard full of small cells has no whole page for an extent, and the
// other way round. Once eviction has freed twice what was needed in vain, the emptiest segment is
// drained: what lives there moves elsewhere or is evicted, and the segment can be used for
// anything. All of it goes in bounded steps, so that no turn of the loop is long.
#include <algorithm>
#include <utility>

#include "store/native/object_store.h"
#include "store/native/partition.h"

namespace kvstrata {

namespace {

constexpr uint32_t kDrainStep = 32;           // Residents a step, and
constexpr uint64_t kDrainBytes = 256 * 1024;  // bytes copied, but for the last resident.
constexpr uint32_t kMaintainStep = 16;        // Evictions or removals a turn.
constexpr uint32_t kExpireStep = 64;          // Records looked at a turn.
constexpr uint32_t kFruitlessDrainsMax = 4;   // Then there is nothing more to be had.
constexpr uint64_t kHeadRoomDivisor = 64;     // Keep 1/64 of a shard's share free ahead of need.
constexpr uint64_t kAskMs = 250;              // What other shards can spare has come by then.

}  // namespace

void ObjectStore::note_room_found() noexcept {
  evicted_bytes_ = 0;
  ask_again_ms_ = 0;
  if (wanted_segments_ != 0) segments_->cancel_want(std::exchange(wanted_segments_, 0));
}

// Drains that found nothing are not repeated until as much as was needed then has become free.
void ObjectStore::note_freed(uint64_t bytes) noexcept {
  freed_bytes_ += bytes;
  if (freed_bytes_ < needed_bytes_) return;
  freed_bytes_ = 0;
  fruitless_drains_ = 0;
}

Partition* ObjectStore::partition_to_evict() noexcept {
  Partition* largest = nullptr;
  for (const auto& partition : partitions_) {
    if (partition == nullptr || partition->evictable_bytes() == 0) continue;
    if (over_quota(*partition, 0)) return partition.get();
    if (largest == nullptr || partition->evictable_bytes() > largest->evictable_bytes()) {
      largest = partition.get();
    }
  }
  return largest;
}

// What is read, or shared by an append, stays in memory though its object be evicted, until that
// has ended; what is being written cannot be evicted yet, and what is retained hard, by whatever
// shard, not before that ends. A pool that never evicts keeps what it has.
ObjectStore::Reach ObjectStore::reach() const noexcept {
  ShardMemoryStatistics memory = memory_.statistics();
  uint64_t used = memory.cell_bytes_used + memory.extent_bytes_used;
  uint64_t evictable = 0;
  uint64_t kept = 0;
  uint64_t kept_elsewhere = 0;  // For a time.
  for (const auto& partition : partitions_) {
    if (partition == nullptr) continue;
    if (partition->policy != nullptr) {
      evictable += partition->evictable_bytes();
      kept_elsewhere += partition->retained_bytes_elsewhere();
    } else {
      kept += partition->bytes() + partition->reserved_bytes;
    }
  }
  uint64_t free = memory_.free_bytes();
  return {.now_bytes = free + std::min(evictable, used - memory.extent_bytes_shared),
          .later_bytes = free + used - std::min(used, kept) + kept_elsewhere};
}

// For who found no room, and holds none itself. Busy: what is missing is in the hands of transfers,
// which end.
Status ObjectStore::shortage() const noexcept {
  Reach bytes = reach();
  bool held = bytes.later_bytes > bytes.now_bytes && bytes.later_bytes >= needed_bytes_;
  return held ? Status::Busy : Status::NoSpace;
}

// False if nothing may be evicted. True, too, if a victim was looked for in vain among many
// retained objects: it will be found.
bool ObjectStore::evict_one(Partition& partition) noexcept {
  if (partition.evictable_bytes() == 0) return false;
  ++reclaim_count_;
  Location victim = next_victim(partition);
  if (victim == 0) return true;
  evicted_bytes_ += memory_of(victim);
  evict(partition, victim);
  return true;
}

void ObjectStore::evict(Partition& partition, Location victim) noexcept {
  uint64_t hash = hash_at(victim);
  partition.evicted_keys.remember(hash);
  partition.statistics->evictions.add();
  partition.statistics->evicted_bytes.add(memory_of(victim));
  if (partition.is_retained(victim)) partition.statistics->retained_evictions.add();
  unlink(partition, hash, victim);
}

bool ObjectStore::make_progress() noexcept {
  if (drop_step() || flush_step() || end_retentions()) {
    ++reclaim_count_;
    return true;
  }
  if (draining_ != kNoSegment) return drain_step();
  // Nothing is evicted for a value that would find no room all the same.
  Partition* partition = reach().now_bytes >= needed_bytes_ ? partition_to_evict() : nullptr;
  bool drain_first = evicted_bytes_ > 2 * needed_bytes_ && fruitless_drains_ < kFruitlessDrainsMax;
  if (partition != nullptr && !drain_first && evict_one(*partition)) return true;
  if (begin_drain(partition != nullptr)) return true;
  if (partition != nullptr && evict_one(*partition)) return true;
  return ask_others();
}

// Segments held by other shards: they give back what they can spare, in their own time. If that was
// in vain, nobody waits for them again for a while.
bool ObjectStore::ask_others() noexcept {
  if (shard_count_ == 1) return false;
  if (now_ms_ < ask_again_ms_) return wanted_segments_ != 0;
  ask_again_ms_ = now_ms_ + kAskMs;
  if (wanted_segments_ != 0) {
    segments_->cancel_want(std::exchange(wanted_segments_, 0));
    return false;
  }
  uint64_t bytes = std::max(needed_bytes_, reserved_bytes_);
  wanted_segments_ = static_cast<uint32_t>(bytes / segments_->segment_bytes()) + 1;
  segments_->want(wanted_segments_);
  return true;
}

bool ObjectStore::begin_drain(bool evictable) noexcept {
  if (fruitless_drains_ >= kFruitlessDrainsMax) return false;
  if (!evictable && memory_.free_bytes() < needed_bytes_) return false;
  // What could not be emptied the last time, for a record that is open or an extent that is read,
  // is the emptiest still.
  SegmentId segment = memory_.emptiest_segment(fruitless_drains_);
  if (segment == kNoSegment) return false;
  start_drain(segment);
  ++fruitless_drains_;
  return true;
}

void ObjectStore::start_drain(SegmentId segment) noexcept {
  memory_.begin_drain(segment);
  draining_ = segment;
  drain_position_ = 0;
  held_before_drain_ = memory_.statistics().segment_bytes_held;
}

bool ObjectStore::drain_step() noexcept {
  ++reclaim_count_;
  SegmentId segment = draining_;
  uint64_t moved_bytes_end = moved_bytes_ + kDrainBytes;
  // Emptied by others, it went back to the pool, and may be in use again for something else.
  bool more = memory_.is_draining(segment);
  memory_.set_borrowing(false);
  for (uint32_t count = 0; more && count < kDrainStep && moved_bytes_ < moved_bytes_end; ++count) {
    more = memory_.visit_residents(
        segment, &drain_position_, 1,
        [this](const ShardMemory::Resident& resident) { drain_resident(resident); });
  }
  memory_.set_borrowing(true);
  if (more) return true;
  draining_ = kNoSegment;
  if (memory_.is_draining(segment)) {
    memory_.cancel_drain(segment);  // What could not be moved keeps it in use.
  } else {
    fruitless_drains_ = 0;
  }
  return true;
}

bool ObjectStore::is_movable(Location location) const noexcept {
  return !view(location).has(kOpen);
}

void ObjectStore::drain_resident(const ShardMemory::Resident& resident) noexcept {
  Location record = resident.is_cell ? resident.offset : resident.owner;
  if (record == kNobody) return;
  if (!is_movable(record) || resident.reference_count > 1) return;
  Partition* owner = partitions_[view(record).header().pool_place].get();
  if (owner == nullptr) return;  // A dropped pool's: drop_step gets there.
  bool moved = resident.is_cell || resident.offset == record
                   ? move_record(*owner, record)
                   : move_chunk(record, {resident.offset, resident.length_bytes});
  if (!moved && may_evict(*owner, record)) evict(*owner, record);
}

bool ObjectStore::move_record(Partition& partition, Location location) noexcept {
  RecordView record = view(location);
  uint64_t bytes = record.shape().record_bytes();
  ArenaOffset target = 0;
  if (record.has(kInExtent)) {
    Extent extent;
    if (!memory_.allocate_extent(bytes, 1, &extent)) return false;
    target = extent.offset;
    memory_.set_owner(extent, target);
  } else {
    target = memory_.allocate_cell(static_cast<uint32_t>(bytes));
    if (target == 0) return false;
  }
  std::memcpy(memory_.at(target), memory_.at(location), bytes);
  moved_bytes_ += bytes;
  partition.index.replace(hash_at(location), location, target);
  if (partition.policy != nullptr) partition.policy->on_move(location, target);
  if (record.has(kRetained)) partition.retentions.at(record.place()).location = target;
  RecordView moved = view(target);
  for (uint32_t index = 0; moved.has(kIsChunked) && index < moved.chunk_count(); ++index) {
    memory_.set_owner(moved.extent(index), target);
  }
  if (record.has(kInExtent)) {
    memory_.free_extent({location, RecordView::extent_bytes(bytes)});
  } else {
    memory_.free_cell(location);
  }
  return true;
}

bool ObjectStore::move_chunk(Location record, const Extent& extent) noexcept {
  Chunk* chunks = view(record).chunks();
  Chunk* end = chunks + view(record).chunk_count();
  Chunk* chunk = std::find_if(
      chunks, end, [&](const Chunk& each) { return each.location.offset() == extent.offset; });
  Extent target;
  if (chunk == end || !memory_.allocate_extent(extent.length_bytes, record, &target)) return false;
  std::memcpy(memory_.at(target.offset), memory_.at(extent.offset), extent.length_bytes);
  moved_bytes_ += extent.length_bytes;
  chunk->location = ChunkLocation::dram(target.offset);
  memory_.free_extent(extent);
  return true;
}

bool ObjectStore::give_back_wanted() noexcept {
  // Who waits itself keeps what it has; so does who holds its last segments.
  if (wanted_segments_ != 0 || segments_->free_count() >= segments_->wanted_count()) return false;
  memory_.give_back_reserve();
  if (memory_.statistics().segment_bytes_held <= 2 * segments_->segment_bytes()) return false;
  if (draining_ == kNoSegment) {
    SegmentId segment = memory_.emptiest_segment();
    if (segment == kNoSegment) return false;
    start_drain(segment);
  }
  drain_step();
  // A drain that freed nothing is tried again with the next tick, not at once.
  return draining_ != kNoSegment || memory_.statistics().segment_bytes_held < held_before_drain_;
}

bool ObjectStore::keep_head_room() noexcept {
  uint64_t total = uint64_t{segments_->segment_count()} * segments_->segment_bytes();
  uint64_t head_room = total / shard_count_ / kHeadRoomDivisor;
  for (uint32_t step = 0; step < kMaintainStep; ++step) {
    if (memory_.free_bytes() >= head_room) return false;
    Partition* partition = partition_to_evict();
    // A shard's only object may be as large as its memory: it is not evicted for nothing, nor is
    // what is retained.
    if (partition == nullptr || partition->unretained_count() < 2) return false;
    if (!evict_one(*partition)) return false;
  }
  return true;
}

// Looks at some records of one pool. True if many of them had expired: then more of them have.
bool ObjectStore::expire_step() noexcept {
  if (expiring_count_ == 0) return false;
  Partition* partition = nullptr;
  for (size_t tries = 0; tries < partitions_.size() && partition == nullptr; ++tries) {
    Partition* next = partitions_[expire_turn_++ % partitions_.size()].get();
    if (next != nullptr && next->expiring_count != 0) partition = next;
  }
  if (partition == nullptr) return false;
  uint32_t expired = 0;
  partition->expire_cursor =
      partition->index.scan(partition->expire_cursor, kExpireStep, [&](Location location) {
        if (!is_gone(*partition, location)) return;
        remove_gone(*partition, hash_at(location), location);
        ++expired;
      });
  return expired >= kExpireStep / 4;
}

// True while a pool that was flushed has objects from before that.
bool ObjectStore::flush_step() noexcept {
  if (flushed_count_ == 0) return false;
  auto flushed = std::ranges::find_if(
      partitions_, [](const auto& each) { return each != nullptr && each->flushed_count != 0; });
  if (flushed == partitions_.end()) return false;
  Partition& partition = **flushed;
  partition.flush_cursor =
      partition.index.scan(partition.flush_cursor, kMaintainStep, [&](Location location) {
        if (is_gone(partition, location)) remove_gone(partition, hash_at(location), location);
      });
  return true;
}

// True while dropped pools have objects. Those whose writes are still under way are kept beyond
// that, since their open records name them.
bool ObjectStore::drop_step() noexcept {
  std::erase_if(dropped_, [](const auto& each) {
    return each->index.size() == 0 && each->reserved_bytes == 0;
  });
  auto next =
      std::ranges::find_if(dropped_, [](const auto& each) { return each->index.size() != 0; });
  if (next == dropped_.end()) return false;
  Partition& partition = **next;
  partition.index.scan(0, kMaintainStep,
                       [&](Location location) { unlink(partition, hash_at(location), location); });
  return true;
}

bool ObjectStore::maintain() noexcept {
  bool ending = end_retentions();
  bool expiring = expire_step();
  bool dropping = drop_step();
  dropping = flush_step() || dropping;
  bool evicting_for_quotas = keep_to_quotas();
  bool draining = give_back_wanted();
  bool evicting = !dropping && keep_head_room();  // What was dropped goes first.
  return ending || expiring || dropping || evicting_for_quotas || draining || evicting;
}

}  // namespace kvstrata
