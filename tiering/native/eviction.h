// Which record of a pool leaves DRAM next. One policy object per pool and shard; not thread-safe.
//
// A policy keeps its per-record state in the 36 bits that each record lends it, and any queues of
// its own on the heap.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace kvstrata {

// Lies inside each record. The policy alone gives the fields a meaning.
struct EvictionState {
  uint32_t word = 0;
  uint8_t frequency = 0;  // Only the low 4 bits are kept by the record.
};

// What a policy may ask of the pool it serves.
class EvictionSource {
 public:
  virtual ~EvictionSource() = default;
  // Up to `count` records picked at random, without those set aside; returns how many.
  virtual uint32_t sample(uint32_t count, uint64_t* locations) noexcept = 0;
  virtual EvictionState state(uint64_t location) const noexcept = 0;
  virtual void set_state(uint64_t location, EvictionState state) noexcept = 0;
  // Hash of the record's key, for ghost entries.
  virtual uint64_t hash(uint64_t location) const noexcept = 0;
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  virtual std::string_view name() const noexcept = 0;
  // The record is in place already: its state can be written. `hash` lets a policy recognise a key
  // that it evicted lately.
  virtual void on_insert(uint64_t location, uint64_t hash, uint64_t bytes) noexcept = 0;
  virtual void on_access(uint64_t location) noexcept = 0;
  // The record leaves the pool for any reason (deleted, replaced, expired, evicted). Its state can
  // still be read: call this before its memory is freed.
  virtual void on_remove(uint64_t location, uint64_t bytes) noexcept = 0;
  // The record lies elsewhere now; its state was copied along.
  virtual void on_move(uint64_t old_location, uint64_t new_location) noexcept = 0;
  // The record is no victim from now on, until it is put back; what it was worth stays in its
  // state. Meanwhile it may be used, moved or removed as any other, but the source samples it no
  // more.
  virtual void set_aside(uint64_t location) noexcept = 0;
  virtual void put_back(uint64_t location) noexcept = 0;
  // The next record to evict, 0 if there is none, or none was found among many that are set aside.
  // The caller removes it (on_remove follows) or, where it is pinned, calls on_access and asks
  // again.
  virtual uint64_t victim() noexcept = 0;
  virtual uint64_t memory_bytes() const noexcept = 0;

  // Called now and then, for `idle_ms`.
  virtual void note_time(uint64_t now_ms) noexcept { static_cast<void>(now_ms); }
  // How long ago the record was last used, as far as the policy can tell; else 0.
  virtual uint64_t idle_ms(uint64_t location, uint64_t now_ms) const noexcept {
    static_cast<void>(location);
    static_cast<void>(now_ms);
    return 0;
  }
};

enum class EvictionKind : uint8_t { None = 0, Lru = 1, S3Fifo = 2 };

// Lru: least recently used by sampling, with a small pool of best candidates. S3Fifo: small, main
// and ghost queues (Yang et al., SOSP 2023). None gives a null pointer: such a pool never evicts.
std::unique_ptr<EvictionPolicy> make_eviction_policy(EvictionKind kind, EvictionSource* source);

}  // namespace kvstrata
