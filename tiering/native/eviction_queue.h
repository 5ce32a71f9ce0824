// A first-in-first-out queue of records that lets go of any of them in constant time, in five
// bytes a record, seven where most leave out of turn.
//
// Entries lie in chunks of 256. A record remembers its entry's position (chunk and place) in
// EvictionState.word; an entry that leaves early becomes a hole. Two neighbouring chunks whose
// entries fit into one are joined, so holes never take more than half; that tells the moved
// records their new positions, at most 256 at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tiering/native/eviction.h"

namespace kvstrata {

class EvictionQueue {
 public:
  static constexpr uint32_t kNoPosition = UINT32_MAX;

  explicit EvictionQueue(EvictionSource* source);
  ~EvictionQueue();

  uint64_t size() const { return size_; }
  uint64_t memory_bytes() const;

  uint64_t front() const;  // The oldest record, 0 if there is none.
  // Returns the new entry's position, which the caller stores in the record; kNoPosition when the
  // heap is exhausted.
  uint32_t push(uint64_t location);
  void remove(uint32_t position);
  void replace(uint32_t position, uint64_t location);

 private:
  struct Chunk;
  struct Place {
    std::unique_ptr<Chunk> chunk;  // Null while the place is free.
    uint32_t next_free = 0;
  };

  Chunk& chunk(uint32_t id) const { return *places_[id].chunk; }
  bool append_chunk();
  void release(uint32_t id);
  void join_if_small(uint32_t left, uint32_t right);

  EvictionSource* source_;
  std::vector<Place> places_;  // By chunk id.
  uint32_t first_free_;
  uint32_t head_;
  uint32_t tail_;
  uint64_t size_ = 0;
  uint64_t chunk_count_ = 0;
};

}  // namespace kvstrata
