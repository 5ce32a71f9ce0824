// Making room: evicting by the pools' policies, draining a segment whose free bytes lie scattered, expiry, dropped pools.
//
// Eviction alone may not help: a shard full of small cells has no whole page for an extent, and the other way round. Once eviction has
// freed twice what was needed in vain, the emptiest segment is drained: what lives there moves elsewhere or is evicted, and the
// segment can be used for anything. All of it goes in bounded steps, so that no turn of the loop is long.
#include <algorithm>

#include "store/native/object_store.h"
#include "store/native/partition.h"

namespace kvstrata {

namespace {

constexpr uint32_t kDrainStep = 32;           // Residents a step.
constexpr uint32_t kMaintainStep = 16;        // Evictions or removals a turn.
constexpr uint32_t kExpireStep = 64;          // Records looked at a turn.
constexpr uint32_t kFruitlessDrainsMax = 4;   // Then there is nothing more to be had.
constexpr uint64_t kHeadRoomDivisor = 64;     // Keep 1/64 of the memory free ahead of need.

}  // namespace

void ObjectStore::note_room_found() noexcept {
  evicted_bytes_ = 0;
  fruitless_drains_ = 0;
  if (wanted_segments_ == 0) return;
  segments_->cancel_want(wanted_segments_);
  wanted_segments_ = 0;
}

Partition* ObjectStore::partition_to_evict() noexcept {
  Partition* largest = nullptr;
  for (const auto& partition : partitions_) {
    if (partition == nullptr || partition->policy == nullptr || partition->index.size() == 0) {
      continue;
    }
    if (over_quota(*partition, 0)) return partition.get();
    if (largest == nullptr || partition->bytes() > largest->bytes()) largest = partition.get();
  }
  return largest;
}

bool ObjectStore::evict_one(Partition& partition) noexcept {
  Location victim = partition.policy->victim();
  if (victim == 0) return false;
  uint64_t bytes = memory_of(victim);
  uint64_t hash = hash_at(victim);
  partition.evicted_keys.remember(hash);
  partition.statistics->evictions.add();
  partition.statistics->evicted_bytes.add(bytes);
  evicted_bytes_ += bytes;
  ++reclaim_count_;
  unlink(partition, hash, victim);
  return true;
}

Status ObjectStore::make_room_in(Partition& partition) noexcept {
  if (partition.policy == nullptr) return Status::NoSpace;
  if (partition.index.size() != 0 && evict_one(partition)) return Status::Ok;
  return Status::Busy;  // The other shards' share of the pool is over its quota: they evict.
}

bool ObjectStore::make_progress() noexcept {
  if (draining_ != kNoSegment) return drain_step();
  Partition* partition = partition_to_evict();
  bool drain_first = evicted_bytes_ > 2 * needed_bytes_ && fruitless_drains_ < kFruitlessDrainsMax;
  if (partition != nullptr && !drain_first && evict_one(*partition)) return true;
  if (begin_drain(partition != nullptr)) return true;
  if (partition != nullptr && evict_one(*partition)) return true;
  return ask_others();
}

// Segments held by other shards: they give back what they can spare, in their own time.
bool ObjectStore::ask_others() noexcept {
  if (shard_count_ == 1) return false;
  if (wanted_segments_ == 0) {
    uint64_t bytes = std::max(needed_bytes_, reserved_bytes_);
    wanted_segments_ = static_cast<uint32_t>(bytes / segments_->segment_bytes()) + 1;
    segments_->want(wanted_segments_);
  }
  return true;
}

bool ObjectStore::begin_drain(bool evictable) noexcept {
  if (fruitless_drains_ >= kFruitlessDrainsMax) return false;
  if (!evictable && memory_.free_bytes() < needed_bytes_) return false;
  SegmentId segment = memory_.emptiest_segment();
  if (segment == kNoSegment) return false;
  memory_.begin_drain(segment);
  draining_ = segment;
  drain_position_ = 0;
  ++fruitless_drains_;
  return true;
}

bool ObjectStore::drain_step() noexcept {
  ++reclaim_count_;
  SegmentId segment = draining_;
  bool more = memory_.visit_residents(
      segment, &drain_position_, kDrainStep,
      [this](const ShardMemory::Resident& resident) { drain_resident(resident); });
  if (more) return true;
  draining_ = kNoSegment;
  // Whatever could not be moved keeps the segment in use.
  if (memory_.is_draining(segment)) memory_.cancel_drain(segment);
  evicted_bytes_ = 0;
  return true;
}

bool ObjectStore::is_movable(Location location) const noexcept {
  return !view(location).has(kOpen);
}

void ObjectStore::drain_resident(const ShardMemory::Resident& resident) noexcept {
  Location record = resident.is_cell ? resident.offset : resident.owner;
  if (!is_movable(record) || resident.reference_count > 1) return;
  Partition* owner = partition(static_cast<PoolId>(view(record).header().pool));
  if (owner == nullptr) return;  // A dropped pool's: drop_step gets there.
  bool moved = resident.is_cell || resident.offset == record
                   ? move_record(*owner, record)
                   : move_chunk(record, {resident.offset, resident.length_bytes});
  if (moved || owner->policy == nullptr) return;
  uint64_t hash = hash_at(record);
  owner->evicted_keys.remember(hash);
  owner->statistics->evictions.add();
  owner->statistics->evicted_bytes.add(memory_of(record));
  unlink(*owner, hash, record);
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
  partition.index.replace(hash_at(location), location, target);
  if (partition.policy != nullptr) partition.policy->on_move(location, target);
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
  chunk->location = ChunkLocation::dram(target.offset);
  memory_.free_extent(extent);
  return true;
}

bool ObjectStore::give_back_wanted() noexcept {
  // Who waits itself keeps what it has; so does who holds its last segments.
  if (wanted_segments_ != 0 || segments_->wanted_count() == 0) return false;
  memory_.give_back_reserve();
  if (memory_.statistics().segment_bytes_held <= 2 * segments_->segment_bytes()) return false;
  if (draining_ == kNoSegment) {
    SegmentId segment = memory_.emptiest_segment();
    if (segment == kNoSegment) return false;
    memory_.begin_drain(segment);
    draining_ = segment;
    drain_position_ = 0;
  }
  return drain_step();
}

bool ObjectStore::keep_head_room() noexcept {
  uint64_t total = uint64_t{segments_->segment_count()} * segments_->segment_bytes();
  for (uint32_t step = 0; step < kMaintainStep; ++step) {
    if (memory_.free_bytes() >= total / kHeadRoomDivisor) return false;
    Partition* partition = partition_to_evict();
    // A shard's only object may be as large as its memory: it is not evicted for nothing.
    if (partition == nullptr || partition->index.size() < 2) return false;
    if (!evict_one(*partition)) return false;
  }
  return true;
}

void ObjectStore::expire_step() noexcept {
  if (expiring_count_ == 0) return;
  Partition* partition = partitions_[expire_turn_++ % partitions_.size()].get();
  if (partition == nullptr || partition->expiring_count == 0) return;
  partition->expire_cursor =
      partition->index.scan(partition->expire_cursor, kExpireStep, [&](Location location) {
        if (!is_expired(location)) return;
        unlink(*partition, hash_at(location), location);
        partition->statistics->expirations.add();
      });
}

bool ObjectStore::drop_step() noexcept {
  if (dropped_.empty()) return false;
  Partition& partition = *dropped_.back();
  partition.index.scan(0, kMaintainStep, [&](Location location) {
    unlink(partition, hash_at(location), location);
  });
  if (partition.index.size() == 0) dropped_.pop_back();
  return !dropped_.empty();
}

bool ObjectStore::maintain() noexcept {
  expire_step();
  bool dropping = drop_step();
  bool draining = give_back_wanted();
  bool evicting = keep_head_room();
  return dropping || draining || evicting;
}

}  // namespace kvstrata
