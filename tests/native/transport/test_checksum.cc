// XXH3-64: known values, pieces against wholes, and both instruction sets against each other.
#include <doctest/doctest.h>
#include <xxhash.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "transport/native/checksum.h"

namespace kvstrata {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> random_bytes(size_t size) {
  std::mt19937_64 random(size);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST_CASE("checksums have the values that XXH3 defines") {
  CHECK(chunk_checksum({}) == 0x2d06800538d394c2);
  CHECK(chunk_checksum(bytes_of("a")) == 0xe6c632b61e964e1f);
  CHECK(chunk_checksum(bytes_of("abc")) == 0x78af5f94892f3950);
}

TEST_CASE("the kernel in use agrees with the baseline at every size class of XXH3") {
  std::vector<std::byte> data = random_bytes((1 << 20) + 3);
  for (size_t size :
       {0,   1,   3,   4,   8,    9,    16,   17,   128,       129,        240,
        241, 255, 256, 512, 1023, 1024, 1025, 4096, 65536 + 7, 512 * 1024, (1 << 20) + 3}) {
    CAPTURE(size);
    CHECK(chunk_checksum({data.data(), size}) == XXH3_64bits(data.data(), size));
  }
}

TEST_CASE("a stream of pieces has the checksum of the whole") {
  std::vector<std::byte> data = random_bytes(200'000);
  std::mt19937 random(7);
  ChecksumStream stream;
  CHECK(stream.digest() == chunk_checksum({}));
  for (int round = 0; round < 50; ++round) {
    stream.reset();
    size_t size = random() % data.size();
    size_t piece_max = 1 + random() % 20'000;
    for (size_t place = 0; place < size;) {
      size_t piece = std::min<size_t>(random() % (piece_max + 1), size - place);
      stream.update({data.data() + place, piece});
      place += piece;
      if (random() % 4 == 0) CHECK(stream.digest() == chunk_checksum({data.data(), place}));
    }
    CHECK(stream.digest() == chunk_checksum({data.data(), size}));
  }
  stream.reset();
  stream.update({});
  ChecksumStream moved = std::move(stream);
  moved.update({data.data(), 1000});
  CHECK(moved.digest() == chunk_checksum({data.data(), 1000}));
}

TEST_CASE("one flipped bit changes the checksum") {
  std::vector<std::byte> data = random_bytes(4096);
  uint64_t before = chunk_checksum(data);
  for (size_t bit = 0; bit < data.size() * 8; bit += 37) {
    data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK(chunk_checksum(data) != before);
    data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

TEST_CASE("a key's hash depends on the seed") {
  CHECK(key_hash(bytes_of("key"), 0) == chunk_checksum(bytes_of("key")));
  CHECK(key_hash(bytes_of("key"), 1) != key_hash(bytes_of("key"), 2));
  CHECK(key_hash({}, 1) != key_hash({}, 2));
}

TEST_CASE("checksum throughput") {
  std::vector<std::byte> data = random_bytes(64 * 1024);
  constexpr int kRounds = 500;
  uint64_t sum = 0;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) {
    data[0] = static_cast<std::byte>(i);
    sum += chunk_checksum(data);
  }
  std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  ChecksumStream stream;
  start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) stream.update(data);
  std::chrono::duration<double> streamed = std::chrono::steady_clock::now() - start;
  double gigabytes = static_cast<double>(data.size()) * kRounds / 1e9;
  MESSAGE("XXH3, 64 KiB in cache: " << gigabytes / whole.count() << " GB/s whole, "
                                    << gigabytes / streamed.count() << " GB/s streamed");
  CHECK(sum + stream.digest() != 0);
}

}  // namespace
}  // namespace kvstrata
