#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "store/native/slot.h"

namespace kvstrata {

TEST_CASE("slots are those of Valkey cluster") {
  CHECK(key_slot(as_bytes("123456789")) == 0x31C3 % limits::kSlotCount);
  CHECK(key_slot(as_bytes("")) == 0);
  CHECK(key_slot(as_bytes("foo")) == 12182);
  CHECK(key_slot(as_bytes("hello")) == 866);
}

TEST_CASE("keys of all lengths have the slots that the polynomial says") {
  std::string key;
  for (uint32_t length = 0; length < 100; ++length) {
    uint32_t crc = 0;  // CRC16/XMODEM bit by bit.
    for (char character : key) {
      crc ^= static_cast<uint32_t>(static_cast<uint8_t>(character)) << 8;
      for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x11021 : 0);
    }
    REQUIRE(key_slot(as_bytes(key)) == crc % limits::kSlotCount);
    key.push_back(static_cast<char>('z' + 37 * length));
    if (key.back() == '{') key.back() = '}';
  }
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
