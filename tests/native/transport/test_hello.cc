// Hellos against the golden vectors: what they say, and the same bytes when written again.
#include <doctest/doctest.h>

#include "store/limits.h"
#include "tests/native/transport/golden_vectors.h"
#include "transport/native/capsule.h"
#include "transport/native/crc32c.h"
#include "transport/native/hello.h"

namespace kvstrata {

namespace {

using Lines = std::vector<std::string>;

Lines describe(const ClientHello& hello) {
  Lines lines = {
      "hello " + std::to_string(hello.version_lowest) + " " + std::to_string(hello.version_highest),
      "pool " + hello.pool};
  if (!hello.secret.empty()) lines.push_back("secret " + hello.secret);
  lines.push_back("credits " + std::to_string(hello.credits));
  if (hello.features != 0) lines.push_back("features " + std::to_string(hello.features));
  if (hello.shard != kNoShard) lines.push_back("shard " + std::to_string(hello.shard));
  if (!hello.client_name.empty()) lines.push_back("client_name " + hello.client_name);
  return lines;
}

Lines describe(const NodeHello& hello) {
  std::string status = std::to_string(static_cast<int>(hello.status));
  Lines lines = {"hello " + std::to_string(hello.version) + " " + status};
  if (!hello.message.empty()) lines.push_back("message " + hello.message);
  if (hello.status != Status::Ok) return lines;
  lines.insert(
      lines.end(),
      {"in_capsule_bytes " + std::to_string(hello.in_capsule_bytes),
       "credits " + std::to_string(hello.credits), "features " + std::to_string(hello.features),
       "shard " + std::to_string(hello.shard), "shard_count " + std::to_string(hello.shard_count),
       "chunk_bytes " + std::to_string(hello.chunk_bytes),
       "value_bytes_max " + std::to_string(hello.value_bytes_max), "node_id " + hex(hello.node_id),
       "epoch " + std::to_string(hello.epoch), "rights " + std::to_string(hello.rights),
       "pool_kind " + std::to_string(hello.pool_kind)});
  if (!hello.unix_path.empty()) lines.push_back("unix_path " + hello.unix_path);
  return lines;
}

template <typename Hello>
void check(const GoldenVector& vector) {
  CAPTURE(vector.name);
  HelloPrefix prefix;
  REQUIRE(decode(vector.bytes.data(), &prefix));
  REQUIRE(prefix.body_length == vector.bytes.size() - kHelloPrefixBytes);
  REQUIRE(hello_crc_matches(vector.bytes));
  Hello hello;
  std::string error;
  REQUIRE(decode(vector.bytes, &hello, &error) == Status::Ok);
  CHECK(describe(hello) == vector.lines);
  ByteBuffer written;
  encode(hello, &written);
  CHECK(hex(written.view()) == hex(vector.bytes));
}

// A client's hello with the attributes in `body`.
std::vector<std::byte> hello_with(Bytes body) {
  ByteBuffer bytes;
  bytes.append(as_bytes("\xCBKVS"));
  bytes.append_le<uint16_t>(1);
  bytes.append_le<uint16_t>(1);
  bytes.append_le(static_cast<uint32_t>(body.size()));
  bytes.append_le(crc32c(body, crc32c(bytes.view())));
  bytes.append(body);
  return {bytes.data(), bytes.data() + bytes.size()};
}

Status read(Bytes body, ClientHello* hello, std::string* error) {
  std::vector<std::byte> bytes = hello_with(body);
  REQUIRE(hello_crc_matches(bytes));
  return decode(bytes, hello, error);
}

}  // namespace

TEST_CASE("hellos mean what the golden vectors say, and are written as they are") {
  for (const GoldenVector& vector : read_golden_vectors("hellos.txt")) {
    if (vector.name.rfind("client", 0) == 0) {
      check<ClientHello>(vector);
    } else {
      check<NodeHello>(vector);
    }
  }
}

TEST_CASE("an unknown attribute of a hello is skipped, unless it is required") {
  ByteBuffer body;
  append_attribute(&body, 20'000, as_bytes("later"));
  append_attribute(&body, 1, as_bytes("team-a"));
  ClientHello hello;
  std::string error;
  CHECK(read(body.view(), &hello, &error) == Status::Ok);
  CHECK(hello.pool == "team-a");
  append_attribute(&body, 0x8000 | 20'001, {});
  CHECK(read(body.view(), &hello, &error) == Status::Unsupported);
  CHECK(error.find("20001") != std::string::npos);
}

TEST_CASE("a known attribute of a hello that is required is still known") {
  ByteBuffer body;
  append_attribute(&body, 0x8000 | 1, as_bytes("team-a"));
  ClientHello hello;
  std::string error;
  CHECK(read(body.view(), &hello, &error) == Status::Ok);
  CHECK(hello.pool == "team-a");
}

TEST_CASE("attributes of a wrong length, or cut short, make a hello invalid") {
  ByteBuffer body;
  append_attribute(&body, 4, as_bytes("xyz"));  // Credits are four bytes.
  ClientHello hello;
  std::string error;
  CHECK(read(body.view(), &hello, &error) == Status::Invalid);
  CHECK(error.find("attribute 4") != std::string::npos);
  body.clear();
  append_attribute(&body, 1, as_bytes("team-a"));
  for (size_t length = 1; length < body.size(); ++length) {
    CHECK(read(body.view().first(length), &hello, &error) == Status::Invalid);
  }
}

TEST_CASE("names of pools are what PROTOCOL.md says, so that they can be shown in messages") {
  ClientHello hello;
  std::string error;
  for (std::string_view name : {"", "Team", "a b", "\xff", "a/b"}) {
    ByteBuffer body;
    append_attribute(&body, 1, as_bytes(name));
    CHECK(read(body.view(), &hello, &error) == Status::Invalid);
  }
}

TEST_CASE("a path that no UNIX socket can have makes a node's hello invalid") {
  NodeHello node;
  std::string error;
  for (const std::string& path : {std::string("run/a"), std::string("/a\0b", 4),
                                  "/" + std::string(limits::kUnixPathBytesMax, 'x')}) {
    ByteBuffer body;
    append_attribute(&body, 24, as_bytes(path));
    CHECK(decode(hello_with(body.view()), &node, &error) == Status::Invalid);
  }
}

TEST_CASE("a hello of another magic, or too long a body, has no prefix") {
  std::vector<std::byte> bytes = hello_with({});
  HelloPrefix prefix;
  CHECK(decode(bytes.data(), &prefix));
  store_le(bytes.data() + 8, limits::kHelloBodyBytesMax + 1);
  CHECK_FALSE(decode(bytes.data(), &prefix));
  store_le(bytes.data() + 8, uint32_t{0});
  bytes[3] = std::byte{'T'};
  CHECK_FALSE(decode(bytes.data(), &prefix));
}

}  // namespace kvstrata
