// The table of retentions, without objects.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "store/native/retention_handle.h"
#include "store/native/retention_table.h"

namespace kvstrata {

namespace {

constexpr uint32_t kNone = RetentionTable::kNoPlace;

// Ends what has ended by then, as the store does. Returns the records that are retained no more.
std::vector<Location> end_until(RetentionTable& table, uint64_t now_ms) {
  std::vector<Location> freed;
  RetentionTable::Retention ended;
  while (table.take_ended(now_ms, &ended)) {
    REQUIRE(ended.end_ms <= now_ms);
    for (const RetentionTable::Claim& claim : ended.claims) {
      uint32_t place = table.drop_claim(claim, ended.is_hard);
      if (place == kNone || table.at(place).claim_count != 0) continue;
      freed.push_back(table.at(place).location);
      table.erase(place);
    }
  }
  return freed;
}

}  // namespace

TEST_CASE("a retention ends with its time, and its record with the last of them") {
  uint64_t numbers = 5;
  RetentionTable table(&numbers);
  uint64_t first = 0;
  uint64_t second = 0;
  uint32_t place = kNone;
  REQUIRE(table.claim(80, 100, false, &first, &place));
  REQUIRE(table.claim(80, 200, true, &second, &place));
  CHECK(first == 5);
  CHECK(second == 6);
  CHECK(table.record_count() == 1);
  CHECK(table.at(place).hard_count == 1);
  CHECK(end_until(table, 99).empty());
  CHECK(end_until(table, 100).empty());
  CHECK(table.claim_count() == 1);
  CHECK(table.next_soft() == 0);
  CHECK(end_until(table, 200) == std::vector<Location>{80});
  CHECK(table.record_count() == 0);
  CHECK(table.claim_count() == 0);
}

TEST_CASE("keys join a retention only if they end with it and are of its kind") {
  uint64_t numbers = 1;
  RetentionTable table(&numbers);
  uint64_t number = 0;
  uint32_t places[4] = {kNone, kNone, kNone, kNone};
  REQUIRE(table.claim(8, 100, false, &number, &places[0]));
  uint64_t first = number;
  REQUIRE(table.claim(16, 100, false, &number, &places[1]));
  CHECK(number == first);
  REQUIRE(table.claim(24, 101, false, &number, &places[2]));
  CHECK(number == first + 1);
  REQUIRE(table.claim(32, 101, true, &number, &places[3]));
  CHECK(number == first + 2);
  CHECK(end_until(table, 100) == std::vector<Location>{8, 16});
}

TEST_CASE("one record named twice in a retention has two claims, which end together") {
  uint64_t numbers = 1;
  RetentionTable table(&numbers);
  uint64_t number = 0;
  uint32_t place = kNone;
  REQUIRE(table.claim(8, 100, true, &number, &place));
  REQUIRE(table.claim(8, 100, true, &number, &place));
  CHECK(table.claim_count() == 2);
  CHECK(table.record_count() == 1);
  CHECK(end_until(table, 100) == std::vector<Location>{8});
}

TEST_CASE("extending only ever prolongs, and releasing ends at once, each by number and kind") {
  uint64_t numbers = 1;
  RetentionTable table(&numbers);
  uint64_t number = 0;
  uint32_t place = kNone;
  REQUIRE(table.claim(8, 100, false, &number, &place));
  CHECK(table.extend(number, false, 50, 60));
  CHECK(end_until(table, 99).empty());
  CHECK(table.extend(number, false, 99, 300));
  CHECK(end_until(table, 299).empty());
  CHECK_FALSE(table.extend(number, true, 200, 400));
  CHECK_FALSE(table.release(number, true, 200));
  CHECK_FALSE(table.release(number + 1, false, 200));
  CHECK_FALSE(table.release(0, false, 200));
  CHECK(table.release(number, false, 200));
  CHECK_FALSE(table.release(number, false, 200));
  CHECK_FALSE(table.extend(number, false, 200, 400));
  CHECK(end_until(table, 200) == std::vector<Location>{8});
  CHECK_FALSE(table.release(number, false, 200));
}

TEST_CASE("claims on a record that has gone are void, though another has its place") {
  uint64_t numbers = 1;
  RetentionTable table(&numbers);
  uint64_t first = 0;
  uint64_t second = 0;
  uint32_t place = kNone;
  REQUIRE(table.claim(8, 100, true, &first, &place));
  table.erase(place);
  CHECK(table.claim_count() == 1);
  uint32_t next_place = kNone;
  REQUIRE(table.claim(16, 200, true, &second, &next_place));
  REQUIRE(next_place == place);
  CHECK(end_until(table, 100).empty());
  CHECK(table.at(place).claim_count == 1);
  CHECK(table.at(place).hard_count == 1);
  CHECK(end_until(table, 200) == std::vector<Location>{16});
}

TEST_CASE("soft records come in turn, and are found among many others in the end") {
  uint64_t numbers = 1;
  RetentionTable table(&numbers);
  std::map<Location, uint32_t> places;
  for (Location location = 8; location <= 8 * 1000; location += 8) {
    uint64_t number = 0;
    uint32_t place = kNone;
    bool is_hard = location % 80 != 0;
    REQUIRE(table.claim(location, 100, is_hard, &number, &place));
    places[location] = place;
  }
  std::vector<uint32_t> met(1001);
  for (uint32_t turn = 0; turn < 3000; ++turn) {
    Location location = table.next_soft();
    if (location != 0) ++met[location / 8];
  }
  for (uint32_t index = 10; index <= 1000; index += 10) REQUIRE(met[index] >= 25);
  for (const auto& [location, place] : places) {
    if (location % 80 == 0 && location != 4000) table.erase(place);
  }
  uint32_t looks = 1;
  while (table.next_soft() != 4000) REQUIRE(++looks < 20);
}

TEST_CASE("random retentions agree with a list of them") {
  struct Expected {
    uint64_t end_ms;
    std::vector<Location> locations;
  };
  std::mt19937_64 random(3);
  uint64_t numbers = 1;
  RetentionTable table(&numbers);
  std::map<uint64_t, Expected> model;
  std::map<Location, uint32_t> places;
  uint64_t now_ms = 0;
  auto is_claimed = [&](Location location) {
    return std::ranges::any_of(model, [&](const auto& each) {
      return std::ranges::count(each.second.locations, location) != 0;
    });
  };
  for (uint32_t step = 0; step < 20'000; ++step) {
    Location location = 8 * (1 + random() % 30);
    switch (random() % 6) {
      case 0:
      case 1: {
        uint64_t number = model.empty() || random() % 2 == 0 ? 0 : model.rbegin()->first;
        uint64_t end_ms = number == 0 ? now_ms + 1 + random() % 50 : model[number].end_ms;
        uint32_t place = places.contains(location) ? places[location] : kNone;
        REQUIRE(table.claim(location, end_ms, false, &number, &place));
        places[location] = place;
        model[number].end_ms = end_ms;
        model[number].locations.push_back(location);
        break;
      }
      case 2:
        if (places.contains(location)) {
          table.erase(places[location]);
          places.erase(location);
          for (auto& [number, each] : model) std::erase(each.locations, location);
        }
        break;
      case 3: {
        uint64_t number = 1 + random() % (step + 1);
        REQUIRE(table.extend(number, false, now_ms, now_ms + 20) == model.contains(number));
        if (model.contains(number)) {
          model[number].end_ms = std::max(model[number].end_ms, now_ms + 20);
        }
        break;
      }
      case 4: {
        uint64_t number = model.empty() ? 1 : model.begin()->first;
        REQUIRE(table.release(number, false, now_ms) == model.contains(number));
        if (model.contains(number)) model[number].end_ms = now_ms;
        [[fallthrough]];
      }
      default: {
        now_ms += random() % 5;
        std::erase_if(model, [&](const auto& each) { return each.second.end_ms <= now_ms; });
        for (Location freed : end_until(table, now_ms)) {
          REQUIRE(places.erase(freed) == 1);
          REQUIRE_FALSE(is_claimed(freed));
        }
      }
    }
    REQUIRE(table.record_count() == places.size());
    for (const auto& [held, place] : places) REQUIRE(is_claimed(held));
  }
  end_until(table, UINT64_MAX);
  CHECK(table.claim_count() == 0);
  CHECK(table.record_count() == 0);
}

TEST_CASE("a handle is made of its parts and back") {
  for (uint32_t shard : {0U, 5U, 63U}) {
    for (bool is_hard : {false, true}) {
      RetentionHandle handle{shard, is_hard, RetentionHandle::first_number(1'800'000'000'000) + 7};
      RetentionHandle back = RetentionHandle::from(handle.word());
      CHECK(back.shard == shard);
      CHECK(back.is_hard == is_hard);
      CHECK(back.number == handle.number);
    }
  }
  CHECK(RetentionHandle::first_number(1001) - RetentionHandle::first_number(1000) == 65'536);
}

}  // namespace kvstrata
