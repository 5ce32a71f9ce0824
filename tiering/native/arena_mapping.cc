#include "tiering/native/arena_mapping.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "tiering/native/machine_memory.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U  // Linux 6.3; some machines insist on it (vm.memfd_noexec).
#endif

namespace kvstrata {
namespace {

int open_memfd(unsigned flags) noexcept {
  flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int memfd = memfd_create("kvstrata-arena", flags | MFD_NOEXEC_SEAL);
  return memfd >= 0 || errno != EINVAL ? memfd : memfd_create("kvstrata-arena", flags);
}

std::string refusal(const char* call, uint64_t size_bytes) {
  return std::string(call) + " for " + std::to_string(size_bytes) +
         " bytes of arena failed: " + std::strerror(errno) + "; configure less memory";
}

}  // namespace

ArenaMapping::~ArenaMapping() { close(); }

void ArenaMapping::close() noexcept {
  if (base_ != nullptr) munmap(base_, size_bytes_);
  if (memfd_ >= 0) ::close(memfd_);
  base_ = nullptr;
  memfd_ = -1;
}

bool ArenaMapping::map(uint64_t size_bytes, unsigned memfd_flags, int map_flags,
                       std::string* error) {
  size_bytes_ = size_bytes;
  memfd_ = open_memfd(memfd_flags);
  const char* call = "memfd_create";
  bool good = memfd_ >= 0;
  if (good) {
    call = "ftruncate";
    good = ftruncate(memfd_, static_cast<off_t>(size_bytes)) == 0;
  }
  if (good) {
    call = "fcntl(F_ADD_SEALS)";
    good = fcntl(memfd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  }
  if (good) {
    call = "mmap";
    void* start =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | map_flags, memfd_, 0);
    good = start != MAP_FAILED;
    if (good) base_ = static_cast<std::byte*>(start);
  }
  if (good) return true;
  *error = refusal(call, size_bytes);
  close();
  return false;
}

bool ArenaMapping::open(uint64_t size_bytes, bool huge_pages, std::string* error) {
  assert(base_ == nullptr && size_bytes > 0);
  // Reserved pages are promised at mmap (hence no MAP_NORESERVE), so that using them cannot fail
  // later.
  bool mapped = huge_pages && size_bytes % kHugePageBytes == 0 &&
                huge_page_bytes_free() >= size_bytes &&
                map(size_bytes, MFD_HUGETLB | MFD_HUGE_2MB, 0, error);
  if (mapped) {
    huge_pages_ = "hugetlb";
  } else {
    if (!map(size_bytes, 0, MAP_NORESERVE, error)) return false;
    if (huge_pages && shared_memory_has_huge_pages() &&
        madvise(base_, size_bytes, MADV_HUGEPAGE) == 0) {
      huge_pages_ = "transparent";
    }
  }
  // A core dump of the node would be as large as the arena and full of tenants' values.
  madvise(base_, size_bytes, MADV_DONTDUMP);
  return true;
}

}  // namespace kvstrata
