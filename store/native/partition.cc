#include "store/native/partition.h"

#include <utility>

namespace kvstrata {

Partition::Partition(PoolId id, ObjectStore* store, std::shared_ptr<PoolUsage> usage,
                     PoolStatistics* statistics)
    : id(id),
      index(store, &store->index_memory_),
      usage(std::move(usage)),
      statistics(statistics),
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
  });
}

uint64_t Partition::idle_ms(Location location) const noexcept {
  return policy == nullptr ? 0 : policy->idle_ms(location, store_->now_ms());
}

uint32_t Partition::sample(uint32_t count, uint64_t* locations) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return index.sample(random_, count, locations);
}

EvictionState Partition::state(uint64_t location) const noexcept {
  const RecordHeader& header = store_->view(location).header();
  return {static_cast<uint32_t>(header.eviction_word), static_cast<uint8_t>(header.frequency)};
}

void Partition::set_state(uint64_t location, EvictionState state) noexcept {
  RecordHeader& header = store_->view(location).header();
  header.eviction_word = state.word;
  header.frequency = state.frequency;
}

uint64_t Partition::hash(uint64_t location) const noexcept { return store_->hash_at(location); }

}  // namespace kvstrata
