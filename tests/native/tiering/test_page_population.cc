// Both ways of populating pages, also the one for kernels that lack MADV_POPULATE_WRITE.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "tiering/native/page_population.h"

namespace kvstrata {
namespace {

constexpr size_t kSize = 64 * 4096;

std::byte* map_fresh() {
  void* start = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(start != MAP_FAILED);
  return static_cast<std::byte*>(start);
}

size_t present_pages(std::byte* start) {
  std::array<unsigned char, 64> present{};
  REQUIRE(mincore(start, kSize, present.data()) == 0);
  return static_cast<size_t>(std::count_if(present.begin(), present.end(),
                                           [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_CASE("populating makes every page present and leaves content alone") {
  std::byte* start = map_fresh();
  CHECK(present_pages(start) == 0);
  start[5000] = std::byte{7};
  std::atomic<bool> stop{false};
  CHECK(populate_pages(start, kSize, stop) == 0);
  CHECK(present_pages(start) == 64);
  CHECK(start[5000] == std::byte{7});
  munmap(start, kSize);
}

TEST_CASE("touching makes every page present and leaves content alone") {
  std::byte* start = map_fresh();
  start[4096] = std::byte{7};
  touch_pages(start, kSize);
  CHECK(present_pages(start) == 64);
  CHECK(start[4096] == std::byte{7});
  munmap(start, kSize);
}

TEST_CASE("a stop ends population") {
  std::byte* start = map_fresh();
  std::atomic<bool> stop{true};
  CHECK(populate_pages(start, kSize, stop) == 0);
  CHECK(present_pages(start) == 0);
  munmap(start, kSize);
}

TEST_CASE("what the kernel refuses is reported") {
  std::byte* start = map_fresh();
  munmap(start, kSize);
  std::atomic<bool> stop{false};
  CHECK(populate_pages(start, kSize, stop) != 0);
}

}  // namespace
}  // namespace kvstrata
