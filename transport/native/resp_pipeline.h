// What a Valkey client sends in a row: whole, small commands, several read at once, so that the
// memory of all their keys can be fetched before the first is carried out.
//
// Reads only what is plain, and judges nothing: what is cut, large, inline or wrong ends it, and is
// for RespReader to read. What it does read is what an authenticated client's RespReader would.
//
//   RespPipeline pipeline;
//   size_t count = pipeline.read(bytes);    // The first `count` commands; 0: RespReader's.
#pragma once

#include <array>
#include <cstdint>

#include "transport/native/bytes.h"
#include "transport/native/resp_arguments.h"

namespace kvstrata {

class RespPipeline {
 public:
  // As many keys' memory as a core can fetch at once.
  static constexpr size_t kCommandCountMax = 16;
  static constexpr size_t kArgumentCountMax = 128;  // Of all commands together.

  // `bytes` begins with a command. Returns how many were read.
  size_t read(Bytes bytes) noexcept;

  // Of a command that was read: views of the bytes given.
  RespArguments arguments(size_t index) const noexcept {
    const Command& command = commands_[index];
    std::span all(pieces_);
    return {all.subspan(command.first, command.argument_count), 0, nullptr, input_};
  }
  // How many bytes it and those before it take.
  size_t end(size_t index) const noexcept { return commands_[index].end; }

 private:
  struct Command {
    uint32_t first;  // Of the pieces.
    uint32_t argument_count;
    size_t end;
  };

  // Filled as far as is read: to clear them would cost as much as reading a command.
  const std::byte* input_;
  std::array<Command, kCommandCountMax> commands_;
  std::array<RespPiece, kArgumentCountMax> pieces_;
};

}  // namespace kvstrata
