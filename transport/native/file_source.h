// A file whose bytes are a write's value: they are read as they are sent, so a large file needs
// little memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "transport/native/bytes.h"

namespace kvstrata {

class FileSource {
 public:
  // Owns `fd` from now on. `checksums` are those of the pieces of its first `length` bytes: the
  // file has been read once, since a write announces them before its first byte.
  FileSource(int fd, uint64_t length, std::vector<uint64_t> checksums) noexcept
      : fd_(fd), length_(length), checksums_(std::move(checksums)) {}
  ~FileSource();
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  uint64_t length() const noexcept { return length_; }
  const std::vector<uint64_t>& checksums() const noexcept { return checksums_; }

  // What has gone since it was hashed, or cannot be read, becomes zeros: the length has been
  // announced and so many bytes must follow. The node finds that they don't match their checksum,
  // as it does for bytes that were changed, and stores nothing.
  void read(uint64_t offset, MutableBytes sink) const noexcept;

 private:
  int fd_;
  uint64_t length_;
  std::vector<uint64_t> checksums_;
};

}  // namespace kvstrata
