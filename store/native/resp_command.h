// What is known of each command of Valkey clients: its name, how many arguments it takes, where its
// keys are, what COMMAND answers about it. All of it comes from store/resp_commands/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "store/resp_command_id.h"

namespace kvstrata {

// Where keys stand among the arguments, of which the command's name is number 0. `last` counts from
// `first`, or is -1 for the last argument; with `count_at` the argument of that number says how
// many keys there are. A step of 0 says that there are none.
struct RespKeyPlaces {
  uint8_t first = 0;
  int8_t last = 0;
  uint8_t step = 0;
  uint8_t count_at = 0;
};

struct RespCommand {
  std::string_view name;  // In lower case; a subcommand's as `container|subcommand`.
  RespCommandId id = RespCommandId::None;
  RespCommandId container = RespCommandId::None;  // Of a subcommand.
  int8_t arity = 0;  // Arguments with the names; -3 means three or more.
  uint32_t flags = 0;
  uint32_t categories = 0;
  RespKeyPlaces keys;
  // The name without its container's, in upper case, and its size: for find_resp_command.
  uint8_t name_bytes = 0;
  uint64_t name_low = 0;
  uint64_t name_high = 0;

  bool takes(uint64_t argument_count) const noexcept {
    return arity < 0 ? argument_count >= static_cast<uint64_t>(-arity)
                     : argument_count == static_cast<uint64_t>(arity);
  }
};

// One command's part of the reply to COMMAND INFO, and to COMMAND DOCS: there its name, then what
// is known of it.
struct RespCommandReplies {
  std::string_view info_resp2;
  std::string_view info_resp3;
  std::string_view docs_resp2;
  std::string_view docs_resp3;
};

// In the order of their numbers, from 1 on; subcommands follow their container.
std::span<const RespCommand> resp_commands() noexcept;

// `name` in any case. With a container, finds its subcommand. Returns nullptr where there is none.
const RespCommand* find_resp_command(std::string_view name,
                                     RespCommandId container = RespCommandId::None) noexcept;

const RespCommandReplies& resp_command_replies(RespCommandId id) noexcept;

}  // namespace kvstrata
