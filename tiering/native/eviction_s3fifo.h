// S3-FIFO (Yang et al., SOSP 2023): most keys are wanted once only, so a small queue lets them
// pass quickly, and a scan cannot wash out what is used again.
//
// A new key enters the small queue (a tenth of the records), or main if it was evicted lately.
// From the small queue's end, what was used at least twice goes to main, the rest leaves and its
// fingerprint becomes a ghost. From main's end, what was used since goes round again.
// EvictionState: `word` is the position in the queue; `frequency` counts uses up to 3 in two bits,
// and a third bit is set in main.
#pragma once

#include "tiering/native/eviction.h"
#include "tiering/native/eviction_ghost.h"
#include "tiering/native/eviction_queue.h"

namespace kvstrata {

class S3FifoPolicy final : public EvictionPolicy {
 public:
  explicit S3FifoPolicy(EvictionSource* source) : source_(source), small_(source), main_(source) {}

  std::string_view name() const noexcept override { return "s3fifo"; }
  void on_insert(uint64_t location, uint64_t hash, uint64_t bytes) noexcept override;
  void on_access(uint64_t location) noexcept override;
  void on_remove(uint64_t location, uint64_t bytes) noexcept override;
  void on_move(uint64_t old_location, uint64_t new_location) noexcept override;
  void set_aside(uint64_t location) noexcept override;
  void put_back(uint64_t location) noexcept override;
  uint64_t victim() noexcept override;
  uint64_t memory_bytes() const noexcept override;

 private:
  bool is_small_due() const;
  bool requeue_in_main(uint64_t location, EvictionState state, uint8_t uses);
  EvictionQueue& queue_of(EvictionState state);

  EvictionSource* source_;
  EvictionQueue small_;
  EvictionQueue main_;
  GhostSet ghosts_;
};

}  // namespace kvstrata
