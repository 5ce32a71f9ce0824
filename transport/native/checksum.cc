#include "transport/native/checksum.h"

#include <xxhash.h>

#include "transport/native/checksum_kernel.h"

namespace kvstrata {
namespace {

// Up to here XXH3 takes its short paths, which gain nothing from wider vectors.
constexpr size_t kShortBytesMax = 240;

uint64_t hash(const void* data, size_t size) { return XXH3_64bits(data, size); }

void update(void* state, const void* data, size_t size) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state), data, size);
}

constexpr ChecksumKernel kBaselineKernel = {hash, update};

const ChecksumKernel& kernel() noexcept {
#if defined(__x86_64__)
  static const ChecksumKernel& chosen =
      __builtin_cpu_supports("avx2") ? kChecksumKernelAvx2 : kBaselineKernel;
  return chosen;
#else
  return kBaselineKernel;
#endif
}

}  // namespace

uint64_t chunk_checksum(std::span<const std::byte> data) noexcept {
  if (data.size() <= kShortBytesMax) return hash(data.data(), data.size());
  return kernel().hash(data.data(), data.size());
}

struct ChecksumStream::State {
  XXH3_state_t xxh3;
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) { reset(); }
ChecksumStream::~ChecksumStream() = default;
ChecksumStream::ChecksumStream(ChecksumStream&&) noexcept = default;
ChecksumStream& ChecksumStream::operator=(ChecksumStream&&) noexcept = default;

void ChecksumStream::reset() noexcept { XXH3_64bits_reset(&state_->xxh3); }

void ChecksumStream::update(std::span<const std::byte> data) noexcept {
  if (data.empty()) return;  // xxHash takes a null pointer for an error.
  kernel().update(&state_->xxh3, data.data(), data.size());
}

uint64_t ChecksumStream::digest() const noexcept { return XXH3_64bits_digest(&state_->xxh3); }

uint64_t key_hash(std::span<const std::byte> key, uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

}  // namespace kvstrata
