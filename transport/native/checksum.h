// XXH3-64 (seed 0), the checksum of every chunk: whole buffers and streams of pieces.
//
// The instructions that hash longer buffers are chosen once, by the processor at hand; every choice
// gives the same result. Thread-safe, except that one stream belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kvstrata {

uint64_t chunk_checksum(std::span<const std::byte> data) noexcept;

// The checksum of a chunk that arrives in pieces: equal to chunk_checksum of the pieces laid end to
// end, however they are cut. digest() may be asked at any point and changes nothing. Reusable after
// reset(). A stream that was moved from may only be destroyed or assigned to.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(ChecksumStream&&) noexcept;
  ChecksumStream& operator=(ChecksumStream&&) noexcept;
  void reset() noexcept;
  void update(std::span<const std::byte> data) noexcept;
  uint64_t digest() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hash of a key for the index: XXH3-64 under the node's random seed, so that nobody outside can
// aim at one bucket.
uint64_t key_hash(std::span<const std::byte> key, uint64_t seed) noexcept;

}  // namespace kvstrata
