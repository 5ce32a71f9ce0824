// Which records of one pool on one shard are retained: by whom, and until when. Knows where records
// lie, and nothing else of them. Not thread-safe: it belongs to its shard's thread.
//
// A *retention* is what a client's handle names: its end, whether it is hard, and its claims, one
// for each record that was named with it. A record that is claimed has a *place* here, and names it
// itself: its eviction word moves here meanwhile. So nothing is looked for, and a record that
// nobody claims costs nothing.
//
// A record that goes takes its place along. The claims on it are void then, which the generation
// of the place tells, and count until their retention ends.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "store/native/index.h"

namespace kvstrata {

class RetentionTable {
 public:
  static constexpr uint32_t kNoPlace = UINT32_MAX;

  struct Place {
    Location location = 0;       // Of the record; 0 while the place is free.
    uint32_t eviction_word = 0;  // The record's own; while free, the next free place.
    uint32_t generation = 0;
    uint32_t claim_count = 0;
    uint32_t hard_count = 0;  // Of the claims.
  };
  struct Claim {
    uint32_t place;
    uint32_t generation;
  };
  struct Retention {
    uint64_t end_ms = 0;
    bool is_hard = false;
    std::vector<Claim> claims;
  };

  // Retentions are numbered from there on, with others that count there; no number is used again.
  explicit RetentionTable(uint64_t* next_number) noexcept : next_number_(next_number) {}

  // Adds a claim on the record at `location` to the retention `*number`, or to a new one if that is
  // 0, or ends at another time or is not of this kind. `*place` is the record's, or kNoPlace. False
  // when the heap is exhausted; nothing has changed then.
  bool claim(Location location, uint64_t end_ms, bool is_hard, uint64_t* number,
             uint32_t* place) noexcept;

  // Lets a retention end then, if that is later (`extend`), or at once. False if there is none of
  // this kind that has not ended by now.
  bool extend(uint64_t number, bool is_hard, uint64_t now_ms, uint64_t end_ms) noexcept;
  bool release(uint64_t number, bool is_hard, uint64_t now_ms) noexcept;

  // Takes out the retention that ended first. False if none has by now.
  bool take_ended(uint64_t now_ms, Retention* ended) noexcept;
  // Takes a claim of one that was taken out back; `is_hard` as that was. Returns its place, or
  // kNoPlace if the record has gone. The caller erases a place without claims.
  uint32_t drop_claim(const Claim& claim, bool is_hard) noexcept;

  Place& at(uint32_t place) noexcept { return places_[place]; }
  const Place& at(uint32_t place) const noexcept { return places_[place]; }
  void erase(uint32_t place) noexcept;

  // The next record, in turn, that has no hard claim; 0 if none is among the next few.
  Location next_soft() noexcept;

  uint64_t record_count() const noexcept { return record_count_; }
  uint64_t claim_count() const noexcept { return claim_count_; }
  uint64_t memory_bytes() const noexcept;

 private:
  using Retentions = std::map<uint64_t, Retention>;

  bool open_place() noexcept;
  Retentions::iterator find(uint64_t number, bool is_hard, uint64_t now_ms) noexcept;
  void set_end(Retentions::iterator retention, uint64_t end_ms) noexcept;

  std::deque<Place> places_;  // Never moved in memory as it grows.
  uint32_t first_free_ = kNoPlace;
  uint32_t hand_ = 0;  // Where `next_soft` looks next.
  uint64_t record_count_ = 0;
  uint64_t claim_count_ = 0;
  uint64_t* next_number_;
  Retentions retentions_;                            // By number.
  std::set<std::pair<uint64_t, uint64_t>> endings_;  // End and number of each.
};

}  // namespace kvstrata
