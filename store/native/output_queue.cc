#include "store/native/output_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace kvstrata {

namespace {

constexpr size_t kVectorCount = 64;
constexpr size_t kKeptBytes = 64 * 1024;
constexpr size_t kKeptParts = 1024;

}  // namespace

void OutputQueue::add_piece(const std::byte* data, const PinnedPiece& piece, uint32_t shard) {
  assert(piece.length_bytes != 0);
  parts_.push_back({bytes_.size(), data, piece.length_bytes, {piece.extent, shard}});
  pinned_bytes_ += piece.length_bytes;
}

void OutputQueue::append(OutputQueue* other, const Mark& end) {
  size_t begin = other->sent_bytes_;
  for (; other->next_ != end.parts; ++other->next_) {
    Part part = other->parts_[other->next_];
    part.bytes_before += bytes_.size() - begin;
    parts_.push_back(part);
    pinned_bytes_ += part.length;
    other->pinned_bytes_ -= part.length;
  }
  bytes_.append(other->bytes_.view().subspan(begin, end.bytes - begin));
  other->sent_bytes_ = end.bytes;
  if (other->empty()) other->compact();
}

Bytes OutputQueue::take(const Mark& end) noexcept {
  assert(next_ == end.parts);
  size_t begin = std::exchange(sent_bytes_, end.bytes);
  return bytes_.view().subspan(begin, end.bytes - begin);
}

int64_t OutputQueue::flush(int fd, uint64_t limit_bytes, std::vector<OwnedExtent>* released) {
  std::array<iovec, kVectorCount> vectors;
  size_t count = 0;
  uint64_t total = 0;
  size_t at = sent_bytes_;
  auto add = [&](const std::byte* data, uint64_t length) {
    length = std::min(length, limit_bytes - total);
    if (length == 0) return;
    vectors[count++] = {const_cast<std::byte*>(data), length};
    total += length;
  };
  for (size_t index = next_; index < parts_.size() && count + 2 <= kVectorCount; ++index) {
    const Part& part = parts_[index];
    add(bytes_.data() + at, part.bytes_before - at);
    at = part.bytes_before;
    add(part.data, part.length);
    if (total == limit_bytes) break;
  }
  bool all_parts =
      next_ == parts_.size() || (count != 0 && total < limit_bytes && count + 2 <= kVectorCount);
  if (all_parts) add(bytes_.data() + at, bytes_.size() - at);
  if (count == 0) return 0;
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) advance(static_cast<uint64_t>(sent), released);
  return sent;
}

void OutputQueue::next_batch(uint64_t limit_bytes, OutputBatch* batch) const {
  batch->vectors.clear();
  batch->bytes.clear();
  uint64_t total = 0;
  size_t at = sent_bytes_;
  // So much is copied, in all; then the copies stay where they are.
  for (size_t index = next_; index < parts_.size() && total < limit_bytes; ++index) {
    const Part& part = parts_[index];
    batch->bytes.append(bytes_.view().subspan(at, part.bytes_before - at));
    total += part.bytes_before - at + part.length;
    at = part.bytes_before;
  }
  std::byte* copied = batch->bytes.data();
  total = 0;
  at = sent_bytes_;
  for (size_t index = next_; index < parts_.size() && total < limit_bytes; ++index) {
    const Part& part = parts_[index];
    size_t owned = part.bytes_before - at;
    if (owned != 0) batch->vectors.push_back({copied, owned});
    copied += owned;
    at = part.bytes_before;
    uint64_t length = std::min(part.length, limit_bytes - std::min(limit_bytes, total + owned));
    if (length != 0) batch->vectors.push_back({const_cast<std::byte*>(part.data), length});
    total += owned + length;
    if (batch->vectors.size() + 2 > kVectorCount || length != part.length) break;
  }
  batch->message = {};
  batch->message.msg_iov = batch->vectors.data();
  batch->message.msg_iovlen = batch->vectors.size();
}

void OutputQueue::advance(uint64_t count, std::vector<OwnedExtent>* released) {
  while (next_ < parts_.size()) {
    Part& part = parts_[next_];
    uint64_t owned = std::min<uint64_t>(count, part.bytes_before - sent_bytes_);
    sent_bytes_ += owned;
    count -= owned;
    uint64_t pinned = std::min(count, part.length);
    part.data += pinned;
    part.length -= pinned;
    pinned_bytes_ -= pinned;
    count -= pinned;
    if (part.length != 0) break;
    released->push_back(part.owner);
    ++next_;
  }
  sent_bytes_ += count;
  compact();
}

// A peer that reads as fast as it asks may never let the queue become empty: what was sent goes in
// large steps then.
void OutputQueue::compact() noexcept {
  if (!empty()) {
    bool much = sent_bytes_ > kKeptBytes || next_ > kKeptParts;
    if (!much || sent_bytes_ < bytes_.size() / 2 || next_ < parts_.size() / 2) return;
    bytes_.erase_front(sent_bytes_);
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(next_));
    for (Part& part : parts_) part.bytes_before -= sent_bytes_;
    next_ = 0;
    sent_bytes_ = 0;
    return;
  }
  parts_.clear();
  next_ = 0;
  sent_bytes_ = 0;
  if (bytes_.capacity() > kKeptBytes) {
    bytes_.release_memory();
  } else {
    bytes_.clear();
  }
}

void OutputQueue::clear() noexcept {
  assert(pinned_bytes_ == 0);
  next_ = parts_.size();
  sent_bytes_ = bytes_.size();
  compact();
}

void OutputQueue::discard(std::vector<OwnedExtent>* released) {
  for (; next_ < parts_.size(); ++next_) released->push_back(parts_[next_].owner);
  pinned_bytes_ = 0;
  sent_bytes_ = bytes_.size();
  compact();
}

}  // namespace kvstrata
