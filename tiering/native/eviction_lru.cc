#include "tiering/native/eviction_lru.h"

#include <algorithm>
#include <limits>

namespace kvstrata {
namespace {

constexpr uint32_t kSampleCount = 16;
// So few records are all looked at, which makes the choice exact.
constexpr uint32_t kExactCountMax = 64;
constexpr uint64_t kTicksPerTurnover = 1024;
constexpr uint64_t kStampMask = (uint64_t{1} << 36) - 1;

}  // namespace

uint64_t LruPolicy::age(uint64_t stamp) const { return (clock_ - stamp) & kStampMask; }

uint64_t LruPolicy::stamp(uint64_t location) const {
  const EvictionState state = source_->state(location);
  return uint64_t{state.frequency} << 32 | state.word;
}

void LruPolicy::on_insert(uint64_t location, uint64_t, uint64_t) noexcept {
  ++record_count_;
  on_access(location);
}

void LruPolicy::on_access(uint64_t location) noexcept {
  if (++accesses_since_tick_ > record_count_ / kTicksPerTurnover) {
    accesses_since_tick_ = 0;
    ++clock_;
  }
  source_->set_state(location, {.word = static_cast<uint32_t>(clock_),
                                .frequency = static_cast<uint8_t>((clock_ & kStampMask) >> 32)});
}

void LruPolicy::on_remove(uint64_t location, uint64_t) noexcept {
  --record_count_;
  if (Candidate* candidate = find(location)) drop(candidate);
}

void LruPolicy::on_move(uint64_t old_location, uint64_t new_location) noexcept {
  if (Candidate* candidate = find(old_location)) candidate->location = new_location;
}

void LruPolicy::set_aside(uint64_t location) noexcept {
  if (Candidate* candidate = find(location)) drop(candidate);
}

uint64_t LruPolicy::victim() noexcept {
  std::array<uint64_t, kExactCountMax> sample;
  const uint32_t wanted = record_count_ <= kExactCountMax ? kExactCountMax : kSampleCount;
  const uint32_t count = source_->sample(wanted, sample.data());
  for (uint32_t i = 0; i < count; ++i) offer({sample[i], stamp(sample[i])});
  while (candidate_count_ > 0) {
    Candidate* oldest = candidates_.data();
    if (stamp(oldest->location) == oldest->stamp) return oldest->location;
    drop(oldest);
  }
  return 0;
}

void LruPolicy::note_time(uint64_t now_ms) noexcept {
  if (note_count_ != 0 && notes_[note_count_ - 1].clock == clock_) return;
  if (note_count_ == kNoteCountMax) forget_note(now_ms);
  notes_[note_count_++] = {clock_, now_ms};
}

// The one without which the gap is the smallest for its age: so gaps grow with age alike. The
// first stays.
void LruPolicy::forget_note(uint64_t now_ms) noexcept {
  uint32_t chosen = 1;
  double smallest = std::numeric_limits<double>::max();
  for (uint32_t i = 1; i + 1 < note_count_; ++i) {
    const uint64_t before_ms = notes_[i - 1].time_ms;
    const auto gap_ms = static_cast<double>(notes_[i + 1].time_ms - before_ms);
    const double share = gap_ms / static_cast<double>(now_ms - before_ms + 1);
    if (share >= smallest) continue;
    smallest = share;
    chosen = i;
  }
  std::copy(notes_.begin() + chosen + 1, notes_.end(), notes_.begin() + chosen);
  --note_count_;
}

// The clock showed the record's stamp, or more, from the first such note on.
uint64_t LruPolicy::idle_ms(uint64_t location, uint64_t now_ms) const noexcept {
  const uint64_t used = clock_ - age(stamp(location));
  const auto end = notes_.begin() + note_count_;
  const auto note =
      std::find_if(notes_.begin(), end, [&](const Note& each) { return each.clock >= used; });
  return note == end || note->time_ms > now_ms ? 0 : now_ms - note->time_ms;
}

LruPolicy::Candidate* LruPolicy::find(uint64_t location) {
  for (uint32_t i = 0; i < candidate_count_; ++i) {
    if (candidates_[i].location == location) return &candidates_[i];
  }
  return nullptr;
}

void LruPolicy::offer(Candidate candidate) {
  if (Candidate* known = find(candidate.location)) drop(known);
  const auto end = candidates_.begin() + candidate_count_;
  const auto place = std::find_if(candidates_.begin(), end, [&](const Candidate& other) {
    return age(other.stamp) < age(candidate.stamp);
  });
  if (place == candidates_.end()) return;
  if (candidate_count_ < kCandidateCountMax) ++candidate_count_;
  std::move_backward(place, candidates_.begin() + candidate_count_ - 1,
                     candidates_.begin() + candidate_count_);
  *place = candidate;
}

void LruPolicy::drop(Candidate* candidate) {
  std::move(candidate + 1, candidates_.data() + candidate_count_, candidate);
  --candidate_count_;
}

}  // namespace kvstrata
