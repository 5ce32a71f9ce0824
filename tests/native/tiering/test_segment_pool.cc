// The segment pool: sizes and refusals, lending, populating, huge pages, and its end.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/native/tiering/test_pool.h"
#include "tiering/native/machine_memory.h"
#include "tiering/native/segment_pool.h"

namespace kvstrata {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Waits until `ready` holds; false after ten seconds.
template <typename Ready>
bool eventually(Ready&& ready) {
  for (int i = 0; i < 10'000; ++i) {
    if (ready()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string refusal(const SegmentPoolOptions& options, Status expected) {
  std::unique_ptr<SegmentPool> pool;
  std::string error;
  CHECK(SegmentPool::create(options, &pool, &error) == expected);
  CHECK(pool == nullptr);
  return error;
}

uint32_t present_pages(const SegmentPool& pool, SegmentId segment) {
  std::vector<unsigned char> present(pool.segment_bytes() / 4096);
  std::byte* start = pool.base() + segment * pool.segment_bytes();
  REQUIRE(mincore(start, pool.segment_bytes(), present.data()) == 0);
  uint32_t count = 0;
  for (unsigned char page : present) count += page & 1;
  return count;
}

TEST_CASE("segment size follows memory size") {
  CHECK(make_pool(16 * kMiB)->segment_bytes() == kMiB);
  CHECK(make_pool(256 * kMiB)->segment_bytes() == 2 * kMiB);
  CHECK(make_pool(300 * kMiB)->segment_bytes() == 2 * kMiB);
  CHECK(make_pool(64 * kMiB, 16 * kMiB)->segment_count() == 4);
  auto pool = make_pool(17 * kMiB + 5);
  CHECK(pool->segment_count() == 17);
  CHECK(pool->statistics().memory_bytes == 17 * kMiB);
}

TEST_CASE("impossible sizes are refused in words") {
  CHECK(refusal({.memory_bytes = 1000}, Status::Invalid) ==
        "memory_bytes is 1000, but a node needs at least 16777216");
  std::string error = refusal({.memory_bytes = uint64_t{1} << 60}, Status::Invalid);
  CHECK(error.find("1152921504606846976") != std::string::npos);
  CHECK(error.find(std::to_string(memory_limit_bytes())) != std::string::npos);
  for (uint64_t segment : {kMiB / 2, 3 * kMiB, 128 * kMiB, 32 * kMiB}) {
    error = refusal({.memory_bytes = 16 * kMiB, .segment_bytes = segment}, Status::Invalid);
    CHECK(error.find("segment_bytes is " + std::to_string(segment)) == 0);
  }
  error = refusal({.memory_bytes = 16 * kMiB, .populate_threads = 0}, Status::Invalid);
  CHECK(error.find("populate_threads") == 0);
}

TEST_CASE("each segment is lent once, and every one can be had") {
  auto pool = make_pool(32 * kMiB);
  std::set<SegmentId> lent;
  for (uint32_t i = 0; i < 32; ++i) {
    SegmentId segment = pool->acquire();
    REQUIRE(segment < 32);
    CHECK(lent.insert(segment).second);
    CHECK(pool->free_count() == 31 - i);
  }
  CHECK(pool->acquire() == kNoSegment);
  pool->release(7);
  CHECK(pool->acquire() == 7);
  for (SegmentId segment : lent) pool->release(segment);
  CHECK(pool->free_count() == 32);
  // The check forks, which is sound once no other thread can hold the pool's lock.
  REQUIRE(eventually([&] { return pool->statistics().populated_count == 32; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(aborts([&] { pool->release(3); }));
}

TEST_CASE("what huge pages were granted is told") {
  std::string expected = huge_page_bytes_free() >= 256 * kMiB ? "explicit"
                         : private_memory_has_huge_pages()    ? "transparent"
                                                              : "none";
  auto pool = make_pool({.memory_bytes = 256 * kMiB, .populate_full = true});
  CHECK(pool->statistics().huge_pages == expected);
  REQUIRE(eventually([&] { return pool->statistics().populated_count == 128; }));
  CHECK(pool->statistics().populate_error.empty());
  auto plain = make_pool({.memory_bytes = 16 * kMiB, .huge_pages = HugePages::Off});
  CHECK(plain->statistics().huge_pages == "none");
  CHECK(!plain->wants_huge_pages());
}

TEST_CASE("huge pages that are insisted on and not to be had are refused in words") {
  SegmentPoolOptions options{.memory_bytes = 16 * kMiB, .huge_pages = HugePages::Transparent};
  if (private_memory_has_huge_pages()) {
    CHECK(make_pool(options)->statistics().huge_pages == "transparent");
  } else {
    CHECK(refusal(options, Status::NoSpace).find("transparent_hugepage/enabled") !=
          std::string::npos);
  }
  // More than is free, whatever others have reserved.
  options = {.memory_bytes = (huge_page_bytes_free() / kHugePageBytes + 8) * kHugePageBytes,
             .huge_pages = HugePages::Explicit};
  std::string error = refusal(options, Status::NoSpace);
  CHECK(error.find("write " + std::to_string(huge_page_count() + 8) +
                   " to /proc/sys/vm/nr_hugepages") != std::string::npos);
  options.segment_bytes = kMiB;
  CHECK(refusal(options, Status::NoSpace).find("no whole number") != std::string::npos);
}

TEST_CASE("the arena lies in huge pages where the kernel makes them") {
  if (!private_memory_has_huge_pages()) return;
  auto pool = make_pool(
      {.memory_bytes = 64 * kMiB, .populate_full = true, .huge_pages = HugePages::Transparent});
  CHECK(reinterpret_cast<uintptr_t>(pool->base()) % kHugePageBytes == 0);
  REQUIRE(eventually([&] { return pool->statistics().populated_count == 64; }));
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream start;
  start << std::hex << reinterpret_cast<uintptr_t>(pool->base()) << '-';
  std::string line;
  while (std::getline(maps, line) && line.find(start.str()) != 0) {
  }
  while (std::getline(maps, line) && line.find("AnonHugePages:") != 0) {
  }
  // All of it unless memory is in fragments, which a test cannot help.
  CHECK(std::stoul(line.substr(line.find_first_of("0123456789"))) > 0);
}

TEST_CASE("a forked child has no arena") {
  auto pool = make_pool(16 * kMiB);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    unsigned char present = 0;
    bool absent = mincore(pool->base(), 4096, &present) == -1 && errno == ENOMEM;
    ::syscall(SYS_exit_group, absent ? 0 : 1);  // A sanitizer's _exit would miss the threads.
  }
  int outcome = 0;
  REQUIRE(waitpid(child, &outcome, 0) == child);
  CHECK(outcome == 0);
}

TEST_CASE("populating stays a few segments ahead of use") {
  auto pool = make_pool({.memory_bytes = 512 * kMiB, .segment_bytes = 64 * kMiB});
  CHECK(present_pages(*pool, 0) == 16384);
  REQUIRE(eventually([&] { return pool->statistics().populated_count == 4; }));
  // Not more: memory that is not used yet is left to others.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(pool->statistics().populated_count == 4);
  CHECK(present_pages(*pool, 7) == 0);
  for (int i = 0; i < 3; ++i) pool->acquire();
  CHECK(eventually([&] { return pool->statistics().populated_count == 7; }));
}

TEST_CASE("where segments are lent with their pages only, one that comes late is waited for") {
  auto pool =
      make_pool({.memory_bytes = 128 * kMiB, .segment_bytes = 16 * kMiB, .lend_untouched = false});
  for (int count = 0; count < 8; ++count) {
    SegmentId segment = kNoSegment;
    CHECK(eventually([&] {
      segment = pool->acquire();
      return segment != kNoSegment || !pool->is_arriving();
    }));
    REQUIRE(segment != kNoSegment);
    CHECK(present_pages(*pool, segment) == 4096);
  }
  CHECK(pool->acquire() == kNoSegment);
  CHECK(!pool->is_arriving());
}

TEST_CASE("full population covers every segment, lent ones too, and spares their content") {
  auto pool =
      make_pool({.memory_bytes = 256 * kMiB, .segment_bytes = 4 * kMiB, .populate_full = true});
  std::vector<SegmentId> lent;
  for (SegmentId segment = pool->acquire(); segment != kNoSegment; segment = pool->acquire()) {
    std::memset(pool->base() + segment * pool->segment_bytes(), 0x5a, 64);
    lent.push_back(segment);
  }
  CHECK(lent.size() == 64);
  REQUIRE(eventually([&] { return pool->statistics().populated_count == 64; }));
  uint32_t wrong = 0;
  for (SegmentId segment : lent) {
    wrong += present_pages(*pool, segment) != 1024;
    std::byte* start = pool->base() + segment * pool->segment_bytes();
    for (int i = 0; i < 64; ++i) wrong += start[i] != std::byte{0x5a};
  }
  CHECK(wrong == 0);
  CHECK(pool->statistics().populate_error.empty());
}

TEST_CASE("the end does not wait for population") {
  auto pool = make_pool({.memory_bytes = 2048 * kMiB, .populate_full = true});
  auto start = std::chrono::steady_clock::now();
  pool.reset();
  // 2 GiB take from half a second to several.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(200));
}

TEST_CASE("wants add up and are cancelled") {
  auto pool = make_pool(16 * kMiB);
  CHECK(pool->wanted_count() == 0);
  pool->want(2);
  pool->want(1);
  CHECK(pool->wanted_count() == 3);
  pool->cancel_want(2);
  CHECK(pool->wanted_count() == 1);
  CHECK(aborts([&] { pool->cancel_want(2); }));
}

TEST_CASE("borrowers in several threads never share a segment") {
  auto pool = make_pool({.memory_bytes = 64 * kMiB, .populate_threads = 3});
  std::vector<std::atomic<uint32_t>> holders(pool->segment_count());
  std::atomic<uint32_t> clashes{0};
  auto borrow = [&](uint32_t seed) {
    std::vector<SegmentId> held;
    for (uint32_t step = 0; step < 3000; ++step) {
      seed = seed * 1664525 + 1013904223;
      if (seed >> 31 || held.empty()) {
        SegmentId segment = pool->acquire();
        if (segment == kNoSegment) continue;
        clashes += holders[segment]++ != 0;
        pool->base()[segment * pool->segment_bytes() + seed % 4096] = std::byte{1};
        held.push_back(segment);
      } else {
        --holders[held.back()];
        pool->release(held.back());
        held.pop_back();
      }
      if (step % 512 == 0) clashes += pool->statistics().free_count > pool->segment_count();
    }
    for (SegmentId segment : held) --holders[segment], pool->release(segment);
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) threads.emplace_back(borrow, i);
  for (std::thread& thread : threads) thread.join();
  CHECK(clashes == 0);
  CHECK(pool->free_count() == 64);
}

}  // namespace
}  // namespace kvstrata
