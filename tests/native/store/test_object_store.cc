// What an object store does when writes, removals and readers of one key cross.
#include <doctest/doctest.h>

#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint64_t kMemory = 16 << 20;
constexpr uint64_t kChunk = limits::kChunkBytes;

}  // namespace

TEST_CASE("a key replaced while a write is open is replaced again by its commit") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  OpenWrite slow{.key = "key", .value = make_value(2 * kChunk, 1)};
  REQUIRE(store.open(pool, &slow) == Status::Ok);
  CHECK(store.put(pool, "key", make_value(10, 2)).result == WriteResult::Created);
  CHECK(store.get(pool, "key") == make_value(10, 2));
  CHECK(store.commit(pool, &slow).result == WriteResult::Replaced);
  CHECK(store.get(pool, "key") == slow.value);
  CHECK(store.remove(pool, "key"));
  store.check_empty();
}

TEST_CASE("a write that found the key absent loses to one that was faster") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  OpenWrite slow{.key = "key", .value = make_value(kChunk + 1, 1)};
  REQUIRE(store.open(pool, &slow, {.if_absent = true}) == Status::Ok);
  CommitOutcome first = store.put(pool, "key", make_value(10, 2));
  CommitOutcome second = store.commit(pool, &slow);
  CHECK(second.status == Status::Exists);
  CHECK(second.value_length == 10);
  CHECK(second.version == first.version);
  CHECK(store.get(pool, "key") == make_value(10, 2));
  CHECK(store.remove(pool, "key"));
  store.check_empty();
}

TEST_CASE("objects of an immutable pool are written once and only grow") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru, 0, true);
  OpenWrite slow{.key = "key", .value = make_value(100, 1)};
  REQUIRE(store.open(pool, &slow) == Status::Ok);
  CHECK(store.put(pool, "key", make_value(10, 2)).status == Status::Ok);
  CHECK(store.commit(pool, &slow).status == Status::Immutable);
  CHECK(store.put(pool, "key", make_value(10, 3)).status == Status::Immutable);
  CHECK(store.append(pool, "key", make_value(5, 4), 10).result == WriteResult::Appended);
  CHECK(store.append(pool, "key", make_value(5, 4), 10).status == Status::Mismatch);
  CHECK(store.get(pool, "key")->size() == 15);
}

TEST_CASE("appends share whole chunks, copy the ragged one and notice what came between") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  Value value = make_value(2 * kChunk + 100, 1);
  store.put(pool, "key", value, {.attributes = as_bytes("attributes")});
  OpenWrite slow{.key = "key", .value = make_value(10, 2), .at = value.size(), .appends = true};
  REQUIRE(store.open(pool, &slow) == Status::Ok);
  CommitOutcome outcome = store.append(pool, "key", make_value(kChunk, 3), value.size());
  CHECK(outcome.result == WriteResult::Appended);
  CHECK(store.commit(pool, &slow).status == Status::Mismatch);
  Value more = make_value(kChunk, 3);
  value.insert(value.end(), more.begin(), more.end());
  CHECK(store.get(pool, "key") == value);
  CHECK(store.append(pool, "key", {}, value.size()).result == WriteResult::Appended);
  CHECK(store.get(pool, "key") == value);
  Location location = store.store.find(pool, store.hash("key"), as_bytes("key"));
  CHECK(as_text(store.store.view(location).attributes()) == "attributes");
  CHECK(store.used_bytes() == store.pool_bytes());
  CHECK(store.remove(pool, "key"));
  store.check_empty();
}

