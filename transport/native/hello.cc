#include "transport/native/hello.h"

#include "store/limits.h"
#include "transport/native/capsule.h"
#include "transport/native/crc32c.h"

namespace kvstrata {

namespace {

constexpr std::array<std::byte, 4> kMagic = {kCapsuleFirstByte, std::byte{'K'}, std::byte{'V'},
                                             std::byte{'S'}};

enum HelloAttribute : uint16_t {
  kPool = 1,
  kSecret = 2,
  kInCapsuleBytes = 3,
  kCredits = 4,
  kFeatures = 5,
  kShard = 6,
  kClientName = 7,
  kShardCount = 16,
  kChunkBytes = 17,
  kValueBytesMax = 18,
  kMessage = 19,
  kNodeId = 20,
  kEpoch = 21,
  kRights = 22,
  kPoolKind = 23,
  kUnixPath = 24,
};

template <typename Integer>
void append_integer(ByteBuffer* buffer, uint16_t type, Integer value) {
  std::array<std::byte, sizeof value> bytes;
  store_le(bytes.data(), value);
  append_attribute(buffer, type, bytes);
}

template <typename Integer>
bool read_integer(const Attribute& attribute, Integer* value) noexcept {
  if (attribute.value.size() != sizeof *value) return false;
  *value = load_le<Integer>(attribute.value.data());
  return true;
}

bool read_text(const Attribute& attribute, size_t size_max, std::string* text) {
  if (attribute.value.size() > size_max) return false;
  *text = as_text(attribute.value);
  return true;
}

bool is_pool_name(std::string_view name) noexcept {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == name.npos;
}

// A client connects to it: it must be one that sockets can have.
bool is_unix_path(std::string_view path) noexcept {
  return path.starts_with('/') && path.find('\0') == path.npos;
}

size_t begin_hello(ByteBuffer* buffer, uint16_t first, uint16_t second) {
  size_t begin = buffer->size();
  buffer->append(kMagic);
  buffer->append_le(first);
  buffer->append_le(second);
  buffer->extend(8);
  return begin;
}

void finish_hello(ByteBuffer* buffer, size_t begin) {
  std::byte* prefix = buffer->data() + begin;
  size_t body_length = buffer->size() - begin - kHelloPrefixBytes;
  store_le(prefix + 8, static_cast<uint32_t>(body_length));
  uint32_t crc = crc32c({prefix, 12});
  store_le(prefix + 12, crc32c({prefix + kHelloPrefixBytes, body_length}, crc));
}

// Reads one known attribute of a client's hello; `known` is cleared when this version does not know
// the type.
bool read_client_attribute(const Attribute& attribute, ClientHello* hello, bool* known) {
  uint32_t ignored_u32 = 0;
  switch (attribute.type) {
    case kPool:
      return read_text(attribute, limits::kPoolNameBytesMax, &hello->pool) &&
             is_pool_name(hello->pool);
    case kSecret:
      return read_text(attribute, limits::kSecretBytesMax, &hello->secret);
    case kCredits:
      return read_integer(attribute, &hello->credits);
    case kShard:
      return read_integer(attribute, &hello->shard);
    case kClientName:
      return read_text(attribute, 128, &hello->client_name);
    case kInCapsuleBytes:
      return read_integer(attribute, &ignored_u32);
    case kFeatures:
      return read_integer(attribute, &hello->features);
    default:
      *known = false;
      return true;
  }
}

bool read_node_attribute(const Attribute& attribute, NodeHello* hello, bool* known) {
  switch (attribute.type) {
    case kMessage:
      return read_text(attribute, limits::kHelloBodyBytesMax, &hello->message);
    case kCredits:
      return read_integer(attribute, &hello->credits);
    case kShard:
      return read_integer(attribute, &hello->shard);
    case kShardCount:
      return read_integer(attribute, &hello->shard_count);
    case kChunkBytes:
      return read_integer(attribute, &hello->chunk_bytes);
    case kValueBytesMax:
      return read_integer(attribute, &hello->value_bytes_max);
    case kNodeId:
      if (attribute.value.size() != hello->node_id.size()) return false;
      std::memcpy(hello->node_id.data(), attribute.value.data(), hello->node_id.size());
      return true;
    case kEpoch:
      return read_integer(attribute, &hello->epoch);
    case kRights:
      return read_integer(attribute, &hello->rights);
    case kPoolKind:
      return read_integer(attribute, &hello->pool_kind);
    case kUnixPath:
      return read_text(attribute, limits::kUnixPathBytesMax, &hello->unix_path) &&
             is_unix_path(hello->unix_path);
    case kInCapsuleBytes:
      return read_integer(attribute, &hello->in_capsule_bytes);
    case kFeatures:
      return read_integer(attribute, &hello->features);
    default:
      *known = false;
      return true;
  }
}

template <typename Hello, typename ReadAttribute>
Status read_attributes(Bytes body, Hello* hello, ReadAttribute read, std::string* error) {
  AttributeReader reader(body);
  Attribute attribute;
  while (reader.next(&attribute)) {
    bool known = true;
    if (!read(attribute, hello, &known)) {
      *error = "hello attribute " + std::to_string(attribute.type) +
               " has a value that it may not have, of " + std::to_string(attribute.value.size()) +
               " bytes";
      return Status::Invalid;
    }
    if (!known && attribute.required) {
      *error = "hello attribute " + std::to_string(attribute.type) +
               " is marked required and is not known here";
      return Status::Unsupported;
    }
  }
  if (!reader.malformed()) return Status::Ok;
  *error = "hello attributes run beyond the hello's end";
  return Status::Invalid;
}

}  // namespace

bool decode(const std::byte* from, HelloPrefix* prefix) noexcept {
  prefix->version_lowest = load_le<uint16_t>(from + 4);
  prefix->version_highest = load_le<uint16_t>(from + 6);
  prefix->body_length = load_le<uint32_t>(from + 8);
  return std::memcmp(from, kMagic.data(), kMagic.size()) == 0 &&
         prefix->body_length <= limits::kHelloBodyBytesMax;
}

bool hello_crc_matches(Bytes hello) noexcept {
  uint32_t crc = crc32c(hello.subspan(0, 12));
  return load_le<uint32_t>(hello.data() + 12) == crc32c(hello.subspan(kHelloPrefixBytes), crc);
}

void encode(const ClientHello& hello, ByteBuffer* buffer) {
  size_t begin = begin_hello(buffer, hello.version_lowest, hello.version_highest);
  append_attribute(buffer, kPool, as_bytes(hello.pool));
  if (!hello.secret.empty()) append_attribute(buffer, kSecret, as_bytes(hello.secret));
  append_integer(buffer, kCredits, hello.credits);
  if (hello.features != 0) append_integer(buffer, kFeatures, hello.features);
  if (hello.shard != kNoShard) append_integer(buffer, kShard, hello.shard);
  if (!hello.client_name.empty()) {
    append_attribute(buffer, kClientName, as_bytes(hello.client_name));
  }
  finish_hello(buffer, begin);
}

void encode(const NodeHello& hello, ByteBuffer* buffer) {
  size_t begin = begin_hello(buffer, hello.version, static_cast<uint16_t>(hello.status));
  if (!hello.message.empty()) append_attribute(buffer, kMessage, as_bytes(hello.message));
  if (hello.status == Status::Ok) {
    append_integer(buffer, kInCapsuleBytes, hello.in_capsule_bytes);
    append_integer(buffer, kCredits, hello.credits);
    append_integer(buffer, kFeatures, hello.features);
    append_integer(buffer, kShard, hello.shard);
    append_integer(buffer, kShardCount, hello.shard_count);
    append_integer(buffer, kChunkBytes, hello.chunk_bytes);
    append_integer(buffer, kValueBytesMax, hello.value_bytes_max);
    append_attribute(buffer, kNodeId, hello.node_id);
    append_integer(buffer, kEpoch, hello.epoch);
    append_integer(buffer, kRights, hello.rights);
    append_integer(buffer, kPoolKind, hello.pool_kind);
    if (!hello.unix_path.empty()) append_attribute(buffer, kUnixPath, as_bytes(hello.unix_path));
  }
  finish_hello(buffer, begin);
}

Status decode(Bytes hello, ClientHello* client, std::string* error) {
  HelloPrefix prefix;
  if (!decode(hello.data(), &prefix)) return Status::Invalid;
  client->version_lowest = prefix.version_lowest;
  client->version_highest = prefix.version_highest;
  return read_attributes(hello.subspan(kHelloPrefixBytes), client, read_client_attribute, error);
}

Status decode(Bytes hello, NodeHello* node, std::string* error) {
  HelloPrefix prefix;
  if (!decode(hello.data(), &prefix)) return Status::Invalid;
  node->version = prefix.version_lowest;
  node->status = prefix.version_highest < kStatusCount ? static_cast<Status>(prefix.version_highest)
                                                       : Status::Internal;
  return read_attributes(hello.subspan(kHelloPrefixBytes), node, read_node_attribute, error);
}

}  // namespace kvstrata
