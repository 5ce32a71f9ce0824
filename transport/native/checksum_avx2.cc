// Compiled with -mavx2 on x86-64; elsewhere not part of the build. See checksum_kernel.h for what
// is forbidden here.
#include <xxhash.h>

#include "transport/native/checksum_kernel.h"

static_assert(XXH_VECTOR == XXH_AVX2, "compile this file with -mavx2");

namespace kvstrata {
namespace {

uint64_t hash(const void* data, size_t size) { return XXH3_64bits(data, size); }

void update(void* state, const void* data, size_t size) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state), data, size);
}

}  // namespace

const ChecksumKernel kChecksumKernelAvx2 = {hash, update};

}  // namespace kvstrata
