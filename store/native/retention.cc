// Retaining objects: kept from eviction for a time, softly (they go last) or hard (they stay).
//
// A retained record is set aside by its pool's policy and has a place in its partition's table. It
// leaves both with its last claim, or when it goes itself.
#include <algorithm>

#include "store/native/object_store.h"
#include "store/native/partition.h"

namespace kvstrata {

namespace {

constexpr uint64_t kHardShare = 4;    // Of what a pool may take, unless its settings say otherwise.
constexpr size_t kEndedClaims = 256;  // A step, but for the last retention: some 50 us.

uint64_t negative(uint64_t amount) noexcept { return ~amount + 1; }

}  // namespace

uint64_t ObjectStore::hard_bytes_max(const Partition& partition) const noexcept {
  const PoolSettings& settings = partition.settings;
  if (settings.retained_bytes_max != 0) return settings.retained_bytes_max;
  uint64_t total = uint64_t{segments_->segment_count()} * segments_->segment_bytes();
  return (settings.quota_bytes != 0 ? std::min(settings.quota_bytes, total) : total) / kHardShare;
}

Status ObjectStore::retain_object(Partition& partition, uint64_t hash, Bytes key, uint64_t ttl_ms,
                                  bool is_hard, uint64_t* number) noexcept {
  Location location = find(partition, hash, key);
  if (location == 0) return Status::NotFound;
  Status status = claim(partition, location, now_ms_ + ttl_ms, is_hard, number);
  // What has ended counts until somebody looks.
  if (status == Status::Busy && end_retentions()) {
    status = claim(partition, location, now_ms_ + ttl_ms, is_hard, number);
  }
  PoolStatistics& statistics = *partition.statistics;
  (status == Status::Ok ? statistics.retains : statistics.retain_refusals).add();
  return status;
}

Status ObjectStore::claim(Partition& partition, Location location, uint64_t end_ms, bool is_hard,
                          uint64_t* number) noexcept {
  bool becomes_hard = is_hard && !partition.is_retained_hard(location);
  uint64_t hard_bytes = becomes_hard ? memory_of(location) : 0;
  uint64_t hard_bytes_most = hard_bytes_max(partition);
  if (hard_bytes > hard_bytes_most) return Status::TooLarge;
  if (!partition.usage->charge_claim(hard_bytes, hard_bytes_most)) return Status::Busy;
  bool was_retained = partition.is_retained(location);
  uint32_t place = was_retained ? view(location).place() : RetentionTable::kNoPlace;
  if (!partition.retentions.claim(location, end_ms, is_hard, number, &place)) {
    partition.usage->give_back_claims(1, hard_bytes);
    return Status::Busy;
  }
  ++claim_count_;
  if (!was_retained) {
    set_aside(partition, location, place);
  } else {
    partition.statistics->retained_bytes_hard.add(hard_bytes);
  }
  return Status::Ok;
}

Status ObjectStore::extend_retention(Partition& partition, uint64_t number, bool is_hard,
                                     uint64_t ttl_ms) noexcept {
  bool found = partition.retentions.extend(number, is_hard, now_ms_, now_ms_ + ttl_ms);
  return found ? Status::Ok : Status::NotFound;
}

Status ObjectStore::release_retention(Partition& partition, uint64_t number,
                                      bool is_hard) noexcept {
  bool found = partition.retentions.release(number, is_hard, now_ms_);
  return found ? Status::Ok : Status::NotFound;
}

// True if a retention had ended. Others may have as well.
bool ObjectStore::end_retentions() noexcept {
  if (claim_count_ == 0) return false;
  size_t ended_claims = 0;
  for (const auto& partition : partitions_) {
    RetentionTable::Retention ended;
    while (partition != nullptr && ended_claims < kEndedClaims &&
           partition->retentions.take_ended(now_ms_, &ended)) {
      ended_claims += ended.claims.size();
      end_claims(*partition, ended);
    }
  }
  return ended_claims != 0;
}

void ObjectStore::end_claims(Partition& partition,
                             const RetentionTable::Retention& ended) noexcept {
  claim_count_ -= ended.claims.size();
  partition.usage->give_back_claims(ended.claims.size(), 0);
  for (const RetentionTable::Claim& claim : ended.claims) {
    uint32_t index = partition.retentions.drop_claim(claim, ended.is_hard);
    if (index == RetentionTable::kNoPlace) continue;
    const RetentionTable::Place& place = partition.retentions.at(index);
    if (ended.is_hard && place.hard_count == 0) {
      uint64_t bytes = memory_of(place.location);
      partition.usage->give_back_claims(0, bytes);
      partition.statistics->retained_bytes_hard.add(negative(bytes));
    }
    if (place.claim_count == 0) end_retaining(partition, place.location);
  }
}

// The record is as any other again; what claims it has are void.
void ObjectStore::end_retaining(Partition& partition, Location location) noexcept {
  if (partition.is_retained_hard(location)) {
    partition.usage->give_back_claims(0, memory_of(location));
  }
  partition.retentions.erase(put_back(partition, location));
}

// From here on the record names its place in the table, and its pool's policy leaves it alone.
void ObjectStore::set_aside(Partition& partition, Location location, uint32_t index) noexcept {
  if (partition.policy != nullptr) partition.policy->set_aside(location);
  RecordView record = view(location);
  RetentionTable::Place& place = partition.retentions.at(index);
  place.location = location;
  place.eviction_word = static_cast<uint32_t>(record.header().eviction_word);
  record.header().eviction_word = index;
  record.set(kRetained, true);
  uint64_t bytes = memory_of(location);
  partition.statistics->retained_objects.add();
  partition.statistics->retained_bytes.add(bytes);
  if (place.hard_count != 0) partition.statistics->retained_bytes_hard.add(bytes);
}

// The reverse. Returns the place, which is kept.
uint32_t ObjectStore::put_back(Partition& partition, Location location) noexcept {
  RecordView record = view(location);
  uint32_t index = record.place();
  const RetentionTable::Place& place = partition.retentions.at(index);
  record.header().eviction_word = place.eviction_word;
  record.set(kRetained, false);
  uint64_t bytes = memory_of(location);
  partition.statistics->retained_objects.add(negative(1));
  partition.statistics->retained_bytes.add(negative(bytes));
  if (place.hard_count != 0) partition.statistics->retained_bytes_hard.add(negative(bytes));
  if (partition.policy != nullptr) partition.policy->put_back(location);
  return index;
}

// The policy knows of none but what is not retained; once that has gone, the softly retained go.
// 0 also if it was looked for in vain among many others.
Location ObjectStore::next_victim(Partition& partition) noexcept {
  Location victim = partition.policy->victim();
  if (victim != 0 || partition.unretained_count() != 0) return victim;
  return partition.retentions.next_soft();
}

bool ObjectStore::may_evict(const Partition& partition, Location location) const noexcept {
  if (partition.policy == nullptr || partition.is_retained_hard(location)) return false;
  return !partition.is_retained(location) || partition.unretained_count() == 0;
}

}  // namespace kvstrata
