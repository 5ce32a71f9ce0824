// One shard's share of the arena: segments borrowed from the SegmentPool, cut into cells (small, any multiple of 8 bytes) and
// extents (whole pages). Not thread-safe: it belongs to its shard's thread.
//
// Cells and extents never share a segment. A segment that becomes wholly free goes back to the pool (one of each sort is kept
// as a reserve to avoid churn). Everything allocated has an owner, so that a segment can be drained: its owners are listed and moved or dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tiering/native/segment_pool.h"

namespace kvstrata {

// Bytes from the arena's base; 0 means none (the arena's first cell is never handed out).
using ArenaOffset = uint64_t;

struct Extent {
  ArenaOffset offset = 0;
  uint64_t length_bytes = 0;  // A multiple of limits::kPageBytes.
};

struct ShardMemoryStatistics {
  uint64_t cell_bytes_used = 0;      // Sum of live cells, as allocated.
  uint64_t extent_bytes_used = 0;    // Sum of live extents.
  uint64_t segment_bytes_held = 0;   // Borrowed from the pool.
  uint64_t bookkeeping_bytes = 0;    // Side tables on the heap.
};

class ShardMemory {
 public:
  explicit ShardMemory(SegmentPool* pool);
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  std::byte* at(ArenaOffset offset) const noexcept;

  // `bytes` up to limits::kRecordBytesInlineMax. Returns 0 when there is no room. Cells are 8-byte aligned; size classes waste at most 12.5 %,
  // and at most 7 bytes below 256 bytes.
  ArenaOffset allocate_cell(uint32_t bytes) noexcept;
  void free_cell(ArenaOffset offset) noexcept;
  uint32_t cell_bytes(ArenaOffset offset) const noexcept;  // The size allocated for a live cell.

  // `bytes` is rounded up to whole pages, at most a segment. `owner` is any non-zero value the caller wants back when draining.
  // False when no contiguous room is left.
  bool allocate_extent(uint64_t bytes, uint64_t owner, Extent* extent) noexcept;
  // Extents are counted: allocate gives the first reference, `retain` one more; memory is reused when free_extent has taken the last.
  void retain_extent(const Extent& extent) noexcept;
  void free_extent(const Extent& extent) noexcept;
  uint32_t reference_count(const Extent& extent) const noexcept;
  void set_owner(const Extent& extent, uint64_t owner) noexcept;

  // Draining: the caller picks a segment, lists what lives in it bit by bit, and moves or frees it. A segment being drained gets no new
  // allocations; when its last allocation is freed it goes back to the pool.
  struct Resident {
    bool is_cell;
    ArenaOffset offset;  // Of the cell, or of the extent.
    uint64_t length_bytes;
    uint64_t owner;      // Of an extent; 0 for cells.
    uint32_t reference_count;  // Of an extent; 1 for cells.
  };
  // The held segment with the least live bytes that is not being drained; kNoSegment if none is held.
  SegmentId emptiest_segment() const noexcept;
  void begin_drain(SegmentId segment) noexcept;
  void cancel_drain(SegmentId segment) noexcept;
  bool is_draining(SegmentId segment) const noexcept;
  // Visits up to `count_max` residents at or after *position (0 first) and advances it. The visitor may free the resident it is
  // given. False once the end is reached.
  bool visit_residents(SegmentId segment, uint64_t* position, uint32_t count_max,
                       const std::function<void(const Resident&)>& visit);
  // The bytes still free in borrowed segments and in the pool, for watermarks: an upper bound, since it ignores fragmentation.
  uint64_t free_bytes() const noexcept;

  ShardMemoryStatistics statistics() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvstrata
