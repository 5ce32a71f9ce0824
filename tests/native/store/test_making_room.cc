// Memory that is full, scattered, or in other hands.
#include <doctest/doctest.h>

#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint64_t kMemory = 16 << 20;
constexpr uint64_t kChunk = limits::kChunkBytes;

// Puts objects of `length` until `count` of them were evicted. Returns how many were put.
uint32_t fill_until_evicted(StoreFixture& store, Partition& pool, size_t length, uint64_t count) {
  const Counter& evictions = store.pools.at(pool.id)->statistics.evictions;
  uint64_t before = evictions.value();
  uint32_t put = 0;
  for (; evictions.value() < before + count; ++put) {
    std::string key = std::to_string(length) + "-" + std::to_string(put);
    REQUIRE(store.put(pool, key, make_value(length, put)).status == Status::Ok);
    REQUIRE(put < 1'000'000);
  }
  return put;
}

// What a write is told once the shard has done for it all that it can.
Status settled(StoreFixture& store, Partition& pool, OpenWrite* write) {
  Status status = Status::Busy;
  uint64_t reclaimed = UINT64_MAX;
  while (status == Status::Busy && store.store.reclaim_count() != reclaimed) {
    reclaimed = store.store.reclaim_count();
    status = store.reserve(pool, write);
  }
  return status;
}

// References on an object's chunks, as a transfer to its reader takes them.
std::vector<Extent> begin_read(StoreFixture& store, Partition& pool, const std::string& key) {
  Location location = store.store.read(pool, store.hash(key), as_bytes(key));
  REQUIRE(location != 0);
  std::vector<Extent> extents;
  for (uint32_t index = 0; index < store.store.view(location).chunk_count(); ++index) {
    extents.push_back(store.store.view(location).extent(index));
    store.store.retain(extents.back());
  }
  return extents;
}

void end_read(StoreFixture& store, const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) store.store.release(extent);
}

}  // namespace

TEST_CASE("memory full of small records takes chunks, and the other way round") {
  for (EvictionKind kind : {EvictionKind::Lru, EvictionKind::S3Fifo}) {
    StoreFixture store(kMemory);
    Partition& pool = store.add_pool(0, kind);
    uint32_t records = fill_until_evicted(store, pool, 16, 1000);
    CHECK(records > kMemory / 80);
    for (uint32_t i = 0; i < 40; ++i) {
      uint64_t steps = store.store.reclaim_count();
      REQUIRE(store.put(pool, "chunk" + std::to_string(i), make_value(kChunk, i)).status ==
              Status::Ok);
      // A chunk's worth of records evicted twice over, then a segment drained, at most a few of
      // them.
      CHECK(store.store.reclaim_count() - steps < 2 * 2 * kChunk / 64);
      CHECK(store.busy_count < 2000);
    }
    CHECK(store.get(pool, "chunk39") == make_value(kChunk, 39));
    fill_until_evicted(store, pool, kChunk, 100);
    for (uint32_t i = 0; i < 20'000; ++i) {
      REQUIRE(store.put(pool, "again" + std::to_string(i), make_value(16, i)).status == Status::Ok);
      REQUIRE(store.busy_count < 100);
    }
    CHECK(store.get(pool, "again19999") == make_value(16, 19'999));
    CHECK(store.used_bytes() == store.pool_bytes());
  }
}

TEST_CASE("the largest value that the store speaks of has room, whatever was there") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  uint64_t largest = store.store.value_bytes_max();
  CHECK(largest > kMemory * 8 / 10);
  CHECK(store.put(pool, "more", Value(largest + 1)).status == Status::TooLarge);
  for (uint32_t round = 0; round < 3; ++round) {
    fill_until_evicted(store, pool, 16, 10);
    fill_until_evicted(store, pool, 70'000, 10);
    Value value = make_value(largest, round);
    REQUIRE(store.put(pool, "largest", value).status == Status::Ok);
    REQUIRE(store.get(pool, "largest") == value);
    while (store.store.maintain()) continue;
    REQUIRE(store.get(pool, "largest") == value);
  }
}

TEST_CASE("a pool that may not evict says so at once, and goes on when there is room again") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::None);
  for (size_t length : {size_t{16}, size_t{100'000}}) {
    uint32_t count = 0;
    while (store.put(pool, std::to_string(count), make_value(length, count)).status == Status::Ok) {
      ++count;
    }
    CHECK(count > kMemory / (length + 64) * 8 / 10);
    uint64_t steps = store.store.reclaim_count();
    for (uint32_t i = 0; i < 100; ++i) {
      REQUIRE(store.put(pool, "more", make_value(length, 1)).status == Status::NoSpace);
    }
    CHECK(store.store.reclaim_count() - steps < 100);
    for (uint32_t i = 0; i < count; ++i) REQUIRE(store.get(pool, std::to_string(i)));
    CHECK(store.remove(pool, "7"));
    CHECK(store.put(pool, "more", make_value(length, 1)).status == Status::Ok);
    for (uint32_t i = 0; i < count; ++i) store.remove(pool, std::to_string(i));
    store.remove(pool, "more");
    store.check_empty();
  }
}

TEST_CASE("scattered room in a pool that may not evict is gathered without losing an object") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::None);
  uint32_t count = 0;
  while (store.put(pool, std::to_string(count), make_value(16, count)).status == Status::Ok)
    ++count;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % 4 != 0) store.remove(pool, std::to_string(i));
  }
  for (uint32_t i = 0; i < 16; ++i) {
    REQUIRE(store.put(pool, "chunk" + std::to_string(i), make_value(kChunk, i)).status ==
            Status::Ok);
  }
  for (uint32_t i = 0; i < count; i += 4) {
    REQUIRE(store.get(pool, std::to_string(i)) == make_value(16, i));
  }
  CHECK(store.pools[0]->statistics.evictions.value() == 0);
}

