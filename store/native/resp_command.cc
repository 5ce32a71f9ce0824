#include "store/native/resp_command.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "store/resp_command_table.h"

namespace kvstrata {

namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

// Up to eight bytes as they lie in memory, and zeros behind them. A call to copy them would take
// longer than all the rest of finding a command.
uint64_t load_word(const char* from, size_t size) noexcept {
  uint64_t word = 0;
  uint32_t half = 0;
  if (size >= kWordBytes) {
    std::memcpy(&word, from, kWordBytes);
  } else if (size >= sizeof half) {
    std::memcpy(&half, from + size - sizeof half, sizeof half);
    word = uint64_t{half} << 8 * (size - sizeof half);
    std::memcpy(&half, from, sizeof half);
    word |= half;
  } else {
    for (size_t at = 0; at < size; ++at) word |= uint64_t{static_cast<uint8_t>(from[at])} << 8 * at;
  }
  return word;
}

constexpr uint64_t every_byte(uint8_t byte) { return byte * 0x0101010101010101ULL; }

// Letters from a to z, eight at once: the top bit of a byte's seven others plus 0x1F is set from
// 'a' on, plus 0x05 after 'z'.
uint64_t upper_case(uint64_t word) noexcept {
  uint64_t low_bits = word & every_byte(0x7F);
  uint64_t from_a = low_bits + every_byte(0x1F);
  uint64_t after_z = low_bits + every_byte(0x05);
  uint64_t letters = (from_a ^ after_z) & ~word & every_byte(0x80);
  return word ^ (letters >> 2);
}

// As hash_slot() in generate_resp_commands.py, which chose a multiplier that parts all names.
size_t hash_slot(uint64_t low, uint64_t high, RespCommandId container) noexcept {
  uint64_t mixed = low ^ std::rotl(high, 29) ^ static_cast<uint64_t>(container);
  return mixed * kRespHashMultiplier >> (64 - kRespHashBits);
}

}  // namespace

std::span<const RespCommand> resp_commands() noexcept {
  return std::span(kRespCommands).subspan(1);
}

const RespCommand* find_resp_command(std::string_view name, RespCommandId container) noexcept {
  if (name.size() > 2 * kWordBytes) return nullptr;
  size_t low_size = std::min(name.size(), kWordBytes);
  uint64_t low = upper_case(load_word(name.data(), low_size));
  uint64_t high = upper_case(load_word(name.data() + low_size, name.size() - low_size));
  const RespCommand& found = kRespCommands[kRespHashSlots[hash_slot(low, high, container)]];
  // The size as well: the empty slot has no name, and zeros behind a name leave the words as they
  // are.
  bool is_it = found.name_low == low && found.name_high == high && found.container == container &&
               found.name_bytes == name.size() && !name.empty();
  return is_it ? &found : nullptr;
}

const RespCommandReplies& resp_command_replies(RespCommandId id) noexcept {
  return kRespCommandReplies[static_cast<size_t>(id)];
}

}  // namespace kvstrata
