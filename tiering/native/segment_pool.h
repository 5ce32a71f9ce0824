// The DRAM of a node: one memfd, cut into segments that are lent to shards.
//
// The arena is mapped once, so an address is `base() + offset` for ever. Segments are populated (their pages made
// present) by background threads that keep a few ready ahead of use, or all of them if asked.
// Invariants:
//   - a segment is either free or lent to exactly one borrower;
//   - `acquire` never waits: it fails when no segment is free.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/native/status.h"

namespace kvstrata {

using SegmentId = uint32_t;
constexpr SegmentId kNoSegment = UINT32_MAX;

struct SegmentPoolOptions {
  uint64_t memory_bytes = 0;      // Rounded down to whole segments.
  uint64_t segment_bytes = 0;     // A power of two; 0 chooses by `memory_bytes`.
  bool populate_full = false;     // Populate everything at start instead of ahead of use.
  bool huge_pages = true;         // Ask for huge pages where there are any; never an error.
  uint32_t populate_threads = 2;  // At most this many fault pages in side by side.
};

struct SegmentPoolStatistics {
  uint64_t memory_bytes = 0;
  uint64_t segment_bytes = 0;
  uint32_t segment_count = 0;
  uint32_t free_count = 0;
  uint32_t populated_count = 0;
  std::string huge_pages;  // "none", "transparent" or "hugetlb": what the kernel granted.
};

class SegmentPool {
 public:
  // Returns: Ok; Invalid (sizes), NoSpace (the kernel refuses the mapping). `error` gets the reason in words.
  static Status create(const SegmentPoolOptions& options, std::unique_ptr<SegmentPool>* pool,
                       std::string* error);
  ~SegmentPool();

  std::byte* base() const noexcept;
  uint64_t segment_bytes() const noexcept;
  uint32_t segment_count() const noexcept;
  int memfd() const noexcept;

  // Prefers populated segments. Returns kNoSegment when none is free.
  SegmentId acquire() noexcept;
  void release(SegmentId segment) noexcept;
  uint32_t free_count() const noexcept;

  // A borrower that finds no free segment asks here for `count`; other borrowers see `wanted_count()` and give back what they can.
  // `acquire` on the asker's behalf lowers it again through `cancel_want`.
  void want(uint32_t count) noexcept;
  void cancel_want(uint32_t count) noexcept;
  uint32_t wanted_count() const noexcept;

  SegmentPoolStatistics statistics() const;

 private:
  struct State;
  explicit SegmentPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvstrata
