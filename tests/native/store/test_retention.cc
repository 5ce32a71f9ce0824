// Retained objects under pressure: what is evicted, what stays, and what ends a retention.
#include <doctest/doctest.h>

#include "store/native/retention_handle.h"
#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint64_t kMemory = 16 << 20;
constexpr uint64_t kTtlMs = 60'000;
constexpr EvictionKind kKinds[] = {EvictionKind::Lru, EvictionKind::S3Fifo};

Status retain(StoreFixture& store, Partition& pool, const std::string& key, bool is_hard,
              uint64_t* number, uint64_t ttl_ms = kTtlMs) {
  return store.store.retain_object(pool, store.hash(key), as_bytes(key), ttl_ms, is_hard, number);
}

std::string key_of(std::string_view prefix, uint32_t index) {
  return std::string(prefix) + std::to_string(index);
}

bool has(StoreFixture& store, Partition& pool, const std::string& key) {
  return store.store.find(pool, store.hash(key), as_bytes(key)) != 0;
}

uint32_t count_of(StoreFixture& store, Partition& pool, std::string_view prefix, uint32_t count) {
  uint32_t found = 0;
  for (uint32_t index = 0; index < count; ++index) {
    if (has(store, pool, key_of(prefix, index))) ++found;
  }
  return found;
}

void put_all(StoreFixture& store, Partition& pool, std::string_view prefix, uint32_t count,
             size_t length) {
  for (uint32_t index = 0; index < count; ++index) {
    std::string key = key_of(prefix, index);
    REQUIRE(store.put(pool, key, make_value(length, index)).status == Status::Ok);
  }
}

// Puts objects of that prefix and length, and retains them. Returns the retention's number.
uint64_t put_retained(StoreFixture& store, Partition& pool, std::string_view prefix, uint32_t count,
                      size_t length, bool is_hard) {
  uint64_t number = 0;
  put_all(store, pool, prefix, count, length);
  for (uint32_t index = 0; index < count; ++index) {
    REQUIRE(retain(store, pool, key_of(prefix, index), is_hard, &number) == Status::Ok);
  }
  return number;
}

// What a write is told once the store has done all it can for it.
Status settled(StoreFixture& store, Partition& pool, const std::string& key, size_t length) {
  OpenWrite write{.key = key, .value = make_value(length, 1)};
  Status status = Status::Busy;
  uint64_t reclaimed = UINT64_MAX;
  while (status == Status::Busy && store.store.reclaim_count() != reclaimed) {
    reclaimed = store.store.reclaim_count();
    status = store.reserve(pool, &write);
  }
  if (write.location != 0) store.store.abort(write.location);
  return status;
}

const PoolStatistics& statistics_of(StoreFixture& store, const Partition& pool) {
  return store.pools.at(pool.id)->statistics;
}

}  // namespace

TEST_CASE("softly retained objects go last, and the others in their usual order") {
  for (EvictionKind kind : kKinds) {
    for (size_t length : {100UL, 20'000UL, 700'000UL}) {
      CAPTURE(length);
      StoreFixture store(kMemory);
      constexpr uint64_t kQuota = 6 << 20;  // Fewer objects than can be retained.
      Partition& pool = store.add_pool(0, kind, kQuota);
      auto count = static_cast<uint32_t>(kQuota / 4 / (length + 100));
      put_retained(store, pool, "kept", count, length, false);
      put_all(store, pool, "other", 6 * count, length);
      CHECK(statistics_of(store, pool).evictions.value() > count);
      CHECK(statistics_of(store, pool).retained_evictions.value() == 0);
      CHECK(count_of(store, pool, "kept", count) == count);
      CHECK(statistics_of(store, pool).retained_objects.value() == count);
      // Now there is nothing else to give but them.
      for (uint32_t index = 0; index < 6 * count; ++index) {
        store.remove(pool, key_of("other", index));
      }
      uint32_t more = 0;
      while (statistics_of(store, pool).retained_evictions.value() == 0) {
        uint64_t number = 0;
        std::string key = key_of("more", more++);
        REQUIRE(store.put(pool, key, make_value(length, 1)).status == Status::Ok);
        REQUIRE(retain(store, pool, key, false, &number) == Status::Ok);
        REQUIRE(more < 8 * count);
      }
      CHECK(store.used_bytes() == store.pool_bytes());
    }
  }
}

