// The DRAM of a node, cut into segments that are lent to shards.
//
// The arena is mapped once, so an address is `base() + offset` for ever.
// Segments are populated (their pages made present) by background threads that keep a few ready
// ahead of use, or all of them if asked. Invariants:
//   - a segment is either free or lent to exactly one borrower;
//   - `acquire` never waits: it fails when no segment is free;
//   - a populated segment stays so: memory that was used once is never given back to the kernel
//   before the end.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tiering/native/arena_mapping.h"
#include "transport/native/status.h"

namespace kvstrata {

using SegmentId = uint32_t;
constexpr SegmentId kNoSegment = UINT32_MAX;

struct SegmentPoolOptions {
  uint64_t memory_bytes = 0;   // Rounded down to whole segments; at least kMemoryBytesMin.
  uint64_t segment_bytes = 0;  // A power of two; 0 chooses by `memory_bytes`.
  bool populate_full = false;  // Populate everything at start instead of ahead of use.
  HugePages huge_pages = HugePages::Auto;
  uint32_t populate_threads = 2;  // At most this many fault pages in side by side; at least 1.
  // Lend a segment before its pages are there: the borrower faults them in, 3 us a page. Otherwise
  // `acquire` fails while they are on their way, see `is_arriving`.
  bool lend_untouched = true;
};

struct SegmentPoolStatistics {
  uint64_t memory_bytes = 0;
  uint64_t segment_bytes = 0;
  uint32_t segment_count = 0;
  uint32_t free_count = 0;
  uint32_t populated_count = 0;
  std::string huge_pages;      // "none", "transparent" or "explicit": what the kernel granted.
  std::string populate_error;  // Why populating in the background ended early; else empty.
};

class SegmentPool {
 public:
  // Ready for use once the first segment is populated.
  // Returns: Ok; Invalid (sizes; more memory than the machine or cgroup has), NoSpace (the kernel
  // refuses the mapping, its pages or a thread). `error` gets the reason in words.
  static Status create(const SegmentPoolOptions& options, std::unique_ptr<SegmentPool>* pool,
                       std::string* error);
  // Unmaps the arena: nobody may hold an address in it any more. Lent segments need not be
  // returned.
  ~SegmentPool();

  std::byte* base() const noexcept;
  uint64_t segment_bytes() const noexcept;
  uint32_t segment_count() const noexcept;
  // Whether anything of the node's shall lie in huge pages, or nothing.
  bool wants_huge_pages() const noexcept;

  // Prefers populated segments. Returns kNoSegment when none is free. Content is whatever was left
  // there.
  SegmentId acquire() noexcept;
  // `segment` must be lent; returning one twice is a fault of the borrower and ends the process.
  void release(SegmentId segment) noexcept;
  uint32_t free_count() const noexcept;
  // True while free segments are being populated and none is ready to be lent.
  bool is_arriving() const noexcept;

  // A borrower that finds no free segment asks here for `count`; other borrowers see
  // `wanted_count()` and give back what they can. Acquiring does not lower it: the asker calls
  // `cancel_want` once it has what it wanted, or no longer wants it.
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
