// CRC32C (Castagnoli), the checksum of capsule headers and bodies (transport/PROTOCOL.md, section
// 2).
//
// Uses the processor's own instruction where there is one. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvstrata {

// `seed_crc` is the CRC of what came before, so that a body may be checked piece by piece:
// crc32c(b, crc32c(a)) is the CRC of a and b laid end to end. The CRC of nothing is 0.
uint32_t crc32c(std::span<const std::byte> data, uint32_t seed_crc = 0) noexcept;

}  // namespace kvstrata
