#include "store/native/slot.h"

#include <array>

namespace kvstrata {

namespace {

// CRC16/XMODEM by bytes.
constexpr std::array<uint16_t, 256> make_crc16_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    auto crc = static_cast<uint16_t>(byte << 8);
    for (int bit = 0; bit < 8; ++bit) {
      crc = static_cast<uint16_t>((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
    }
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint16_t, 256> kCrc16 = make_crc16_table();

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
  uint16_t crc = 0;
  for (char character : hashed_part(as_text(key))) {
    auto byte = static_cast<uint8_t>(character);
    crc = static_cast<uint16_t>((crc << 8) ^ kCrc16[(crc >> 8) ^ byte]);
  }
  return crc % limits::kSlotCount;
}

}  // namespace kvstrata
