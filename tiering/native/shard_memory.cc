#include "tiering/native/shard_memory.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>
#include <vector>

#include "store/limits.h"
#include "tiering/native/cell_allocator.h"
#include "tiering/native/extent_allocator.h"

namespace kvstrata {
namespace {

// What a segment serves this shard for.
enum class Use : uint8_t {
  None,  // Not held, or the reserve.
  Cells,
  Extents,
};

struct Holding {
  Use use = Use::None;
  bool draining = false;
};

uint32_t page_count_of(const Extent& extent) noexcept {
  return static_cast<uint32_t>(extent.length_bytes / limits::kPageBytes);
}

}  // namespace

struct ShardMemory::State {
  explicit State(SegmentPool* lender)
      : pool(lender),
        base(lender->base()),
        segment_bytes(lender->segment_bytes()),
        segment_shift(std::countr_zero(segment_bytes)),
        cells(lender->segment_count(), segment_bytes),
        extents(lender->segment_count(), segment_bytes),
        holdings(lender->segment_count()) {}

  SegmentPool* pool;
  std::byte* base;
  uint64_t segment_bytes;
  int segment_shift;
  CellAllocator cells;
  ExtentAllocator extents;
  std::vector<Holding> holdings;
  SegmentId reserve = kNoSegment;
  bool borrowing = true;
  SegmentId visited = kNoSegment;  // By visit_residents, until it goes back to the pool.
  uint32_t held_count = 0;

  SegmentId segment_of(ArenaOffset offset) const noexcept {
    return static_cast<SegmentId>(offset >> segment_shift);
  }
  // Calls `action` with the allocator that the segment serves.
  template <typename Action>
  auto with_allocator(SegmentId segment, Action&& action) noexcept {
    assert(segment < holdings.size() && holdings[segment].use != Use::None);
    return holdings[segment].use == Use::Cells ? action(cells) : action(extents);
  }
  uint64_t live_bytes(SegmentId segment) noexcept {
    return with_allocator(segment, [&](auto& allocator) { return allocator.live_bytes(segment); });
  }

