// CRC32C: the check value, pieces against wholes, and a bit-by-bit reference at every length around
// the lanes' ends.
#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string_view>
#include <vector>

#include "transport/native/crc32c.h"

namespace kvstrata {
namespace {

uint32_t reference_crc(std::span<const std::byte> data) {
  uint32_t crc = 0xffffffff;
  for (std::byte byte : data) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

std::vector<std::byte> random_bytes(size_t size) {
  std::mt19937 random(11);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST_CASE("the check value of CRC32C") {
  std::string_view digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xe3069283);
  CHECK(crc32c({}) == 0);
  CHECK(crc32c(std::vector<std::byte>(32)) == 0x8a9136aa);  // RFC 3720, B.4.
}

TEST_CASE("every length and alignment agrees with the reference") {
  std::vector<std::byte> data = random_bytes(8192);
  uint32_t wrong = 0;
  for (size_t size = 0; size < 3000; size += size < 40 ? 1 : 13) {
    std::span<const std::byte> part(data.data() + size % 9, size);
    wrong += crc32c(part) != reference_crc(part);
  }
  for (size_t size : {767, 768, 769, 1536, 1543, 2304, 8000}) {
    std::span<const std::byte> part(data.data() + 3, size);
    wrong += crc32c(part) != reference_crc(part);
  }
  CHECK(wrong == 0);
}

TEST_CASE("pieces give the CRC of the whole") {
  std::vector<std::byte> data = random_bytes(5000);
  uint32_t whole = crc32c(data);
  for (size_t cut : {0, 1, 7, 768, 2500, 4999, 5000}) {
    std::span<const std::byte> all(data);
    CHECK(crc32c(all.subspan(cut), crc32c(all.first(cut))) == whole);
  }
}

TEST_CASE("crc throughput") {
  std::vector<std::byte> data = random_bytes(20 * 1024);
  constexpr int kRounds = 1000;
  uint32_t crc = 0;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) crc = crc32c(data, crc);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  double gigabytes = static_cast<double>(data.size()) * kRounds / 1e9;
  MESSAGE("CRC32C, 20 KiB in cache: " << gigabytes / elapsed.count() << " GB/s");
  CHECK(crc != 0);
}

}  // namespace
}  // namespace kvstrata
