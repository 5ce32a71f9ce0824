// Pools' quotas: by one shard and by several, with objects there and writes under way.
#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint64_t kMemory = 16 << 20;
constexpr uint64_t kChunk = limits::kChunkBytes;

}  // namespace

TEST_CASE("a pool keeps to its quota, and only its own objects pay for it") {
  StoreFixture store(kMemory);
  Partition& other = store.add_pool(0, EvictionKind::Lru);
  store.put(other, "key", make_value(1000, 1));
  constexpr uint64_t kQuota = 1 << 20;
  Partition& pool = store.add_pool(1, EvictionKind::Lru, kQuota);
  for (uint32_t i = 0; i < 500; ++i) {
    REQUIRE(store.put(pool, std::to_string(i), make_value(i * 50, i)).status == Status::Ok);
    REQUIRE(pool.bytes() <= kQuota);
  }
  CHECK(pool.bytes() > kQuota / 2);
  CHECK(store.put(pool, "all", Value(kQuota + 1)).status == Status::TooLarge);
  CHECK(store.get(other, "key"));
  CHECK(store.pools[0]->statistics.evictions.value() == 0);
  Partition& fixed = store.add_pool(2, EvictionKind::None, kQuota);
  Status status = Status::Ok;
  uint32_t count = 0;
  for (; status == Status::Ok; ++count) {
    status = store.put(fixed, std::to_string(count), make_value(10'000, count)).status;
  }
  CHECK(status == Status::NoSpace);
  CHECK(count > 60);
}

TEST_CASE("a quota is shared by the shards: who has nothing to evict is given room by the others") {
  std::shared_ptr<SegmentPool> memory = make_pool(kMemory);
  StoreFixture full(memory, 2);
  StoreFixture empty(memory, 2);
  auto usage = std::make_shared<PoolUsage>();
  constexpr uint64_t kQuota = 2 << 20;
  Partition& full_pool = full.add_pool(0, EvictionKind::Lru, kQuota, false, usage);
  Partition& empty_pool = empty.add_pool(0, EvictionKind::Lru, kQuota, false, usage);
  for (uint32_t i = 0; i < 300; ++i) full.put(full_pool, std::to_string(i), make_value(10'000, i));
  CHECK(usage->bytes.load() > kQuota - 30'000);
  empty.while_busy = [&] { full.store.maintain(); };
  for (uint32_t i = 0; i < 3; ++i) {
    Value value = make_value(kChunk, i);
    REQUIRE(empty.put(empty_pool, std::to_string(i), value).status == Status::Ok);
    CHECK(usage->bytes.load() <= kQuota);
  }
  CHECK(empty.get(empty_pool, "2") == make_value(kChunk, 2));
  CHECK(full.pools[0]->statistics.evictions.value() > 0);
  // Once there is room, nobody goes on evicting.
  uint64_t evictions = full.pools[0]->statistics.evictions.value();
  while (full.store.maintain()) continue;
  CHECK(full.pools[0]->statistics.evictions.value() - evictions < 2);
}

TEST_CASE("writes under way count, and give back what they do not use") {
  constexpr uint64_t kQuota = 4 << 20;
  for (EvictionKind kind : {EvictionKind::None, EvictionKind::Lru}) {
    StoreFixture store(kMemory);
    Partition& pool = store.add_pool(0, kind, kQuota);
    const std::atomic<uint64_t>& charged_bytes = pool.usage->bytes;
    std::deque<OpenWrite> writes;
    for (uint32_t i = 0; i < 7; ++i) {
      writes.push_back({.key = std::to_string(i), .value = make_value(kChunk, i)});
      REQUIRE(store.open(pool, &writes.back()) == Status::Ok);
      CHECK(charged_bytes.load() == store.store.reserved_bytes());
    }
    WriteRequest request{as_bytes("more"), {}, store.hash("more"), kChunk, 0, false};
    Location location = 0;
    CommitOutcome outcome;
    // The eighth chunk would fit, but not with its record.
    Status status = store.store.reserve(pool, request, &location, &outcome);
    CHECK(status == (kind == EvictionKind::None ? Status::NoSpace : Status::Busy));
    CHECK(location == 0);
    uint64_t each_bytes = charged_bytes.load() / 7;
    store.store.abort(writes.back().location);
    writes.pop_back();
    CHECK(charged_bytes.load() == 6 * each_bytes);
    CHECK(store.commit(pool, &writes.front()).status == Status::Ok);
    CHECK(charged_bytes.load() == 6 * each_bytes);
    CHECK(pool.bytes() == each_bytes);
    REQUIRE(store.store.reserve(pool, request, &location, &outcome) == Status::Ok);
    store.store.abort(location);
    for (size_t i = 1; i < writes.size(); ++i) store.store.abort(writes[i].location);
    CHECK(charged_bytes.load() == each_bytes);
    CHECK(store.remove(pool, "0"));
    store.check_empty();
  }
}

TEST_CASE("an object may take a quota whole, and not a byte more") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  REQUIRE(store.put(pool, "key", make_value(3 * kChunk, 1)).status == Status::Ok);
  uint64_t taken_bytes = pool.bytes();
  store.add_pool(0, EvictionKind::Lru, taken_bytes);
  CHECK(store.put(pool, "key", make_value(3 * kChunk, 2)).status == Status::Ok);
  CHECK(store.get(pool, "key") == make_value(3 * kChunk, 2));
  store.add_pool(0, EvictionKind::Lru, taken_bytes - 1);
  CHECK(store.put(pool, "key", make_value(3 * kChunk, 3)).status == Status::TooLarge);
  CHECK(store.remove(pool, "key"));
  store.check_empty();
}

TEST_CASE("an append is charged for what it adds, whatever becomes of the object meanwhile") {
  constexpr uint64_t kQuota = 5 << 20;
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::None, kQuota);
  uint64_t length = 6 * kChunk + 1000;
  for (uint32_t fate = 0; fate < 4; ++fate) {
    REQUIRE(store.put(pool, "log", make_value(length, 1)).status == Status::Ok);
    uint64_t before = pool.usage->bytes.load();
    OpenWrite write{.key = "log", .value = make_value(kChunk, 2), .at = length, .appends = true};
    REQUIRE(store.open(pool, &write) == Status::Ok);
    // The ragged chunk's copy grows into a whole one, a page and a record are new.
    uint64_t added = pool.usage->bytes.load() - before;
    CHECK(added > kChunk + limits::kPageBytes);
    CHECK(added < kChunk + 2 * limits::kPageBytes);
    CHECK(added == store.store.reserved_bytes());
    if (fate == 1) CHECK(store.remove(pool, "log"));
    if (fate == 2) CHECK(store.put(pool, "log", Value(10)).status == Status::Ok);
    if (fate == 3) {
      store.store.abort(write.location);
    } else {
      Status expected = fate == 0 ? Status::Ok : Status::Mismatch;
      CHECK(store.commit(pool, &write).status == expected);
    }
    CHECK(pool.usage->bytes.load() == pool.bytes());
    store.remove(pool, "log");
    store.check_empty();
  }
}

TEST_CASE("a life given to an object stays within the quota") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::None);
  for (uint32_t i = 0; i < 100; ++i) store.put(pool, std::to_string(i), make_value(20, i));
  uint64_t quota = pool.bytes();
  store.add_pool(0, EvictionKind::None, quota);
  CHECK(store.store.expire(pool, store.hash("7"), as_bytes("7"), 5000) == Status::NoSpace);
  CHECK(store.get(pool, "7") == make_value(20, 7));
  CHECK(store.remove(pool, "8"));
  CHECK(store.store.expire(pool, store.hash("7"), as_bytes("7"), 5000) == Status::Ok);
  CHECK(store.get(pool, "7") == make_value(20, 7));
  CHECK(pool.usage->bytes.load() <= quota);
  CHECK(pool.usage->bytes.load() == pool.bytes());
}

TEST_CASE("a quota that was lowered is reached by evicting, without a write") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru, 8 << 20);
  for (uint32_t i = 0; i < 1000; ++i) store.put(pool, std::to_string(i), make_value(6000, i));
  CHECK(pool.bytes() > 5 << 20);
  store.add_pool(0, EvictionKind::Lru, 1 << 20);
  uint32_t turns = 0;
  while (store.store.maintain()) REQUIRE(++turns < 1000);
  CHECK(pool.bytes() <= 1 << 20);
  CHECK(pool.bytes() > (1 << 20) - 10'000);
  CHECK(store.get(pool, "999"));
}

