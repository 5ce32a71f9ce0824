// Memory of this process that nodes on the same host may reach: values go straight to and from it.
// Belongs to a store, whose connections tell the node of it when they first use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/native/shared_memory.h"

namespace kvstrata {

using RegionMemory = std::shared_ptr<const SharedMemory>;

// Thread-safe.
class RegionSet {
 public:
  // Null on failure, and `error` says why.
  RegionMemory allocate(uint64_t bytes, std::string* error);
  // Nobody is to be told of it any more; who was is told to forget it.
  void remove(const RegionMemory& memory);

  // Changes with every call of the above.
  uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  std::vector<RegionMemory> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<RegionMemory> regions_;
  std::atomic<uint64_t> version_{0};
};

}  // namespace kvstrata
