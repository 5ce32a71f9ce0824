// Cells of fixed sizes, cut from slabs of one size class, within the segments it is given.
//
// What is free is kept beside the arena, on the heap, one bit per cell: cells lie densely, live
// ones can be listed, and neither allocating nor freeing touches the cell itself. Invariants:
//   - a slab is unassigned (it has no bits) or has at least one live cell;
//   - a class's list holds exactly its slabs with a free cell in open segments, that lately full in
//   front, so that
//     fuller slabs fill up first and emptier ones get the time to empty;
//   - the list of segments holds exactly the open ones with an unassigned slab.
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tiering/native/cell_classes.h"
#include "tiering/native/index_list.h"
#include "tiering/native/resident.h"
#include "tiering/native/segment_pool.h"

namespace kvstrata {

class CellAllocator {
 public:
  CellAllocator(uint32_t segment_count, uint64_t segment_bytes);

  // Returns 0 when no open segment has room, or the heap has none for a slab's bits.
  ArenaOffset allocate(uint32_t bytes) noexcept;
  void free(ArenaOffset offset) noexcept;
  uint32_t cell_bytes(ArenaOffset offset) const noexcept;

  // False when the heap has no room for the segment's table. The segment starts open.
  bool add_segment(SegmentId segment) noexcept;
  void remove_segment(SegmentId segment) noexcept;  // It must be empty.
  // A closed segment gets no new cells.
  void close_segment(SegmentId segment) noexcept;
  void open_segment(SegmentId segment) noexcept;
  uint64_t live_bytes(SegmentId segment) const noexcept;

  // The first live cell at or after *position, bytes from the segment's start; moves it behind that
  // cell. False at the end.
  bool next_resident(SegmentId segment, uint64_t* position, Resident* resident) const noexcept;

  uint64_t used_bytes() const noexcept { return used_bytes_; }
  uint64_t bookkeeping_bytes() const noexcept { return bookkeeping_bytes_; }

 private:
  using SlabId = uint32_t;  // Offset in the arena / kSlabBytes.

  struct Slab {
    std::unique_ptr<uint64_t[]> free_bits;  // Null while unassigned.
    ListLinks links;                        // By class, or among the segment's unassigned slabs.
    uint16_t free_count = 0;
    uint16_t first_word = 0;  // No word of free_bits before this has a bit set.
    uint8_t cell_class = 0;
  };

  struct Segment {
    std::unique_ptr<Slab[]> slabs;
    ListLinks links;
    uint32_t unassigned = kListEnd;  // Head of the list of unassigned slabs.
    uint64_t live_bytes = 0;
    bool open = true;
  };

  Slab& slab_at(SlabId id) const noexcept;
  Segment& segment_of(SlabId id) const noexcept;
  void list_slab(SlabId id) noexcept;
  void unlist_slab(SlabId id) noexcept;
  void list_segment(SegmentId id) noexcept;
  void unlist_segment(SegmentId id) noexcept;
  SlabId assign_slab(uint32_t cell_class) noexcept;
  void unassign_slab(SlabId id) noexcept;
  bool next_in_slab(SlabId id, uint32_t from, uint32_t* cell) const noexcept;

  uint32_t slab_shift_;  // Slabs per segment, as a power of two.
  std::vector<std::unique_ptr<Segment>> segments_;
  std::array<SlabId, kCellClassCount> partial_;
  SegmentId with_unassigned_ = kListEnd;
  uint64_t used_bytes_ = 0;
  uint64_t bookkeeping_bytes_ = 0;
};

}  // namespace kvstrata
