// What a drain finds in a segment.
#pragma once

#include <cstdint>

namespace kvstrata {

// Bytes from the arena's base; 0 means none (the arena's first page is never handed out).
using ArenaOffset = uint64_t;

struct Resident {
  bool is_cell = false;
  ArenaOffset offset = 0;  // Of the cell, or of the extent.
  uint64_t length_bytes = 0;
  uint64_t owner = 0;            // Of an extent; 0 for cells.
  uint32_t reference_count = 1;  // Of an extent; 1 for cells.
};

}  // namespace kvstrata
