#include "store/native/output_queue.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <span>
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

// Lays out what is next, up to `limit_bytes`; returns how many vectors that takes.
size_t OutputQueue::gather(std::span<iovec> vectors, uint64_t limit_bytes) const {
  size_t count = 0;
  uint64_t total = 0;
  size_t at = sent_bytes_;
  auto add = [&](const std::byte* data, uint64_t length) {
    length = std::min(length, limit_bytes - total);
    if (length == 0) return;
    vectors[count++] = {const_cast<std::byte*>(data), length};
    total += length;
  };
  for (size_t index = next_; index < parts_.size() && count + 2 <= vectors.size(); ++index) {
    const Part& part = parts_[index];
    add(bytes_.data() + at, part.bytes_before - at);
    at = part.bytes_before;
    add(part.data, part.length);
    if (total == limit_bytes) break;
  }
  bool all_parts =
      next_ == parts_.size() || (count != 0 && total < limit_bytes && count + 2 <= vectors.size());
  if (all_parts) add(bytes_.data() + at, bytes_.size() - at);
  return count;
}

int64_t OutputQueue::flush(Stream* stream, uint64_t limit_bytes,
                           std::vector<OwnedExtent>* released) {
  std::array<iovec, kVectorCount> vectors;
  size_t count = gather(vectors, limit_bytes);
  if (count == 0) return 0;
  ssize_t sent = stream->send(std::span(vectors).first(count));
  if (sent > 0) advance(static_cast<uint64_t>(sent), released);
  return sent;
}

std::unique_ptr<OutputBatch> OutputQueue::next_batch(uint64_t limit_bytes) const {
  auto batch = std::make_unique<OutputBatch>();
  batch->message.msg_iov = batch->vectors.data();
  batch->message.msg_iovlen = gather(batch->vectors, limit_bytes);
  std::span<iovec> vectors(batch->vectors.data(), batch->message.msg_iovlen);
  auto is_own = [this](const iovec& vector) {
    auto* data = static_cast<const std::byte*>(vector.iov_base);
    return data >= bytes_.data() && data < bytes_.data() + bytes_.size();
  };
  size_t own_bytes = 0;
  for (const iovec& vector : vectors) {
    batch->length += vector.iov_len;
    if (is_own(vector)) own_bytes += vector.iov_len;
  }
  std::byte* copy = batch->bytes.extend(own_bytes);
  for (iovec& vector : vectors) {
    if (!is_own(vector)) continue;
    std::memcpy(copy, vector.iov_base, vector.iov_len);
    vector.iov_base = std::exchange(copy, copy + vector.iov_len);
  }
  return batch;
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
