#include "tiering/native/extent_allocator.h"

#include <bit>
#include <cassert>
#include <new>

namespace kvstrata {
namespace {

// A tag: the run's length less one, whether this is the run's first page, whether the run is live.
// Inside a run tags are left over from earlier runs, but never say live: a run's ends are marked
// free before it merges with others. So a page whose tag says first and live is the start of a live
// extent, whatever happened before.
constexpr uint16_t kLengthMask = 0x3fff;
constexpr uint16_t kFirst = 0x4000;
constexpr uint16_t kLive = 0x8000;
constexpr uint16_t kFree = 0;

constexpr uint64_t kHeapBlockBytes = 16;  // What the heap adds to a block, at most.

uint32_t length_of(uint16_t tag) noexcept { return (tag & kLengthMask) + 1U; }

}  // namespace

ExtentAllocator::ExtentAllocator(uint32_t segment_count, uint64_t segment_bytes)
    : segment_pages_(static_cast<uint32_t>(segment_bytes / limits::kPageBytes)),
      page_shift_(std::countr_zero(segment_pages_)),
      segments_(segment_count) {
  static_assert(kSegmentPagesMax <= kLengthMask + 1U);
  assert(std::has_single_bit(segment_pages_) && segment_pages_ <= kSegmentPagesMax);
  assert(uint64_t{segment_count} << page_shift_ < kListEnd);
  bookkeeping_bytes_ = sizeof(*this) + segment_count * sizeof(segments_[0]);
}

ExtentAllocator::Tag& ExtentAllocator::tag_at(PageId page) const noexcept {
  return segments_[page >> page_shift_]->tags[page & (segment_pages_ - 1)];
}

ExtentAllocator::Slot& ExtentAllocator::slot_at(PageId page) const noexcept {
  return segments_[page >> page_shift_]->slots[page & (segment_pages_ - 1)];
}

uint32_t& ExtentAllocator::references_at(PageId page) const noexcept {
  return segments_[page >> page_shift_]->reference_counts[page & (segment_pages_ - 1)];
}

// The first page of a live extent, checked to be one of just this length.
ExtentAllocator::PageId ExtentAllocator::live_run(ArenaOffset offset,
                                                  uint32_t page_count) const noexcept {
  assert(offset != 0 && offset % limits::kPageBytes == 0 && page_count > 0);
  auto first = static_cast<PageId>(offset / limits::kPageBytes);
  assert(tag_at(first) == static_cast<Tag>(kLive | kFirst | (page_count - 1)));
  return first;
}

void ExtentAllocator::tag_run(PageId first, uint32_t page_count, Tag state) noexcept {
  Tag tag = static_cast<Tag>(state | (page_count - 1));
  tag_at(first + page_count - 1) = tag;
  tag_at(first) = tag | kFirst;
}

void ExtentAllocator::list_run(PageId first, uint32_t page_count) noexcept {
  bins_.insert(first, page_count,
               [this](PageId page) -> ListLinks& { return slot_at(page).links; });
}

void ExtentAllocator::unlist_run(PageId first, uint32_t page_count) noexcept {
  bins_.remove(first, page_count,
               [this](PageId page) -> ListLinks& { return slot_at(page).links; });
}

ArenaOffset ExtentAllocator::allocate(uint32_t page_count, uint64_t owner) noexcept {
  assert(page_count > 0 && page_count <= page_count_max() && owner != 0);
  PageId first = bins_.find(
      page_count, [this](PageId page) -> ListLinks& { return slot_at(page).links; },
      [this](PageId page) { return length_of(tag_at(page)); });
  if (first == kListEnd) return 0;
  uint32_t length = length_of(tag_at(first));
  assert(length >= page_count && (tag_at(first) & kLive) == 0);
  unlist_run(first, length);
  if (length > page_count) {
    tag_run(first + page_count, length - page_count, kFree);
    list_run(first + page_count, length - page_count);
  }
  tag_run(first, page_count, kLive);
  slot_at(first).owner = owner;
  references_at(first) = 1;
  segments_[first >> page_shift_]->live_pages += page_count;
  used_pages_ += page_count;
  return uint64_t{first} * limits::kPageBytes;
}

void ExtentAllocator::retain(ArenaOffset offset, uint32_t page_count) noexcept {
  uint32_t& references = references_at(live_run(offset, page_count));
  assert(references < UINT32_MAX);
  if (++references == 2) shared_pages_ += page_count;
}

bool ExtentAllocator::free(ArenaOffset offset, uint32_t page_count) noexcept {
  PageId first = live_run(offset, page_count);
  uint32_t left = --references_at(first);
  if (left == 1) shared_pages_ -= page_count;
  if (left > 0) return false;
  free_run(first, page_count);
  return true;
}

void ExtentAllocator::free_run(PageId first, uint32_t page_count) noexcept {
  Segment& segment = *segments_[first >> page_shift_];
  segment.live_pages -= page_count;
  used_pages_ -= page_count;
  tag_run(first, page_count, kFree);

  uint32_t place = first & (segment_pages_ - 1);
  if (place + page_count < segment_pages_) {
    PageId next = first + page_count;
    if ((tag_at(next) & kLive) == 0) {
      uint32_t length = length_of(tag_at(next));
      if (segment.open) unlist_run(next, length);
      page_count += length;
    }
  }
  if (place > 0 && (tag_at(first - 1) & kLive) == 0) {
    uint32_t length = length_of(tag_at(first - 1));
    first -= length;
    page_count += length;
    if (segment.open) unlist_run(first, length);
  }
  tag_run(first, page_count, kFree);
  if (segment.open) list_run(first, page_count);
}

uint32_t ExtentAllocator::reference_count(ArenaOffset offset, uint32_t page_count) const noexcept {
  return references_at(live_run(offset, page_count));
}

void ExtentAllocator::set_owner(ArenaOffset offset, uint32_t page_count, uint64_t owner) noexcept {
  assert(owner != 0);
  slot_at(live_run(offset, page_count)).owner = owner;
}

uint64_t ExtentAllocator::segment_table_bytes() const noexcept {
  return sizeof(Segment) + segment_pages_ * (sizeof(Tag) + sizeof(Slot) + sizeof(uint32_t)) +
         4 * kHeapBlockBytes;
}

bool ExtentAllocator::add_segment(SegmentId id) noexcept {
  assert(!segments_[id]);
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  if (!segment) return false;
  segment->tags.reset(new (std::nothrow) Tag[segment_pages_]());
  segment->slots.reset(new (std::nothrow) Slot[segment_pages_]);
  segment->reference_counts.reset(new (std::nothrow) uint32_t[segment_pages_]);
  if (!segment->tags || !segment->slots || !segment->reference_counts) return false;
  segments_[id] = std::move(segment);
  PageId first = id << page_shift_;
  // The arena's first page is a run that looks live and that nobody owns.
  uint32_t reserved = id == 0 ? 1 : 0;
  if (reserved != 0) tag_run(first, reserved, kLive);
  tag_run(first + reserved, segment_pages_ - reserved, kFree);
  list_run(first + reserved, segment_pages_ - reserved);
  bookkeeping_bytes_ += segment_table_bytes();
  return true;
}

void ExtentAllocator::remove_segment(SegmentId id) noexcept {
  assert(segments_[id] && segments_[id]->live_pages == 0);
  if (segments_[id]->open) close_segment(id);
  segments_[id].reset();
  bookkeeping_bytes_ -= segment_table_bytes();
}

template <typename Visit>
void ExtentAllocator::for_each_free_run(SegmentId id, Visit&& visit) noexcept {
  PageId page = id << page_shift_;
  PageId end = page + segment_pages_;
  while (page < end) {
    uint32_t length = length_of(tag_at(page));
    if ((tag_at(page) & kLive) == 0) visit(page, length);
    page += length;
  }
}

void ExtentAllocator::close_segment(SegmentId id) noexcept {
  assert(segments_[id]->open);
  for_each_free_run(id, [this](PageId first, uint32_t length) { unlist_run(first, length); });
  segments_[id]->open = false;
}

void ExtentAllocator::open_segment(SegmentId id) noexcept {
  assert(!segments_[id]->open);
  for_each_free_run(id, [this](PageId first, uint32_t length) { list_run(first, length); });
  segments_[id]->open = true;
}

uint64_t ExtentAllocator::live_bytes(SegmentId id) const noexcept {
  assert(segments_[id]);
  return segments_[id]->live_pages * limits::kPageBytes;
}

bool ExtentAllocator::next_resident(SegmentId id, uint64_t* position,
                                    Resident* resident) const noexcept {
  const Segment& segment = *segments_[id];
  auto place = static_cast<uint32_t>((*position + limits::kPageBytes - 1) / limits::kPageBytes);
  if (id == 0 && place == 0) place = 1;
  for (; place < segment_pages_; ++place) {
    Tag tag = segment.tags[place];
    if ((tag & (kLive | kFirst)) != (kLive | kFirst)) continue;
    uint64_t offset = ((uint64_t{id} << page_shift_) + place) * limits::kPageBytes;
    uint64_t length_bytes = length_of(tag) * limits::kPageBytes;
    *resident = {.is_cell = false,
                 .offset = offset,
                 .length_bytes = length_bytes,
                 .owner = segment.slots[place].owner,
                 .reference_count = segment.reference_counts[place]};
    *position = place * limits::kPageBytes + length_bytes;
    return true;
  }
  *position = segment_pages_ * limits::kPageBytes;
  return false;
}

}  // namespace kvstrata
