// Writes while the kernel gives no memory for tables of the index.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cerrno>

#include "tests/native/store/store_fixture.h"

namespace {

thread_local bool memory_exhausted = false;

}  // namespace

// The linker puts these in place of the core's calls of mmap.
extern "C" void* __real_mmap(void* start, size_t length, int protection, int flags, int descriptor,
                             off_t offset);
extern "C" void* __wrap_mmap(void* start, size_t length, int protection, int flags, int descriptor,
                             off_t offset);
void* __wrap_mmap(void* start, size_t length, int protection, int flags, int descriptor,
                  off_t offset) {
  if (!memory_exhausted) return __real_mmap(start, length, protection, flags, descriptor, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

namespace kvstrata {

TEST_CASE("without memory for the index objects are still replaced, and none is lost") {
  StoreFixture store(64 << 20);
  Partition& pool = store.add_pool(0, EvictionKind::Lru);
  // The index has a region of 2 MiB when the memory ends, which is full beyond 200,000 keys.
  constexpr uint32_t kKeyCount = 250'000;
  constexpr uint32_t kWatched = 100;  // One key in so many is followed further.
  std::map<std::string, Value> expected;
  REQUIRE(store.put(pool, "first", {}).status == Status::Ok);
  memory_exhausted = true;
  uint32_t stored = 1;
  uint32_t refused = 0;
  for (uint32_t i = 0; i < kKeyCount; ++i) {
    std::string key = "key" + std::to_string(i);
    Value value = make_value(16, i);
    Status status = store.put(pool, key, value).status;
    REQUIRE((status == Status::Ok || status == Status::NoSpace));
    ++(status == Status::Ok ? stored : refused);
    if (status == Status::Ok && i % kWatched == 0) expected[key] = value;
  }
  CHECK(refused > 1000);
  CHECK(stored > 100'000);
  CHECK(store.pools[0]->statistics.put_refusals.value() == refused);
  store.check_charges();
  CHECK(store.used_bytes() == store.pool_bytes());
  for (auto& [key, value] : expected) {
    value = make_value(20, value.size());
    REQUIRE(store.put(pool, key, value).status == Status::Ok);
    Value tail = make_value(10, 1);
    REQUIRE(store.append(pool, key, tail, value.size()).status == Status::Ok);
    value.insert(value.end(), tail.begin(), tail.end());
    REQUIRE(store.put(pool, key, value).status == Status::Ok);
    REQUIRE(store.store.expire(pool, store.hash(key), as_bytes(key), 5000) == Status::Ok);
  }
  memory_exhausted = false;
  CHECK(pool.index.size() == stored);
  CHECK(pool.expiring_count == expected.size());
  for (const auto& [key, value] : expected) REQUIRE(store.get(pool, key) == value);
  for (uint32_t i = 0; i < kKeyCount; ++i) store.remove(pool, "key" + std::to_string(i));
  REQUIRE(store.remove(pool, "first"));
  store.check_empty();
}

}  // namespace kvstrata
