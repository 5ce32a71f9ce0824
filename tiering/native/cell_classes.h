// The sizes that cells come in. A slab of 64 KiB holds cells of one size:
//   - up to 256 bytes every multiple of 8, so that small records waste 7 bytes at most;
//   - above, a whole part of the slab (1/n of it, rounded down to 8 bytes), with n shrinking by an
//   eighth at most,
//     so that a cell wastes at most 12.5 % and the slab's own remainder stays below 2 KiB.
#pragma once

#include <array>
#include <cstdint>

#include "store/limits.h"

namespace kvstrata {

constexpr uint32_t kSlabBytes = 64 << 10;
constexpr uint32_t kCellBytesMax = limits::kRecordBytesInlineMax;
constexpr uint32_t kCellAlignment = 8;
constexpr uint32_t kFineCellBytesMax = 256;

static_assert(kSlabBytes / kCellBytesMax >= 8, "a slab of few cells could waste more than 3 %");

struct CellClass {
  uint32_t cell_bytes = 0;
  uint32_t cell_count = 0;  // In one slab.
  uint32_t reciprocal = 0;  // 2^32 / cell_bytes, rounded up.

  // The cell that holds the slab's byte `place`. Exact, since the reciprocal is off by less than
  // one part in 2^32, `place` is below 2^16 and cell_bytes at most 2^13.
  uint32_t index_of(uint32_t place) const noexcept {
    return static_cast<uint32_t>(uint64_t{place} * reciprocal >> 32);
  }
};

constexpr CellClass make_cell_class(uint32_t cell_bytes) {
  return {cell_bytes, kSlabBytes / cell_bytes,
          static_cast<uint32_t>(((uint64_t{1} << 32) + cell_bytes - 1) / cell_bytes)};
}

// Calls `visit` with each cell size, largest first.
template <typename Visit>
constexpr void for_each_cell_size(Visit&& visit) {
  for (uint32_t n = kSlabBytes / kCellBytesMax;; n += n < 16 ? 1 : n / 8) {
    uint32_t cell_bytes = kSlabBytes / n / kCellAlignment * kCellAlignment;
    if (cell_bytes <= kFineCellBytesMax) break;
    visit(cell_bytes);
  }
  for (uint32_t bytes = kFineCellBytesMax; bytes > 0; bytes -= kCellAlignment) visit(bytes);
}

constexpr uint32_t count_cell_classes() {
  uint32_t count = 0;
  for_each_cell_size([&](uint32_t) { ++count; });
  return count;
}

constexpr uint32_t kCellClassCount = count_cell_classes();
static_assert(kCellClassCount <= 256, "slabs keep their class in one byte");

// Largest first; a class is an index into this.
inline constexpr auto kCellClasses = [] {
  std::array<CellClass, kCellClassCount> classes{};
  uint32_t next = 0;
  for_each_cell_size([&](uint32_t cell_bytes) { classes[next++] = make_cell_class(cell_bytes); });
  return classes;
}();

// The smallest class for a size, by (bytes + 7) / 8.
inline constexpr auto kCellClassByWords = [] {
  std::array<uint8_t, kCellBytesMax / kCellAlignment + 1> classes{};
  uint32_t chosen = kCellClassCount - 1;
  for (uint32_t words = 0; words < classes.size(); ++words) {
    while (kCellClasses[chosen].cell_bytes < words * kCellAlignment) --chosen;
    classes[words] = static_cast<uint8_t>(chosen);
  }
  return classes;
}();

}  // namespace kvstrata
