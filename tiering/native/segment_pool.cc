#include "tiering/native/segment_pool.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "store/limits.h"
#include "tiering/native/machine_memory.h"
#include "tiering/native/page_population.h"

namespace kvstrata {
namespace {

// Populated ahead of use: at least two segments, so that two shards growing at once find one each.
constexpr uint64_t kAheadBytes = 256 << 20;
constexpr uint32_t kAheadSegments = 2;

uint64_t choose_segment_bytes(const SegmentPoolOptions& options) {
  if (options.segment_bytes != 0) return options.segment_bytes;
  uint64_t least = options.huge_pages == HugePages::Explicit
                       ? std::max<uint64_t>(kHugePageBytes, limits::kSegmentBytesMin)
                       : limits::kSegmentBytesMin;
  // About 128 segments: few enough to be cheap to scan, enough to share out among shards evenly.
  return std::clamp<uint64_t>(std::bit_floor(options.memory_bytes / 128), least,
                              limits::kSegmentBytesMax);
}

std::string describe_fault(const SegmentPoolOptions& options) {
  std::string memory = "memory_bytes is " + std::to_string(options.memory_bytes);
  if (options.memory_bytes < limits::kMemoryBytesMin) {
    return memory + ", but a node needs at least " + std::to_string(limits::kMemoryBytesMin);
  }
  uint64_t limit = memory_limit_bytes();
  if (options.memory_bytes > limit) {
    return memory + ", but this machine (or its cgroup) has only " + std::to_string(limit) +
           " in all: configure less";
  }
  uint64_t segment = options.segment_bytes;
  if (segment != 0 && (!std::has_single_bit(segment) || segment < limits::kSegmentBytesMin ||
                       segment > limits::kSegmentBytesMax || segment > options.memory_bytes)) {
    return "segment_bytes is " + std::to_string(segment) + ", but must be a power of two from " +
           std::to_string(limits::kSegmentBytesMin) + " to " +
           std::to_string(limits::kSegmentBytesMax) + " and at most memory_bytes, or 0";
  }
  if (options.populate_threads == 0) return "populate_threads is 0, but must be at least 1";
  return "";
}

}  // namespace

// The free segments are `ready` plus all from `untouched` up. Segments below `untouched` are
// populated, being populated, or in `behind`: lent before any thread came to them, which is made
// good while they are in use.
struct SegmentPool::State {
  ArenaMapping arena;
  uint64_t segment_bytes = 0;
  uint32_t segment_count = 0;
  bool wants_huge_pages = true;
  uint32_t ahead_count = 0;  // How many the threads keep in `ready`.

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool lend_untouched = true;
  uint32_t under_way_count = 0;  // Being populated and not yet in `ready`.
  std::vector<SegmentId> ready;  // Taken from the back; with `lend_untouched`, those being
                                 // populated lie in front.
  std::vector<SegmentId> behind;
  std::vector<bool> lent;
  SegmentId untouched = 0;
  uint32_t populated_count = 0;
  int populate_errno = 0;

  std::atomic<bool> stop{false};
  std::atomic<uint32_t> free_count{0};
  std::atomic<uint32_t> wanted_count{0};
  std::vector<std::thread> threads;

