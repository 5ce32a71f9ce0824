// Pipelined commands: fetches the memory that the next ones will look at into the cache, all at
// once, as a batch does for its keys.
#pragma once

#include <cstddef>

#include "store/native/pool.h"
#include "transport/native/bytes.h"

namespace kvstrata {

class Shard;

// `capsules` begins with a capsule of a connection to `pool`. Looks at those of the next few that
// are there whole and name one key of this shard; returns how many bytes need no further look.
// Trusts nothing it reads.
size_t look_ahead(Shard& shard, PoolId pool, Bytes capsules) noexcept;

}  // namespace kvstrata
