// Eviction policies on a pool of records without bytes: exactness where it is promised, hit ratios
// on traces, bounded work and memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <random>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tiering/native/eviction.h"

namespace kvstrata {
namespace {

uint64_t mix(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

// Records are found by location / 8; freed locations are reused at once, the latest first.
class FakePool : public EvictionSource {
 public:
  FakePool(EvictionKind kind, uint64_t seed)
      : policy(make_eviction_policy(kind, this)), random(seed) {}

  uint32_t sample(uint32_t count, uint64_t* locations) noexcept override {
    const uint64_t start = random();
    const uint64_t found = std::min<uint64_t>(count, live_.size());
    uint32_t count_left = 0;
    for (uint64_t i = 0; i < found; ++i) {
      const uint64_t location = live_[(start + i) % live_.size()];
      if (!aside_.contains(key(location))) locations[count_left++] = location;
    }
    return count_left;
  }
  EvictionState state(uint64_t location) const noexcept override {
    ++state_reads;
    if (!is_live(location)) FAIL_CHECK("a policy read a record that had left");
    return records_.at(location / 8).state;
  }
  void set_state(uint64_t location, EvictionState state) noexcept override {
    if (state.frequency >= 16) FAIL_CHECK("the record keeps four bits");
    records_.at(location / 8).state = state;
  }
  uint64_t hash(uint64_t location) const noexcept override {
    return mix(records_.at(location / 8).key);
  }

  uint64_t size() const { return live_.size(); }
  bool has(uint64_t key) const { return locations_.contains(key); }
  bool is_live(uint64_t location) const {
    return location / 8 < records_.size() && records_[location / 8].place != kFree;
  }
  uint64_t key(uint64_t location) const { return records_.at(location / 8).key; }
  uint64_t idle_ms(uint64_t key, uint64_t now_ms) const {
    return policy->idle_ms(locations_.at(key), now_ms);
  }
  uint64_t any_key() { return key(live_[random() % live_.size()]); }

  void insert(uint64_t key) {
    const uint64_t location = place(key);
    locations_[key] = location;
    policy->on_insert(location, mix(key), 100);
  }
  void set_aside(uint64_t key) {
    policy->set_aside(locations_.at(key));
    aside_.insert(key);
  }
  void put_back(uint64_t key) {
    aside_.erase(key);
    policy->put_back(locations_.at(key));
  }
  void access(uint64_t key) { policy->on_access(locations_.at(key)); }
  void remove(uint64_t key) {
    const uint64_t location = locations_.at(key);
    policy->on_remove(location, 100);
    unplace(location);
    locations_.erase(key);
  }
  void move(uint64_t key) {
    const uint64_t old_location = locations_.at(key);
    const uint64_t new_location = place(key);
    records_[new_location / 8].state = records_[old_location / 8].state;
    policy->on_move(old_location, new_location);
    unplace(old_location);
    locations_[key] = new_location;
  }
  uint64_t evict() {
    const uint64_t location = policy->victim();
    if (!is_live(location)) FAIL("the victim is no live record");
    const uint64_t evicted = key(location);
    remove(evicted);
    return evicted;
  }

  std::unique_ptr<EvictionPolicy> policy;
  std::mt19937_64 random;
  mutable uint64_t state_reads = 0;

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Record {
    uint64_t key = 0;
    uint64_t place = kFree;  // In live_.
    EvictionState state;
  };

  uint64_t place(uint64_t key) {
    uint64_t index = records_.size();
    if (free_.empty()) {
      records_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    records_[index] = {key, live_.size(), {}};
    live_.push_back(index * 8);
    return index * 8;
  }
  void unplace(uint64_t location) {
    Record& record = records_[location / 8];
    live_[record.place] = live_.back();
    records_[live_.back() / 8].place = record.place;
    live_.pop_back();
    record = {};
    free_.push_back(location / 8);
  }

  std::vector<Record> records_{1};  // Location 0 means none.
  std::vector<uint64_t> live_;
  std::vector<uint64_t> free_;
  std::unordered_map<uint64_t, uint64_t> locations_;
  std::unordered_set<uint64_t> aside_;
};

// Keys with frequencies like 1 / rank^skew.
class Zipf {
 public:
  Zipf(uint64_t key_count, double skew) {
    double sum = 0;
    for (uint64_t rank = 1; rank <= key_count; ++rank) {
      sum += std::pow(static_cast<double>(rank), -skew);
      sums_.push_back(sum);
    }
  }
  uint64_t draw(std::mt19937_64& random) {
    const double point = std::uniform_real_distribution<double>(0, sums_.back())(random);
    return static_cast<uint64_t>(std::ranges::lower_bound(sums_, point) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

std::vector<uint64_t> zipf_trace(uint64_t key_count, uint64_t length) {
  Zipf zipf(key_count, 0.9);
  std::mt19937_64 random(42);
  std::vector<uint64_t> trace(length);
  for (uint64_t& key : trace) key = zipf.draw(random);
  return trace;
}

// Half of the requests walk through keys that are wanted once.
std::vector<uint64_t> polluted_trace(uint64_t key_count, uint64_t length) {
  std::vector<uint64_t> trace;
  for (uint64_t key : zipf_trace(key_count, length / 2)) {
    trace.push_back(key);
    trace.push_back(key_count + trace.size());
  }
  return trace;
}

double hit_ratio(EvictionKind kind, const std::vector<uint64_t>& trace, uint64_t capacity) {
  FakePool pool(kind, 1);
  uint64_t hits = 0;
  for (uint64_t key : trace) {
    if (pool.has(key)) {
      ++hits;
      pool.access(key);
      continue;
    }
    if (pool.size() == capacity) pool.evict();
    pool.insert(key);
  }
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

// Least recently used, to the letter.
class ExactLru {
 public:
  bool use(uint64_t key) {
    const auto found = places_.find(key);
    const bool known = found != places_.end();
    if (known) order_.erase(found->second);
    places_[key] = order_.insert(order_.end(), key);
    return known;
  }
  void remove(uint64_t key) {
    order_.erase(places_.at(key));
    places_.erase(key);
  }
  uint64_t oldest() const { return order_.front(); }
  uint64_t size() const { return order_.size(); }

 private:
  std::list<uint64_t> order_;  // Oldest first.
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places_;
};

double exact_lru_hit_ratio(const std::vector<uint64_t>& trace, uint64_t capacity) {
  ExactLru cache;
  uint64_t hits = 0;
  for (uint64_t key : trace) {
    if (cache.use(key)) ++hits;
    if (cache.size() > capacity) cache.remove(cache.oldest());
  }
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

// Inserts, uses, moves and removals in random order, as a pool that is below its budget sees.
void churn(FakePool& pool, uint64_t record_count, uint32_t steps, uint64_t first_key) {
  for (uint32_t step = 0; step < steps; ++step) {
    const uint64_t choice = pool.random() % 8;
    if (pool.size() < record_count / 2 || (choice < 3 && pool.size() < record_count)) {
      pool.insert(first_key + step);
    } else if (choice < 5) {
      pool.access(pool.any_key());
    } else if (choice < 6) {
      pool.move(pool.any_key());
    } else {
      pool.remove(pool.any_key());
    }
  }
}

constexpr EvictionKind kKinds[] = {EvictionKind::Lru, EvictionKind::S3Fifo};

TEST_CASE("eviction: a pool that may not evict has no policy, the others say their names") {
  CHECK(FakePool(EvictionKind::None, 1).policy == nullptr);
  CHECK(FakePool(EvictionKind::Lru, 1).policy->name() == "lru");
  CHECK(FakePool(EvictionKind::S3Fifo, 1).policy->name() == "s3fifo");
}

TEST_CASE("eviction: an empty pool has no victim") {
  for (const EvictionKind kind : kKinds) {
    FakePool pool(kind, 1);
    CHECK(pool.policy->victim() == 0);
    pool.insert(1);
    CHECK(pool.evict() == 1);
    CHECK(pool.policy->victim() == 0);
  }
}

TEST_CASE("eviction: victims are live records, and all can be drained, whatever happened before") {
  for (const EvictionKind kind : kKinds) {
    for (const uint64_t record_count : {3, 100, 3'000}) {
      CAPTURE(record_count);
      FakePool pool(kind, record_count);
      for (uint64_t round = 0; round < 200; ++round) {
        churn(pool, record_count, 300, round * 1'000);
        for (int i = 0; i < 5 && pool.size() > 0; ++i) pool.evict();
      }
      while (pool.size() > 0) pool.evict();
      CHECK(pool.policy->victim() == 0);
    }
  }
}

TEST_CASE("eviction: a pinned record, once used, makes way for another victim") {
  for (const EvictionKind kind : kKinds) {
    FakePool pool(kind, 1);
    for (uint64_t key = 0; key < 1'000; ++key) pool.insert(key);
    const uint64_t pinned = pool.policy->victim();
    uint64_t victim = pinned;
    for (int attempt = 0; attempt < 3 && victim == pinned; ++attempt) {
      pool.policy->on_access(pinned);
      victim = pool.policy->victim();
    }
    CHECK(victim != pinned);
    CHECK(pool.is_live(victim));
  }
}

TEST_CASE("lru: exact up to 64 records") {
  FakePool pool(EvictionKind::Lru, 5);
  ExactLru shadow;
  for (uint64_t key = 0; key < 20'000; ++key) {
    if (pool.size() == 64) {
      REQUIRE(pool.evict() == shadow.oldest());
      shadow.remove(shadow.oldest());
    }
    pool.insert(key);
    shadow.use(key);
    const uint64_t used = pool.any_key();
    pool.access(used);
    shadow.use(used);
    if (key % 3 == 0) pool.move(pool.any_key());
    if (key % 5 == 0) {
      const uint64_t removed = pool.any_key();
      pool.remove(removed);
      shadow.remove(removed);
    }
  }
}

TEST_CASE("lru: sampling comes within two percent of the exact order") {
  for (const uint64_t capacity : {1'000, 10'000}) {
    const std::vector<uint64_t> trace = zipf_trace(capacity * 10, capacity * 60);
    const double exact = exact_lru_hit_ratio(trace, capacity);
    const double sampled = hit_ratio(EvictionKind::Lru, trace, capacity);
    MESSAGE("capacity " << capacity << ": exact " << exact << ", sampled " << sampled);
    CHECK(sampled > exact * 0.98);
  }
}

TEST_CASE("s3fifo: beats lru where a scan pollutes, and does not lose on plain Zipf") {
  constexpr uint64_t kCapacity = 5'000;
  const auto compare = [](const std::string& name, const std::vector<uint64_t>& trace) {
    const double lru = hit_ratio(EvictionKind::Lru, trace, kCapacity);
    const double s3fifo = hit_ratio(EvictionKind::S3Fifo, trace, kCapacity);
    MESSAGE(name << ": lru " << lru << ", s3fifo " << s3fifo);
    return s3fifo / lru;
  };
  CHECK(compare("zipf", zipf_trace(50'000, 400'000)) > 1.0);
  CHECK(compare("zipf with scan", polluted_trace(50'000, 400'000)) > 1.1);
}

TEST_CASE("s3fifo: a key that comes back soon after its eviction stays") {
  FakePool pool(EvictionKind::S3Fifo, 1);
  uint64_t next_key = 0;
  while (pool.size() < 1'000) pool.insert(next_key++);
  const uint64_t returning = pool.evict();
  pool.insert(returning);
  for (int i = 0; i < 5'000; ++i) {  // A scan, without a single use.
    pool.evict();
    pool.insert(next_key++);
  }
  CHECK(pool.has(returning));
}

TEST_CASE("s3fifo: one call does bounded work, though every record is in use") {
  FakePool pool(EvictionKind::S3Fifo, 1);
  for (uint64_t key = 0; key < 20'000; ++key) pool.insert(key);
  for (int round = 0; round < 200; ++round) {
    for (uint64_t key = 0; key < 20'000; ++key) {
      if (round % 40 == 0 && pool.has(key)) pool.access(key);
    }
    pool.state_reads = 0;
    pool.evict();
    CHECK(pool.state_reads < 1'000);
  }
}

TEST_CASE("eviction: memory stays near ten bytes a record, whatever leaves first") {
  for (const EvictionKind kind : kKinds) {
    FakePool pool(kind, 1);
    constexpr uint64_t kRecords = 50'000;
    for (uint64_t key = 0; key < kRecords; ++key) pool.insert(key);
    for (int i = 0; i < 10; ++i) pool.insert(kRecords + pool.size() + pool.evict());
    CHECK(pool.policy->memory_bytes() <= 8 * kRecords);
    for (uint64_t round = 1; round <= 20; ++round) {
      churn(pool, kRecords, kRecords, round << 32);
      CAPTURE(round);
      CHECK(pool.policy->memory_bytes() <= 11 * pool.size());
    }
    while (pool.size() > 0) pool.remove(pool.any_key());
    CHECK(pool.policy->memory_bytes() <= 4 * kRecords);
  }
}

TEST_CASE("eviction: what is set aside is no victim, and keeps what it was worth") {
  for (const EvictionKind kind : kKinds) {
    FakePool pool(kind, 1);
    for (uint64_t key = 0; key < 1'000; ++key) pool.insert(key);
    for (uint64_t key = 0; key < 500; ++key) {
      for (int use = 0; use < 3; ++use) pool.access(key);
    }
    for (uint64_t key = 0; key < 1'000; key += 2) pool.set_aside(key);
    for (uint64_t key = 0; key < 1'000; key += 10) pool.move(key);
    pool.access(0);
    for (uint64_t key = 8; key < 100; key += 40) pool.remove(key);
    for (int i = 0; i < 300; ++i) CHECK(pool.evict() % 2 == 1);
    for (uint64_t key = 0; key < 1'000; key += 2) {
      if (pool.has(key)) pool.put_back(key);
    }
    // Those never used again go first, of both halves.
    uint64_t used_left = 0;
    for (int i = 0; i < 400; ++i) pool.evict();
    for (uint64_t key = 0; key < 500; ++key) used_left += pool.has(key);
    CHECK(used_left > pool.size() * 9 / 10);
    while (pool.size() > 0) pool.evict();
  }
}

TEST_CASE("LRU tells for how long a record was not used") {
  constexpr uint64_t kKeyCount = 1'000;
  constexpr uint64_t kStepMs = 1'000;
  FakePool pool(EvictionKind::Lru, 1);
  for (uint64_t key = 1; key <= kKeyCount; ++key) {
    pool.insert(key);
    pool.policy->note_time(key * kStepMs);
  }
  uint64_t now_ms = kKeyCount * kStepMs;
  for (uint64_t key = 1; key <= kKeyCount; ++key) {
    uint64_t idle_ms = now_ms - key * kStepMs;
    CHECK(pool.idle_ms(key, now_ms) <= idle_ms);
    CHECK(pool.idle_ms(key, now_ms) + idle_ms / 10 + kStepMs >= idle_ms);
  }
  pool.access(1);
  CHECK(pool.idle_ms(1, now_ms) == 0);
  pool.policy->note_time(now_ms + 5);
  CHECK(pool.idle_ms(1, now_ms + 20) == 15);
  pool.move(1);
  CHECK(pool.idle_ms(1, now_ms + 20) == 15);
  FakePool other(EvictionKind::S3Fifo, 1);
  other.insert(1);
  other.policy->note_time(10);
  CHECK(other.idle_ms(1, 1'000) == 0);
}

}  // namespace
}  // namespace kvstrata
