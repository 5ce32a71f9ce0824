// Little-endian integers in raw memory, and a growing byte buffer that does not clear what it
// allocates.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace kvstrata {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

static_assert(std::endian::native == std::endian::little,
              "big-endian machines need byte swaps here");

template <typename Integer>
Integer load_le(const std::byte* from) noexcept {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename Integer>
void store_le(std::byte* to, Integer value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

inline Bytes as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool equal(Bytes left, Bytes right) noexcept {
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ~ByteBuffer() { std::free(data_); }
  ByteBuffer(ByteBuffer&& other) noexcept { swap(other); }
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  Bytes view() const noexcept { return {data_, size_}; }
  void clear() noexcept { size_ = 0; }
  void truncate(size_t size) noexcept { size_ = size < size_ ? size : size_; }
  void release_memory() noexcept { *this = ByteBuffer(); }

  // Room for `count` more bytes, uninitialised; the returned pointer is where they begin. Throws
  // std::bad_alloc.
  std::byte* extend(size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    std::byte* begin = data_ + size_;
    size_ += count;
    return begin;
  }
  void append(Bytes bytes) {
    if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
  }
  template <typename Integer>
  void append_le(Integer value) {
    store_le(extend(sizeof value), value);
  }
  void erase_front(size_t count) noexcept {
    size_ -= count;
    if (size_ != 0) std::memmove(data_, data_ + count, size_);
  }

 private:
  void swap(ByteBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void grow(size_t needed) {
    size_t capacity = capacity_ == 0 ? 256 : capacity_;
    while (capacity < needed) capacity *= 2;
    auto* data = static_cast<std::byte*>(std::realloc(data_, capacity));
    if (data == nullptr) throw std::bad_alloc();
    data_ = data;
    capacity_ = capacity;
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace kvstrata
