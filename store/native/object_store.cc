#include "store/native/object_store.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <new>
#include <utility>

#include "store/native/partition.h"
#include "store/native/retention_handle.h"
#include "transport/native/checksum.h"

namespace kvstrata {

namespace {

constexpr size_t kCacheLineBytes = 64;

}  // namespace

void EvictedKeys::remember(uint64_t hash) noexcept {
  if (fingerprints_ == nullptr) fingerprints_.reset(new (std::nothrow) uint32_t[kSlotCount]());
  if (fingerprints_ == nullptr) return;  // The heap is exhausted: a miss has one reason less.
  fingerprints_[hash % kSlotCount] = static_cast<uint32_t>(hash >> 32) | 1;
}

bool EvictedKeys::contains(uint64_t hash) const noexcept {
  return fingerprints_ != nullptr &&
         fingerprints_[hash % kSlotCount] == (static_cast<uint32_t>(hash >> 32) | 1);
}

ObjectStore::ObjectStore(SegmentPool* segments, uint64_t hash_seed, uint32_t shard_count,
                         ShardStatistics* statistics)
    : hash_seed_(hash_seed),
      shard_count_(shard_count),
      segments_(segments),
      memory_(segments),
      index_memory_(segments->wants_huge_pages()),
      statistics_(statistics) {}

ObjectStore::~ObjectStore() = default;

void ObjectStore::set_pool(PoolId id, const PoolSettings& settings,
                           std::shared_ptr<PoolUsage> usage, PoolStatistics* statistics) {
  size_t place = place_of(id);
  if (place >= partitions_.size()) partitions_.resize(place + 1);
  if (next_retention_ == 0) next_retention_ = RetentionHandle::first_number(now_ms_);
  if (partitions_[place] == nullptr) {
    partitions_[place] = std::make_unique<Partition>(id, this, std::move(usage), statistics);
  }
  assert(partitions_[place]->id == id);
  partitions_[place]->apply(settings);
}

void ObjectStore::drop_pool(PoolId id) {
  if (partition(id) == nullptr) return;
  claim_count_ -= partition(id)->retentions.claim_count();  // They end with it.
  dropped_.push_back(std::move(partitions_[place_of(id)]));
  drop_step();
}

Partition* ObjectStore::partition(PoolId id) noexcept {
  size_t place = place_of(id);
  Partition* found = place < partitions_.size() ? partitions_[place].get() : nullptr;
  return found != nullptr && found->id == id ? found : nullptr;
}

uint64_t ObjectStore::hash(Bytes key) const noexcept { return key_hash(key, hash_seed_); }

std::span<const std::byte> ObjectStore::key_at(Location location) const noexcept {
  return view(location).key();
}

uint64_t ObjectStore::hash_at(Location location) const noexcept {
  return hash(view(location).key());
}

// Loops of their own, and short ones: a core has so many misses under way as it can look ahead of
// the first that is not served yet.
void ObjectStore::prefetch(const Partition& partition,
                           std::span<const uint64_t> hashes) const noexcept {
  assert(hashes.size() <= kPrefetchCount);
  std::array<Location, kPrefetchCount> candidates;
  for (uint64_t hash : hashes) partition.index.prefetch_table(hash);
  for (size_t index = 0; index < hashes.size(); ++index) {
    candidates[index] = partition.index.candidate(hashes[index]);
  }
  for (Location candidate : std::span(candidates).first(hashes.size())) prefetch(candidate);
}

void ObjectStore::prefetch(Location location) const noexcept {
  const std::byte* record = memory_.at(location);
  __builtin_prefetch(record);
  __builtin_prefetch(record + kCacheLineBytes);  // The rest of its key, or a small value.
}

bool ObjectStore::is_gone(const Partition& partition, Location location) const noexcept {
  RecordView record = view(location);
  return record.expiry_ms() <= now_ms_ || record.header().version <= partition.flushed_version;
}

Location ObjectStore::find(Partition& partition, uint64_t hash, Bytes key) noexcept {
  Location location = partition.index.find(hash, key);
  if (location == 0 || !is_gone(partition, location)) return location;
  remove_gone(partition, hash, location);
  return 0;
}

void ObjectStore::remove_gone(Partition& partition, uint64_t hash, Location location) noexcept {
  if (view(location).header().version > partition.flushed_version) {
    partition.statistics->expirations.add();
  }
  unlink(partition, hash, location);
}

Location ObjectStore::read(Partition& partition, uint64_t hash, Bytes key) noexcept {
  PoolStatistics& statistics = *partition.statistics;
  statistics.gets.add();
  uint64_t expirations = statistics.expirations.value();
  Location location = find(partition, hash, key);
  if (location != 0) {
    statistics.get_hits.add();
    if (partition.policy != nullptr) partition.policy->on_access(location);
  } else if (statistics.expirations.value() != expirations) {
    statistics.misses_expired.add();
  } else if (partition.evicted_keys.contains(hash)) {
    statistics.misses_evicted.add();
  } else {
    statistics.misses_absent.add();
  }
  return location;
}

bool ObjectStore::exists(Partition& partition, uint64_t hash, Bytes key) noexcept {
  partition.statistics->exists_checks.add();
  if (find(partition, hash, key) == 0) return false;
  partition.statistics->exists_hits.add();
  return true;
}

bool ObjectStore::chunk_is_sound(Partition& partition, Location location, uint32_t index) noexcept {
  MutableBytes bytes = piece(location, index);
  if (chunk_checksum(bytes) == view(location).checksum(index)) return true;
  partition.statistics->corruptions.add();
  unlink(partition, hash_at(location), location);
  return false;
}

void ObjectStore::retain(const Extent& extent) noexcept { memory_.retain_extent(extent); }
void ObjectStore::release(const Extent& extent) noexcept { memory_.free_extent(extent); }

MutableBytes ObjectStore::piece(Location location, uint32_t index) const noexcept {
  RecordView record = view(location);
  if (!record.has(kIsChunked)) return record.inline_value();
  return {memory_.at(record.chunks()[index].location.offset()), record.chunk_length(index)};
}

void ObjectStore::set_checksum(Location location, uint32_t index, uint64_t checksum) noexcept {
  RecordView record = view(location);
  if (record.has(kIsChunked)) {
    record.chunks()[index].checksum = checksum;
  } else {
    record.set_inline_checksum(checksum);
  }
}

uint64_t ObjectStore::memory_of(Location location) const noexcept {
  return view(location).shape().memory_bytes();
}

// Enters a record that is in the index, and charged already, into the pool's books.
void ObjectStore::link(Partition& partition, uint64_t hash, Location location) noexcept {
  RecordView record = view(location);
  record.set(kOpen, false);
  record.set(kLaidAgain, false);
  uint64_t bytes = memory_of(location);
  partition.statistics->objects.add();
  partition.statistics->bytes.add(bytes);
  if (record.expiry_ms() != RecordView::kNoExpiry) {
    ++partition.expiring_count;
    ++expiring_count_;
  }
  if (partition.policy != nullptr) partition.policy->on_insert(location, hash, bytes);
}

void ObjectStore::unlink(Partition& partition, uint64_t hash, Location location) noexcept {
  uint64_t version = view(location).header().version;
  uint64_t& last = removed_versions_[hash % kRemovedSlotCount];
  last = std::max(last, version);
  partition.index.erase(hash, location);
  take_out(partition, location, 0);
}

// An open record takes the present one's place, which cannot fail: nothing is lost for want of
// memory. `kept_bytes` of the present one's charge pass on to the new one, which was charged less.
void ObjectStore::replace(Partition& partition, uint64_t hash, Location present, Location location,
                          uint64_t kept_bytes) noexcept {
  partition.index.replace(hash, present, location);
  take_out(partition, present, kept_bytes);
}

// Takes a record, which the index has no more, out of the pool's books and frees it.
void ObjectStore::take_out(Partition& partition, Location location, uint64_t kept_bytes) noexcept {
  RecordView record = view(location);
  uint64_t bytes = memory_of(location);
  partition.statistics->objects.add(uint64_t(-1));
  partition.statistics->bytes.add(-bytes);
  partition.usage->give_back(bytes - kept_bytes);
  if (record.expiry_ms() != RecordView::kNoExpiry) {
    --partition.expiring_count;
    --expiring_count_;
  }
  if (record.header().version <= partition.flushed_version) {
    --partition.flushed_count;
    --flushed_count_;
  }
  if (partition.is_retained(location)) end_retaining(partition, location);
  if (partition.policy != nullptr) partition.policy->on_remove(location, bytes);
  disown_chunks(location);
  free_record(location);
  note_freed(bytes);
}

// What others still hold must not lead a drain to the record's memory, which is another's soon.
void ObjectStore::disown_chunks(Location location) noexcept {
  RecordView record = view(location);
  for (uint32_t index = 0; record.has(kIsChunked) && index < record.chunk_count(); ++index) {
    Extent extent = record.extent(index);
    if (memory_.reference_count(extent) > 1) memory_.set_owner(extent, kNobody);
  }
}

void ObjectStore::free_record(Location location) noexcept {
  RecordView record = view(location);
  free_chunks(location);
  if (record.has(kInExtent)) {
    memory_.free_extent({location, RecordView::extent_bytes(record.shape().record_bytes())});
  } else {
    memory_.free_cell(location);
  }
}

bool ObjectStore::remove(Partition& partition, uint64_t hash, Bytes key) noexcept {
  Location location = find(partition, hash, key);
  if (location == 0) return false;
  unlink(partition, hash, location);
  partition.statistics->deletes.add();
  return true;
}

void ObjectStore::flush(Partition& partition) noexcept {
  partition.flushed_version = next_version_ - 1;
  flushed_count_ += partition.index.size() - partition.flushed_count;
  partition.flushed_count = partition.index.size();
}

uint64_t ObjectStore::object_count(const Partition& partition) const noexcept {
  return partition.index.size() - partition.flushed_count;
}

Status ObjectStore::expire(Partition& partition, uint64_t hash, Bytes key,
                           uint64_t ttl_ms) noexcept {
  Location location = find(partition, hash, key);
  if (location == 0) return Status::NotFound;
  uint64_t expiry = ttl_ms >= kTtlNever - now_ms_ ? RecordView::kNoExpiry : now_ms_ + ttl_ms;
  if (!view(location).has(kHasExpiry)) {
    if (expiry == RecordView::kNoExpiry) return Status::Ok;
    Status status = widen_with_expiry(partition, hash, key, &location);
    if (status != Status::Ok) return status;
  }
  set_expiry(partition, location, expiry);
  return Status::Ok;
}

// Of a record in the index that has the field.
void ObjectStore::set_expiry(Partition& partition, Location location, uint64_t expiry_ms) noexcept {
  RecordView record = view(location);
  bool was_expiring = record.expiry_ms() != RecordView::kNoExpiry;
  bool is_expiring = expiry_ms != RecordView::kNoExpiry;
  partition.expiring_count += uint64_t{is_expiring} - uint64_t{was_expiring};
  expiring_count_ += uint64_t{is_expiring} - uint64_t{was_expiring};
  record.set_expiry_ms(expiry_ms);
}

// Chunked records always have the field; an inline one is written again, 8 bytes longer.
Status ObjectStore::widen_with_expiry(Partition& partition, uint64_t hash, Bytes key,
                                      Location* location) noexcept {
  RecordShape shape = view(*location).shape();
  uint64_t present_bytes = shape.memory_bytes();
  shape.has_expiry = true;
  uint64_t more_bytes = shape.memory_bytes() - present_bytes;
  // Not the next one to go while room is made for its own growth.
  if (partition.policy != nullptr) partition.policy->on_access(*location);
  Status status = charge(partition, more_bytes);
  if (status != Status::Ok) return status;
  Location wider = 0;
  status = allocate(shape.record_bytes(), false, kNobody, &wider);
  // Making room may have moved or evicted the very record.
  Location present = find(partition, hash, key);
  if (status == Status::Ok && present == 0) {
    memory_.free_cell(wider);
    status = Status::NotFound;
  }
  if (status != Status::Ok) {
    partition.usage->give_back(more_bytes);
    return status == Status::NoSpace ? shortage() : status;
  }
  RecordView old_record = view(present);
  RecordView record = view(wider);
  record.format(shape, partition.id, false);
  record.set_expiry_ms(RecordView::kNoExpiry);
  record.header().version = old_record.header().version;
  record.header().was_appended = old_record.header().was_appended;
  record.set_attributes(old_record.attributes());
  std::ranges::copy(old_record.key(), record.key().begin());
  std::ranges::copy(old_record.inline_value(), record.inline_value().begin());
  record.set_inline_checksum(old_record.inline_checksum());
  // It is the same object, so its retentions stay with it.
  bool retained = partition.is_retained(present);
  if (partition.is_retained_hard(present)) partition.usage->retained_bytes_hard += more_bytes;
  uint32_t place = retained ? put_back(partition, present) : RetentionTable::kNoPlace;
  replace(partition, hash, present, wider, present_bytes);
  link(partition, hash, wider);
  if (retained) set_aside(partition, wider, place);
  *location = wider;
  return Status::Ok;
}

uint64_t ObjectStore::expiry_for(const Partition& partition, uint64_t ttl_ms) const noexcept {
  if (ttl_ms == 0) ttl_ms = partition.settings.ttl_ms_default;
  if (ttl_ms == 0 || ttl_ms >= kTtlNever - now_ms_) return RecordView::kNoExpiry;
  return now_ms_ + ttl_ms;
}

void ObjectStore::publish_gauges() noexcept {
  ShardMemoryStatistics memory = memory_.statistics();
  statistics_->cell_bytes.set(memory.cell_bytes_used);
  statistics_->extent_bytes.set(memory.extent_bytes_used);
  statistics_->held_bytes.set(memory.segment_bytes_held);
  statistics_->bookkeeping_bytes.set(memory.bookkeeping_bytes);
  uint64_t index_bytes = 0;
  for (const auto& partition : partitions_) {
    if (partition == nullptr) continue;
    index_bytes += partition->index.memory_bytes() + partition->retentions.memory_bytes();
    partition->statistics->objects_expiring.set(partition->expiring_count);
    if (partition->policy == nullptr) continue;
    index_bytes += partition->policy->memory_bytes();
    partition->policy->note_time(now_ms_);
  }
  statistics_->index_bytes.set(index_bytes);
  statistics_->reserved_bytes.set(reserved_bytes_);
}

}  // namespace kvstrata
