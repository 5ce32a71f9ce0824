// Random work on two shards' memory against a shadow model: nothing overlaps, contents survive,
// counts are exact, a drain lists just what lives there, and in the end every segment is back in
// the pool.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "store/limits.h"
#include "tests/native/tiering/test_pool.h"
#include "tiering/native/shard_memory.h"

namespace kvstrata {
namespace {

struct Allocation {
  uint64_t length_bytes = 0;
  uint64_t owner = 0;  // Of an extent; 0 for cells.
  uint32_t references = 1;
  uint8_t fill = 0;
};

using Shadow = std::map<ArenaOffset, Allocation>;

class Model {
 public:
  Model(SegmentPool* pool, Shadow* all, uint64_t seed)
      : pool_(pool), memory_(pool), all_(all), random_(seed) {}

  void step() {
    uint32_t choice = random_() % 100;
    // Turns of growth and of shrinking, so that segments come and go.
    bool growing = steps_++ / 2000 % 2 == 0;
    if (choice < (growing ? 45 : 25)) return allocate_cell();
    if (choice < (growing ? 60 : 35)) return allocate_extent();
    if (choice < 65) return retain();
    if (choice < 68 && !live_.empty()) return begin_or_cancel_drain();
    if (choice == 69) return drop_residents();
    free_one();
  }

  void check() {
    uint64_t cells = 0;
    uint64_t extents = 0;
    for (ArenaOffset offset : live_) {
      const Allocation& allocation = all_->at(offset);
      (allocation.owner == 0 ? cells : extents) += allocation.length_bytes;
    }
    ShardMemoryStatistics statistics = memory_.statistics();
    REQUIRE(statistics.cell_bytes_used == cells);
    REQUIRE(statistics.extent_bytes_used == extents);
    REQUIRE(memory_.free_bytes() == statistics.segment_bytes_held - cells - extents +
                                        pool_->free_count() * pool_->segment_bytes());
    for (SegmentId segment = 0; segment < pool_->segment_count(); ++segment) check_list(segment);
  }

  uint64_t held_bytes() const { return memory_.statistics().segment_bytes_held; }

  void free_all() {
    while (!live_.empty()) free_one();
    REQUIRE(memory_.statistics().cell_bytes_used == 0);
    REQUIRE(memory_.statistics().extent_bytes_used == 0);
    REQUIRE(held_bytes() <= pool_->segment_bytes());
    memory_.give_back_reserve();
    REQUIRE(held_bytes() == 0);
  }

 private:
  SegmentId segment_of(ArenaOffset offset) const {
    return static_cast<SegmentId>(offset / pool_->segment_bytes());
  }

  void add(ArenaOffset offset, uint64_t length_bytes, uint64_t owner) {
    auto next = all_->lower_bound(offset);
    bool apart = next == all_->end() || offset + length_bytes <= next->first;
    if (next != all_->begin()) {
      auto before = std::prev(next);
      apart = apart && before->first + before->second.length_bytes <= offset;
    }
    REQUIRE(apart);
    REQUIRE(offset != 0);
    REQUIRE(segment_of(offset) == segment_of(offset + length_bytes - 1));
    REQUIRE_FALSE(memory_.is_draining(segment_of(offset)));
    auto fill = static_cast<uint8_t>(random_());
    std::fill_n(memory_.at(offset), length_bytes, static_cast<std::byte>(fill));
    all_->emplace(offset, Allocation{length_bytes, owner, 1, fill});
    live_.push_back(offset);
  }

  void allocate_cell() {
    // Mostly few sizes, so that slabs fill up and cells within them are used again.
    static constexpr uint32_t kUsual[] = {24, 72, 280, 1000, 8192};
    uint32_t bytes = random_() % 8 == 0 ? 1 + random_() % limits::kRecordBytesInlineMax
                                        : kUsual[random_() % std::size(kUsual)];
    ArenaOffset offset = memory_.allocate_cell(bytes);
    if (offset == 0) return;
    REQUIRE(memory_.cell_bytes(offset) >= bytes);
    add(offset, memory_.cell_bytes(offset), 0);
  }

  void allocate_extent() {
    uint64_t bytes = 1 + random_() % (random_() % 8 == 0 ? 600'000 : 40'000);
    uint64_t owner = random_() | 1;
    Extent extent;
    if (!memory_.allocate_extent(bytes, owner, &extent)) return;
    REQUIRE(extent.offset % limits::kPageBytes == 0);
    REQUIRE(extent.length_bytes >= bytes);
    REQUIRE(extent.length_bytes < bytes + limits::kPageBytes);
    add(extent.offset, extent.length_bytes, owner);
  }

