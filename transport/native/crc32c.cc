#include "transport/native/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace kvstrata {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kPolynomial = 0x82f63b78;  // Bit-reversed: the lowest bit is the highest power.

constexpr uint32_t shift_bit(uint32_t crc) { return (crc >> 1) ^ (crc & 1 ? kPolynomial : 0); }

#if defined(__SSE4_2__) || defined(__aarch64__)
uint64_t load_word(const std::byte* data) noexcept {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}
#endif

#if !defined(__SSE4_2__)
constexpr std::array<uint32_t, 256> make_byte_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = shift_bit(crc);
    table[byte] = crc;
  }
  return table;
}

uint32_t extend_by_table(uint32_t crc, const std::byte* data, size_t size) noexcept {
  static constexpr auto kTable = make_byte_table();
  for (; size > 0; ++data, --size) {
    crc = kTable[(crc ^ std::to_integer<uint32_t>(*data)) & 0xff] ^ (crc >> 8);
  }
  return crc;
}
#endif

#if defined(__SSE4_2__)
// The instruction has a latency of three cycles and starts every cycle, so three lanes run side by
// side. Their results join as if the earlier lane were followed by a lane of zeros, which is a
// linear map of its CRC: four look-ups by byte. The lane is long enough to make that cheap, short
// enough to serve a few kilobytes.
constexpr size_t kLaneBytes = 256;
using LaneShift = std::array<std::array<uint32_t, 256>, 4>;

constexpr LaneShift make_lane_shift() {
  std::array<uint32_t, 32> of_bit{};
  for (int bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t step = 0; step < kLaneBytes * 8; ++step) crc = shift_bit(crc);
    of_bit[bit] = crc;
  }
  LaneShift shift{};
  for (int place = 0; place < 4; ++place) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        if (byte >> bit & 1) shift[place][byte] ^= of_bit[place * 8 + bit];
      }
    }
  }
  return shift;
}

uint32_t followed_by_lane(uint32_t crc) noexcept {
  static constexpr LaneShift kShift = make_lane_shift();
  return kShift[0][crc & 0xff] ^ kShift[1][crc >> 8 & 0xff] ^ kShift[2][crc >> 16 & 0xff] ^
         kShift[3][crc >> 24];
}

uint32_t extend(uint32_t crc, const std::byte* data, size_t size) noexcept {
  for (; size >= 3 * kLaneBytes; data += 3 * kLaneBytes, size -= 3 * kLaneBytes) {
    uint64_t first = crc;
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t place = 0; place < kLaneBytes; place += 8) {
      first = _mm_crc32_u64(first, load_word(data + place));
      second = _mm_crc32_u64(second, load_word(data + kLaneBytes + place));
      third = _mm_crc32_u64(third, load_word(data + 2 * kLaneBytes + place));
    }
    crc = followed_by_lane(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    crc = followed_by_lane(crc) ^ static_cast<uint32_t>(third);
  }
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) wide = _mm_crc32_u64(wide, load_word(data));
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++data, --size) crc = _mm_crc32_u8(crc, std::to_integer<uint8_t>(*data));
  return crc;
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) uint32_t extend_by_instruction(uint32_t crc, const std::byte* data,
                                                               size_t size) noexcept {
  for (; size >= 8; data += 8, size -= 8) crc = __crc32cd(crc, load_word(data));
  for (; size > 0; ++data, --size) crc = __crc32cb(crc, std::to_integer<uint8_t>(*data));
  return crc;
}

uint32_t extend(uint32_t crc, const std::byte* data, size_t size) noexcept {
  static const bool has_instruction = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return has_instruction ? extend_by_instruction(crc, data, size)
                         : extend_by_table(crc, data, size);
}
#else
uint32_t extend(uint32_t crc, const std::byte* data, size_t size) noexcept {
  return extend_by_table(crc, data, size);
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> data, uint32_t seed_crc) noexcept {
  return ~extend(~seed_crc, data.data(), data.size());
}

}  // namespace kvstrata
