// The index against a shadow model, with hashes chosen to be kind and to be cruel.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "store/native/index.h"
#include "store/native/index_memory.h"

namespace kvstrata {
namespace {

// Records that are nothing but a key of eight bytes and a hash, found by location / 8.
class FakeRecords : public RecordResolver {
 public:
  std::span<const std::byte> key_at(Location location) const noexcept override {
    return std::as_bytes(std::span(&record(location).key, 1));
  }
  uint64_t hash_at(Location location) const noexcept override { return record(location).hash; }
  void prefetch(Location) const noexcept override {}

  Location add(uint64_t key, uint64_t hash) {
    if (free_.empty()) {
      records_.push_back({key, hash});
      return (records_.size() - 1) * 8;
    }
    const Location location = free_.back();
    free_.pop_back();
    records_[location / 8] = {key, hash};
    return location;
  }
  void remove(Location location) {
    // An index that still reads this record would now get a wrong hash.
    records_[location / 8] = {~uint64_t{0}, 0x5555555555555555};
    free_.push_back(location);
  }

 private:
  struct Record {
    uint64_t key;
    uint64_t hash;
  };
  const Record& record(Location location) const { return records_.at(location / 8); }

  std::vector<Record> records_{1};  // Location 0 means none.
  std::vector<Location> free_;
};

std::span<const std::byte> bytes_of(const uint64_t& key) {
  return std::as_bytes(std::span(&key, 1));
}

uint64_t mix(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

// How keys are spread over hashes.
enum class Spread { Even, Clustered, FewHashes, LastHashes };

uint64_t hash_of(uint64_t key, Spread spread) {
  switch (spread) {
    case Spread::Even:
      return mix(key);
    case Spread::Clustered:  // One of eight places, where 30 bits are equal.
      return (mix(key % 8) & ~((uint64_t{1} << 34) - 1)) | mix(key) >> 30;
    case Spread::FewHashes:
      return mix(key % 100);
    case Spread::LastHashes:  // All homes at the very end of the last table.
      return ~(mix(key) >> 62);
  }
  return 0;
}

class Model {
 public:
  Model(uint64_t seed, Spread spread) : index(&records, &memory), random(seed), spread_(spread) {}

  void insert(uint64_t key) {
    const uint64_t hash = hash_of(key, spread_);
    const Location location = records.add(key, hash);
    if (!index.insert(hash, location)) FAIL("the heap is exhausted");
    shadow.emplace(key, location);
  }
  void erase(uint64_t key) {
    const Location location = shadow.at(key);
    index.erase(hash_of(key, spread_), location);
    records.remove(location);
    shadow.erase(key);
  }
  void replace(uint64_t key) {
    const uint64_t hash = hash_of(key, spread_);
    const Location location = records.add(key, hash);
    index.replace(hash, shadow.at(key), location);
    records.remove(shadow.at(key));
    shadow[key] = location;
  }
  Location find(uint64_t key) const { return index.find(hash_of(key, spread_), bytes_of(key)); }
  Location expected(uint64_t key) const {
    const auto found = shadow.find(key);
    return found == shadow.end() ? 0 : found->second;
  }
  uint64_t key_at(Location location) const {
    uint64_t key;
    std::memcpy(&key, records.key_at(location).data(), sizeof key);
    return key;
  }
  // One random operation on a random key, leaning to inserts or erases.
  void step(uint64_t key_count, uint32_t insert_percent) {
    const uint64_t key = random() % key_count;
    const Location location = find(key);
    if (location != expected(key)) FAIL("found another record than the shadow knows");
    if (location == 0) {
      if (random() % 100 < insert_percent) insert(key);
    } else if (random() % 4 == 0) {
      replace(key);
    } else if (random() % 100 >= insert_percent) {
      erase(key);
    }
  }
  void check_all(uint64_t key_count) const {
    REQUIRE(index.size() == shadow.size());
    for (uint64_t key = 0; key < key_count; ++key) {
      if (find(key) != expected(key)) FAIL("found another record than the shadow knows");
    }
    std::set<Location> visited;
    REQUIRE(index.scan(0, std::numeric_limits<uint32_t>::max(),
                       [&](Location location) { REQUIRE(visited.insert(location).second); }) == 0);
    REQUIRE(visited.size() == shadow.size());
  }

  FakeRecords records;
  IndexMemory memory{true};
  Index index;
  std::mt19937_64 random;
  std::unordered_map<uint64_t, Location> shadow;

 private:
  Spread spread_;
};

TEST_CASE("index: random operations match a shadow model") {
  struct Case {
    Spread spread;
    uint64_t key_count;
    uint32_t steps;
  };
  for (const Case& each :
       {Case{Spread::Even, 20, 100'000}, Case{Spread::Even, 1'000, 200'000},
        Case{Spread::Even, 50'000, 1'000'000}, Case{Spread::Clustered, 20'000, 300'000},
        Case{Spread::FewHashes, 2'000, 100'000}, Case{Spread::LastHashes, 2'000, 100'000}}) {
    CAPTURE(static_cast<int>(each.spread));
    CAPTURE(each.key_count);
    Model model(each.key_count, each.spread);
    for (uint32_t step = 0; step < each.steps; ++step) {
      // Waves of growth and decline, so that tables split and merge many times.
      model.step(each.key_count, step * 8 / each.steps % 2 == 0 ? 90 : 15);
    }
    model.check_all(each.key_count);
    while (!model.shadow.empty()) model.erase(model.shadow.begin()->first);
    model.check_all(each.key_count);
    CHECK(model.index.memory_bytes() < 1'000);
  }
}

TEST_CASE("index: five thousand keys of one hash, among others") {
  for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}, uint64_t{0x123456789abcdef0}}) {
    CAPTURE(hash);
    FakeRecords records;
    IndexMemory memory(true);
    Index index(&records, &memory);
    std::vector<Location> locations;
    for (uint64_t key = 0; key < 5'000; ++key) {
      locations.push_back(records.add(key, hash));
      REQUIRE(index.insert(hash, locations.back()));
    }
    for (uint64_t key = 5'000; key < 30'000; ++key) {
      locations.push_back(records.add(key, mix(key)));
      REQUIRE(index.insert(mix(key), locations.back()));
    }
    for (uint64_t key = 0; key < 5'000; ++key) {
      REQUIRE(index.find(hash, bytes_of(key)) == locations[key]);
    }
    uint64_t count = 0;
    uint64_t cursor = 0;
    do {
      cursor = index.scan(cursor, 10, [&](Location) { ++count; });
    } while (cursor != 0);
    CHECK(count == 30'000);
    CHECK(index.memory_bytes() < 30'000 * 14);
    for (uint64_t key = 0; key < 30'000; ++key) {
      index.erase(key < 5'000 ? hash : mix(key), locations[key]);
    }
    CHECK(index.size() == 0);
    CHECK(index.memory_bytes() < 1'000);
  }
}

TEST_CASE("index: a scan visits every key that stays, while others come and go") {
  for (const Spread spread : {Spread::Even, Spread::Clustered, Spread::FewHashes}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(seed);
      CAPTURE(static_cast<int>(spread));
      Model model(seed, spread);
      const uint64_t key_count = spread == Spread::FewHashes ? 2'000 : 40'000;
      constexpr uint64_t kStaying = 1'000;
      const auto is_staying = [](uint64_t key) { return key >= uint64_t{1} << 32; };
      for (uint64_t key = 0; key < kStaying; ++key) model.insert((uint64_t{1} << 32) + key);
      // Half of the seeds grow during the scan, the others decline.
      const bool grows = seed % 2 == 0;
      for (uint64_t key = 0; !grows && key < key_count; ++key) model.insert(key);
      std::set<uint64_t> visited;
      uint64_t cursor = 0;
      do {
        cursor = model.index.scan(cursor, 1 + model.random() % 40, [&](Location location) {
          const uint64_t key = model.key_at(location);
          if (is_staying(key)) {
            visited.insert(key);
          } else if (model.random() % 2 == 0) {
            model.erase(key);  // As the interface allows.
          }
        });
        for (int step = 0; step < 40; ++step) model.step(key_count, grows ? 90 : 5);
      } while (cursor != 0);
      CHECK(visited.size() == kStaying);
    }
  }
}

TEST_CASE("index: a scan of a quiet index visits each key once, a few at a time") {
  Model model(7, Spread::Even);
  for (uint64_t key = 0; key < 10'000; ++key) model.insert(key);
  std::set<uint64_t> visited;
  uint64_t cursor = 0;
  do {
    uint32_t count = 0;
    cursor = model.index.scan(cursor, 10, [&](Location location) {
      ++count;
      CHECK(visited.insert(model.key_at(location)).second);
    });
    CHECK(count <= 12);  // Ten, and what shares the tenth one's tag.
  } while (cursor != 0);
  CHECK(visited.size() == 10'000);
}

TEST_CASE("index: samples are distinct, complete when all are wanted, and fair") {
  Model model(3, Spread::Even);
  std::vector<Location> sample(64);
  CHECK(model.index.sample(model.random(), 16, sample.data()) == 0);
  for (uint64_t key = 0; key < 50; ++key) model.insert(key);
  for (int round = 0; round < 100; ++round) {
    REQUIRE(model.index.sample(model.random(), 64, sample.data()) == 50);
    REQUIRE(std::set<Location>(sample.begin(), sample.begin() + 50).size() == 50);
  }
  for (uint64_t key = 50; key < 20'000; ++key) model.insert(key);
  std::vector<Location> all(20'000);
  for (int round = 0; round < 10; ++round) {
    REQUIRE(model.index.sample(model.random(), 20'000, all.data()) == 20'000);
    REQUIRE(std::set<Location>(all.begin(), all.end()).size() == 20'000);
  }
  std::unordered_map<Location, uint32_t> drawn;
  constexpr uint32_t kRounds = 100'000;
  for (uint32_t round = 0; round < kRounds; ++round) {
    if (model.index.sample(model.random(), 16, sample.data()) != 16) FAIL("too few");
    for (int i = 0; i < 16; ++i) ++drawn[sample[i]];
  }
  CHECK(drawn.size() == 20'000);  // Each is expected 80 times.
  const auto [rarest, likeliest] = std::ranges::minmax_element(
      drawn, {}, [](const auto& location_and_count) { return location_and_count.second; });
  CHECK(rarest->second > 25);
  CHECK(likeliest->second < 200);
}

TEST_CASE("index: memory per key is bounded at every size, and given back") {
  Model model(11, Spread::Even);
  uint64_t key = 0;
  for (; key < 300'000; ++key) {
    model.insert(key);
    if (key + 1 >= 1'000 && key % 97 == 0) {
      CAPTURE(key);
      REQUIRE(model.index.memory_bytes() <= 12 * (key + 1));
    }
  }
  CHECK(model.index.memory_bytes() <= 10.5 * static_cast<double>(key));
  for (; key > 10'000; --key) model.erase(key - 1);
  CHECK(model.index.memory_bytes() <= 25 * key);
}

TEST_CASE("index: the candidate is the record, and none where there is none") {
  Model model(5, Spread::Even);
  CHECK(model.index.candidate(mix(1)) == 0);
  model.insert(1);
  model.index.prefetch_table(mix(2));
  CHECK(model.index.candidate(mix(2)) == 0);
  CHECK(model.index.candidate(mix(1)) == model.expected(1));
}

// The sanitizers reserve address space by the terabyte and end the process where malloc fails.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Records that take no memory: the location is the key.
class VirtualRecords : public RecordResolver {
 public:
  std::span<const std::byte> key_at(Location location) const noexcept override {
    key_ = location;
    return bytes_of(key_);
  }
  uint64_t hash_at(Location location) const noexcept override { return mix(location); }
  void prefetch(Location) const noexcept override {}

 private:
  mutable uint64_t key_ = 0;
};

TEST_CASE("index: an insert without memory fails, and nothing has changed") {
  const VirtualRecords records;
  IndexMemory memory(true);
  Index index(&records, &memory);
  rlimit unlimited;
  REQUIRE(getrlimit(RLIMIT_AS, &unlimited) == 0);
  uint64_t pages_in_use = 0;
  std::ifstream("/proc/self/statm") >> pages_in_use;
  rlimit limited = unlimited;
  limited.rlim_cur = pages_in_use * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (4 << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  uint64_t count = 0;
  while (index.insert(mix((count + 1) * 8), (count + 1) * 8)) ++count;
  REQUIRE(setrlimit(RLIMIT_AS, &unlimited) == 0);
  CHECK(count > 100'000);
  CHECK(index.size() == count);
  const uint64_t failed = (count + 1) * 8;
  CHECK(index.find(mix(failed), bytes_of(failed)) == 0);
  for (uint64_t key = 8; key < failed; key += 8) {
    if (index.find(mix(key), bytes_of(key)) != key) FAIL("a key is gone");
  }
  CHECK(index.insert(mix(failed), failed));
  CHECK(index.find(mix(failed), bytes_of(failed)) == failed);
}
#endif

TEST_CASE("index: moves with its records") {
  Model model(5, Spread::Even);
  model.insert(1);
  Index moved = std::move(model.index);
  CHECK(moved.size() == 1);
  CHECK(moved.find(mix(1), bytes_of(1)) == model.expected(1));
  model.index = std::move(moved);
  CHECK(model.find(1) == model.expected(1));
}

}  // namespace
}  // namespace kvstrata
