// The index's memory: random allocations against a model, regions given back, and what is present.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "store/native/index_memory.h"

namespace kvstrata {
namespace {

constexpr uint64_t kMiB = 1 << 20;

struct Block {
  std::byte* start;
  uint64_t bytes;
  uint8_t mark;
};

class Model {
 public:
  explicit Model(uint64_t seed) : random(seed) {}

  // Mostly what tables take, sometimes as little as there is, or more than a region holds.
  uint64_t some_size() {
    switch (random() % 100) {
      case 0:
        return 1 + random() % (5 * kMiB);
      case 1:
        return 1 + random() % 100;
      default:
        return 200 + random() % 12'000;
    }
  }
  void allocate() {
    Block block{nullptr, some_size(), static_cast<uint8_t>(random())};
    block.start = static_cast<std::byte*>(memory.allocate(block.bytes));
    REQUIRE(block.start != nullptr);
    REQUIRE(reinterpret_cast<uintptr_t>(block.start) % 16 == 0);
    REQUIRE(IndexMemory::bytes_of(block.start) >= block.bytes);
    std::memset(block.start, block.mark, block.bytes);
    // Nobody else's bytes are in it.
    auto above = by_start.lower_bound(block.start);
    if (above != by_start.end()) REQUIRE(block.start + block.bytes <= above->first);
    if (above != by_start.begin()) {
      --above;
      REQUIRE(above->first + above->second <= block.start);
    }
    by_start[block.start] = block.bytes;
    used_bytes += IndexMemory::bytes_of(block.start);
    blocks.push_back(block);
  }
  void free_any() {
    std::swap(blocks[random() % blocks.size()], blocks.back());
    Block block = blocks.back();
    blocks.pop_back();
    bool intact = std::all_of(block.start, block.start + block.bytes, [&](std::byte each) {
      return each == static_cast<std::byte>(block.mark);
    });
    REQUIRE(intact);
    by_start.erase(block.start);
    used_bytes -= IndexMemory::bytes_of(block.start);
    memory.free(block.start);
  }

  std::mt19937_64 random;
  IndexMemory memory{true};
  std::vector<Block> blocks;
  std::map<std::byte*, uint64_t> by_start;
  uint64_t used_bytes = 0;
};

uint64_t present_bytes(void* start, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(bytes / page);
  REQUIRE(mincore(start, bytes, pages.data()) == 0);
  return static_cast<uint64_t>(std::ranges::count_if(pages, [](auto each) { return each & 1; })) *
         page;
}

}  // namespace

TEST_CASE("index memory: random allocations keep their bytes, and regions are given back") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    Model model(seed);
    // Waves: to 20 MiB and more, and down to little, many times.
    for (int wave = 0; wave < 6; ++wave) {
      for (int step = 0; step < 6'000; ++step) {
        if (model.blocks.empty() || model.random() % 10 < 7) {
          model.allocate();
        } else {
          model.free_any();
        }
      }
      CHECK(model.memory.mapped_bytes() >= model.used_bytes);
      CHECK(model.memory.mapped_bytes() < model.used_bytes * 5 / 4 + 2 * kHugePageBytes);
      while (model.blocks.size() > 50) model.free_any();
    }
    while (!model.blocks.empty()) model.free_any();
    CHECK(model.used_bytes == 0);
    CHECK(model.memory.mapped_bytes() == kHugePageBytes);  // One is kept.
  }
}

TEST_CASE("index memory: what is freed side by side can be had as one") {
  IndexMemory memory(true);
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(memory.allocate(kMiB / 16));
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(1));
  void* other = memory.allocate(500'000);
  for (void* each : blocks) memory.free(each);
  void* all = memory.allocate(kMiB - 64);
  CHECK(memory.mapped_bytes() == kHugePageBytes);
  memory.free(all);
  memory.free(other);
}

TEST_CASE("index memory: a small index has present what it uses, not a huge page") {
  IndexMemory memory(true);
  std::memset(memory.allocate(10'000), 1, 10'000);
  void* some = memory.allocate(100);
  const auto address = reinterpret_cast<uintptr_t>(some);
  auto* region = reinterpret_cast<void*>(address & ~(kHugePageBytes - 1));
  CHECK(present_bytes(region, kHugePageBytes) < 64 * 1024);
}

TEST_CASE("index memory: nothing is taken before the first use, and what was freed is used again") {
  IndexMemory memory(true);
  CHECK(memory.mapped_bytes() == 0);
  void* block = memory.allocate(1);
  CHECK(memory.mapped_bytes() == kHugePageBytes);
  memory.free(block);
  void* again = memory.allocate(1);
  CHECK(again == block);
  memory.free(again);
}

}  // namespace kvstrata