TEST_CASE("an append into full memory either grows its object or says what became of it") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  for (uint32_t round = 0; round < 8; ++round) {
    Value value = make_value((6 + round) * kChunk + 5, round);
    std::string key = "grown" + std::to_string(round);
    REQUIRE(store.put(pool, key, value).status == Status::Ok);
    for (uint32_t i = 0; i < 40; ++i) {
      store.put(pool, "small" + std::to_string(i), make_value(300'000, i));
    }
    if (!store.get(pool, key)) continue;
    uint64_t evictions = store.pools[0]->statistics.evictions.value();
    CommitOutcome outcome = store.append(pool, key, make_value(8 * kChunk, 9), value.size());
    if (outcome.status == Status::Ok) {
      CHECK(store.get(pool, key)->size() == value.size() + 8 * kChunk);
    } else {
      CHECK(outcome.status == Status::Mismatch);
      CHECK(outcome.value_length == 0);
      CHECK(!store.get(pool, key));
    }
    CHECK(store.pools[0]->statistics.evictions.value() > evictions);
    CHECK(store.used_bytes() == store.pool_bytes());
  }
}

TEST_CASE("a reader's bytes outlive the object, and the record's place may be used by another") {
  StoreFixture shard(make_pool(kMemory), 2);
  Partition& pool = shard.add_pool(0, EvictionKind::Lru);
  Value value = make_value(kChunk, 1);
  REQUIRE(shard.put(pool, "pinned", value).status == Status::Ok);
  Location location = shard.store.find(pool, shard.hash("pinned"), as_bytes("pinned"));
  Extent extent = shard.store.view(location).extent(0);
  shard.store.retain(extent);
  CHECK(shard.remove(pool, "pinned"));
  // Records in the freed cell and around it, and other chunks, so that the pinned one's segment is
  // the emptiest.
  for (uint32_t i = 0; i < 9000; ++i) {
    shard.put(pool, "small" + std::to_string(i), make_value(16, i));
  }
  for (uint32_t i = 0; i < 8; ++i) shard.put(pool, "large" + std::to_string(i), value);
  shard.segments->want(UINT32_MAX / 2);
  uint32_t turns = 0;
  while (shard.store.maintain()) REQUIRE(++turns < 1000);
  shard.segments->cancel_want(UINT32_MAX / 2);
  CHECK(equal(Bytes(shard.store.at(extent.offset), kChunk), value));
  for (uint32_t i = 0; i < 9000; ++i) {
    std::string key = "small" + std::to_string(i);
    std::optional<Value> found = shard.get(pool, key);
    if (found) REQUIRE(*found == make_value(16, i));
    shard.remove(pool, key);
  }
  for (uint32_t i = 0; i < 8; ++i) shard.remove(pool, "large" + std::to_string(i));
  CHECK(shard.used_bytes() == kChunk);
  shard.store.release(extent);
  shard.check_empty();
}

TEST_CASE("objects expire by the clock, when asked for and by themselves") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::None);
  uint64_t begin = store.store.now_ms();
  store.put(pool, "brief", make_value(20, 1), {.ttl_ms = 100});
  store.put(pool, "long", make_value(20, 1), {.ttl_ms = kTtlNever});
  CHECK(store.store.has_expiring());
  store.store.set_clock(begin + 99);
  CHECK(store.get(pool, "brief"));
  store.store.set_clock(begin + 100);
  CHECK(!store.get(pool, "brief"));
  CHECK(store.pools[0]->statistics.misses_expired.value() == 1);
  CHECK(store.pools[0]->statistics.expirations.value() == 1);
  CHECK(!store.store.has_expiring());
  for (uint32_t i = 0; i < 5000; ++i) {
    store.put(pool, "key" + std::to_string(i), make_value(i % 3 * 9000, i), {.ttl_ms = 1000});
  }
  store.store.set_clock(begin + 1100);
  uint32_t turns = 1;
  while (store.store.maintain()) REQUIRE(++turns < 200);
  // What is left is little, and goes with the ticks.
  CHECK(pool.index.size() < 500);
  for (uint32_t tick = 0; tick < 200 && store.store.has_expiring(); ++tick) store.store.maintain();
  CHECK(pool.index.size() == 1);
  CHECK(store.get(pool, "long"));
}

TEST_CASE("a life can be given, changed and taken away, whatever the record's size") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  for (uint32_t length = 8000; length <= 8300; ++length) {
    std::string key = "key" + std::to_string(length);
    Value value = make_value(length, length);
    REQUIRE(store.put(pool, key, value).status == Status::Ok);
    REQUIRE(store.store.expire(pool, store.hash(key), as_bytes(key), 50) == Status::Ok);
    REQUIRE(store.store.expire(pool, store.hash(key), as_bytes(key), 500) == Status::Ok);
    REQUIRE(store.get(pool, key) == value);
    if (length % 2 == 0) {
      REQUIRE(store.store.expire(pool, store.hash(key), as_bytes(key), kTtlNever) == Status::Ok);
    }
  }
  CHECK(pool.expiring_count == 150);
  CHECK(store.used_bytes() == store.pool_bytes());
  store.store.set_clock(store.store.now_ms() + 500);
  for (uint32_t length = 8000; length <= 8300; ++length) {
    CHECK(store.get(pool, "key" + std::to_string(length)).has_value() == (length % 2 == 0));
  }
  CHECK(!store.store.has_expiring());
}

TEST_CASE("a dropped pool's objects make way, whatever is open or read of them") {
  StoreFixture store(kMemory);
  Partition& kept = store.add_pool(0, EvictionKind::None);
  Partition* dropped = &store.add_pool(1, EvictionKind::None);
  store.put(kept, "key", make_value(100, 1));
  uint32_t count = 0;
  while (store.put(*dropped, std::to_string(count), make_value(100'000, count)).status ==
         Status::Ok) {
    ++count;
  }
  CHECK(count > 100);
  Location location = store.store.find(*dropped, store.hash("3"), as_bytes("3"));
  Extent extent = store.store.view(location).extent(0);
  store.store.retain(extent);
  CHECK(store.remove(*dropped, "5"));
  OpenWrite open{.key = "open", .value = make_value(50'000, 1)};
  REQUIRE(store.open(*dropped, &open) == Status::Ok);
  store.store.drop_pool(1);
  CHECK(store.store.partition(1) == nullptr);
  // The next writer need not wait for maintenance.
  CHECK(store.put(kept, "large", make_value(8 << 20, 2)).status == Status::Ok);
  for (uint32_t turn = 0; store.store.maintain(); ++turn) REQUIRE(turn < 1000);
  CHECK(store.get(kept, "key") == make_value(100, 1));
  CHECK(equal(Bytes(store.store.at(extent.offset), 100'000), make_value(100'000, 3)));
  store.store.release(extent);
  store.store.abort(open.location);
  CHECK(store.remove(kept, "key"));
  CHECK(store.remove(kept, "large"));
  store.check_empty();
}

TEST_CASE("a store without pools has nothing to do") {
  StoreFixture store(kMemory);
  CHECK(!store.store.maintain());
  CHECK(!store.store.make_progress());
  store.add_pool(1, EvictionKind::Lru);
  store.store.drop_pool(1);
  store.store.drop_pool(7);
  CHECK(!store.store.maintain());
  CHECK(!store.store.make_progress());
}

}  // namespace kvstrata
