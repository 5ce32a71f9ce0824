#include "store/native/retention_table.h"

#include <algorithm>
#include <cassert>
#include <new>

namespace kvstrata {

namespace {

constexpr uint32_t kSoftLookCount = 64;
// What the two trees take of the heap for a retention, beside its claims.
constexpr uint64_t kRetentionBytes = 160;

}  // namespace

bool RetentionTable::claim(Location location, uint64_t end_ms, bool is_hard, uint64_t* number,
                           uint32_t* place) noexcept {
  if (*place == kNoPlace && first_free_ == kNoPlace && !open_place()) return false;
  auto present = retentions_.find(*number);
  bool joins = present != retentions_.end() && present->second.end_ms == end_ms &&
               present->second.is_hard == is_hard;
  uint64_t chosen = joins ? *number : *next_number_;
  uint32_t index = *place == kNoPlace ? first_free_ : *place;
  try {
    if (!joins) endings_.emplace(end_ms, chosen);
    Retention& retention = retentions_[chosen];
    retention.claims.push_back({index, places_[index].generation});
    retention.end_ms = end_ms;
    retention.is_hard = is_hard;
  } catch (const std::bad_alloc&) {
    if (joins) return false;
    endings_.erase({end_ms, chosen});
    retentions_.erase(chosen);
    return false;
  }
  if (!joins) ++*next_number_;
  Place& claimed = places_[index];
  if (*place == kNoPlace) {
    first_free_ = claimed.eviction_word;
    claimed.location = location;
    ++record_count_;
  }
  ++claimed.claim_count;
  if (is_hard) ++claimed.hard_count;
  ++claim_count_;
  *number = chosen;
  *place = index;
  return true;
}

bool RetentionTable::open_place() noexcept {
  try {
    places_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  places_.back().eviction_word = first_free_;
  first_free_ = static_cast<uint32_t>(places_.size() - 1);
  return true;
}

RetentionTable::Retentions::iterator RetentionTable::find(uint64_t number, bool is_hard,
                                                          uint64_t now_ms) noexcept {
  auto found = retentions_.find(number);
  if (found == retentions_.end()) return found;
  bool is_it = found->second.is_hard == is_hard && found->second.end_ms > now_ms;
  return is_it ? found : retentions_.end();
}

bool RetentionTable::extend(uint64_t number, bool is_hard, uint64_t now_ms,
                            uint64_t end_ms) noexcept {
  auto found = find(number, is_hard, now_ms);
  if (found == retentions_.end()) return false;
  if (end_ms > found->second.end_ms) set_end(found, end_ms);
  return true;
}

bool RetentionTable::release(uint64_t number, bool is_hard, uint64_t now_ms) noexcept {
  auto found = find(number, is_hard, now_ms);
  if (found == retentions_.end()) return false;
  set_end(found, now_ms);
  return true;
}

void RetentionTable::set_end(Retentions::iterator retention, uint64_t end_ms) noexcept {
  auto& [number, what] = *retention;
  auto ending = endings_.extract({what.end_ms, number});
  assert(!ending.empty());
  what.end_ms = end_ms;
  ending.value().first = end_ms;
  endings_.insert(std::move(ending));  // The node goes back: nothing is allocated.
}

bool RetentionTable::take_ended(uint64_t now_ms, Retention* ended) noexcept {
  if (endings_.empty() || endings_.begin()->first > now_ms) return false;
  auto found = retentions_.find(endings_.begin()->second);
  *ended = std::move(found->second);
  retentions_.erase(found);
  endings_.erase(endings_.begin());
  claim_count_ -= ended->claims.size();
  return true;
}

uint32_t RetentionTable::drop_claim(const Claim& claim, bool is_hard) noexcept {
  Place& place = places_[claim.place];
  if (place.generation != claim.generation) return kNoPlace;
  --place.claim_count;
  if (is_hard) --place.hard_count;
  return claim.place;
}

void RetentionTable::erase(uint32_t place) noexcept {
  Place& erased = places_[place];
  assert(erased.location != 0);
  erased = {.eviction_word = first_free_, .generation = erased.generation + 1};
  first_free_ = place;
  --record_count_;
}

Location RetentionTable::next_soft() noexcept {
  auto count = static_cast<uint32_t>(std::min<size_t>(places_.size(), kSoftLookCount));
  for (; count != 0; --count) {
    hand_ = hand_ + 1 < places_.size() ? hand_ + 1 : 0;
    const Place& place = places_[hand_];
    if (place.location != 0 && place.hard_count == 0) return place.location;
  }
  return 0;
}

uint64_t RetentionTable::memory_bytes() const noexcept {
  return places_.size() * sizeof(Place) + claim_count_ * sizeof(Claim) +
         retentions_.size() * kRetentionBytes;
}

}  // namespace kvstrata
