// Extents: runs of whole pages within the segments it is given, best fit first.
//
// A segment is tiled by runs, live or free, and no two free runs touch. Beside the arena, on the
// heap, each page has a tag (meaningful at both ends of a run), a slot (meaningful at its first
// page: the owner of a live run, the links of a free one) and a count of references (likewise): 14
// bytes for a page. Free runs of open segments are listed in bins by length: one bin per length up
// to a chunk, which is the largest extent in common use, and eight per doubling above.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/limits.h"
#include "tiering/native/length_bins.h"
#include "tiering/native/resident.h"
#include "tiering/native/segment_pool.h"

namespace kvstrata {

class ExtentAllocator {
 public:
  ExtentAllocator(uint32_t segment_count, uint64_t segment_bytes);

  // The largest extent there can be: a segment less one page, since the arena's first page is never
  // handed out and all segments shall serve alike.
  uint32_t page_count_max() const noexcept { return segment_pages_ - 1; }

  // Returns 0 when no open segment has a run of `page_count`.
  ArenaOffset allocate(uint32_t page_count, uint64_t owner) noexcept;
  void retain(ArenaOffset offset, uint32_t page_count) noexcept;
  // Takes one reference; true if it was the last, so that the pages are free now.
  bool free(ArenaOffset offset, uint32_t page_count) noexcept;
  uint32_t reference_count(ArenaOffset offset, uint32_t page_count) const noexcept;
  void set_owner(ArenaOffset offset, uint32_t page_count, uint64_t owner) noexcept;

  // False when the heap has no room for the segment's table. The segment starts open.
  bool add_segment(SegmentId segment) noexcept;
  void remove_segment(SegmentId segment) noexcept;  // It must be empty.
  // A closed segment gets no new extents.
  void close_segment(SegmentId segment) noexcept;
  void open_segment(SegmentId segment) noexcept;
  uint64_t live_bytes(SegmentId segment) const noexcept;

  // The first live extent that starts at or after *position, bytes from the segment's start; moves
  // it behind that extent. False at the end.
  bool next_resident(SegmentId segment, uint64_t* position, Resident* resident) const noexcept;

  uint64_t used_bytes() const noexcept { return used_pages_ * limits::kPageBytes; }
  // Of extents with more than one reference.
  uint64_t shared_bytes() const noexcept { return shared_pages_ * limits::kPageBytes; }
  uint64_t bookkeeping_bytes() const noexcept { return bookkeeping_bytes_; }

 private:
  using PageId = uint32_t;  // Offset in the arena / kPageBytes.
  using Tag = uint16_t;

  union Slot {
    uint64_t owner;
    ListLinks links;
    Slot() noexcept {}  // Tables start unset: a slot is written before it is read.
  };

  struct Segment {
    std::unique_ptr<Tag[]> tags;
    std::unique_ptr<Slot[]> slots;
    std::unique_ptr<uint32_t[]> reference_counts;
    uint32_t live_pages = 0;
    bool open = true;
  };

  static constexpr uint32_t kExactPages = limits::kChunkBytes / limits::kPageBytes;
  static constexpr uint32_t kSegmentPagesMax = limits::kSegmentBytesMax / limits::kPageBytes;

  Tag& tag_at(PageId page) const noexcept;
  Slot& slot_at(PageId page) const noexcept;
  uint32_t& references_at(PageId page) const noexcept;
  PageId live_run(ArenaOffset offset, uint32_t page_count) const noexcept;
  void free_run(PageId first, uint32_t page_count) noexcept;
  void tag_run(PageId first, uint32_t page_count, Tag state) noexcept;
  void list_run(PageId first, uint32_t page_count) noexcept;
  void unlist_run(PageId first, uint32_t page_count) noexcept;
  template <typename Visit>
  void for_each_free_run(SegmentId segment, Visit&& visit) noexcept;

  uint64_t segment_table_bytes() const noexcept;

  uint32_t segment_pages_;
  uint32_t page_shift_;  // Pages per segment, as a power of two.
  std::vector<std::unique_ptr<Segment>> segments_;
  LengthBins<kExactPages, kSegmentPagesMax> bins_;
  uint64_t used_pages_ = 0;
  uint64_t shared_pages_ = 0;
  uint64_t bookkeeping_bytes_ = 0;
};

}  // namespace kvstrata
