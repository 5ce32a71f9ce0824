// Makes the pages of a mapping present before they are used, so that no shard waits for a fault.
#pragma once

#include <atomic>
#include <cstddef>

namespace kvstrata {

// Populates [start, start + size) of a mapping, page-aligned; its content stays, so it may be in
// use meanwhile. Ends early once `stop` is set. Returns 0 or the kernel's errno.
int populate_pages(std::byte* start, size_t size, const std::atomic<bool>& stop) noexcept;

// The same by an atomic write that changes nothing to each page, for kernels before 5.14: reading
// would only show private memory the page of zeros.
void touch_pages(std::byte* start, size_t size) noexcept;

}  // namespace kvstrata
