// A pool that is flushed: its objects are gone at once, their memory comes back bit by bit.
#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint64_t kMemoryBytes = 32 << 20;
constexpr uint32_t kObjectCount = 5'000;

std::string key_of(uint32_t number) { return "key" + std::to_string(number); }

void fill_pool(StoreFixture& fixture, Partition& partition) {
  for (uint32_t number = 0; number < kObjectCount; ++number) {
    REQUIRE(fixture.put(partition, key_of(number), make_value(100, number)).status == Status::Ok);
  }
}

void maintain_until_done(StoreFixture& fixture) {
  for (uint32_t turn = 0; turn < kObjectCount && fixture.store.maintain(); ++turn) {
  }
}

}  // namespace

TEST_CASE("flushed objects are gone at once, and their memory later") {
  StoreFixture fixture(kMemoryBytes);
  Partition& partition = fixture.add_pool(1, EvictionKind::Lru);
  fill_pool(fixture, partition);
  uint64_t used_bytes = fixture.used_bytes();
  REQUIRE(fixture.store.object_count(partition) == kObjectCount);
  fixture.store.flush(partition);
  CHECK(fixture.store.object_count(partition) == 0);
  CHECK(!fixture.get(partition, key_of(0)).has_value());
  CHECK(!fixture.remove(partition, key_of(1)));
  CHECK(fixture.used_bytes() > used_bytes / 2);
  maintain_until_done(fixture);
  fixture.check_empty();
}

TEST_CASE("what is written after a flush stays, also under a key that is still to be removed") {
  StoreFixture fixture(kMemoryBytes);
  Partition& partition = fixture.add_pool(1, EvictionKind::Lru);
  fill_pool(fixture, partition);
  fixture.store.flush(partition);
  Value value = make_value(200, 1);
  CommitOutcome outcome = fixture.put(partition, key_of(7), value);
  CHECK(outcome.status == Status::Ok);
  CHECK(outcome.result == WriteResult::Created);
  CHECK(fixture.store.object_count(partition) == 1);
  maintain_until_done(fixture);
  CHECK(fixture.get(partition, key_of(7)) == value);
  CHECK(fixture.store.object_count(partition) == 1);
  CHECK(fixture.statistics.cell_bytes.value() < 4'096);
}

TEST_CASE("an open write survives a flush, an append to what was flushed does not") {
  StoreFixture fixture(kMemoryBytes);
  Partition& partition = fixture.add_pool(1, EvictionKind::Lru);
  Value large = make_value(limits::kChunkBytes + 5, 1);
  REQUIRE(fixture.put(partition, "grows", large).status == Status::Ok);
  OpenWrite write{.key = "new", .value = large};
  OpenWrite appending{
      .key = "grows", .value = make_value(10, 2), .at = large.size(), .appends = true};
  REQUIRE(fixture.open(partition, &write) == Status::Ok);
  REQUIRE(fixture.open(partition, &appending) == Status::Ok);
  fixture.store.flush(partition);
  CHECK(fixture.commit(partition, &write).status == Status::Ok);
  CHECK(fixture.commit(partition, &appending).status == Status::Mismatch);
  maintain_until_done(fixture);
  CHECK(fixture.get(partition, "new") == large);
  CHECK(!fixture.get(partition, "grows").has_value());
  CHECK(fixture.remove(partition, "new"));
  fixture.check_empty();
}

TEST_CASE("a flush concerns one pool, and may come again before the last is done") {
  StoreFixture fixture(kMemoryBytes);
  Partition& flushed = fixture.add_pool(1, EvictionKind::Lru);
  Partition& other = fixture.add_pool(2, EvictionKind::None);
  fill_pool(fixture, flushed);
  REQUIRE(fixture.put(other, "stays", make_value(100, 1)).status == Status::Ok);
  for (uint32_t round = 0; round < 3; ++round) {
    fixture.store.flush(flushed);
    REQUIRE(fixture.put(flushed, "again", make_value(100, round)).status == Status::Ok);
    CHECK(fixture.store.object_count(flushed) == 1);
  }
  fixture.store.flush(flushed);
  maintain_until_done(fixture);
  CHECK(fixture.store.object_count(flushed) == 0);
  CHECK(fixture.store.object_count(other) == 1);
  CHECK(fixture.get(other, "stays").has_value());
}

TEST_CASE("whether a key came and went since some version") {
  StoreFixture fixture(kMemoryBytes);
  Partition& partition = fixture.add_pool(1, EvictionKind::Lru);
  REQUIRE(fixture.put(partition, "before", make_value(10, 1)).status == Status::Ok);
  uint64_t version = fixture.store.next_version();
  CHECK(fixture.remove(partition, "before"));
  CHECK(!fixture.store.has_removed(fixture.hash("before"), version));
  REQUIRE(fixture.put(partition, "between", make_value(10, 1)).status == Status::Ok);
  CHECK(!fixture.store.has_removed(fixture.hash("between"), version));
  CHECK(fixture.remove(partition, "between"));
  CHECK(fixture.store.has_removed(fixture.hash("between"), version));
  CHECK(!fixture.store.has_removed(fixture.hash("between"), fixture.store.next_version()));
}

}  // namespace kvstrata
