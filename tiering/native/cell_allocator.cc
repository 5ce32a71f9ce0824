#include "tiering/native/cell_allocator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

namespace kvstrata {
namespace {

constexpr uint32_t kWordBits = 64;
constexpr uint64_t kHeapBlockBytes = 16;  // What the heap adds to a block, at most.

uint32_t word_count(const CellClass& cells) noexcept {
  return (cells.cell_count + kWordBits - 1) / kWordBits;
}

// Offset 0 means none, so the very first cell of the arena stays taken for ever.
uint32_t reserved_count(uint32_t slab) noexcept { return slab == 0 ? 1 : 0; }

}  // namespace

CellAllocator::CellAllocator(uint32_t segment_count, uint64_t segment_bytes)
    : slab_shift_(std::countr_zero(segment_bytes / kSlabBytes)), segments_(segment_count) {
  assert(std::has_single_bit(segment_bytes) && segment_bytes >= kSlabBytes);
  partial_.fill(kListEnd);
  bookkeeping_bytes_ = sizeof(*this) + segment_count * sizeof(segments_[0]);
}

CellAllocator::Segment& CellAllocator::segment_of(SlabId id) const noexcept {
  return *segments_[id >> slab_shift_];
}

CellAllocator::Slab& CellAllocator::slab_at(SlabId id) const noexcept {
  return segment_of(id).slabs[id & ((1U << slab_shift_) - 1)];
}

void CellAllocator::list_slab(SlabId id) noexcept {
  list_push_front(&partial_[slab_at(id).cell_class], id,
                  [this](SlabId slab) -> ListLinks& { return slab_at(slab).links; });
}

void CellAllocator::unlist_slab(SlabId id) noexcept {
  list_remove(&partial_[slab_at(id).cell_class], id,
              [this](SlabId slab) -> ListLinks& { return slab_at(slab).links; });
}

void CellAllocator::list_segment(SegmentId id) noexcept {
  list_push_front(&with_unassigned_, id,
                  [this](SegmentId segment) -> ListLinks& { return segments_[segment]->links; });
}

void CellAllocator::unlist_segment(SegmentId id) noexcept {
  list_remove(&with_unassigned_, id,
              [this](SegmentId segment) -> ListLinks& { return segments_[segment]->links; });
}

CellAllocator::SlabId CellAllocator::assign_slab(uint32_t cell_class) noexcept {
  if (with_unassigned_ == kListEnd) return kListEnd;
  Segment& segment = *segments_[with_unassigned_];
  const CellClass& cells = kCellClasses[cell_class];
  uint32_t words = word_count(cells);
  std::unique_ptr<uint64_t[]> bits(new (std::nothrow) uint64_t[words]);
  if (!bits) return kListEnd;

  SlabId id = segment.unassigned;
  Slab& slab = slab_at(id);
  segment.unassigned = slab.links.next;
  if (segment.unassigned == kListEnd) unlist_segment(with_unassigned_);

  // Bits behind the last cell stay set: while free_count is above 0 a lower one is found first.
  std::fill_n(bits.get(), words, ~uint64_t{0});
  if (reserved_count(id) != 0) bits[0] &= ~uint64_t{1};

  slab.free_bits = std::move(bits);
  slab.free_count = static_cast<uint16_t>(cells.cell_count - reserved_count(id));
  slab.first_word = 0;
  slab.cell_class = static_cast<uint8_t>(cell_class);
  bookkeeping_bytes_ += words * sizeof(uint64_t) + kHeapBlockBytes;
  list_slab(id);
  return id;
}

void CellAllocator::unassign_slab(SlabId id) noexcept {
  Slab& slab = slab_at(id);
  Segment& segment = segment_of(id);
  bookkeeping_bytes_ -=
      word_count(kCellClasses[slab.cell_class]) * sizeof(uint64_t) + kHeapBlockBytes;
  slab.free_bits.reset();
  if (segment.open && segment.unassigned == kListEnd) list_segment(id >> slab_shift_);
  slab.links.next = segment.unassigned;
  segment.unassigned = id;
}

ArenaOffset CellAllocator::allocate(uint32_t bytes) noexcept {
  assert(bytes > 0 && bytes <= kCellBytesMax);
  uint32_t cell_class = kCellClassByWords[(bytes + kCellAlignment - 1) / kCellAlignment];
  SlabId id = partial_[cell_class];
  if (id == kListEnd) id = assign_slab(cell_class);
  if (id == kListEnd) return 0;

  Slab& slab = slab_at(id);
  assert(slab.free_count > 0);
  uint32_t word = slab.first_word;
  while (slab.free_bits[word] == 0) ++word;
  slab.first_word = static_cast<uint16_t>(word);
  uint32_t cell = word * kWordBits + static_cast<uint32_t>(std::countr_zero(slab.free_bits[word]));
  slab.free_bits[word] &= slab.free_bits[word] - 1;
  if (--slab.free_count == 0) unlist_slab(id);

  uint32_t cell_bytes = kCellClasses[cell_class].cell_bytes;
  segment_of(id).live_bytes += cell_bytes;
  used_bytes_ += cell_bytes;
  return uint64_t{id} * kSlabBytes + uint64_t{cell} * cell_bytes;
}

void CellAllocator::free(ArenaOffset offset) noexcept {
  auto id = static_cast<SlabId>(offset / kSlabBytes);
  Segment& segment = segment_of(id);
  Slab& slab = slab_at(id);
  assert(offset != 0 && slab.free_bits);
  const CellClass& cells = kCellClasses[slab.cell_class];
  uint32_t place = offset % kSlabBytes;
  uint32_t cell = cells.index_of(place);
  uint64_t bit = uint64_t{1} << cell % kWordBits;
  uint64_t& word = slab.free_bits[cell / kWordBits];
  assert(cell * cells.cell_bytes == place && (word & bit) == 0);  // A live cell's start.

  word |= bit;
  slab.first_word = std::min(slab.first_word, static_cast<uint16_t>(cell / kWordBits));
  segment.live_bytes -= cells.cell_bytes;
  used_bytes_ -= cells.cell_bytes;
  if (++slab.free_count == cells.cell_count - reserved_count(id)) {
    // It was listed, as every slab has several cells.
    if (segment.open) unlist_slab(id);
    unassign_slab(id);
  } else if (slab.free_count == 1 && segment.open) {
    list_slab(id);
  }
}

uint32_t CellAllocator::cell_bytes(ArenaOffset offset) const noexcept {
  const Slab& slab = slab_at(static_cast<SlabId>(offset / kSlabBytes));
  assert(offset != 0 && slab.free_bits);
  return kCellClasses[slab.cell_class].cell_bytes;
}

bool CellAllocator::add_segment(SegmentId id) noexcept {
  assert(!segments_[id]);
  uint32_t slab_count = 1U << slab_shift_;
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  if (!segment) return false;
  segment->slabs.reset(new (std::nothrow) Slab[slab_count]);
  if (!segment->slabs) return false;
  segments_[id] = std::move(segment);
  SlabId first = id << slab_shift_;
  // From the back, so that the lowest slab is taken first.
  for (SlabId slab = first + slab_count; slab-- > first;) {
    slab_at(slab).links.next = segments_[id]->unassigned;
    segments_[id]->unassigned = slab;
  }
  list_segment(id);
  bookkeeping_bytes_ += sizeof(Segment) + slab_count * sizeof(Slab) + 2 * kHeapBlockBytes;
  return true;
}

void CellAllocator::remove_segment(SegmentId id) noexcept {
  assert(segments_[id] && segments_[id]->live_bytes == 0);
  if (segments_[id]->open) unlist_segment(id);
  segments_[id].reset();
  bookkeeping_bytes_ -= sizeof(Segment) + (sizeof(Slab) << slab_shift_) + 2 * kHeapBlockBytes;
}

void CellAllocator::close_segment(SegmentId id) noexcept {
  Segment& segment = *segments_[id];
  assert(segment.open);
  for (SlabId slab = id << slab_shift_; slab < (id + 1) << slab_shift_; ++slab) {
    if (slab_at(slab).free_bits && slab_at(slab).free_count > 0) unlist_slab(slab);
  }
  if (segment.unassigned != kListEnd) unlist_segment(id);
  segment.open = false;
}

void CellAllocator::open_segment(SegmentId id) noexcept {
  Segment& segment = *segments_[id];
  assert(!segment.open);
  for (SlabId slab = id << slab_shift_; slab < (id + 1) << slab_shift_; ++slab) {
    if (slab_at(slab).free_bits && slab_at(slab).free_count > 0) list_slab(slab);
  }
  if (segment.unassigned != kListEnd) list_segment(id);
  segment.open = true;
}

uint64_t CellAllocator::live_bytes(SegmentId id) const noexcept {
  assert(segments_[id]);
  return segments_[id]->live_bytes;
}

bool CellAllocator::next_in_slab(SlabId id, uint32_t from, uint32_t* cell) const noexcept {
  const Slab& slab = slab_at(id);
  if (!slab.free_bits) return false;
  uint32_t count = kCellClasses[slab.cell_class].cell_count;
  for (from = std::max(from, reserved_count(id)); from < count;) {
    uint64_t live = ~slab.free_bits[from / kWordBits] >> from % kWordBits;
    if (live != 0) {
      *cell = from + static_cast<uint32_t>(std::countr_zero(live));
      return true;
    }
    from = (from / kWordBits + 1) * kWordBits;
  }
  return false;
}

bool CellAllocator::next_resident(SegmentId id, uint64_t* position,
                                  Resident* resident) const noexcept {
  uint64_t place = *position;
  for (; place < uint64_t{kSlabBytes} << slab_shift_;
       place = (place / kSlabBytes + 1) * kSlabBytes) {
    auto slab = static_cast<SlabId>((uint64_t{id} << slab_shift_) + place / kSlabBytes);
    const CellClass& cells = kCellClasses[slab_at(slab).cell_class];
    uint32_t from = (place % kSlabBytes + cells.cell_bytes - 1) / cells.cell_bytes;
    uint32_t cell = 0;
    if (!next_in_slab(slab, from, &cell)) continue;
    uint64_t offset = uint64_t{slab} * kSlabBytes + uint64_t{cell} * cells.cell_bytes;
    *resident = {.is_cell = true,
                 .offset = offset,
                 .length_bytes = cells.cell_bytes,
                 .owner = 0,
                 .reference_count = 1};
    *position = place / kSlabBytes * kSlabBytes + uint64_t{cell + 1} * cells.cell_bytes;
    return true;
  }
  *position = place;
  return false;
}

}  // namespace kvstrata
