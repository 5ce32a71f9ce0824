#include "store/native/look_ahead.h"

#include <array>

#include "store/native/node.h"
#include "store/native/partition.h"
#include "store/native/shard.h"
#include "store/native/slot.h"
#include "transport/native/capsule.h"

namespace kvstrata {

namespace {

// As many misses as a core can have under way, and few enough that nothing is evicted before use.
constexpr size_t kCapsuleCount = 16;

bool names_one_key(const RequestHeader& header) noexcept {
  auto opcode = static_cast<Opcode>(header.opcode);
  return header.entry_count == 1 && opcode_known(header.opcode) && opcode != Opcode::Scan &&
         opcode != Opcode::Admin && opcode != Opcode::Noop && !opcode_takes_handles(opcode);
}

// A capsule alone gains nothing.
bool holds_several(Bytes capsules) noexcept {
  RequestHeader header;
  return capsules.size() > kHeaderBytes && decode(capsules.data(), &header) &&
         capsules.size() > 2 * kHeaderBytes + header.body_length;
}

}  // namespace

size_t look_ahead(Shard& shard, PoolId pool, Bytes capsules) noexcept {
  ObjectStore& store = shard.store();
  const Partition* partition = store.partition(pool);
  if (partition == nullptr || !holds_several(capsules)) return capsules.size();
  uint32_t shard_count = shard.node().shard_count();
  std::array<uint64_t, kCapsuleCount> hashes;
  size_t hash_count = 0;
  size_t looked_at = 0;
  for (size_t count = 0; count < kCapsuleCount; ++count) {
    Bytes rest = capsules.subspan(looked_at);
    RequestHeader header;
    if (rest.size() < kHeaderBytes || !decode(rest.data(), &header)) break;
    size_t length = kHeaderBytes + header.body_length;
    if (rest.size() < length || header.data_length != 0) break;
    looked_at += length;
    if (!names_one_key(header)) continue;
    Entry entry;
    EntryReader reader(static_cast<Opcode>(header.opcode), 1,
                       rest.subspan(kHeaderBytes, header.body_length - header.attribute_length));
    if (!reader.next(&entry)) continue;
    if (shard_count > 1 && slot_shard(key_slot(entry.key), shard_count) != shard.index()) continue;
    hashes[hash_count++] = store.hash(entry.key);
  }
  store.prefetch(*partition, std::span(hashes).first(hash_count));
  return looked_at;
}

}  // namespace kvstrata
