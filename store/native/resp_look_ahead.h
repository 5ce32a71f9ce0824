// Pipelined commands of a Valkey client: fetches the memory that the next ones will look at into
// the cache, all at once.
#pragma once

#include <cstddef>

#include "store/native/pool.h"
#include "transport/native/bytes.h"

namespace kvstrata {

class Shard;

// `commands` begins with one of a connection to `pool`. Looks at the first argument of the next few
// that are there whole; returns how many bytes need no further look. Trusts nothing it reads.
size_t look_ahead_resp(Shard& shard, PoolId pool, Bytes commands) noexcept;

}  // namespace kvstrata
