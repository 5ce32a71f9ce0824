// Pools' quotas: what is charged to a pool, by all shards together, never passes its quota.
//
// A record is charged before it gets its memory, and for its whole value; the charge stays with it
// when it is committed, and goes with it. A quota that was lowered is reached by evicting.
#include <utility>

#include "store/native/object_store.h"
#include "store/native/partition.h"

namespace kvstrata {

namespace {

constexpr uint32_t kEvictionsPerCharge = 32;  // Some 10 us, before the caller is told to wait.
constexpr uint32_t kEvictionsPerTurn = 16;

}  // namespace

bool ObjectStore::over_quota(const Partition& partition, uint64_t more_bytes) const noexcept {
  uint64_t quota = partition.settings.quota_bytes;
  return quota != 0 && partition.usage->bytes.load(std::memory_order_relaxed) + more_bytes > quota;
}

// Returns Ok: they are charged. NoSpace: the pool may not evict. Busy: call again.
Status ObjectStore::charge(Partition& partition, uint64_t bytes) noexcept {
  uint64_t quota = partition.settings.quota_bytes;
  for (uint32_t evictions = 0; !partition.usage->charge(bytes, quota); ++evictions) {
    if (evictions == kEvictionsPerCharge) return Status::Busy;
    Status status = make_room_in(partition, bytes);
    if (status != Status::Ok) return status;
  }
  // Else the others would go on evicting, for nobody.
  if (std::exchange(partition.wants_room, false)) {
    partition.usage->room_wanted.store(0, std::memory_order_relaxed);
  }
  return Status::Ok;
}

Status ObjectStore::make_room_in(Partition& partition, uint64_t bytes) noexcept {
  if (partition.policy == nullptr) return Status::NoSpace;
  if (end_retentions() || evict_one(partition)) return Status::Ok;
  // The other shards' objects fill the quota, or writes under way do, which end.
  partition.usage->room_wanted.store(bytes, std::memory_order_relaxed);
  partition.wants_room = true;
  return Status::Busy;
}

// Evicts where a quota was lowered, or where another shard wants room and has no object of its own
// left to evict. True if more is due at once.
bool ObjectStore::keep_to_quotas() noexcept {
  for (const auto& partition : partitions_) {
    if (partition == nullptr || partition->policy == nullptr) continue;
    uint64_t wanted = partition->usage->room_wanted.load(std::memory_order_relaxed);
    uint32_t step = 0;
    while (step < kEvictionsPerTurn && over_quota(*partition, wanted) && evict_one(*partition)) {
      ++step;
    }
    if (step == kEvictionsPerTurn) return true;
    if (wanted == 0 || over_quota(*partition, wanted)) continue;  // The rest is with others still.
    partition->usage->room_wanted.store(0, std::memory_order_relaxed);
  }
  return false;
}

}  // namespace kvstrata
