#include "store/native/partition.h"

#include <algorithm>
#include <utility>

namespace kvstrata {

Partition::Partition(PoolId id, ObjectStore* store, std::shared_ptr<PoolUsage> usage,
                     PoolStatistics* statistics)
    : id(id),
      index(store, &store->index_memory_),
      usage(std::move(usage)),
      statistics(statistics),
      retentions(store->next_retention()),
      store_(store),
      random_(0x9E3779B97F4A7C15u ^ (uint64_t{id} << 32)) {}

void Partition::apply(const PoolSettings& next) {
  bool rebuild = policy == nullptr || next.eviction != settings.eviction;
  settings = next;
  if (!rebuild) return;
  policy = make_eviction_policy(settings.eviction, this);
  if (policy == nullptr) return;
  index.scan(0, UINT32_MAX, [this](Location location) {
    policy->on_insert(location, store_->hash_at(location), 0);
    if (is_retained(location)) policy->set_aside(location);
  });
}

bool Partition::is_retained(Location location) const noexcept {
  return store_->view(location).has(kRetained);
}

bool Partition::is_retained_hard(Location location) const noexcept {
  if (!is_retained(location)) return false;
  return retentions.at(store_->view(location).place()).hard_count != 0;
}

uint64_t Partition::idle_ms(Location location) const noexcept {
  return policy == nullptr ? 0 : policy->idle_ms(location, store_->now_ms());
}

uint32_t Partition::sample(uint32_t count, uint64_t* locations) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  uint32_t found = index.sample(random_, count, locations);
  if (retentions.record_count() == 0) return found;
  uint64_t* end = std::remove_if(locations, locations + found,
                                 [this](Location location) { return is_retained(location); });
  return static_cast<uint32_t>(end - locations);
}

EvictionState Partition::state(uint64_t location) const noexcept {
  RecordView record = store_->view(location);
  uint32_t word = is_retained(location) ? retentions.at(record.place()).eviction_word
                                        : static_cast<uint32_t>(record.header().eviction_word);
  return {word, static_cast<uint8_t>(record.header().frequency)};
}

void Partition::set_state(uint64_t location, EvictionState state) noexcept {
  RecordView record = store_->view(location);
  if (is_retained(location)) {
    retentions.at(record.place()).eviction_word = state.word;
  } else {
    record.header().eviction_word = state.word;
  }
  record.header().frequency = state.frequency;
}

uint64_t Partition::hash(uint64_t location) const noexcept { return store_->hash_at(location); }

}  // namespace kvstrata
