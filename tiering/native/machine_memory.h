// What memory the kernel can grant this process: how much, and whether in huge pages.
#pragma once

#include <cstdint>

namespace kvstrata {

// The machine's memory, or the least limit of the cgroups this process is in where that is lower.
uint64_t memory_limit_bytes();

// Reserved huge pages (hugetlb) of kHugePageBytes that nobody uses yet.
constexpr uint64_t kHugePageBytes = 2 << 20;
uint64_t huge_page_bytes_free();

// True where shared memory gets transparent huge pages for the asking (shmem_enabled).
bool shared_memory_has_huge_pages();

}  // namespace kvstrata
