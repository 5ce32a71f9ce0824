#include <doctest/doctest.h>

#include <vector>

#include "store/native/slot.h"

namespace kvstrata {

TEST_CASE("slots are those of Valkey cluster") {
  CHECK(key_slot(as_bytes("123456789")) == 0x31C3 % limits::kSlotCount);
  CHECK(key_slot(as_bytes("")) == 0);
  CHECK(key_slot(as_bytes("foo")) == 12182);
  CHECK(key_slot(as_bytes("hello")) == 866);
}

TEST_CASE("a hash tag alone decides the slot") {
  uint16_t tagged = key_slot(as_bytes("{user1000}.following"));
  CHECK(tagged == 3443);
  CHECK(key_slot(as_bytes("{user1000}.followers")) == tagged);
  CHECK(key_slot(as_bytes("user1000")) == tagged);
  CHECK(key_slot(as_bytes("foo{bar}{zap}")) == key_slot(as_bytes("bar")));
  CHECK(key_slot(as_bytes("foo{{bar}}zap")) == key_slot(as_bytes("{bar")));
}

TEST_CASE("braces that enclose nothing are part of the key") {
  CHECK(key_slot(as_bytes("foo{}{bar}")) == 8363);
  CHECK(key_slot(as_bytes("foo{}{bar}")) != key_slot(as_bytes("bar")));
  CHECK(key_slot(as_bytes("foo{bar")) != key_slot(as_bytes("bar")));
  CHECK(key_slot(as_bytes("foo}bar{")) != key_slot(as_bytes("foo")));
}

TEST_CASE("slots are spread evenly over shards, in order") {
  for (uint32_t shard_count : {1u, 3u, 16u, 64u}) {
    std::vector<uint32_t> counts(shard_count);
    uint32_t last = 0;
    for (uint32_t slot = 0; slot < limits::kSlotCount; ++slot) {
      uint32_t shard = slot_shard(static_cast<uint16_t>(slot), shard_count);
      REQUIRE(shard < shard_count);
      REQUIRE(shard >= last);
      last = shard;
      ++counts[shard];
    }
    for (uint32_t count : counts) CHECK(count - limits::kSlotCount / shard_count <= 1);
  }
}

}  // namespace kvstrata
