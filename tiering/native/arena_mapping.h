// The arena's address space, and the pages behind it. Knows nothing of segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvstrata {

enum class HugePages : uint8_t {
  Auto,  // Reserved ones if there are enough for all, else transparent ones if there are any.
  Off,   // None, whatever the machine's default.
  Transparent,  // Those the kernel makes where it can; refused where it makes none.
  Explicit,     // Those reserved in vm.nr_hugepages; refused where there are too few.
};

class ArenaMapping {
 public:
  ArenaMapping() = default;
  ~ArenaMapping();
  ArenaMapping(const ArenaMapping&) = delete;
  ArenaMapping& operator=(const ArenaMapping&) = delete;

  // Maps `size_bytes` of fresh private memory, of which pieces of `piece_bytes` may later be backed
  // by other pages each. False, with the reason and what to do in `error`,
  // when the kernel refuses, or has not the huge pages that are insisted on; the object is as new
  // then.
  bool open(uint64_t size_bytes, uint64_t piece_bytes, HugePages huge_pages, std::string* error);

  std::byte* base() const noexcept { return base_; }
  // What the kernel granted: "none", "transparent" or "explicit".
  const char* huge_pages() const noexcept { return huge_pages_; }

 private:
  bool map_explicit(uint64_t size_bytes, uint64_t piece_bytes, std::string* error);
  bool map_ordinary(uint64_t size_bytes, std::string* error);

  std::byte* base_ = nullptr;
  uint64_t size_bytes_ = 0;
  const char* huge_pages_ = "none";
};

}  // namespace kvstrata