  bool borrow(Use use) noexcept;
  void keep_or_return(SegmentId segment, bool may_keep) noexcept;
  void after_free(SegmentId segment) noexcept;
};

// Takes the reserve, or a segment from the pool, into use.
bool ShardMemory::State::borrow(Use use) noexcept {
  if (!borrowing) return false;
  SegmentId segment = reserve;
  reserve = kNoSegment;
  if (segment == kNoSegment) {
    segment = pool->acquire();
    if (segment == kNoSegment) return false;
    ++held_count;
  }
  bool added = use == Use::Cells ? cells.add_segment(segment) : extents.add_segment(segment);
  if (!added) {
    keep_or_return(segment, false);
    return false;
  }
  holdings[segment].use = use;
  return true;
}

void ShardMemory::State::keep_or_return(SegmentId segment, bool may_keep) noexcept {
  if (may_keep && reserve == kNoSegment && pool->wanted_count() == 0) {
    reserve = segment;
    return;
  }
  --held_count;
  pool->release(segment);
}

void ShardMemory::State::after_free(SegmentId segment) noexcept {
  if (live_bytes(segment) > 0) return;
  with_allocator(segment, [&](auto& allocator) { allocator.remove_segment(segment); });
  bool drained = holdings[segment].draining;
  holdings[segment] = {};
  if (visited == segment) visited = kNoSegment;
  keep_or_return(segment, !drained);
}

ShardMemory::ShardMemory(SegmentPool* pool) : state_(std::make_unique<State>(pool)) {}

ShardMemory::~ShardMemory() {
  give_back_reserve();
  for (SegmentId segment = 0; segment < state_->holdings.size(); ++segment) {
    if (state_->holdings[segment].use != Use::None) state_->pool->release(segment);
  }
}

std::byte* ShardMemory::at(ArenaOffset offset) const noexcept { return state_->base + offset; }

ArenaOffset ShardMemory::allocate_cell(uint32_t bytes) noexcept {
  ArenaOffset offset = state_->cells.allocate(bytes);
  if (offset == 0 && state_->borrow(Use::Cells)) offset = state_->cells.allocate(bytes);
  return offset;
}

void ShardMemory::free_cell(ArenaOffset offset) noexcept {
  SegmentId segment = state_->segment_of(offset);
  assert(state_->holdings[segment].use == Use::Cells);
  state_->cells.free(offset);
  state_->after_free(segment);
}

uint32_t ShardMemory::cell_bytes(ArenaOffset offset) const noexcept {
  assert(state_->holdings[state_->segment_of(offset)].use == Use::Cells);
  return state_->cells.cell_bytes(offset);
}

bool ShardMemory::allocate_extent(uint64_t bytes, uint64_t owner, Extent* extent) noexcept {
  assert(bytes > 0 && owner != 0);
  if (bytes > state_->extents.page_count_max() * limits::kPageBytes) return false;
  auto pages = static_cast<uint32_t>((bytes + limits::kPageBytes - 1) / limits::kPageBytes);
  ArenaOffset offset = state_->extents.allocate(pages, owner);
  if (offset == 0 && state_->borrow(Use::Extents)) offset = state_->extents.allocate(pages, owner);
  if (offset == 0) return false;
  *extent = {offset, pages * limits::kPageBytes};
  return true;
}

void ShardMemory::free_extent(const Extent& extent) noexcept {
  SegmentId segment = state_->segment_of(extent.offset);
  assert(state_->holdings[segment].use == Use::Extents);
  if (state_->extents.free(extent.offset, page_count_of(extent))) state_->after_free(segment);
}

void ShardMemory::retain_extent(const Extent& extent) noexcept {
  assert(state_->holdings[state_->segment_of(extent.offset)].use == Use::Extents);
  state_->extents.retain(extent.offset, page_count_of(extent));
}

uint32_t ShardMemory::reference_count(const Extent& extent) const noexcept {
  assert(state_->holdings[state_->segment_of(extent.offset)].use == Use::Extents);
  return state_->extents.reference_count(extent.offset, page_count_of(extent));
}

void ShardMemory::set_owner(const Extent& extent, uint64_t owner) noexcept {
  assert(state_->holdings[state_->segment_of(extent.offset)].use == Use::Extents);
  state_->extents.set_owner(extent.offset, page_count_of(extent), owner);
}

SegmentId ShardMemory::emptiest_segment(uint32_t skip) const noexcept {
  std::vector<std::pair<uint64_t, SegmentId>> by_live_bytes;
  for (SegmentId segment = 0; segment < state_->holdings.size(); ++segment) {
    const Holding& holding = state_->holdings[segment];
    if (holding.use == Use::None || holding.draining) continue;
    by_live_bytes.emplace_back(state_->live_bytes(segment), segment);
  }
  if (skip >= by_live_bytes.size()) return kNoSegment;
  std::nth_element(by_live_bytes.begin(), by_live_bytes.begin() + skip, by_live_bytes.end());
  return by_live_bytes[skip].second;
}

void ShardMemory::set_borrowing(bool borrowing) noexcept { state_->borrowing = borrowing; }

void ShardMemory::begin_drain(SegmentId segment) noexcept {
  assert(!is_draining(segment));
  state_->with_allocator(segment, [&](auto& allocator) { allocator.close_segment(segment); });
  state_->holdings[segment].draining = true;
}

void ShardMemory::cancel_drain(SegmentId segment) noexcept {
  assert(is_draining(segment));
  state_->with_allocator(segment, [&](auto& allocator) { allocator.open_segment(segment); });
  state_->holdings[segment].draining = false;
}

bool ShardMemory::is_draining(SegmentId segment) const noexcept {
  assert(segment < state_->holdings.size());
  return state_->holdings[segment].draining;
}

bool ShardMemory::visit_residents(SegmentId segment, uint64_t* position, uint32_t count_max,
                                  const std::function<void(const Resident&)>& visit) {
  assert(state_->visited == kNoSegment && count_max > 0);
  if (state_->holdings[segment].use == Use::None) return false;
  state_->visited = segment;
  bool more = true;
  for (uint32_t count = 0; count < count_max && more; ++count) {
    Resident resident;
    more = state_->with_allocator(segment, [&](auto& allocator) {
      return allocator.next_resident(segment, position, &resident);
    });
    if (!more) break;
    visit(resident);
    // Freed as the last one: the segment is gone.
    if (state_->visited == kNoSegment) more = false;
  }
  state_->visited = kNoSegment;
  return more;
}

void ShardMemory::give_back_reserve() noexcept {
  if (state_->reserve == kNoSegment) return;
  state_->keep_or_return(state_->reserve, false);
  state_->reserve = kNoSegment;
}

uint64_t ShardMemory::free_bytes() const noexcept {
  uint64_t held = state_->held_count * state_->segment_bytes;
  uint64_t used = state_->cells.used_bytes() + state_->extents.used_bytes();
  return held - used + state_->pool->free_count() * state_->segment_bytes;
}

ShardMemoryStatistics ShardMemory::statistics() const noexcept {
  return {.cell_bytes_used = state_->cells.used_bytes(),
          .extent_bytes_used = state_->extents.used_bytes(),
          .extent_bytes_shared = state_->extents.shared_bytes(),
          .segment_bytes_held = state_->held_count * state_->segment_bytes,
          .bookkeeping_bytes = sizeof(State) - sizeof(CellAllocator) - sizeof(ExtentAllocator) +
                               state_->holdings.size() * sizeof(Holding) +
                               state_->cells.bookkeeping_bytes() +
                               state_->extents.bookkeeping_bytes()};
}

}  // namespace kvstrata