  void start(uint32_t thread_count);
  void end() noexcept;
  void populate_loop();
  int populate(SegmentId segment) noexcept;
  SegmentId next_to_populate();
  bool all_begun() const { return untouched == segment_count && behind.empty(); }
};

int SegmentPool::State::populate(SegmentId segment) noexcept {
  return populate_pages(arena.base() + segment * segment_bytes, segment_bytes, stop);
}

SegmentId SegmentPool::State::next_to_populate() {
  if (!behind.empty()) {
    SegmentId segment = behind.back();
    behind.pop_back();
    return segment;
  }
  if (untouched == segment_count || ready.size() + under_way_count >= ahead_count) {
    return kNoSegment;
  }
  if (lend_untouched) {
    ready.insert(ready.begin(), untouched);
  } else {
    ++under_way_count;
  }
  return untouched++;
}

void SegmentPool::State::populate_loop() {
  // Signals are for the threads that expect them, such as Python's main thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  std::unique_lock lock(mutex);
  while (!stop && populate_errno == 0 && !all_begun()) {
    SegmentId segment = next_to_populate();
    if (segment == kNoSegment) {
      changed.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    lock.unlock();
    int outcome = populate(segment);
    lock.lock();
    // After a failure segments are still lent and populated by use, as far as the kernel lets them.
    if (outcome != 0) populate_errno = outcome;
    if (outcome == 0 && !stop) ++populated_count;
    if (!lend_untouched) {
      --under_way_count;
      ready.push_back(segment);
    }
  }
}

void SegmentPool::State::start(uint32_t thread_count) {
  thread_count = std::min(thread_count, ahead_count);
  threads.reserve(thread_count);
  for (uint32_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([this] { populate_loop(); });
  }
}

void SegmentPool::State::end() noexcept {
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  changed.notify_all();
  for (std::thread& thread : threads) thread.join();
}

SegmentPool::SegmentPool(std::unique_ptr<State> state) : state_(std::move(state)) {}

SegmentPool::~SegmentPool() { state_->end(); }

Status SegmentPool::create(const SegmentPoolOptions& options, std::unique_ptr<SegmentPool>* pool,
                           std::string* error) {
  *error = describe_fault(options);
  if (!error->empty()) return Status::Invalid;
  try {
    auto state = std::make_unique<State>();
    state->lend_untouched = options.lend_untouched;
    state->wants_huge_pages = options.huge_pages != HugePages::Off;
    state->segment_bytes = choose_segment_bytes(options);
    state->segment_count = static_cast<uint32_t>(options.memory_bytes / state->segment_bytes);
    state->ahead_count = std::max<uint32_t>(
        kAheadSegments, static_cast<uint32_t>(kAheadBytes / state->segment_bytes));
    state->ahead_count = options.populate_full ? state->segment_count
                                               : std::min(state->ahead_count, state->segment_count);
    // All the room that the lists can ever need, so that acquire and release cannot fail.
    state->ready.reserve(state->segment_count);
    state->behind.reserve(state->segment_count);
    state->lent.resize(state->segment_count);
    if (!state->arena.open(state->segment_count * state->segment_bytes, state->segment_bytes,
                           options.huge_pages, error)) {
      return Status::NoSpace;
    }
    if (int outcome = state->populate(0); outcome != 0) {
      *error = std::string("the first segment got no pages: ") + std::strerror(outcome);
      return Status::NoSpace;
    }
    state->populated_count = 1;
    state->untouched = 1;
    state->ready.push_back(0);
    state->free_count = state->segment_count;
    pool->reset(new SegmentPool(std::move(state)));
    (*pool)->state_->start(options.populate_threads);
    return Status::Ok;
  } catch (const std::bad_alloc&) {
    *error = "the heap has no room for the segment pool's tables";
  } catch (const std::system_error& fault) {
    *error = std::string("a thread to populate memory could not start: ") + fault.what();
  }
  pool->reset();
  return Status::NoSpace;
}

std::byte* SegmentPool::base() const noexcept { return state_->arena.base(); }
uint64_t SegmentPool::segment_bytes() const noexcept { return state_->segment_bytes; }
uint32_t SegmentPool::segment_count() const noexcept { return state_->segment_count; }
bool SegmentPool::wants_huge_pages() const noexcept { return state_->wants_huge_pages; }

SegmentId SegmentPool::acquire() noexcept {
  SegmentId segment = kNoSegment;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->ready.empty()) {
      segment = state_->ready.back();
      state_->ready.pop_back();
    } else if (state_->untouched < state_->segment_count &&
               (state_->lend_untouched || state_->populate_errno != 0)) {
      segment = state_->untouched++;
      state_->behind.push_back(segment);
    } else {
      state_->changed.notify_one();
      return kNoSegment;
    }
    assert(!state_->lent[segment]);
    state_->lent[segment] = true;
    --state_->free_count;
  }
  state_->changed.notify_one();
  return segment;
}

void SegmentPool::release(SegmentId segment) noexcept {
  std::lock_guard lock(state_->mutex);
  assert(segment < state_->segment_count);
  assert(state_->lent[segment]);
  state_->lent[segment] = false;
  state_->ready.push_back(segment);
  ++state_->free_count;
}

uint32_t SegmentPool::free_count() const noexcept { return state_->free_count; }

bool SegmentPool::is_arriving() const noexcept {
  std::lock_guard lock(state_->mutex);
  return state_->ready.empty() && state_->free_count != 0;
}

void SegmentPool::want(uint32_t count) noexcept { state_->wanted_count += count; }

void SegmentPool::cancel_want(uint32_t count) noexcept {
  uint32_t before = state_->wanted_count.fetch_sub(count);
  assert(before >= count);
  static_cast<void>(before);
}

uint32_t SegmentPool::wanted_count() const noexcept { return state_->wanted_count; }

SegmentPoolStatistics SegmentPool::statistics() const {
  std::lock_guard lock(state_->mutex);
  return {
      .memory_bytes = state_->segment_count * state_->segment_bytes,
      .segment_bytes = state_->segment_bytes,
      .segment_count = state_->segment_count,
      .free_count = state_->free_count,
      .populated_count = state_->populated_count,
      .huge_pages = state_->arena.huge_pages(),
      .populate_error = state_->populate_errno == 0 ? "" : std::strerror(state_->populate_errno)};
}

}  // namespace kvstrata
