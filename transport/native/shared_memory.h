// Memory that two processes map: a memfd whose size nobody can change, so that touching it never
// faults, whatever the other process does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/native/bytes.h"
#include "transport/native/socket.h"

namespace kvstrata {

enum class Access : uint8_t { Read = 1, ReadWrite = 3 };

class SharedMemory {
 public:
  // New memory, all zeros. `name` is what tools show of it. Null on failure, and `error` says why.
  static std::unique_ptr<SharedMemory> create(const char* name, uint64_t bytes, std::string* error);
  // The first `bytes` of what another process has made and sealed. Null if it is no such memory, or
  // smaller: then its maker could have this process killed by shrinking it.
  static std::unique_ptr<SharedMemory> map(const Socket& descriptor, uint64_t bytes, Access access,
                                           std::string* error);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Takes its pages now, so that nobody who touches it first waits for them.
  void populate() noexcept;

  std::byte* data() const noexcept { return data_; }
  uint64_t size() const noexcept { return size_; }
  // For whom it is to be shared with; -1 where it was made by others.
  int fd() const noexcept { return descriptor_.fd(); }
  // It is shared with nobody else from now on.
  void close_descriptor() noexcept { descriptor_.close(); }

 private:
  SharedMemory(Socket descriptor, void* data, uint64_t size) noexcept
      : descriptor_(std::move(descriptor)), data_(static_cast<std::byte*>(data)), size_(size) {}

  Socket descriptor_;
  std::byte* data_;
  uint64_t size_;
};

}  // namespace kvstrata
