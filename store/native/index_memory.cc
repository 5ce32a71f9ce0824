#include "store/native/index_memory.h"

#include <algorithm>
#include <cassert>
#include <new>

namespace kvstrata {

IndexMemory::~IndexMemory() {
  for (std::byte* region : regions_) {
    if (region != nullptr) unmap_pages(region, kRegionBytes);
  }
}

uint64_t IndexMemory::bytes_of(const void* memory) noexcept {
  const Block& block = static_cast<const Block*>(memory)[-1];
  return (block.length & ~kLive) * kGranuleBytes;
}

void* IndexMemory::allocate(uint64_t bytes) noexcept {
  assert(bytes < uint64_t{kLive} / 2 * kGranuleBytes);
  auto length = static_cast<uint32_t>((bytes + sizeof(Block) + kGranuleBytes - 1) / kGranuleBytes);
  if (length > kSharedLengthMax) return allocate_alone(length);
  const auto find = [&] {
    return bins_.find(
        length, [this](BlockId id) -> ListLinks& { return at(id).links; },
        [this](BlockId id) { return at(id).length; });
  };
  BlockId id = find();
  if (id == kListEnd && add_region()) id = find();
  if (id == kListEnd) return nullptr;
  unlist(id);
  uint32_t found_length = at(id).length;
  if (found_length == kBlockLengthMax) --empty_count_;
  if (found_length > length) {
    at(id + length).previous_length = length;
    set_length(id + length, found_length - length);
    list(id + length);
  }
  at(id).length = length | kLive;
  return &at(id) + 1;
}

// Beyond half a region: a directory of a hundred million keys, or thousands of equal hashes.
void* IndexMemory::allocate_alone(uint32_t length) noexcept {
  length = (length + kPageGranules - 1) / kPageGranules * kPageGranules;
  uint64_t bytes = length * kGranuleBytes;
  std::byte* start = map_pages(bytes);
  if (start == nullptr) return nullptr;
  if (huge_pages_ && bytes >= kHugePageBytes) advise_huge_pages(start, bytes, true);
  mapped_bytes_ += bytes;
  Block& block = *new (start) Block{length | kLive, 0, {}};
  return &block + 1;
}

void IndexMemory::free(void* memory) noexcept {
  Block& freed = static_cast<Block*>(memory)[-1];
  assert((freed.length & kLive) != 0);
  uint32_t length = freed.length & ~kLive;
  if (length > kSharedLengthMax) {
    mapped_bytes_ -= length * kGranuleBytes;
    unmap_pages(reinterpret_cast<std::byte*>(&freed), length * kGranuleBytes);
    return;
  }
  const auto address = reinterpret_cast<uintptr_t>(&freed);
  const auto* region = reinterpret_cast<const Region*>(address & ~(kRegionBytes - 1));
  uint32_t place = region->place;
  BlockId id = place * kRegionGranules + address % kRegionBytes / kGranuleBytes;
  BlockId end = (place + 1) * kRegionGranules;
  if (BlockId next = id + length; next < end && (at(next).length & kLive) == 0) {
    unlist(next);
    length += at(next).length;
  }
  if (BlockId before = id - freed.previous_length;
      freed.previous_length != 0 && (at(before).length & kLive) == 0) {
    unlist(before);
    length += at(before).length;
    id = before;
  }
  if (length == kBlockLengthMax && empty_count_++ > 0) {
    remove_region(place);
    return;
  }
  set_length(id, length);
  list(id);
}

bool IndexMemory::add_region() noexcept {
  auto free_place = std::ranges::find(regions_, nullptr);
  auto place = static_cast<uint32_t>(free_place - regions_.begin());
  if (place == UINT32_MAX / kRegionGranules) return false;
  try {
    if (free_place == regions_.end()) regions_.push_back(nullptr);
  } catch (const std::bad_alloc&) {
    return false;
  }
  std::byte* region = map_pages(kRegionBytes);
  if (region == nullptr) return false;
  regions_[place] = region;
  ++region_count_;
  mapped_bytes_ += kRegionBytes;
  bool huge = huge_pages_ && region_count_ > kOrdinaryRegions;
  advise_huge_pages(region, kRegionBytes, huge);
  if (huge && !asked_for_huge_pages_) {
    asked_for_huge_pages_ = true;
    for (std::byte* each : regions_) {
      if (each != nullptr) advise_huge_pages(each, kRegionBytes, true);
    }
  }
  new (region) Region{place};
  ++empty_count_;
  BlockId first = place * kRegionGranules + 1;
  new (&at(first)) Block{kBlockLengthMax, 0, {}};
  list(first);
  return true;
}

void IndexMemory::remove_region(uint32_t place) noexcept {
  --empty_count_;
  --region_count_;
  mapped_bytes_ -= kRegionBytes;
  unmap_pages(regions_[place], kRegionBytes);
  regions_[place] = nullptr;
}

void IndexMemory::list(BlockId id) noexcept {
  bins_.insert(id, at(id).length, [this](BlockId each) -> ListLinks& { return at(each).links; });
}

void IndexMemory::unlist(BlockId id) noexcept {
  bins_.remove(id, at(id).length, [this](BlockId each) -> ListLinks& { return at(each).links; });
}

// Of a free block; the one behind it is told.
void IndexMemory::set_length(BlockId id, uint32_t length) noexcept {
  at(id).length = length;
  if (BlockId next = id + length; next % kRegionGranules != 0) at(next).previous_length = length;
}

}  // namespace kvstrata
