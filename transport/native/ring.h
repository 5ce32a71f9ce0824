// One direction of a connection through shared memory: a ring of bytes, one writer, one reader,
// each in its own process. transport/PROTOCOL.md, section 8, says how it is laid out.
//
// Neither end trusts the other: indices are read once and judged, bytes are copied out before they
// are looked at, and what an end knows of itself it never reads back from where the other could
// have changed it.
//
// Sleep and doorbells: who is about to sleep says so in its line, then looks again; who has changed
// something looks, afterwards, whether the other sleeps. Both stores are sequentially consistent,
// and so seen before the look behind them is taken: one of the two sees the other in every order of
// events (tests/unit/transport/test_ring_model.py tries them all).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "transport/native/bytes.h"

namespace kvstrata {

// What one end tells the other, in a cache line of its own. 128 bytes, as processors fetch lines by
// pairs.
struct alignas(128) RingLine {
  std::atomic<uint64_t> count;  // Bytes written, or read, since the beginning.
  std::atomic<uint32_t>
      sleeps;  // 1: its end sleeps, and wants to be woken. Who wakes it clears it.
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(RingLine) == 128);

// Of either end: its own line and the other's.
class RingEnd {
 public:
  RingEnd(RingLine* own, RingLine* peer, MutableBytes memory) noexcept
      : own_(own), peer_(peer), memory_(memory) {}

  // The other's index cannot be what it says: it is broken, or hostile.
  bool broken() const noexcept { return broken_; }

  // Then look again before sleeping: what was done before this may have gone unnoticed.
  void announce_sleep() noexcept { own_->sleeps.store(1, std::memory_order_seq_cst); }
  void announce_awake() noexcept { own_->sleeps.store(0, std::memory_order_relaxed); }

 protected:
  // True if the other sleeps: it is to be woken, by this end alone.
  bool publish() noexcept {
    own_->count.store(count_, std::memory_order_seq_cst);
    return peer_->sleeps.load(std::memory_order_seq_cst) != 0;
  }
  bool claim_wake() noexcept { return peer_->sleeps.exchange(0, std::memory_order_relaxed) != 0; }

  uint64_t peer_count() const noexcept { return peer_->count.load(std::memory_order_seq_cst); }
  // The memory from `count` on that lies in one piece.
  MutableBytes piece(uint64_t count) const noexcept {
    return memory_.subspan(count & (memory_.size() - 1));
  }

  RingLine* own_;
  RingLine* peer_;
  MutableBytes memory_;  // Its size is a power of two.
  uint64_t count_ = 0;   // Written or read so far; published later.
  bool broken_ = false;
};

class RingWriter final : public RingEnd {
 public:
  using RingEnd::RingEnd;

  // How many bytes fit.
  size_t room() noexcept {
    uint64_t used = count_ - peer_count();
    broken_ = broken_ || used > memory_.size();
    return broken_ ? 0 : memory_.size() - used;
  }
  // Worth waking up for.
  bool has_much_room() noexcept { return room() >= memory_.size() / 2 || broken_; }

  // At most `room()` bytes; the reader sees them once they are published.
  void put(Bytes bytes) noexcept {
    MutableBytes first = piece(count_);
    size_t fits = std::min(first.size(), bytes.size());
    std::memcpy(first.data(), bytes.data(), fits);
    std::memcpy(memory_.data(), bytes.data() + fits, bytes.size() - fits);
    count_ += bytes.size();
  }
  // True if the reader is to be woken.
  bool publish() noexcept { return RingEnd::publish() && claim_wake(); }
};

class RingReader final : public RingEnd {
 public:
  using RingEnd::RingEnd;

  // How many bytes are there.
  size_t available() noexcept {
    uint64_t ready = peer_count() - count_;
    broken_ = broken_ || ready > memory_.size();
    return broken_ ? 0 : ready;
  }
  bool has_something() noexcept { return available() != 0 || broken_; }

  // At most `available()` bytes; their place is the writer's again once that is published.
  void take(MutableBytes into) noexcept {
    Bytes first = piece(count_);
    size_t there = std::min(first.size(), into.size());
    std::memcpy(into.data(), first.data(), there);
    std::memcpy(into.data() + there, memory_.data(), into.size() - there);
    count_ += into.size();
  }
  // True if the writer is to be woken, which has waited for much room.
  bool publish() noexcept {
    if (!RingEnd::publish()) return false;
    return peer_count() - count_ <= memory_.size() / 2 && claim_wake();
  }
};

}  // namespace kvstrata
