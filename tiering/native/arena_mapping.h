// The memfd behind the arena and its one mapping. Knows nothing of segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvstrata {

class ArenaMapping {
 public:
  ArenaMapping() = default;
  ~ArenaMapping();
  ArenaMapping(const ArenaMapping&) = delete;
  ArenaMapping& operator=(const ArenaMapping&) = delete;

  // Maps `size_bytes` of fresh shared memory, in reserved huge pages if wanted and if enough of
  // them are free. False, with the reason in `error`, when the kernel refuses; the object is as new
  // then.
  bool open(uint64_t size_bytes, bool huge_pages, std::string* error);

  std::byte* base() const noexcept { return base_; }
  int memfd() const noexcept { return memfd_; }
  const char* huge_pages() const noexcept { return huge_pages_; }

 private:
  bool map(uint64_t size_bytes, unsigned memfd_flags, int map_flags, std::string* error);
  void close() noexcept;

  int memfd_ = -1;
  std::byte* base_ = nullptr;
  uint64_t size_bytes_ = 0;
  const char* huge_pages_ = "none";
};

}  // namespace kvstrata
