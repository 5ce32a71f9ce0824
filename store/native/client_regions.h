// Memory of one client that this node reads and writes on its behalf, by the ids that the client
// has given it. Belongs to the thread of the connection's shard.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/native/capsule.h"
#include "transport/native/shared_memory.h"

namespace kvstrata {

class Node;

class ClientRegions {
 public:
  explicit ClientRegions(Node* node) noexcept : node_(node) {}
  ~ClientRegions();
  ClientRegions(const ClientRegions&) = delete;
  ClientRegions& operator=(const ClientRegions&) = delete;

  // A region as transfers hold it: it stays mapped until the last has ended.
  using Memory = std::shared_ptr<SharedMemory>;

  // `rights`: what the node may do there, kRegionRead and kRegionWrite. Returns: Ok; Invalid (the
  // id is taken, or the rights or the descriptor are none); TooLarge (this client or all of them
  // have as much as they may).
  Status add(uint32_t id, uint32_t rights, uint64_t bytes, const Socket& descriptor);
  // No transfer can name it from now on; those that do go on. Null if there is none.
  Memory remove(uint32_t id) noexcept;

  // The memory that a descriptor names, if all of it lies in a region with that right; `keeps`
  // holds it. Empty otherwise.
  MutableBytes find(const Descriptor& descriptor, uint32_t right, Memory* keeps) const noexcept;
  bool contains(const Descriptor& descriptor, uint32_t right) const noexcept {
    Memory unused;
    return !find(descriptor, right, &unused).empty();
  }

 private:
  struct Region {
    Memory memory;
    uint32_t rights;
  };
  Memory mapped(const Socket& descriptor, uint64_t bytes, uint32_t rights);

  Node* node_;
  std::unordered_map<uint32_t, Region> regions_;
};

}  // namespace kvstrata
