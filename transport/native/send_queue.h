// What one connection has still to send: capsules, which lie in a buffer of its own, and values,
// which stay where they are, in memory or in a file.
#pragma once

#include <deque>
#include <vector>

#include "transport/native/bytes.h"
#include "transport/native/file_source.h"
#include "transport/native/stream.h"
#include "transport/native/transfer.h"

namespace kvstrata {

class SendQueue {
 public:
  // Where capsules are written; then push_staged() with the number of bytes appended.
  ByteBuffer* staging() noexcept { return &staged_; }
  void push_staged(Transfer* transfer, size_t count);
  // Bytes that stay in place until their transfer has no unsent segment; small ones are copied
  // instead.
  void push(Transfer* transfer, Bytes bytes);
  void push(Transfer* transfer, const FileSource& file);

  bool empty() const noexcept { return segments_.empty(); }
  uint64_t byte_count() const noexcept { return byte_count_; }

  // One send of as much as the stream takes. Transfers whose last byte went are appended to `sent`.
  // Returns the count of bytes; -1 with errno set.
  ssize_t flush(Stream* stream, std::vector<Transfer*>* sent);
  void clear() noexcept;

 private:
  struct Segment {
    Transfer* transfer;
    const std::byte* memory;  // Null: the next bytes of `staged_`, or of `file`.
    size_t size;
    const FileSource* file = nullptr;
  };
  void read_file();
  void take_off(size_t count, std::vector<Transfer*>* sent);

  ByteBuffer staged_;
  size_t staged_sent_ = 0;
  ByteBuffer read_;  // Of the file at the front; the segment before the file's.
  std::deque<Segment> segments_;
  uint64_t byte_count_ = 0;
};

}  // namespace kvstrata
