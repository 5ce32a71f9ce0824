// Least recently used, by sampling: no list, no lock-step memory, one stamp in each record.
//
// Time is counted in accesses, not milliseconds, so a burst has an order too. The clock ticks once
// in `records / 1024` accesses: far finer than the sample can tell, and slow enough that its 36
// bits (word, and frequency above it) outlast 60 million turnovers of the pool.
#pragma once

#include <array>

#include "tiering/native/eviction.h"

namespace kvstrata {

class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(EvictionSource* source) : source_(source) {}

  std::string_view name() const noexcept override { return "lru"; }
  void on_insert(uint64_t location, uint64_t hash, uint64_t bytes) noexcept override;
  void on_access(uint64_t location) noexcept override;
  void on_remove(uint64_t location, uint64_t bytes) noexcept override;
  void on_move(uint64_t old_location, uint64_t new_location) noexcept override;
  void set_aside(uint64_t location) noexcept override;
  void put_back(uint64_t) noexcept override {}  // The next sample may find it again.
  uint64_t victim() noexcept override;
  uint64_t memory_bytes() const noexcept override { return sizeof(*this); }
  void note_time(uint64_t now_ms) noexcept override;
  uint64_t idle_ms(uint64_t location, uint64_t now_ms) const noexcept override;

 private:
  struct Candidate {
    uint64_t location;
    uint64_t stamp;  // As it was when sampled: a record used since is no candidate any more.
  };
  static constexpr uint32_t kCandidateCountMax = 16;
  // What the clock showed at some time. Notes are thinned out with age, so that these few reach
  // back for as long as the policy has lived, to within a tenth of how long ago it was.
  struct Note {
    uint64_t clock;
    uint64_t time_ms;
  };
  static constexpr uint32_t kNoteCountMax = 128;

  uint64_t age(uint64_t stamp) const;
  uint64_t stamp(uint64_t location) const;
  void forget_note(uint64_t now_ms) noexcept;
  Candidate* find(uint64_t location);
  void offer(Candidate candidate);
  void drop(Candidate* candidate);

  EvictionSource* source_;
  uint64_t record_count_ = 0;
  uint64_t clock_ = 0;
  uint64_t accesses_since_tick_ = 0;
  // Oldest first. Kept between calls: the best of many samples are better than the best of one.
  std::array<Candidate, kCandidateCountMax> candidates_{};
  uint32_t candidate_count_ = 0;
  std::array<Note, kNoteCountMax> notes_{};  // Oldest first; each with another clock.
  uint32_t note_count_ = 0;
};

}  // namespace kvstrata
