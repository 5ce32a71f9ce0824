// How fuzz targets read their input: as a stream of capsules whose CRCs are mended, so that the
// fuzzer gets past them, and as numbers taken off the front.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "transport/native/capsule.h"
#include "transport/native/crc32c.h"
#include "transport/native/hello.h"

namespace kvstrata {

// Unlike assert, also in release builds.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// A copy without slack, so that a read beyond the end is seen.
inline std::vector<std::byte> exact_copy(const uint8_t* data, size_t size) {
  auto* begin = reinterpret_cast<const std::byte*>(data);
  return {begin, begin + size};
}

inline void mend_hello(std::vector<std::byte>* hello) {
  if (hello->size() < kHelloPrefixBytes) return;
  uint32_t crc = crc32c(Bytes(*hello).first(12));
  store_le(hello->data() + 12, crc32c(Bytes(*hello).subspan(kHelloPrefixBytes), crc));
}

// Mends the CRC of each capsule that lies whole in the stream, as far as lengths lead.
inline void mend_capsules(std::vector<std::byte>* stream) {
  size_t at = 0;
  while (stream->size() - at >= kHeaderBytes) {
    std::byte* header = stream->data() + at;
    size_t length = kHeaderBytes + load_le<uint32_t>(header + 12);
    if (length > stream->size() - at) return;
    store_le(header, crc32c(Bytes(*stream).subspan(at + 4, length - 4)));
    at += length;
    auto data_length = load_le<uint64_t>(header + 16);
    if (data_length > stream->size() - at) return;
    at += data_length;
  }
}

}  // namespace kvstrata