TEST_CASE("what waited for room below the quota and got it leaves no wish behind") {
  StoreFixture store(kMemory);
  constexpr uint64_t kQuota = 2 << 20;
  Partition& pool = store.add_pool(0, EvictionKind::Lru, kQuota);
  OpenWrite slow{.key = "slow", .value = make_value(2 * kChunk, 1)};
  REQUIRE(store.open(pool, &slow) == Status::Ok);
  store.while_busy = [&] {
    if (slow.location != 0) store.commit(pool, &slow);
  };
  REQUIRE(store.put(pool, "key", make_value(3 * kChunk, 2)).status == Status::Ok);
  CHECK(store.busy_count > 0);
  while (store.store.maintain()) continue;
  CHECK(store.get(pool, "key") == make_value(3 * kChunk, 2));
}

TEST_CASE("two threads that charge at once never pass a quota together, and none of it is lost") {
  constexpr uint64_t kQuota = 7;  // One of them at a time.
  PoolUsage usage;
  std::atomic<uint64_t> charged_max = 0;
  std::atomic<uint32_t> ready = 0;
  auto charge = [&] {
    for (++ready; ready != 2;) continue;
    for (uint32_t i = 0; i < 300'000; ++i) {
      if (!usage.charge(4, kQuota)) continue;
      uint64_t charged = usage.bytes.load();
      if (charged > charged_max) charged_max = charged;
      usage.give_back(4);
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 2; ++i) threads.emplace_back(charge);
  for (std::thread& thread : threads) thread.join();
  CHECK(charged_max <= kQuota);
  CHECK(usage.bytes.load() == 0);
  CHECK(usage.charge(kQuota, kQuota));
}

// Each shard writes on a thread of its own. What they take together is looked at all the time.
TEST_CASE("large writes of several shards at once never pass a quota together") {
  constexpr uint64_t kQuota = 8 << 20;
  for (uint32_t shard_count : {1, 4}) {
    CAPTURE(shard_count);
    std::shared_ptr<SegmentPool> memory = make_pool(64 << 20);
    auto usage = std::make_shared<PoolUsage>();
    std::vector<std::unique_ptr<StoreFixture>> shards;
    for (uint32_t i = 0; i < shard_count; ++i) {
      shards.push_back(std::make_unique<StoreFixture>(memory, shard_count));
      shards.back()->add_pool(0, EvictionKind::Lru, kQuota, false, usage);
    }
    std::atomic<uint32_t> writing = shard_count;
    std::atomic<uint64_t> committed = 0;
    auto write = [&](StoreFixture& shard, uint64_t seed) {
      std::mt19937_64 random(seed);
      Partition& pool = *shard.store.partition(0);
      std::deque<OpenWrite> writes;
      for (uint32_t step = 0; step < 150; ++step) {
        shard.store.maintain();
        std::string key = std::to_string(random() % 20);
        OpenWrite next{.key = key, .value = Value(kChunk + random() % kChunk)};
        WriteRequest request{as_bytes(next.key), {}, shard.hash(key), next.value.size(), 0, false};
        Status status = shard.store.reserve(pool, request, &next.location, &shard.refused);
        if (status == Status::Ok) {
          writes.push_back(std::move(next));
        } else if (next.location != 0) {
          shard.store.abort(next.location);
        }
        if (writes.empty() || (status == Status::Ok && random() % 2 == 0)) continue;
        if (random() % 3 == 0) {
          shard.store.abort(writes.front().location);
        } else if (shard.commit(pool, &writes.front()).status == Status::Ok) {
          ++committed;
        }
        writes.pop_front();
      }
      for (OpenWrite& each : writes) shard.store.abort(each.location);
      --writing;
    };
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < shard_count; ++i) {
      threads.emplace_back([&, i] { write(*shards[i], i + 1); });
    }
    uint64_t charged_max = 0;
    while (writing != 0) {
      charged_max = std::max(charged_max, usage->bytes.load());
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(charged_max <= kQuota);
    CHECK(charged_max > kQuota / 2);
    CHECK(committed > 30);
    uint64_t pool_bytes = 0;
    for (const auto& shard : shards) {
      CHECK(shard->used_bytes() == shard->pool_bytes());
      pool_bytes += shard->pool_bytes();
    }
    CHECK(usage->bytes.load() == pool_bytes);
  }
}

}  // namespace kvstrata
