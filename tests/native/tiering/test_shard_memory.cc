// One shard's memory by example: sizes, borrowing and giving back, draining, faults of the caller.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "store/limits.h"
#include "tests/native/tiering/test_pool.h"
#include "tiering/native/shard_memory.h"

namespace kvstrata {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::vector<ArenaOffset> fill_with_cells(ShardMemory& memory, uint32_t bytes) {
  std::vector<ArenaOffset> cells;
  for (ArenaOffset cell = memory.allocate_cell(bytes); cell != 0;
       cell = memory.allocate_cell(bytes)) {
    cells.push_back(cell);
  }
  return cells;
}

std::vector<Extent> fill_with_extents(ShardMemory& memory, uint64_t bytes) {
  std::vector<Extent> extents;
  for (Extent extent; memory.allocate_extent(bytes, extents.size() + 1, &extent);) {
    extents.push_back(extent);
  }
  return extents;
}

std::vector<ShardMemory::Resident> residents_of(ShardMemory& memory, SegmentId segment,
                                                uint32_t count_max = 7) {
  std::vector<ShardMemory::Resident> residents;
  uint64_t position = 0;
  auto keep = [&](const ShardMemory::Resident& resident) { residents.push_back(resident); };
  while (memory.visit_residents(segment, &position, count_max, keep)) continue;
  return residents;
}

TEST_CASE("cells are aligned, sized as asked and never at offset 0") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  for (uint32_t bytes : {1, 8, 9, 72, 256, 257, 4096, 8191, 8192}) {
    ArenaOffset cell = memory.allocate_cell(bytes);
    CHECK(cell != 0);
    CHECK(cell % 8 == 0);
    CHECK(memory.cell_bytes(cell) >= bytes);
    CHECK(memory.at(cell) == pool->base() + cell);
  }
}

TEST_CASE("72-byte cells cost less than a byte each, all told") {
  auto pool = make_pool(64 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<ArenaOffset> cells = fill_with_cells(memory, 72);
  ShardMemoryStatistics statistics = memory.statistics();
  CHECK(statistics.cell_bytes_used == cells.size() * 72);
  CHECK(statistics.segment_bytes_held == 64 * kMiB);
  uint64_t overhead =
      statistics.segment_bytes_held - statistics.cell_bytes_used + statistics.bookkeeping_bytes;
  double per_cell = static_cast<double>(overhead) / static_cast<double>(cells.size());
  MESSAGE("overhead of a 72-byte cell: " << per_cell << " bytes");
  CHECK(per_cell < 1.0);
}

TEST_CASE("freed cells of a full shard are found again, each once") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<ArenaOffset> cells = fill_with_cells(memory, 72);
  std::vector<ArenaOffset> expected = cells;
  std::sort(expected.begin(), expected.end());
  std::mt19937 random(9);
  for (size_t freed : {size_t{1}, cells.size() / 3, cells.size() - 1}) {
    std::shuffle(cells.begin(), cells.end(), random);
    for (size_t i = 0; i < freed; ++i) memory.free_cell(cells[i]);
    std::vector<ArenaOffset> again = fill_with_cells(memory, 72);
    std::copy_n(again.begin(), std::min(again.size(), freed), cells.begin());
    std::vector<ArenaOffset> found = cells;
    std::sort(found.begin(), found.end());
    CHECK(again.size() == freed);
    CHECK((found == expected));
  }
}

TEST_CASE("a shard full of small cells serves chunks once they are freed") {
  auto pool = make_pool(32 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<ArenaOffset> cells = fill_with_cells(memory, 72);
  Extent extent;
  CHECK_FALSE(memory.allocate_extent(limits::kChunkBytes, 1, &extent));
  std::shuffle(cells.begin(), cells.end(), std::mt19937(3));
  for (ArenaOffset cell : cells) memory.free_cell(cell);
  CHECK(memory.statistics().cell_bytes_used == 0);
  // Two chunks a segment, but in the first, whose first page is taken.
  std::vector<Extent> chunks = fill_with_extents(memory, limits::kChunkBytes);
  CHECK(chunks.size() == 63);
  for (const Extent& chunk : chunks) memory.free_extent(chunk);
  CHECK(fill_with_cells(memory, 72).size() == cells.size());
}

TEST_CASE("freed neighbours join, whatever the order") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<Extent> extents = fill_with_extents(memory, 5 * limits::kPageBytes);
  CHECK(extents.size() == 16 * 51);
  std::shuffle(extents.begin(), extents.end(), std::mt19937(5));
  for (const Extent& extent : extents) memory.free_extent(extent);
  CHECK(memory.statistics().extent_bytes_used == 0);
  CHECK(memory.statistics().segment_bytes_held == kMiB);  // The reserve.
  CHECK(fill_with_extents(memory, kMiB - limits::kPageBytes).size() == 16);
}

