// How a range of an object is cut for its checksums: at multiples of the chunk size of the object's
// offsets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvstrata {

// Length of the piece that begins at `offset` when `left` bytes of the range are left; 0 only for
// `left` 0.
constexpr uint64_t piece_length(uint64_t offset, uint64_t left, uint32_t chunk_bytes) noexcept {
  return std::min(left, chunk_bytes - offset % chunk_bytes);
}

// `offset + length` must not overflow.
constexpr uint64_t piece_count(uint64_t offset, uint64_t length, uint32_t chunk_bytes) noexcept {
  if (length == 0) return 0;
  return (offset + length - 1) / chunk_bytes - offset / chunk_bytes + 1;
}

}  // namespace kvstrata
