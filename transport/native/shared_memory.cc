#include "transport/native/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kvstrata {

namespace {

constexpr uint64_t kHugePageBytes = 2 << 20;
constexpr int kMadvisePopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string said_by_system(const std::string& what) { return what + ": " + std::strerror(errno); }

void* map_all(int fd, uint64_t bytes, Access access) noexcept {
  int protection = access == Access::ReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  // Both ends must ask for them, and where there are none, small pages serve.
  if (data != MAP_FAILED && bytes >= kHugePageBytes) ::madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

// An empty text, or why the descriptor is not memory that is safe to map.
std::string find_fault(int fd, uint64_t bytes) {
  struct statfs system{};
  int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || ::fstatfs(fd, &system) != 0) return "the descriptor is not a memfd";
  // Its pages may be wanting when they are touched, which kills who touches them.
  if (static_cast<unsigned long>(system.f_type) == HUGETLBFS_MAGIC) {
    return "a memfd of reserved huge pages is not taken";
  }
  if ((seals & F_SEAL_SHRINK) == 0) return "the memfd is not sealed against shrinking";
  struct stat status{};
  if (::fstat(fd, &status) != 0) return said_by_system("the memfd has no size");
  if (static_cast<uint64_t>(status.st_size) >= bytes) return {};
  return "the memfd has " + std::to_string(status.st_size) + " bytes, not the " +
         std::to_string(bytes) + " announced";
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::create(const char* name, uint64_t bytes,
                                                   std::string* error) {
  Socket descriptor(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor || ::ftruncate(descriptor.fd(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(descriptor.fd(), F_ADD_SEALS, kSeals) != 0) {
    *error = said_by_system("no shared memory of " + std::to_string(bytes) + " bytes can be had");
    return nullptr;
  }
  void* data = map_all(descriptor.fd(), bytes, Access::ReadWrite);
  if (data == MAP_FAILED) {
    *error = said_by_system("shared memory of " + std::to_string(bytes) + " bytes can't be mapped");
    return nullptr;
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(descriptor), data, bytes));
}

std::unique_ptr<SharedMemory> SharedMemory::map(const Socket& descriptor, uint64_t bytes,
                                                Access access, std::string* error) {
  *error = bytes == 0 ? "memory of 0 bytes cannot be mapped" : find_fault(descriptor.fd(), bytes);
  if (!error->empty()) return nullptr;
  void* data = map_all(descriptor.fd(), bytes, access);
  if (data == MAP_FAILED) {
    *error = said_by_system("memory of " + std::to_string(bytes) + " bytes can't be mapped");
    return nullptr;
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(Socket(), data, bytes));
}

// Where the kernel does not do so (before 5.14), they come one by one.
void SharedMemory::populate() noexcept { ::madvise(data_, size_, kMadvisePopulateWrite); }

SharedMemory::~SharedMemory() { ::munmap(data_, size_); }

}  // namespace kvstrata
