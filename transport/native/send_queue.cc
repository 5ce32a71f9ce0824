#include "transport/native/send_queue.h"

#include <algorithm>
#include <array>

namespace kvstrata {

namespace {

constexpr size_t kCopyBytesMax = 4096;  // Below this a copy is cheaper than one more iovec.
constexpr size_t kSegmentsPerSend = 64;
// The kernel takes megabytes in one call if it has room, and others wait for this processor so
// long.
constexpr size_t kBytesPerSend = 256 * 1024;
constexpr size_t kStagedSentMax = 256 * 1024;  // Then the rest moves to the front.

}  // namespace

void SendQueue::push_staged(Transfer* transfer, size_t count) {
  byte_count_ += count;
  if (!segments_.empty() && segments_.back().transfer == transfer &&
      segments_.back().memory == nullptr && segments_.back().file == nullptr) {
    segments_.back().size += count;
    return;
  }
  segments_.push_back({transfer, nullptr, count});
  ++transfer->unsent_segment_count;
}

void SendQueue::push(Transfer* transfer, Bytes bytes) {
  if (bytes.empty()) return;
  if (bytes.size() <= kCopyBytesMax) {
    staged_.append(bytes);
    push_staged(transfer, bytes.size());
    return;
  }
  segments_.push_back({transfer, bytes.data(), bytes.size()});
  ++transfer->unsent_segment_count;
  byte_count_ += bytes.size();
}

void SendQueue::push(Transfer* transfer, const FileSource& file) {
  if (file.length() == 0) return;
  segments_.push_back({transfer, nullptr, file.length(), &file});
  ++transfer->unsent_segment_count;
  byte_count_ += file.length();
}

// Puts a segment of memory with a file's next bytes before the file's own. The one put there before
// has gone, as the file is at the front.
void SendQueue::read_file() {
  Segment& rest = segments_.front();
  read_.clear();
  size_t count = std::min(rest.size, kBytesPerSend);
  MutableBytes piece{read_.extend(count), count};
  rest.file->read(rest.file->length() - rest.size, piece);
  rest.size -= count;
  if (rest.size == 0) {
    rest = {rest.transfer, piece.data(), count};
    return;
  }
  ++rest.transfer->unsent_segment_count;
  segments_.push_front({rest.transfer, piece.data(), count});
}

ssize_t SendQueue::flush(Stream* stream, std::vector<Transfer*>* sent) {
  std::array<iovec, kSegmentsPerSend> pieces;
  size_t count = 0;
  size_t left = kBytesPerSend;
  std::byte* staged = staged_.data() + staged_sent_;
  if (segments_.front().file != nullptr) read_file();
  for (const Segment& segment : segments_) {
    if (count == pieces.size() || left == 0 || segment.file != nullptr) break;
    auto* begin = segment.memory != nullptr ? const_cast<std::byte*>(segment.memory) : staged;
    pieces[count] = {begin, std::min(segment.size, left)};
    left -= pieces[count++].iov_len;
    if (segment.memory == nullptr) staged += segment.size;
  }
  ssize_t written = stream->send(std::span(pieces).first(count));
  if (written > 0) take_off(static_cast<size_t>(written), sent);
  return written;
}

void SendQueue::take_off(size_t count, std::vector<Transfer*>* sent) {
  byte_count_ -= count;
  while (count != 0) {
    Segment& front = segments_.front();
    size_t gone = std::min(count, front.size);
    count -= gone;
    front.size -= gone;
    front.transfer->begun = true;
    if (front.memory != nullptr) {
      front.memory += gone;
    } else {
      staged_sent_ += gone;
    }
    if (front.size != 0) continue;
    if (--front.transfer->unsent_segment_count == 0) sent->push_back(front.transfer);
    segments_.pop_front();
  }
  if (segments_.empty()) {
    staged_.clear();
    staged_sent_ = 0;
    read_.release_memory();
  } else if (staged_sent_ > kStagedSentMax) {
    staged_.erase_front(staged_sent_);
    staged_sent_ = 0;
  }
}

void SendQueue::clear() noexcept {
  segments_.clear();
  staged_.clear();
  staged_sent_ = 0;
  read_.release_memory();
  byte_count_ = 0;
}

}  // namespace kvstrata
