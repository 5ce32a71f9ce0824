// One pool's objects on one shard: its index, its eviction policy and its counters.
#pragma once

#include <memory>

#include "store/native/object_store.h"

namespace kvstrata {

class Partition final : public EvictionSource {
 public:
  Partition(PoolId id, ObjectStore* store, std::shared_ptr<PoolUsage> usage,
            PoolStatistics* statistics);

  PoolId id;
  PoolSettings settings;
  Index index;
  std::unique_ptr<EvictionPolicy> policy;  // Null: the pool never evicts.
  std::shared_ptr<PoolUsage> usage;        // Kept while anything here is charged to it.
  PoolStatistics* statistics;
  EvictedKeys evicted_keys;
  RetentionTable retentions;
  uint64_t reserved_bytes = 0;   // Charged for open records.
  bool wants_room = false;       // Has asked the other shards for room below the quota.
  uint64_t flushed_version = 0;  // Objects of this version and before it are gone.
  uint64_t flushed_count = 0;    // Of them, still in the index.
  uint64_t expiring_count = 0;
  uint64_t expire_cursor = 0;
  uint64_t flush_cursor = 0;

  void apply(const PoolSettings& next);
  uint64_t bytes() const noexcept { return statistics->bytes.value(); }
  // 0 if, and only if, no object may be evicted.
  uint64_t evictable_bytes() const noexcept {
    return policy == nullptr ? 0 : bytes() - statistics->retained_bytes_hard.value();
  }
  // Of the pool's objects that hard retentions keep, those of other shards.
  uint64_t retained_bytes_elsewhere() const noexcept {
    return usage->retained_bytes_hard.load(std::memory_order_relaxed) -
           statistics->retained_bytes_hard.value();
  }
  uint64_t unretained_count() const noexcept { return index.size() - retentions.record_count(); }
  // Of a record in the index: whether it is retained, and whether that is hard.
  bool is_retained(Location location) const noexcept;
  bool is_retained_hard(Location location) const noexcept;
  // Since the object was last used, as far as the policy knows.
  uint64_t idle_ms(Location location) const noexcept;

  // EvictionSource.
  uint32_t sample(uint32_t count, uint64_t* locations) noexcept override;
  EvictionState state(uint64_t location) const noexcept override;
  void set_state(uint64_t location, EvictionState state) noexcept override;
  uint64_t hash(uint64_t location) const noexcept override;

 private:
  ObjectStore* store_;
  uint64_t random_;
};

}  // namespace kvstrata
