#include "transport/native/inbound_data.h"

#include <algorithm>

#include "transport/native/pieces.h"

namespace kvstrata {

namespace {

constexpr uint64_t kReceiveBytesMax = 128 * 1024;  // What stays in the cache until it is hashed.
constexpr uint64_t kHashWholeBytesMax =
    128 * 1024;  // Smaller pieces are hashed in one go, which is faster.

}  // namespace

void InboundData::begin() noexcept {
  current_ = 0;
  piece_ = 0;
  position_ = 0;
  hashed_ = 0;
  streaming_ = false;
  left_ = 0;
  for (const InboundRead& read : reads_) left_ += read.length;
}

std::byte* InboundData::next_sink() const noexcept {
  const InboundRead& read = reads_[current_];
  return read.sink == nullptr ? nullptr : read.sink + position_;
}

size_t InboundData::windows(std::span<iovec> windows) const noexcept {
  size_t count = 0;
  uint64_t budget = kReceiveBytesMax;
  uint64_t from = position_;
  for (size_t i = current_; i < reads_.size() && count < windows.size() && budget != 0; ++i) {
    if (reads_[i].sink == nullptr) break;
    uint64_t length = std::min(reads_[i].length - from, budget);
    windows[count++] = {reads_[i].sink + from, static_cast<size_t>(length)};
    budget -= length;
    from = 0;
  }
  return count;
}

void InboundData::advance(uint64_t count) noexcept {
  left_ -= count;
  while (count != 0) {
    const InboundRead& read = reads_[current_];
    uint64_t arrived = std::min(count, read.length - position_);
    position_ += arrived;
    count -= arrived;
    if (verify_ && read.sink != nullptr) check(read);
    if (position_ != read.length) return;
    if (read.sink == nullptr) piece_ += piece_count(read.offset, read.length, chunk_bytes_);
    ++current_;
    position_ = 0;
    hashed_ = 0;
  }
  if (active()) return;
  reads_.clear();
  checksums_.clear();
  current_ = 0;
}

size_t InboundData::feed(Bytes bytes) noexcept {
  size_t fed = 0;
  while (fed < bytes.size() && active()) {
    const InboundRead& read = reads_[current_];
    auto count =
        static_cast<size_t>(std::min<uint64_t>(read.length - position_, bytes.size() - fed));
    if (read.sink != nullptr) std::memcpy(read.sink + position_, bytes.data() + fed, count);
    fed += count;
    advance(count);
  }
  return fed;
}

void InboundData::check(const InboundRead& read) noexcept {
  while (hashed_ < position_) {
    uint64_t piece_left = piece_length(read.offset + hashed_, read.length - hashed_, chunk_bytes_);
    uint64_t arrived = position_ - hashed_;
    if (arrived >= piece_left) {
      check_piece(read, piece_left);
      hashed_ += piece_left;
      continue;
    }
    if (!streaming_ && piece_left <= kHashWholeBytesMax) return;
    if (!streaming_) stream_.reset();
    streaming_ = true;
    stream_.update({read.sink + hashed_, static_cast<size_t>(arrived)});
    hashed_ += arrived;
  }
}

// The bytes up to the end of a piece have arrived.
void InboundData::check_piece(const InboundRead& read, uint64_t length) noexcept {
  Bytes bytes{read.sink + hashed_, static_cast<size_t>(length)};
  uint64_t checksum = 0;
  if (streaming_) {
    stream_.update(bytes);
    checksum = stream_.digest();
    streaming_ = false;
  } else {
    checksum = chunk_checksum(bytes);
  }
  if (checksum == checksums_[piece_++]) return;
  read.item->status = Status::Corrupt;
  read.item->moved = 0;
}

void InboundData::abandon(Status status) noexcept {
  for (size_t i = current_; i < reads_.size(); ++i) {
    reads_[i].item->status = status;
    reads_[i].item->moved = 0;
  }
  reads_.clear();
  checksums_.clear();
  current_ = 0;
  left_ = 0;
}

}  // namespace kvstrata