TEST_CASE("one object that is not retained goes before many that are") {
  for (EvictionKind kind : kKinds) {
    StoreFixture store(kMemory);
    Partition& pool = store.add_pool(0, kind, 2 << 20);
    put_all(store, pool, "other", 1, 100);
    put_retained(store, pool, "kept", 10'000, 100, false);
    while (has(store, pool, "other0")) {
      uint64_t number = 0;
      std::string key = "more" + std::to_string(statistics_of(store, pool).puts.value());
      REQUIRE(store.put(pool, key, make_value(100, 1)).status == Status::Ok);
      if (has(store, pool, key)) retain(store, pool, key, false, &number);
      REQUIRE(statistics_of(store, pool).puts.value() < 20'000);
    }
    CHECK(count_of(store, pool, "kept", 10'000) == 10'000);
    CHECK(statistics_of(store, pool).retained_evictions.value() == 0);
  }
}

TEST_CASE("hard retained objects stay, and who finds only such memory is told to wait") {
  for (EvictionKind kind : kKinds) {
    for (size_t length : {100UL, 20'000UL, 700'000UL}) {
      CAPTURE(length);
      StoreFixture store(kMemory);
      Partition& pool = store.add_pool(0, kind);
      PoolSettings settings = pool.settings;
      settings.retained_bytes_max = kMemory;
      store.store.set_pool(0, settings, pool.usage, pool.statistics);
      auto count = static_cast<uint32_t>(kMemory * 3 / 4 / (length + 100));
      put_retained(store, pool, "kept", count, length, true);
      CHECK(statistics_of(store, pool).retained_bytes_hard.value() ==
            statistics_of(store, pool).bytes.value());
      put_all(store, pool, "other", count, length);
      CHECK(statistics_of(store, pool).evictions.value() > 0);
      CHECK(settled(store, pool, "large", 8 << 20) == Status::Busy);
      CHECK(count_of(store, pool, "kept", count) == count);
      store.store.set_clock(store.store.now_ms() + kTtlMs);
      CHECK(store.put(pool, "large", make_value(8 << 20, 1)).status == Status::Ok);
      CHECK(pool.usage->retained_bytes_hard.load() == 0);
      CHECK(pool.usage->retention_claims.load() == 0);
      CHECK(store.used_bytes() == store.pool_bytes());
    }
  }
}

TEST_CASE("hard retained objects are moved out of a segment that is emptied, with their words") {
  for (EvictionKind kind : kKinds) {
    StoreFixture store(kMemory);
    Partition& pool = store.add_pool(0, kind);
    put_all(store, pool, "other", 100'000, 60);
    uint64_t number = 0;
    uint32_t kept = 0;
    for (uint32_t index = 0; index < 100'000; index += 50) {
      std::string key = key_of("other", index);
      if (has(store, pool, key) && retain(store, pool, key, true, &number) == Status::Ok) ++kept;
    }
    REQUIRE(kept > 500);
    // Chunks need segments of their own, which cells must be moved out of.
    put_all(store, pool, "chunk", 60, 500'000);
    uint32_t found = 0;
    for (uint32_t index = 0; index < 100'000; index += 50) {
      std::optional<Value> value = store.get(pool, key_of("other", index));
      if (value) CHECK(*value == make_value(60, index));
      if (value) ++found;
    }
    CHECK(found == kept);
    CHECK(store.store.release_retention(pool, number, true) == Status::Ok);
    store.store.maintain();
    CHECK(statistics_of(store, pool).retained_objects.value() == 0);
    put_all(store, pool, "again", 400'000, 60);
    CHECK(count_of(store, pool, "other", 100'000) == 0);
  }
}

TEST_CASE("a retention ends with its object, but not where the object only gets a life") {
  for (EvictionKind kind : kKinds) {
    StoreFixture store(kMemory);
    Partition& pool = store.add_pool(0, kind);
    const Counter& objects = statistics_of(store, pool).retained_objects;
    const std::atomic<uint64_t>& hard_bytes = pool.usage->retained_bytes_hard;
    auto again = [&](size_t length) {
      REQUIRE(store.put(pool, "k", make_value(length, 1)).status == Status::Ok);
      uint64_t number = 0;
      REQUIRE(retain(store, pool, "k", true, &number) == Status::Ok);
      REQUIRE(objects.value() == 1);
      REQUIRE(hard_bytes.load() != 0);
    };
    auto expire = [&](uint64_t ttl_ms) {
      return store.store.expire(pool, store.hash("k"), as_bytes("k"), ttl_ms);
    };
    auto check_ended = [&] {
      CHECK(objects.value() == 0);
      CHECK(hard_bytes.load() == 0);
      CHECK(statistics_of(store, pool).retained_bytes_hard.value() == 0);
      CHECK(statistics_of(store, pool).retained_bytes.value() == 0);
    };
    for (size_t length : {10UL, 600'000UL}) {
      CAPTURE(length);
      again(length);
      store.remove(pool, "k");
      check_ended();
      again(length);
      REQUIRE(store.put(pool, "k", make_value(length, 2)).status == Status::Ok);  // As long.
      check_ended();
      again(length);
      REQUIRE(store.put(pool, "k", make_value(length + 100, 2)).status == Status::Ok);
      check_ended();
      again(length);
      REQUIRE(store.append(pool, "k", make_value(5, 2), length).status == Status::Ok);
      check_ended();
      again(length);
      REQUIRE(expire(5000) == Status::Ok);  // A small record grows for it.
      CHECK(objects.value() == 1);
      CHECK(hard_bytes.load() == statistics_of(store, pool).bytes.value());
      CHECK(statistics_of(store, pool).retained_bytes_hard.value() == hard_bytes.load());
      store.store.set_clock(store.store.now_ms() + 6000);
      CHECK(store.get(pool, "k") == std::nullopt);
      check_ended();
      again(length);
      store.store.flush(pool);
      while (store.store.maintain()) continue;
      check_ended();
    }
    store.store.set_clock(store.store.now_ms() + kTtlMs);
    store.store.maintain();
    CHECK(pool.usage->retention_claims.load() == 0);
    store.check_empty();
  }
}

TEST_CASE("an overwrite in place ends a retention too") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::S3Fifo);
  auto set = [&](uint64_t seed) {
    Value value = make_value(10, seed);
    Location location = 0;
    CommitOutcome outcome;
    WriteRequest request{as_bytes("k"), {}, store.hash("k"), value.size(), 0, false};
    Location present = store.store.find(pool, request.hash, request.key);
    return store.store.put_small(pool, request, present, value, &location, &outcome);
  };
  REQUIRE(set(1) == Status::Ok);
  uint64_t number = 0;
  REQUIRE(retain(store, pool, "k", true, &number) == Status::Ok);
  REQUIRE(set(2) == Status::Ok);
  CHECK(statistics_of(store, pool).retained_objects.value() == 0);
  CHECK(pool.usage->retained_bytes_hard.load() == 0);
  CHECK(store.get(pool, "k") == make_value(10, 2));
  CHECK(pool.policy->victim() != 0);
}

TEST_CASE("a hard retention within the quota, and not beyond") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru, 4 << 20);
  put_all(store, pool, "k", 6, 300'000);
  uint64_t number = 0;
  // A quarter of the pool's quota, unless it is said.
  CHECK(retain(store, pool, "k0", true, &number) == Status::Ok);
  CHECK(retain(store, pool, "k1", true, &number) == Status::Ok);
  CHECK(retain(store, pool, "k2", true, &number) == Status::Ok);
  CHECK(retain(store, pool, "k3", true, &number) == Status::Busy);
  CHECK(retain(store, pool, "k3", false, &number) == Status::Ok);
  uint64_t other = 0;
  CHECK(retain(store, pool, "k0", true, &other) == Status::Ok);  // Kept anyhow: it takes no more.
  CHECK(statistics_of(store, pool).retain_refusals.value() == 1);
  REQUIRE(store.put(pool, "large", make_value(1'500'000, 1)).status == Status::Ok);
  CHECK(retain(store, pool, "large", true, &other) == Status::TooLarge);
  uint64_t first = other;
  store.remove(pool, "k1");
  CHECK(retain(store, pool, "k4", true, &other) == Status::Ok);
  CHECK(other == first);
}

TEST_CASE("a pool's claims are bounded, and those that have ended make room at once") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  put_all(store, pool, "k", 1, 10);
  uint64_t number = 0;
  for (uint64_t index = 0; index < limits::kRetentionClaimCountMax; ++index) {
    if (index % 512 == 0) number = 0;
    REQUIRE(retain(store, pool, "k0", false, &number) == Status::Ok);
  }
  CHECK(retain(store, pool, "k0", false, &number) == Status::Busy);
  CHECK(pool.retentions.memory_bytes() < 2 << 20);
  CHECK(store.store.release_retention(pool, number, false) == Status::Ok);
  CHECK(store.store.release_retention(pool, number, false) == Status::NotFound);
  CHECK(retain(store, pool, "k0", false, &number) == Status::Ok);
  store.store.set_clock(store.store.now_ms() + kTtlMs);
  uint32_t turns = 1;
  while (store.store.maintain()) REQUIRE(++turns < 1000);
  CHECK(turns > 100);  // Each of them short.
  CHECK(pool.usage->retention_claims.load() == 0);
  CHECK(statistics_of(store, pool).retained_objects.value() == 0);
}

TEST_CASE("absent keys are retained by nobody, and a dropped pool takes its retentions along") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  uint64_t number = 0;
  CHECK(retain(store, pool, "absent", false, &number) == Status::NotFound);
  CHECK(number == 0);
  CHECK(pool.usage->retention_claims.load() == 0);
  number = put_retained(store, pool, "k", 100, 1000, true);
  store.store.drop_pool(0);
  while (store.store.maintain()) continue;
  store.check_empty();
  Partition& next = store.add_pool(limits::kPoolCountMax, EvictionKind::Lru);
  uint64_t later = put_retained(store, next, "k", 1, 10, false);
  CHECK(later > number);
  CHECK(store.store.release_retention(next, number, true) == Status::NotFound);
  store.store.set_clock(store.store.now_ms() + kTtlMs);
  store.store.maintain();
  CHECK(next.usage->retention_claims.load() == 0);
}

TEST_CASE("a pool that changes its policy leaves its retained objects aside") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  put_retained(store, pool, "kept", 50, 10'000, false);
  for (EvictionKind kind : {EvictionKind::S3Fifo, EvictionKind::None, EvictionKind::Lru}) {
    store.add_pool(0, kind);
    if (kind == EvictionKind::None) continue;
    put_all(store, pool, "other", 2000, 10'000);
    CHECK(count_of(store, pool, "kept", 50) == 50);
  }
}

TEST_CASE("the background keeps head-room, but not at the price of what is retained") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  uint32_t count = 0;
  for (; statistics_of(store, pool).evictions.value() == 0; ++count) {
    uint64_t number = 0;
    std::string key = key_of("k", count);
    REQUIRE(store.put(pool, key, make_value(7000, count)).status == Status::Ok);
    REQUIRE(retain(store, pool, key, false, &number) == Status::Ok);
  }
  uint64_t evictions = statistics_of(store, pool).evictions.value();
  while (store.store.maintain()) continue;
  CHECK(statistics_of(store, pool).evictions.value() == evictions);
}

}  // namespace kvstrata
