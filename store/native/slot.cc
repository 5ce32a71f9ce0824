#include "store/native/slot.h"

#include <array>

namespace kvstrata {

namespace {

// So many bytes are taken at a time: their look-ups do not wait for each other.
constexpr size_t kStepBytes = 4;

// CRC16/XMODEM of a byte that is followed by so many zeros.
using Crc16Tables = std::array<std::array<uint16_t, 256>, kStepBytes>;

constexpr Crc16Tables make_crc16_tables() {
  Crc16Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    auto crc = static_cast<uint16_t>(byte << 8);
    for (std::array<uint16_t, 256>& table : tables) {
      for (int bit = 0; bit < 8; ++bit) {
        crc = static_cast<uint16_t>((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
      }
      table[byte] = crc;
    }
  }
  return tables;
}

constexpr Crc16Tables kCrc16 = make_crc16_tables();

// The part of a key that is hashed: what stands between the first '{' and the next '}', if anything
// does.
std::string_view hashed_part(std::string_view key) noexcept {
  size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

uint16_t key_slot(Bytes key) noexcept {
  uint32_t crc = 0;
  Bytes rest = as_bytes(hashed_part(as_text(key)));
  auto byte = [&rest](size_t index) { return static_cast<uint32_t>(rest[index]); };
  for (; rest.size() >= kStepBytes; rest = rest.subspan(kStepBytes)) {
    crc = kCrc16[3][(crc >> 8) ^ byte(0)] ^ uint32_t { kCrc16[2][(crc & 0xff) ^ byte(1)] } ^
          kCrc16[1][byte(2)] ^ kCrc16[0][byte(3)];
  }
  for (; !rest.empty(); rest = rest.subspan(1)) {
    crc = ((crc << 8) & 0xffff) ^ kCrc16[0][(crc >> 8) ^ byte(0)];
  }
  return static_cast<uint16_t>(crc % limits::kSlotCount);
}

}  // namespace kvstrata