TEST_CASE("memory in the hands of writers is waited for, and by no one who holds some") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  std::vector<OpenWrite> open;
  for (uint32_t i = 0;; ++i) {
    OpenWrite write{.key = std::to_string(i), .value = Value(kChunk)};
    Status status = settled(store, pool, &write);
    if (status != Status::Ok) {
      CHECK(status == Status::Busy);
      CHECK(write.location == 0);
      break;
    }
    open.push_back(write);
  }
  CHECK(open.size() >= kMemory / kChunk * 8 / 10);
  uint32_t turns = 0;
  while (store.store.maintain()) REQUIRE(++turns < 100);
  OpenWrite large{.key = "large", .value = make_value(store.store.value_bytes_max(), 1)};
  CHECK(settled(store, pool, &large) == Status::Busy);
  for (const OpenWrite& write : open) store.store.abort(write.location);
  store.check_empty();
  CHECK(settled(store, pool, &large) == Status::Ok);
  store.commit(pool, &large);
  CHECK(store.get(pool, "large") == large.value);
}

TEST_CASE("where readers leave no room for a value it waits, and nothing is evicted for it") {
  for (EvictionKind kind : {EvictionKind::Lru, EvictionKind::S3Fifo}) {
    StoreFixture store(kMemory);
    Partition& pool = store.add_pool(0, kind);
    REQUIRE(store.put(pool, "read", make_value(8 << 20, 1)).status == Status::Ok);
    REQUIRE(store.put(pool, "idle", make_value(2 << 20, 2)).status == Status::Ok);
    std::vector<Extent> extents = begin_read(store, pool, "read");
    OpenWrite large{.key = "large", .value = make_value(10 << 20, 3)};
    CHECK(settled(store, pool, &large) == Status::Busy);
    CHECK(store.pools[0]->statistics.evictions.value() == 0);
    CHECK(store.get(pool, "idle") == make_value(2 << 20, 2));
    // What is read has no name any more: it is in nobody's books, and still in the way.
    CHECK(store.remove(pool, "read"));
    CHECK(settled(store, pool, &large) == Status::Busy);
    CHECK(store.pools[0]->statistics.evictions.value() == 0);
    end_read(store, extents);
    CHECK(settled(store, pool, &large) == Status::Ok);
    store.commit(pool, &large);
    CHECK(store.get(pool, "large") == large.value);
  }
}

TEST_CASE("readers of a pool that never evicts are not waited for: it keeps what they read") {
  StoreFixture store(kMemory);
  Partition& pool = store.add_pool(0, EvictionKind::None);
  REQUIRE(store.put(pool, "read", make_value(8 << 20, 1)).status == Status::Ok);
  std::vector<Extent> extents = begin_read(store, pool, "read");
  OpenWrite large{.key = "large", .value = Value(10 << 20)};
  CHECK(settled(store, pool, &large) == Status::NoSpace);
  CHECK(store.remove(pool, "read"));
  CHECK(settled(store, pool, &large) == Status::Busy);
  end_read(store, extents);
  CHECK(settled(store, pool, &large) == Status::Ok);
  store.store.abort(large.location);
  store.check_empty();
}

TEST_CASE("a shard that needs memory gets segments that another can spare") {
  std::shared_ptr<SegmentPool> memory = make_pool(kMemory);
  StoreFixture rich(memory, 2);
  StoreFixture poor(memory, 2);
  Partition& rich_pool = rich.add_pool(0, EvictionKind::Lru);
  Partition& poor_pool = poor.add_pool(0, EvictionKind::Lru);
  fill_until_evicted(rich, rich_pool, 100'000, 10);
  CHECK(memory->free_count() == 0);
  poor.while_busy = [&] { rich.store.maintain(); };
  Value value = make_value(6 << 20, 1);
  REQUIRE(poor.put(poor_pool, "key", value).status == Status::Ok);
  CHECK(poor.get(poor_pool, "key") == value);
  CHECK(memory->wanted_count() == 0);
  CHECK(rich_pool.index.size() > 0);
  CHECK(rich.used_bytes() == rich.pool_bytes());
}

TEST_CASE("where no shard can spare anything, a write is refused within a second") {
  std::shared_ptr<SegmentPool> memory = make_pool(kMemory);
  StoreFixture rich(memory, 2);
  StoreFixture poor(memory, 2);
  Partition& rich_pool = rich.add_pool(0, EvictionKind::None);
  Partition& poor_pool = poor.add_pool(0, EvictionKind::None);
  auto pass_time = [](StoreFixture& waiting, StoreFixture& other) {
    waiting.store.set_clock(waiting.store.now_ms() + 1);
    while (other.store.maintain()) continue;
  };
  rich.while_busy = [&] { pass_time(rich, poor); };
  poor.while_busy = [&] { pass_time(poor, rich); };
  uint32_t count = 0;
  while (rich.put(rich_pool, std::to_string(count), make_value(100'000, count)).status ==
         Status::Ok) {
    ++count;
  }
  CHECK(poor.put(poor_pool, "key", make_value(kChunk, 1)).status == Status::NoSpace);
  CHECK(poor.busy_count < 1000);
  CHECK(memory->wanted_count() == 0);
  // Who asks again soon is not kept waiting.
  CHECK(poor.put(poor_pool, "key", make_value(kChunk, 1)).status == Status::NoSpace);
  CHECK(poor.busy_count < 300);
  for (uint32_t i = 0; i < count; ++i) {
    REQUIRE(rich.get(rich_pool, std::to_string(i)) == make_value(100'000, i));
  }
}

}  // namespace kvstrata
