// A value that comes in pieces, each of which is in its place when it is counted here: what is left
// of it, and the checksums of its chunks.
#pragma once

#include <algorithm>

#include "store/limits.h"
#include "transport/native/bytes.h"
#include "transport/native/checksum.h"

namespace kvstrata {

class IncomingValue {
 public:
  // `at`: offset in the object where the first byte goes.
  void begin(uint64_t at, uint64_t length) noexcept {
    at_ = at;
    left_ = length;
    begin_piece();
  }
  // Nothing of it is looked at any more.
  void skip(uint64_t count) noexcept { left_ -= count; }
  void cancel() noexcept { left_ = 0; }

  uint64_t left() const noexcept { return left_; }
  uint64_t at() const noexcept { return at_; }
  // Of the present chunk, that is.
  uint64_t piece_left() const noexcept { return piece_left_; }
  uint32_t chunk() const noexcept { return static_cast<uint32_t>(at_ / limits::kChunkBytes); }

  // Hashes what has come, which is not beyond the present piece. True if it ends the piece: then
  // `checksum` is the piece's, and `chunk` told its place before.
  bool take(Bytes bytes, uint64_t* checksum) noexcept {
    bool at_once = bytes.size() == piece_left_ && !piece_begun_;
    if (!at_once) {
      if (!piece_begun_) hash_.reset();
      hash_.update(bytes);
    }
    piece_begun_ = true;
    left_ -= bytes.size();
    piece_left_ -= bytes.size();
    at_ += bytes.size();
    if (piece_left_ != 0) return false;
    *checksum = at_once ? chunk_checksum(bytes) : hash_.digest();
    begin_piece();
    return true;
  }

 private:
  void begin_piece() noexcept {
    piece_left_ = std::min(left_, limits::kChunkBytes - at_ % limits::kChunkBytes);
    piece_begun_ = false;
  }

  uint64_t at_ = 0;
  uint64_t left_ = 0;
  uint64_t piece_left_ = 0;
  bool piece_begun_ = false;
  ChecksumStream hash_;
};

}  // namespace kvstrata
