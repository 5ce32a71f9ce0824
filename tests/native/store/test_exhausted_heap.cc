// Retentions while the heap gives no memory.
#include <doctest/doctest.h>

#include <cstdint>
#include <new>

#include "tests/native/store/store_fixture.h"

namespace {

thread_local uint64_t allocations_left = UINT64_MAX;  // By `new`.

}  // namespace

// The linker puts this in place of calls of operator new(size_t).
extern "C" void* __real__Znwm(size_t bytes);
extern "C" void* __wrap__Znwm(size_t bytes);
void* __wrap__Znwm(size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left != UINT64_MAX) --allocations_left;
  return __real__Znwm(bytes);
}

namespace kvstrata {

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
