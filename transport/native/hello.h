// The hello that opens a connection (transport/PROTOCOL.md, section 1).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "transport/native/bytes.h"
#include "transport/native/status.h"

namespace kvstrata {

constexpr size_t kHelloPrefixBytes = 16;
constexpr std::byte kCapsuleFirstByte{0xCB};
constexpr uint32_t kNoShard = UINT32_MAX;

using NodeId = std::array<std::byte, 16>;

// Bits of what both ends can do beyond the base.
constexpr uint64_t kFeatureRings = 1;  // Capsules travel through shared memory, and regions.

constexpr uint32_t kRightRead = 1;
constexpr uint32_t kRightWrite = 2;
constexpr uint32_t kRightAdmin = 4;

struct HelloPrefix {
  uint16_t version_lowest = 0;   // In an answer: the version chosen, 0 when refused.
  uint16_t version_highest = 0;  // In an answer: the status.
  uint32_t body_length = 0;
};

// False when the magic or the length is wrong.
bool decode(const std::byte* from, HelloPrefix* prefix) noexcept;
// `hello` is prefix and body.
bool hello_crc_matches(Bytes hello) noexcept;

struct ClientHello {
  uint16_t version_lowest = 1;
  uint16_t version_highest = 1;
  std::string pool = "default";
  std::string secret;
  uint32_t credits = 0;
  uint32_t shard = kNoShard;
  uint64_t features = 0;
  std::string client_name;
};

struct NodeHello {
  uint16_t version = 0;
  Status status = Status::Ok;
  std::string message;
  uint32_t in_capsule_bytes = 0;  // Largest value inside a capsule where others are in regions.
  uint32_t credits = 0;
  uint64_t features = 0;
  uint32_t shard = 0;
  uint32_t shard_count = 0;
  uint32_t chunk_bytes = 0;
  uint64_t value_bytes_max = 0;
  NodeId node_id{};
  uint64_t epoch = 0;
  uint32_t rights = 0;
  uint8_t pool_kind = 0;
  std::string unix_path;  // Empty where the node has none.
};

void encode(const ClientHello& hello, ByteBuffer* buffer);
void encode(const NodeHello& hello, ByteBuffer* buffer);

// `hello` is prefix and body, its CRC checked. Returns: Ok; Invalid (malformed), Unsupported
// (required attribute unknown); `error` says what was wrong.
Status decode(Bytes hello, ClientHello* client, std::string* error);
Status decode(Bytes hello, NodeHello* node, std::string* error);

}  // namespace kvstrata
