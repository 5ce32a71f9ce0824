// One shard's share of the arena: segments borrowed from the SegmentPool, cut into cells (small,
// any multiple of 8 bytes) and extents (whole pages). Not thread-safe: it belongs to its shard's
// thread.
//
// Cells and extents never share a segment. A segment that becomes wholly free goes back to the
// pool, but for one that is kept in reserve, for either sort, to avoid churn; it too goes back
// while others want segments. Everything allocated can be found again by its segment, so that a
// segment can be drained: what lives in it is listed and moved or dropped.
//
// Freeing what is not live (twice, or with another length) ends the process by an assert, in every
// build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tiering/native/resident.h"
#include "tiering/native/segment_pool.h"

namespace kvstrata {

struct Extent {
  ArenaOffset offset = 0;
  uint64_t length_bytes = 0;  // A multiple of limits::kPageBytes.
};

struct ShardMemoryStatistics {
  uint64_t cell_bytes_used = 0;      // Sum of live cells, as allocated.
  uint64_t extent_bytes_used = 0;    // Sum of live extents.
  uint64_t extent_bytes_shared = 0;  // Of those with more than one reference.
  uint64_t segment_bytes_held = 0;   // Borrowed from the pool, the reserve included.
  uint64_t bookkeeping_bytes = 0;    // Side tables on the heap.
};

class ShardMemory {
 public:
  // `pool` must outlive this.
  explicit ShardMemory(SegmentPool* pool);
  // Gives every segment back, whatever still lives there.
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  std::byte* at(ArenaOffset offset) const noexcept;

  // `bytes` from 1 to limits::kRecordBytesInlineMax. Returns 0 when there is no room. Cells are
  // 8-byte aligned; size classes waste at most 12.5 % of the cell, and at most 7 bytes below 256
  // bytes.
  ArenaOffset allocate_cell(uint32_t bytes) noexcept;
  void free_cell(ArenaOffset offset) noexcept;
  uint32_t cell_bytes(ArenaOffset offset) const noexcept;  // The size allocated for a live cell.

  // `bytes`, at least 1, is rounded up to whole pages. `owner` is any non-zero value the caller
  // wants back when draining. False when no contiguous room is left; more than a segment less one
  // page never fits.
  bool allocate_extent(uint64_t bytes, uint64_t owner, Extent* extent) noexcept;
  // Extents are counted: allocate gives the first reference, `retain_extent` one more; the memory
  // is reused once free_extent has taken the last.
  void retain_extent(const Extent& extent) noexcept;
  void free_extent(const Extent& extent) noexcept;
  uint32_t reference_count(const Extent& extent) const noexcept;
  void set_owner(const Extent& extent, uint64_t owner) noexcept;

  // Draining: the caller picks a segment, lists what lives in it bit by bit, and moves or frees it.
  // A segment being drained gets no new allocations; when its last allocation is freed it goes back
  // to the pool and is no longer draining.
  using Resident = kvstrata::Resident;
  // The segment in use with the least live bytes that is not being drained, but for the `skip`
  // emptiest ones; kNoSegment if there are no more.
  SegmentId emptiest_segment(uint32_t skip = 0) const noexcept;
  void begin_drain(SegmentId segment) noexcept;
  void cancel_drain(SegmentId segment) noexcept;
  bool is_draining(SegmentId segment) const noexcept;
  // Visits up to `count_max` residents at or after *position (0 first) and advances it. The visitor
  // may free the resident it is given and allocate, but not visit. False once the end is reached,
  // or the segment has gone back.
  bool visit_residents(SegmentId segment, uint64_t* position, uint32_t count_max,
                       const std::function<void(const Resident&)>& visit);

  // Whether allocations may borrow further segments, as they may at first. What a drain moves
  // should not: it would fill one segment to empty another.
  void set_borrowing(bool borrowing) noexcept;

  // Returns the reserve to the pool. For a shard that sees the pool's wanted_count() above 0.
  void give_back_reserve() noexcept;

  // The bytes still free in borrowed segments and in the pool, for watermarks: an upper bound,
  // since it ignores fragmentation.
  uint64_t free_bytes() const noexcept;

  ShardMemoryStatistics statistics() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvstrata
