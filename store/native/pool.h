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
  std::vector<PoolSecret> secrets;
  uint32_t open_rights = 0;  // What a client without a secret may do.
};

// What the shards of a node share about a pool: its bytes, for the quota.
struct PoolUsage {
  std::atomic<uint64_t> bytes{0};  // Memory of its objects and of writes under way.
  // What a shard that has nothing left to evict needs below the quota: the others evict for it.
  std::atomic<uint64_t> room_wanted{0};

  // Counts `more_bytes`, unless the pool would pass its quota (0: it has none). However many shards
  // charge at once, together they do not pass it.
  bool charge(uint64_t more_bytes, uint64_t quota_bytes) noexcept {
    if (quota_bytes == 0 || more_bytes == 0) {
      bytes.fetch_add(more_bytes, std::memory_order_relaxed);
      return true;
    }
    uint64_t charged = bytes.load(std::memory_order_relaxed);
    do {
      if (charged + more_bytes > quota_bytes) return false;
    } while (
        !bytes.compare_exchange_weak(charged, charged + more_bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(uint64_t fewer_bytes) noexcept {
    bytes.fetch_sub(fewer_bytes, std::memory_order_relaxed);
  }
};

}  // namespace kvstrata
