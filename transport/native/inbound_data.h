// The data behind a completion of reads: where the next bytes belong, and whether they are what
// they should be.
//
// Every piece is hashed right after it has arrived, while it lies in the processor's cache.
#pragma once

#include <sys/uio.h>

#include <span>
#include <vector>

#include "transport/native/bytes.h"
#include "transport/native/checksum.h"
#include "transport/native/transfer.h"

namespace kvstrata {

class InboundData {
 public:
  InboundData(uint32_t chunk_bytes, bool verify) : chunk_bytes_(chunk_bytes), verify_(verify) {}

  // For Transfer::settle, before begin().
  std::vector<InboundRead>* reads() noexcept { return &reads_; }
  std::vector<uint64_t>* checksums() noexcept { return &checksums_; }
  void begin() noexcept;

  bool active() const noexcept { return current_ < reads_.size(); }
  uint64_t left() const noexcept { return left_; }
  std::byte* next_sink() const noexcept;

  // The places of the next bytes, at most one receive's worth; returns how many. None when the next
  // bytes are to be dropped.
  size_t windows(std::span<iovec> windows) const noexcept;
  // `count` bytes have arrived in those places.
  void advance(uint64_t count) noexcept;
  // Takes bytes that have arrived elsewhere; returns how many.
  size_t feed(Bytes bytes) noexcept;
  // The rest will never come.
  void abandon(Status status) noexcept;

 private:
  void check(const InboundRead& read) noexcept;
  void check_piece(const InboundRead& read, uint64_t length) noexcept;

  uint32_t chunk_bytes_;
  bool verify_;
  std::vector<InboundRead> reads_;
  std::vector<uint64_t> checksums_;  // One for each piece of the reads, in order.
  size_t current_ = 0;
  size_t piece_ =
      0;  // Index of the checksum of the piece that begins at `hashed_` or is in `stream_`.
  uint64_t position_ = 0;  // Bytes of the current read that have arrived,
  uint64_t hashed_ = 0;    // and that went through a hash.
  uint64_t left_ = 0;      // Of all reads.
  bool streaming_ = false;
  ChecksumStream stream_;
};

}  // namespace kvstrata
