// Where a shard's index lies: blocks in regions of 2 MiB, the size of a huge page.
//
// A look-up among millions of keys goes to a random table: on ordinary pages it misses the TLB,
// which costs more than the look-up itself. Tables also grow in small steps and split, so blocks
// have any length in granules of 16 bytes, are taken best fit first, and join their free neighbours
// (boundary tags). The first regions are ordinary memory, present as far as it is used, so that a
// small index costs what it needs. Invariants:
//   - a region is tiled by blocks, and no two free ones touch;
//   - at most one region is empty; further ones go back to the kernel.
// Not thread-safe: it belongs to its shard's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tiering/native/length_bins.h"
#include "tiering/native/page_mapping.h"

namespace kvstrata {

class IndexMemory {
 public:
  // In use before any region asks for huge pages. The last region is half empty on average: with
  // fewer than these it would be a waste to have it present.
  static constexpr uint32_t kOrdinaryRegions = 8;

  explicit IndexMemory(bool huge_pages) noexcept : huge_pages_(huge_pages) {}
  ~IndexMemory();
  IndexMemory(const IndexMemory&) = delete;
  IndexMemory& operator=(const IndexMemory&) = delete;

  // Aligned to 16 bytes, content as left by others. Null when the kernel gives no memory; nothing
  // has changed then.
  void* allocate(uint64_t bytes) noexcept;
  void free(void* memory) noexcept;
  // What an allocation takes, all told.
  static uint64_t bytes_of(const void* memory) noexcept;

  // Address space taken from the kernel: regions, and allocations too large for one.
  uint64_t mapped_bytes() const noexcept { return mapped_bytes_; }

 private:
  // At the start of every block; the links are those of a free one.
  struct Block {
    uint32_t length;           // In granules; kLive in addition while it is in use.
    uint32_t previous_length;  // Of the block before it in the region; 0: there is none.
    ListLinks links;
  };
  // In the first granule of a region.
  struct Region {
    uint32_t place;
  };
  using BlockId = uint32_t;  // The region's place, and the granule within the region.

  static constexpr uint64_t kGranuleBytes = 16;
  static constexpr uint64_t kRegionBytes = kHugePageBytes;
  static constexpr uint32_t kRegionGranules = kRegionBytes / kGranuleBytes;
  static constexpr uint32_t kBlockLengthMax = kRegionGranules - 1;
  static constexpr uint32_t kSharedLengthMax = kRegionGranules / 2;  // Longer ones lie alone.
  static constexpr uint32_t kLive = uint32_t{1} << 31;
  static constexpr uint32_t kPageGranules = 4096 / kGranuleBytes;
  static constexpr uint32_t kExactLengths = 1024;  // 16 KiB: more than ordinary tables take.

  Block& at(BlockId id) const noexcept {
    std::byte* region = regions_[id / kRegionGranules];
    return *reinterpret_cast<Block*>(region + id % kRegionGranules * kGranuleBytes);
  }
  void* allocate_alone(uint32_t length) noexcept;
  bool add_region() noexcept;
  void remove_region(uint32_t place) noexcept;
  void list(BlockId id) noexcept;
  void unlist(BlockId id) noexcept;
  void set_length(BlockId id, uint32_t length) noexcept;

  bool huge_pages_;
  bool asked_for_huge_pages_ = false;
  std::vector<std::byte*> regions_;  // Null where one was given back.
  uint32_t region_count_ = 0;
  uint32_t empty_count_ = 0;
  uint64_t mapped_bytes_ = 0;
  LengthBins<kExactLengths, kBlockLengthMax> bins_;
};

}  // namespace kvstrata
