// Writes while the heap gives no memory for tables of the index, and retentions that find none.
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "tests/native/store/store_fixture.h"

namespace {

thread_local bool heap_exhausted = false;
thread_local uint64_t allocations_left = UINT64_MAX;  // By `new`.

}  // namespace

void* operator new(size_t bytes) {
  void* memory = allocations_left != 0 ? std::malloc(bytes) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  if (allocations_left != UINT64_MAX) --allocations_left;
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// The linker puts these in place of the core's calls of calloc.
extern "C" void* __real_calloc(size_t count, size_t bytes);
extern "C" void* __wrap_calloc(size_t count, size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes) {
  return heap_exhausted ? nullptr : __real_calloc(count, bytes);
}

namespace kvstrata {

TEST_CASE("without memory for the index objects are still replaced, and none is lost") {
  StoreFixture store(16 << 20);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  std::map<std::string, Value> expected;
  auto put = [&](uint32_t number, size_t length) {
    std::string key = "key" + std::to_string(number);
    Value value = make_value(length, number + length);
    Status status = store.put(pool, key, value).status;
    if (status == Status::Ok) expected[key] = value;
    return status;
  };
  for (uint32_t i = 0; i < 3000; ++i) REQUIRE(put(i, 100) == Status::Ok);
  heap_exhausted = true;
  uint32_t refused = 0;
  for (uint32_t i = 3000; i < 6000; ++i) {
    Status status = put(i, 100);
    REQUIRE((status == Status::Ok || status == Status::NoSpace));
    if (status == Status::NoSpace) ++refused;
  }
  CHECK(refused > 1000);
  CHECK(store.pools[0]->statistics.put_refusals.value() == refused);
  store.check_charges();
  CHECK(store.used_bytes() == store.pool_bytes());
  for (auto& [key, value] : expected) {
    value = make_value(200, value.size());
    REQUIRE(store.put(pool, key, value).status == Status::Ok);
    Value tail = make_value(10, 1);
    REQUIRE(store.append(pool, key, tail, value.size()).status == Status::Ok);
    value.insert(value.end(), tail.begin(), tail.end());
    REQUIRE(store.put(pool, key, value).status == Status::Ok);
    REQUIRE(store.store.expire(pool, store.hash(key), as_bytes(key), 5000) == Status::Ok);
  }
  heap_exhausted = false;
  CHECK(pool.index.size() == expected.size());
  CHECK(pool.expiring_count == expected.size());
  for (const auto& [key, value] : expected) {
    REQUIRE(store.get(pool, key) == value);
    REQUIRE(store.remove(pool, key));
  }
  store.check_empty();
}

TEST_CASE("a retention that finds no memory is refused, and leaves nothing behind") {
  StoreFixture store(16 << 20);
  Partition& pool = store.add_pool(0, EvictionKind::S3Fifo);
  for (uint32_t i = 0; i < 100; ++i) store.put(pool, std::to_string(i), make_value(10, i));
  uint32_t refused = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    std::string key = std::to_string(i);
    uint64_t number = 0;
    for (uint64_t given = 0;; ++given) {
      uint64_t claims = pool.retentions.claim_count();
      uint64_t records = pool.retentions.record_count();
      allocations_left = given;
      Status status =
          store.store.retain_object(pool, store.hash(key), as_bytes(key), 1000, true, &number);
      allocations_left = UINT64_MAX;
      if (status == Status::Ok) break;
      ++refused;
      REQUIRE(status == Status::Busy);
      REQUIRE(number == 0);
      REQUIRE(pool.retentions.claim_count() == claims);
      REQUIRE(pool.retentions.record_count() == records);
      REQUIRE(pool.usage->retention_claims.load() == claims);
      REQUIRE(pool.usage->retained_bytes_hard.load() ==
              store.pools[0]->statistics.retained_bytes_hard.value());
    }
  }
  CHECK(refused > 200);
  store.store.set_clock(store.store.now_ms() + 1000);
  while (store.store.maintain()) continue;
  CHECK(pool.usage->retention_claims.load() == 0);
  CHECK(pool.usage->retained_bytes_hard.load() == 0);
  CHECK(pool.retentions.record_count() == 0);
}

}  // namespace kvstrata
