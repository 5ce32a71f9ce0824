// A key's slot, as Valkey cluster computes it, and the shard that owns a slot within a node
// (transport/PROTOCOL.md, section 1).
#pragma once

#include <cstdint>

#include "store/limits.h"
#include "transport/native/bytes.h"

namespace kvstrata {

uint16_t key_slot(Bytes key) noexcept;

constexpr uint32_t slot_shard(uint16_t slot, uint32_t shard_count) noexcept {
  return slot * shard_count / limits::kSlotCount;
}

}  // namespace kvstrata
