#include "store/native/client_regions.h"

#include <string>
#include <utility>

#include "store/limits.h"
#include "store/native/node.h"

namespace kvstrata {

// What is let go of last is unmapped by others than the shard's loop.
ClientRegions::~ClientRegions() {
  for (auto& [id, region] : regions_) node_->copiers().dispose(std::move(region.memory));
}

Status ClientRegions::add(uint32_t id, uint32_t rights, uint64_t bytes, const Socket& descriptor) {
  bool known_rights = rights != 0 && (rights & ~(kRegionRead | kRegionWrite)) == 0;
  if (!known_rights || !descriptor || regions_.contains(id)) return Status::Invalid;
  if (regions_.size() == limits::kRegionCountMax || !node_->take_region_room(bytes)) {
    return Status::TooLarge;
  }
  Memory memory = mapped(descriptor, bytes, rights);
  if (memory == nullptr) return Status::Invalid;
  regions_.emplace(id, Region{std::move(memory), rights});
  return Status::Ok;
}

// The room it takes is given back with it, by whoever lets go of it last.
ClientRegions::Memory ClientRegions::mapped(const Socket& descriptor, uint64_t bytes,
                                            uint32_t rights) {
  std::string error;
  Access access = (rights & kRegionWrite) != 0 ? Access::ReadWrite : Access::Read;
  auto memory = SharedMemory::map(descriptor, bytes, access, &error);
  if (memory == nullptr) {
    node_->give_back_region_room(bytes);
    return nullptr;
  }
  return Memory(memory.release(), [node = node_](SharedMemory* gone) {
    node->give_back_region_room(gone->size());
    delete gone;
  });
}

ClientRegions::Memory ClientRegions::remove(uint32_t id) noexcept {
  auto found = regions_.find(id);
  if (found == regions_.end()) return nullptr;
  Memory memory = std::move(found->second.memory);
  regions_.erase(found);
  return memory;
}

MutableBytes ClientRegions::find(const Descriptor& descriptor, uint32_t right,
                                 Memory* keeps) const noexcept {
  auto found = regions_.find(descriptor.rkey);
  if (found == regions_.end() || (found->second.rights & right) == 0) return {};
  const SharedMemory& memory = *found->second.memory;
  bool within =
      descriptor.length <= memory.size() && descriptor.address <= memory.size() - descriptor.length;
  if (!within) return {};
  *keeps = found->second.memory;
  return {memory.data() + descriptor.address, descriptor.length};
}

}  // namespace kvstrata
