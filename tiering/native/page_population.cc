#include "tiering/native/page_population.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "store/limits.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14.
#endif

namespace kvstrata {
namespace {

constexpr size_t kStepBytes = 4 << 20;  // Up to 10 ms of faults: how late `stop` may be noticed.

}  // namespace

// Other threads may be writing there, and none of their bytes is lost.
__attribute__((no_sanitize("thread"))) void touch_pages(std::byte* start, size_t size) noexcept {
  for (size_t place = 0; place < size; place += limits::kPageBytes) {
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(start + place), 0, __ATOMIC_RELAXED);
  }
}

int populate_pages(std::byte* start, size_t size, const std::atomic<bool>& stop) noexcept {
  for (size_t place = 0; place < size && !stop; place += kStepBytes) {
    size_t step = std::min(kStepBytes, size - place);
    if (madvise(start + place, step, MADV_POPULATE_WRITE) == 0) continue;
    if (errno != EINVAL) return errno;
    touch_pages(start + place, step);
  }
  return 0;
}

}  // namespace kvstrata
