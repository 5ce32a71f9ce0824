// Makes the pages of a mapping present before they are used, so that no shard waits for a fault.
#pragma once

#include <atomic>
#include <cstddef>

namespace kvstrata {

// Populates [start, start + size) of a shared mapping, page-aligned; its content stays, so it may
// be in use meanwhile. Ends early once `stop` is set. Returns 0 or the kernel's errno.
int populate_pages(std::byte* start, size_t size, const std::atomic<bool>& stop) noexcept;

// The same by reading a byte of each page, for kernels before 5.14. On shared memory a read fault
// allocates the page.
void touch_pages(const std::byte* start, size_t size) noexcept;

}  // namespace kvstrata
