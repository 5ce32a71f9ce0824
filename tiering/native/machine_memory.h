// What memory the kernel can grant this process: how much, and whether in huge pages.
#pragma once

#include <cstdint>

#include "tiering/native/page_mapping.h"

namespace kvstrata {

// The machine's memory, or the least limit of the cgroups this process is in where that is lower.
uint64_t memory_limit_bytes();

// Reserved huge pages (hugetlb) of kHugePageBytes, and the bytes of those that nobody uses yet.
uint64_t huge_page_count();
uint64_t huge_page_bytes_free();

// True where private, and where shared memory gets transparent huge pages for the asking.
bool private_memory_has_huge_pages();
bool shared_memory_has_huge_pages();

}  // namespace kvstrata
