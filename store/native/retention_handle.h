// What a client holds of a retention: the shard that keeps it, whether it is hard, and its number
// there. Travels as one number, and as the 8 bytes of the key of RELEASE and EXTEND.
//
// Numbers begin anew with each start of the node, with its clock: a handle from before names
// nothing.
#pragma once

#include <cstdint>

#include "store/limits.h"

namespace kvstrata {

struct RetentionHandle {
  static constexpr uint32_t kShardBits = 6;
  static constexpr uint32_t kNumberShift = kShardBits + 1;
  static_assert(limits::kShardCountMax <= uint64_t{1} << kShardBits);

  uint32_t shard = 0;
  bool is_hard = false;
  uint64_t number = 0;

  // A node begins fewer than 65,536 retentions a millisecond, so the next start begins above.
  static constexpr uint64_t first_number(uint64_t now_ms) noexcept {
    return (now_ms << 16) & (UINT64_MAX >> kNumberShift);
  }
  static constexpr RetentionHandle from(uint64_t word) noexcept {
    return {static_cast<uint32_t>(word & ((uint64_t{1} << kShardBits) - 1)),
            (word >> kShardBits & 1) != 0, word >> kNumberShift};
  }
  constexpr uint64_t word() const noexcept {
    return number << kNumberShift | uint64_t{is_hard} << kShardBits | shard;
  }
};

}  // namespace kvstrata
