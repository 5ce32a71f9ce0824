#include "transport/native/region_set.h"

#include <utility>

namespace kvstrata {

RegionMemory RegionSet::allocate(uint64_t bytes, std::string* error) {
  RegionMemory memory = SharedMemory::create("kvstrata-region", bytes, error);
  if (memory == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  regions_.push_back(memory);
  version_.fetch_add(1, std::memory_order_release);
  return memory;
}

void RegionSet::remove(const RegionMemory& memory) {
  std::lock_guard lock(mutex_);
  if (std::erase(regions_, memory) != 0) version_.fetch_add(1, std::memory_order_release);
}

std::vector<RegionMemory> RegionSet::all() const {
  std::lock_guard lock(mutex_);
  return regions_;
}

}  // namespace kvstrata
