#include "tiering/native/arena_mapping.h"

#include <linux/mman.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "tiering/native/machine_memory.h"
#include "tiering/native/page_mapping.h"

namespace kvstrata {
namespace {

std::string refusal(uint64_t size_bytes) {
  return "mmap for " + std::to_string(size_bytes) +
         " bytes of arena failed: " + std::strerror(errno) + "; configure less memory";
}

std::string too_few(uint64_t size_bytes) {
  uint64_t wanted = (size_bytes + kHugePageBytes - 1) / kHugePageBytes;
  uint64_t free = huge_page_bytes_free() / kHugePageBytes;
  uint64_t missing = wanted - std::min(free, wanted);
  return "huge pages are to be explicit, but of the " + std::to_string(wanted) + " of 2 MiB that " +
         std::to_string(size_bytes) + " bytes of memory take " + std::to_string(free) +
         " are free: write " + std::to_string(huge_page_count() + missing) +
         " to /proc/sys/vm/nr_hugepages as root, or more if that was not enough, or configure less"
         " memory";
}

}  // namespace

ArenaMapping::~ArenaMapping() {
  if (base_ != nullptr) unmap_pages(base_, size_bytes_);
}

// Reserved pages are promised at mmap (hence no MAP_NORESERVE), so that using them cannot fail
// later.
bool ArenaMapping::map_explicit(uint64_t size_bytes, uint64_t piece_bytes, std::string* error) {
  if (piece_bytes % kHugePageBytes != 0) {
    *error = "huge pages are to be explicit, but segments of " + std::to_string(piece_bytes) +
             " bytes are no whole number of 2 MiB pages";
    return false;
  }
  void* start = MAP_FAILED;
  if (huge_page_bytes_free() >= size_bytes) {
    start = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
  }
  if (start == MAP_FAILED) {
    *error = too_few(size_bytes);
    return false;
  }
  base_ = static_cast<std::byte*>(start);
  return true;
}

bool ArenaMapping::map_ordinary(uint64_t size_bytes, std::string* error) {
  base_ = map_pages(size_bytes);
  if (base_ == nullptr) *error = refusal(size_bytes);
  return base_ != nullptr;
}

bool ArenaMapping::open(uint64_t size_bytes, uint64_t piece_bytes, HugePages huge_pages,
                        std::string* error) {
  assert(base_ == nullptr && size_bytes > 0);
  if (huge_pages == HugePages::Transparent && !private_memory_has_huge_pages()) {
    *error =
        "huge pages are to be transparent, but this machine gives none: write madvise to"
        " /sys/kernel/mm/transparent_hugepage/enabled as root";
    return false;
  }
  bool may_be_explicit = huge_pages == HugePages::Auto || huge_pages == HugePages::Explicit;
  if (may_be_explicit && map_explicit(size_bytes, piece_bytes, error)) {
    huge_pages_ = "explicit";
  } else {
    if (huge_pages == HugePages::Explicit || !map_ordinary(size_bytes, error)) return false;
    bool advised = advise_huge_pages(base_, size_bytes, huge_pages != HugePages::Off);
    if (advised && huge_pages != HugePages::Off && private_memory_has_huge_pages()) {
      huge_pages_ = "transparent";
    }
  }
  size_bytes_ = size_bytes;
  error->clear();
  // A core dump of the node would be as large as the arena and full of tenants' values.
  madvise(base_, size_bytes, MADV_DONTDUMP);
  // A child has no use for it, and while it lived every page written here would be copied first.
  madvise(base_, size_bytes, MADV_DONTFORK);
  return true;
}

}  // namespace kvstrata
