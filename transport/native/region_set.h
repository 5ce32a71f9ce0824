// Memory of this process that nodes on the same host may reach: values go straight to and from it.
// It belongs to a store, whose connections tell the node of it when they first use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/native/shared_memory.h"

namespace kvstrata {

class Region {
 public:
  explicit Region(std::unique_ptr<SharedMemory> memory) noexcept : memory_(std::move(memory)) {}

  MutableBytes bytes() const noexcept { return {memory_->data(), memory_->size()}; }
  bool contains(Bytes bytes) const noexcept {
    return bytes.data() >= memory_->data() &&
           bytes.data() + bytes.size() <= memory_->data() + memory_->size();
  }
  int fd() const noexcept { return memory_->fd(); }
  // Nobody is told of it any more; who was is told to forget it.
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

 private:
  friend class RegionSet;
  std::unique_ptr<SharedMemory> memory_;
  std::atomic<bool> closed_{false};
};

// Thread-safe.
class RegionSet {
 public:
  // Null on failure, and `error` says why.
  std::shared_ptr<Region> allocate(uint64_t bytes, std::string* error);
  void close(const std::shared_ptr<Region>& region) noexcept;

  // Changes with every region that comes or is closed.
  uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  // Those that are open.
  std::vector<std::shared_ptr<Region>> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Region>> regions_;
  std::atomic<uint64_t> version_{0};
};

}  // namespace kvstrata
