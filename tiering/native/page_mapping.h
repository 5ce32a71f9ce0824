// Private memory straight from the kernel, laid so that huge pages fit in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvstrata {

constexpr uint64_t kHugePageBytes = 2 << 20;

// Maps `size_bytes`, whole pages, of fresh memory that starts at a multiple of kHugePageBytes.
// Nothing is promised: pages come with their first use. Null, with errno, when the kernel refuses.
std::byte* map_pages(uint64_t size_bytes) noexcept;
void unmap_pages(std::byte* start, uint64_t size_bytes) noexcept;

// Asks for transparent huge pages there, now and for what is present already (which the kernel
// gathers in its own time), or for none whatever the machine's default. False when the kernel has
// none to give.
bool advise_huge_pages(std::byte* start, uint64_t size_bytes, bool wanted) noexcept;

}  // namespace kvstrata
