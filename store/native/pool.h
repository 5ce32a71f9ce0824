// A pool: what its objects are and how they are kept. The settings are a value; every shard holds
// its own copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "store/native/record.h"
#include "tiering/native/eviction.h"

namespace kvstrata {

struct PoolSecret {
  std::string text;
  uint32_t rights = 0;
};

struct PoolSettings {
  std::string name;
  bool immutable = false;
  EvictionKind eviction = EvictionKind::Lru;
  uint64_t quota_bytes = 0;     // 0: bounded by the node's memory only.
  uint64_t ttl_ms_default = 0;  // 0: objects do not expire by themselves.
  // That hard retentions may keep from eviction. 0: a quarter of what the pool may take.
  uint64_t retained_bytes_max = 0;
  std::vector<PoolSecret> secrets;
  uint32_t open_rights = 0;  // What a client without a secret may do.
};

// Adds to what several threads share, unless the sum would pass `most`. However many add at once,
// together they do not pass it.
inline bool add_within(std::atomic<uint64_t>* shared, uint64_t more, uint64_t most) noexcept {
  uint64_t present = shared->load(std::memory_order_relaxed);
  do {
    if (present + more > most) return false;
  } while (!shared->compare_exchange_weak(present, present + more, std::memory_order_relaxed));
  return true;
}

// What the shards of a node share about a pool: its bytes, for the quota; what retentions take.
struct PoolUsage {
  std::atomic<uint64_t> bytes{0};  // Memory of its objects and of writes under way.
  std::atomic<uint64_t> retention_claims{0};
  std::atomic<uint64_t> retained_bytes_hard{0};  // Of the objects that hard retentions keep.
  // What a shard that has nothing left to evict needs below the quota: the others evict for it.
  std::atomic<uint64_t> room_wanted{0};

  // Counts `more_bytes`, unless the pool would pass its quota (0: it has none).
  bool charge(uint64_t more_bytes, uint64_t quota_bytes) noexcept {
    if (quota_bytes == 0 || more_bytes == 0) {
      bytes.fetch_add(more_bytes, std::memory_order_relaxed);
      return true;
    }
    return add_within(&bytes, more_bytes, quota_bytes);
  }
  void give_back(uint64_t fewer_bytes) noexcept {
    bytes.fetch_sub(fewer_bytes, std::memory_order_relaxed);
  }
  // Counts one more claim, and what it keeps hard, or neither.
  bool charge_claim(uint64_t hard_bytes, uint64_t hard_bytes_max) noexcept {
    if (!add_within(&retention_claims, 1, limits::kRetentionClaimCountMax)) return false;
    if (add_within(&retained_bytes_hard, hard_bytes, hard_bytes_max)) return true;
    give_back_claims(1, 0);
    return false;
  }
  void give_back_claims(uint64_t count, uint64_t hard_bytes) noexcept {
    retention_claims.fetch_sub(count, std::memory_order_relaxed);
    retained_bytes_hard.fetch_sub(hard_bytes, std::memory_order_relaxed);
  }
};

}  // namespace kvstrata
