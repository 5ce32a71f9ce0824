#include "transport/native/region_set.h"

#include <utility>

namespace kvstrata {

std::shared_ptr<Region> RegionSet::allocate(uint64_t bytes, std::string* error) {
  auto memory = SharedMemory::create("kvstrata-region", bytes, error);
  if (memory == nullptr) return nullptr;
  memory->populate();
  auto region = std::make_shared<Region>(std::move(memory));
  std::lock_guard lock(mutex_);
  regions_.push_back(region);
  version_.fetch_add(1, std::memory_order_release);
  return region;
}

void RegionSet::close(const std::shared_ptr<Region>& region) noexcept {
  std::lock_guard lock(mutex_);
  region->closed_.store(true, std::memory_order_release);
  std::erase(regions_, region);
  version_.fetch_add(1, std::memory_order_release);
}

std::vector<std::shared_ptr<Region>> RegionSet::all() const {
  std::lock_guard lock(mutex_);
  return regions_;
}

}  // namespace kvstrata
