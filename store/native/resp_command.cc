#include "store/native/resp_command.h"

#include <bit>
#include <cstring>

#include "store/resp_command_table.h"

namespace kvstrata {

namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

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
  uint64_t words[2] = {};
  std::memcpy(words, name.data(), name.size());
  uint64_t low = upper_case(words[0]);
  uint64_t high = upper_case(words[1]);
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
