// Pipelined commands of a Valkey client: fetches the memory that the next ones will look at into
// the cache, all at once.
#pragma once

#include <cstddef>

#include "store/native/pool.h"
#include "transport/native/resp_pipeline.h"

namespace kvstrata {

class Shard;

// For the first `count` commands of a connection to `pool`, whose keys are guessed to be their
// first arguments.
void look_ahead_resp(Shard& shard, PoolId pool, const RespPipeline& commands,
                     size_t count) noexcept;

}  // namespace kvstrata
