#include "store/native/resp_look_ahead.h"

#include <array>

#include "store/native/node.h"
#include "store/native/partition.h"
#include "store/native/shard.h"
#include "store/native/slot.h"

namespace kvstrata {

void look_ahead_resp(Shard& shard, PoolId pool, const RespPipeline& commands,
                     size_t count) noexcept {
  ObjectStore& store = shard.store();
  const Partition* partition = store.partition(pool);
  // One alone gains nothing.
  if (count < 2 || partition == nullptr) return;
  uint32_t shard_count = shard.node().shard_count();
  std::array<uint64_t, RespPipeline::kCommandCountMax> hashes;
  size_t key_count = 0;
  for (size_t index = 0; index < count; ++index) {
    RespArguments arguments = commands.arguments(index);
    if (arguments.size() < 2) continue;
    Bytes key = arguments[1];
    bool is_here = shard_count == 1 || slot_shard(key_slot(key), shard_count) == shard.index();
    if (is_here) hashes[key_count++] = store.hash(key);
  }
  store.prefetch(*partition, std::span(hashes).first(key_count));
}

}  // namespace kvstrata
