// Where a scan through a whole node is: a shard, and a place in that shard's index. Travels as one
// number, 6 bits of shard above the index's own; 0 is the beginning, and the end.
#pragma once

#include <cstdint>

#include "store/limits.h"

namespace kvstrata {

struct ScanCursor {
  static constexpr uint32_t kShardShift = 58;
  static_assert(limits::kShardCountMax <= uint64_t{1} << (64 - kShardShift));

  uint32_t shard = 0;
  uint64_t index_cursor = 0;  // Its low bits are 0.

  static constexpr ScanCursor from(uint64_t number) noexcept {
    return {static_cast<uint32_t>(number >> kShardShift), number << (64 - kShardShift)};
  }
  // After a step: the end of one shard is the beginning of the next.
  constexpr uint64_t next(uint32_t shard_count) const noexcept {
    uint64_t next_shard = shard;
    if (index_cursor == 0 && ++next_shard == shard_count) next_shard = 0;
    return index_cursor >> (64 - kShardShift) | next_shard << kShardShift;
  }
};

}  // namespace kvstrata