TEST_CASE("three freed neighbours make one run in every order") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  Extent wall, extent;
  REQUIRE(memory.allocate_extent(1, 1, &wall));
  std::vector<int> order = {0, 1, 2};
  do {
    std::vector<Extent> neighbours(3);
    for (Extent& each : neighbours) {
      REQUIRE(memory.allocate_extent(7 * limits::kPageBytes, 1, &each));
    }
    REQUIRE(memory.allocate_extent(1, 1, &wall));
    for (int place : order) memory.free_extent(neighbours[place]);
    REQUIRE(memory.allocate_extent(21 * limits::kPageBytes, 1, &extent));
    CHECK(extent.offset == neighbours[0].offset);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("an extent goes where it leaves the least rest") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  Extent large, small, wall, taken;
  REQUIRE(memory.allocate_extent(64 * limits::kPageBytes, 1, &large));
  REQUIRE(memory.allocate_extent(limits::kPageBytes, 2, &wall));
  REQUIRE(memory.allocate_extent(9 * limits::kPageBytes, 3, &small));
  REQUIRE(memory.allocate_extent(limits::kPageBytes, 4, &wall));
  memory.free_extent(small);
  memory.free_extent(large);
  REQUIRE(memory.allocate_extent(8 * limits::kPageBytes + 1, 5, &taken));
  CHECK(taken.offset == small.offset);
  CHECK(taken.length_bytes == 9 * limits::kPageBytes);
  REQUIRE(memory.allocate_extent(10 * limits::kPageBytes, 6, &taken));
  CHECK(taken.offset == large.offset);
}

TEST_CASE("runs longer than a chunk are found even in a bin of mixed lengths") {
  auto pool = make_pool(64 * kMiB, 4 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<Extent> extents = fill_with_extents(memory, 250 * limits::kPageBytes);
  memory.free_extent(extents[5]);
  Extent shorter;
  REQUIRE(memory.allocate_extent(241 * limits::kPageBytes, 1, &shorter));
  memory.free_extent(shorter);
  memory.free_extent(extents[9]);
  Extent extent;
  CHECK(memory.allocate_extent(250 * limits::kPageBytes, 1, &extent));
  CHECK(memory.allocate_extent(250 * limits::kPageBytes, 1, &extent));
  CHECK_FALSE(memory.allocate_extent(250 * limits::kPageBytes, 1, &extent));
  CHECK_FALSE(memory.allocate_extent(4 * kMiB, 1, &extent));
}

TEST_CASE("an extent lives until its last reference is gone") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  Extent extent;
  REQUIRE(memory.allocate_extent(100, 9, &extent));
  CHECK(extent.length_bytes == limits::kPageBytes);
  memory.retain_extent(extent);
  CHECK(memory.reference_count(extent) == 2);
  memory.free_extent(extent);
  CHECK(memory.reference_count(extent) == 1);
  CHECK(memory.statistics().extent_bytes_used == limits::kPageBytes);
  memory.set_owner(extent, 11);
  CHECK(residents_of(memory, 0).at(0).owner == 11);
  memory.free_extent(extent);
  CHECK(memory.statistics().extent_bytes_used == 0);
}

TEST_CASE("the reserve serves either sort and goes back when others want it") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<ArenaOffset> cells = fill_with_cells(memory, 8192);
  CHECK(pool->free_count() == 0);
  for (ArenaOffset cell : cells) memory.free_cell(cell);
  CHECK(pool->free_count() == 15);  // One is kept.
  CHECK(memory.free_bytes() == 16 * kMiB);
  Extent extent;
  REQUIRE(memory.allocate_extent(1, 1, &extent));
  CHECK(pool->free_count() == 15);  // And used.
  pool->want(1);
  memory.free_extent(extent);
  CHECK(pool->free_count() == 16);
  pool->cancel_want(1);
  ArenaOffset cell = memory.allocate_cell(8);
  memory.free_cell(cell);
  CHECK(pool->free_count() == 15);
  memory.give_back_reserve();
  memory.give_back_reserve();
  CHECK(pool->free_count() == 16);
}

TEST_CASE("two shards share one pool, and one's end returns what it held") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory first(pool.get());
  {
    ShardMemory second(pool.get());
    CHECK(fill_with_cells(second, 1000).size() > 16'000);
    CHECK(first.allocate_cell(8) == 0);
    Extent extent;
    CHECK_FALSE(first.allocate_extent(1, 1, &extent));
  }
  CHECK(pool->free_count() == 16);
  CHECK(first.allocate_cell(8) != 0);
}

