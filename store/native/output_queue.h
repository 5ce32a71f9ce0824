// What a connection has yet to send: small bytes it owns, and pieces of extents it holds references
// on.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "store/native/command.h"
#include "transport/native/bytes.h"
#include "transport/native/stream.h"

namespace kvstrata {

// An extent whose reference goes back to the shard that owns it.
struct OwnedExtent {
  Extent extent;
  uint32_t shard = 0;
};

// Some of what a queue has to send, laid out for one call that goes on while the queue grows.
struct OutputBatch {
  std::array<iovec, 64> vectors;
  ByteBuffer bytes;  // Copies of small bytes; pieces are sent from where they lie.
  msghdr message{};
  uint64_t length = 0;
};

class OutputQueue {
 public:
  // Where small bytes are written; call `note_bytes` afterwards.
  ByteBuffer* bytes() noexcept { return &bytes_; }
  // Everything in `bytes()` so far goes out before what is added later.
  void add_piece(const std::byte* data, const PinnedPiece& piece, uint32_t shard);

  // A place in what is here.
  struct Mark {
    size_t bytes = 0;
    size_t parts = 0;
  };
  Mark end() const noexcept { return {bytes_.size(), parts_.size()}; }
  // What `other` has before `end` goes out behind what is here.
  void append(OutputQueue* other, const Mark& end);
  // Everything of it.
  void append(OutputQueue* other) { append(other, other->end()); }
  // What comes before `end`, small bytes only, without going out. Valid until more is written.
  Bytes take(const Mark& end) noexcept;

  bool empty() const noexcept { return sent_bytes_ == bytes_.size() && next_ == parts_.size(); }
  uint64_t pinned_bytes() const noexcept { return pinned_bytes_; }
  uint64_t owned_bytes() const noexcept { return bytes_.size() - sent_bytes_; }
  size_t memory_bytes() const noexcept {
    return bytes_.capacity() + parts_.capacity() * sizeof(Part);
  }

  // Nothing but a few bytes of its own, none of them sent: `take` moves them out.
  bool is_small() const noexcept {
    return parts_.empty() && sent_bytes_ == 0 && bytes_.size() <= kSmallBytes;
  }
  void take(ByteBuffer* bytes) noexcept {
    bytes->clear();
    std::swap(*bytes, bytes_);
  }

  // Sends up to `limit_bytes` without waiting. Returns bytes sent, or -1 with errno. Extents that
  // were sent whole are appended to `released`.
  int64_t flush(Stream* stream, uint64_t limit_bytes, std::vector<OwnedExtent>* released);
  // The same in two steps, for who sends by other means: what is next, then how much was sent.
  std::unique_ptr<OutputBatch> next_batch(uint64_t limit_bytes) const;
  void note_sent(uint64_t count, std::vector<OwnedExtent>* released) { advance(count, released); }
  // Forgets what is left, of which nothing is pinned.
  void clear() noexcept;
  // Lets go of everything unsent.
  void discard(std::vector<OwnedExtent>* released);

 private:
  static constexpr size_t kSmallBytes = 64 * 1024;

  struct Part {
    size_t bytes_before;  // Of bytes_, that precede it.
    const std::byte* data;
    uint64_t length;
    OwnedExtent owner;
  };
  size_t gather(std::span<iovec> vectors, uint64_t limit_bytes) const;
  void advance(uint64_t count, std::vector<OwnedExtent>* released);
  void compact() noexcept;

  ByteBuffer bytes_;
  size_t sent_bytes_ = 0;  // Of bytes_.
  std::vector<Part> parts_;
  size_t next_ = 0;  // First part not wholly sent.
  uint64_t pinned_bytes_ = 0;
};

}  // namespace kvstrata
