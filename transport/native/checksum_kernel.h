// The two loops of XXH3 that are worth faster instructions than the build's baseline.
//
// A file that defines a kernel for an instruction set is compiled with that set switched on, so it
// must not use inline functions of the standard library: the linker might keep that copy for the
// whole program, which would then fail on older processors.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace kvstrata {

struct ChecksumKernel {
  uint64_t (*hash)(const void* data, size_t size);
  void (*update)(void* state, const void* data, size_t size);  // `state` is an XXH3_state_t.
};

#if defined(__x86_64__)
extern const ChecksumKernel kChecksumKernelAvx2;
#endif

}  // namespace kvstrata
