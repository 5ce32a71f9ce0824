#include "tiering/native/page_mapping.h"

#include <sys/mman.h>

namespace kvstrata {

std::byte* map_pages(uint64_t size_bytes) noexcept {
  void* start = mmap(nullptr, size_bytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(start);
  uint64_t before = -reinterpret_cast<uintptr_t>(first) % kHugePageBytes;
  if (before > 0) munmap(first, before);
  if (before < kHugePageBytes) munmap(first + before + size_bytes, kHugePageBytes - before);
  return first + before;
}

void unmap_pages(std::byte* start, uint64_t size_bytes) noexcept { munmap(start, size_bytes); }

bool advise_huge_pages(std::byte* start, uint64_t size_bytes, bool wanted) noexcept {
  return madvise(start, size_bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0;
}

}  // namespace kvstrata