  void retain() {
    if (live_.empty()) return;
    ArenaOffset offset = live_[random_() % live_.size()];
    Allocation& allocation = all_->at(offset);
    if (allocation.owner == 0) return;
    memory_.retain_extent({offset, allocation.length_bytes});
    ++allocation.references;
    allocation.owner = random_() | 1;
    memory_.set_owner({offset, allocation.length_bytes}, allocation.owner);
  }

  void free_one() {
    if (live_.empty()) return;
    size_t place = random_() % live_.size();
    ArenaOffset offset = live_[place];
    if (!release(offset)) return;
    live_[place] = live_.back();
    live_.pop_back();
  }

  // True if the memory is free now.
  bool release(ArenaOffset offset) {
    Allocation& allocation = all_->at(offset);
    const std::byte* start = memory_.at(offset);
    bool intact = std::all_of(start, start + allocation.length_bytes, [&](std::byte byte) {
      return std::to_integer<uint8_t>(byte) == allocation.fill;
    });
    REQUIRE(intact);
    if (allocation.owner == 0) {
      memory_.free_cell(offset);
    } else {
      Extent extent{offset, allocation.length_bytes};
      REQUIRE(memory_.reference_count(extent) == allocation.references);
      memory_.free_extent(extent);
      if (--allocation.references > 0) return false;
    }
    all_->erase(offset);
    return true;
  }

  void begin_or_cancel_drain() {
    SegmentId segment = random_() % 2 == 0 ? memory_.emptiest_segment()
                                           : segment_of(live_[random_() % live_.size()]);
    if (segment == kNoSegment) return;
    if (memory_.is_draining(segment)) return memory_.cancel_drain(segment);
    memory_.begin_drain(segment);
  }

  // Goes through one segment and frees about half of it on the way.
  void drop_residents() {
    if (live_.empty()) return;
    SegmentId segment = segment_of(live_[random_() % live_.size()]);
    std::set<ArenaOffset> gone;
    uint64_t position = 0;
    auto visit = [&](const ShardMemory::Resident& resident) {
      if (random_() % 2 == 0 && release(resident.offset)) gone.insert(resident.offset);
    };
    while (memory_.visit_residents(segment, &position, 1 + random_() % 50, visit)) continue;
    std::erase_if(live_, [&](ArenaOffset offset) { return gone.contains(offset); });
  }

  void check_list(SegmentId segment) {
    std::set<ArenaOffset> expected;
    for (ArenaOffset offset : live_) {
      if (segment_of(offset) == segment) expected.insert(offset);
    }
    std::vector<ArenaOffset> listed;
    uint64_t position = 0;
    auto visit = [&](const ShardMemory::Resident& resident) {
      const Allocation& allocation = all_->at(resident.offset);
      REQUIRE(resident.length_bytes == allocation.length_bytes);
      REQUIRE(resident.is_cell == (allocation.owner == 0));
      REQUIRE(resident.owner == allocation.owner);
      REQUIRE(resident.reference_count == allocation.references);
      listed.push_back(resident.offset);
    };
    while (memory_.visit_residents(segment, &position, 11, visit)) continue;
    REQUIRE(listed == std::vector<ArenaOffset>(expected.begin(), expected.end()));
  }

  SegmentPool* pool_;
  ShardMemory memory_;
  Shadow* all_;  // Of all shards, so that overlaps between them are seen too.
  std::mt19937_64 random_;
  std::vector<ArenaOffset> live_;
  uint64_t steps_ = 0;
};

TEST_CASE("random work on two shards agrees with a shadow model") {
  for (uint64_t seed : {1, 2, 3, 4}) {
    CAPTURE(seed);
    auto pool = make_pool(16 << 20);
    Shadow all;
    Model first(pool.get(), &all, seed);
    Model second(pool.get(), &all, seed + 100);
    for (uint32_t step = 0; step < 10'000; ++step) {
      first.step();
      second.step();
      if (step % 500 == 0) {
        first.check();
        second.check();
        uint64_t held = first.held_bytes() + second.held_bytes();
        REQUIRE(held + pool->free_count() * pool->segment_bytes() == 16 << 20);
      }
    }
    first.free_all();
    second.free_all();
    CHECK(all.empty());
    CHECK(pool->free_count() == pool->segment_count());
  }
}

}  // namespace
}  // namespace kvstrata
