// The arguments of one command of a Valkey client, where they lie.
#pragma once

#include <span>

#include "transport/native/bytes.h"

namespace kvstrata {

// An argument by its place; what the place is counted from, its reader knows.
struct RespPiece {
  size_t offset;
  size_t length;
};

// Views of the arguments, the command's name first. Nothing is copied to make one.
class RespArguments {
 public:
  // The first `kept_count` pieces lie in `kept`, the others in `input`.
  RespArguments(std::span<const RespPiece> pieces, size_t kept_count, const std::byte* kept,
                const std::byte* input) noexcept
      : pieces_(pieces), kept_count_(kept_count), kept_(kept), input_(input) {}

  size_t size() const noexcept { return pieces_.size(); }
  Bytes operator[](size_t index) const noexcept {
    const RespPiece& piece = pieces_[index];
    return {(index < kept_count_ ? kept_ : input_) + piece.offset, piece.length};
  }

 private:
  std::span<const RespPiece> pieces_;
  size_t kept_count_;
  const std::byte* kept_;
  const std::byte* input_;
};

}  // namespace kvstrata