TEST_CASE("the emptiest segment is drained bit by bit and goes back to the pool") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  CHECK(memory.emptiest_segment() == kNoSegment);
  std::vector<ArenaOffset> cells = fill_with_cells(memory, 1000);
  SegmentId chosen = static_cast<SegmentId>(cells[cells.size() / 2] / kMiB);
  uint32_t kept = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] / kMiB == chosen && i % 20 != 0) memory.free_cell(cells[i]);
    if (cells[i] / kMiB == chosen && i % 20 == 0) ++kept;
  }
  CHECK(memory.emptiest_segment() == chosen);
  memory.begin_drain(chosen);
  CHECK(memory.is_draining(chosen));
  CHECK(memory.allocate_cell(1000) == 0);
  CHECK(memory.emptiest_segment() != chosen);
  CHECK(residents_of(memory, chosen).size() == kept);

  memory.cancel_drain(chosen);
  ArenaOffset again = memory.allocate_cell(1000);
  CHECK(again / kMiB == chosen);
  memory.begin_drain(chosen);
  uint64_t position = 0;
  uint32_t visited = 0;
  auto drop = [&](const ShardMemory::Resident& resident) {
    CHECK(resident.is_cell);
    memory.free_cell(resident.offset);
    ++visited;
  };
  while (memory.visit_residents(chosen, &position, 3, drop)) CHECK(visited % 3 == 0);
  CHECK(visited == kept + 1);
  CHECK_FALSE(memory.is_draining(chosen));
  CHECK(pool->free_count() == 1);
  CHECK_FALSE(memory.visit_residents(chosen, &position, 3, drop));
}

TEST_CASE("a drain that moves its residents may borrow the segment it has just emptied") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<Extent> extents = fill_with_extents(memory, limits::kChunkBytes);
  SegmentId chosen = static_cast<SegmentId>(extents[10].offset / kMiB);
  memory.begin_drain(chosen);
  uint64_t position = 0;
  uint32_t visited = 0;
  bool more = memory.visit_residents(chosen, &position, 100, [&](const auto& resident) {
    memory.free_extent({resident.offset, resident.length_bytes});
    Extent other;
    CHECK(memory.allocate_extent(limits::kChunkBytes, 1, &other) == (++visited == 2));
  });
  CHECK_FALSE(more);
  CHECK(visited == 2);
}

TEST_CASE("what is not live cannot be freed") {
  auto pool = make_pool(16 * kMiB);
  ShardMemory memory(pool.get());
  ArenaOffset cell = memory.allocate_cell(100);
  ArenaOffset other = memory.allocate_cell(100);
  Extent extent, wide;
  REQUIRE(memory.allocate_extent(3 * limits::kPageBytes, 1, &extent));
  REQUIRE(memory.allocate_extent(3 * limits::kPageBytes, 1, &wide));
  CHECK(aborts([&] { memory.free_cell(cell + 8); }));
  CHECK(aborts([&] { memory.free_cell(0); }));
  CHECK(aborts([&] { memory.free_cell(extent.offset); }));
  CHECK(aborts([&] { memory.free_extent({extent.offset, limits::kPageBytes}); }));
  CHECK(aborts(
      [&] { memory.free_extent({extent.offset + limits::kPageBytes, limits::kPageBytes}); }));
  CHECK(aborts([&] { memory.free_extent({cell, limits::kPageBytes}); }));
  memory.free_cell(cell);
  CHECK(aborts([&] { memory.free_cell(cell); }));
  memory.free_cell(other);
  CHECK(aborts([&] { memory.free_cell(other); }));
  memory.free_extent(extent);
  CHECK(aborts([&] { memory.free_extent(extent); }));
  CHECK(aborts([&] { memory.retain_extent(extent); }));
  memory.free_extent(wide);
  CHECK(aborts([&] { memory.free_extent(wide); }));
}

TEST_CASE("allocation throughput") {
  auto pool = make_pool(256 * kMiB);
  ShardMemory memory(pool.get());
  std::vector<ArenaOffset> cells(200'000);
  auto measure = [](auto&& work, size_t count) {
    auto start = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    return elapsed.count() / static_cast<double>(count);
  };
  double filling = measure(
      [&] {
        for (ArenaOffset& cell : cells) cell = memory.allocate_cell(72);
      },
      cells.size());
  std::shuffle(cells.begin(), cells.end(), std::mt19937(1));
  double churning = measure(
      [&] {
        for (ArenaOffset& cell : cells) memory.free_cell(cell), cell = memory.allocate_cell(72);
      },
      cells.size());
  double emptying = measure(
      [&] {
        for (ArenaOffset cell : cells) memory.free_cell(cell);
      },
      cells.size());
  MESSAGE("72-byte cells, ns: allocate " << filling << ", free and allocate at random " << churning
                                         << ", free at random " << emptying);
  CHECK(memory.statistics().cell_bytes_used == 0);
}

}  // namespace
}  // namespace kvstrata
