// A value that comes in pieces: what is left, and the checksums of its chunks.
#include "store/native/incoming_value.h"
#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint64_t kChunk = limits::kChunkBytes;

// The checksums, by chunk, of `value` that comes `step` bytes at a time behind `at` others.
std::map<uint32_t, uint64_t> checksums(const Value& value, uint64_t at, size_t step) {
  std::map<uint32_t, uint64_t> found;
  IncomingValue incoming;
  incoming.begin(at, value.size());
  for (size_t done = 0; incoming.left() != 0;) {
    REQUIRE(incoming.at() == at + done);
    REQUIRE(incoming.left() == value.size() - done);
    size_t count = std::min<size_t>(step, incoming.piece_left());
    uint32_t chunk = incoming.chunk();
    uint64_t checksum = 0;
    if (incoming.take(Bytes(value).subspan(done, count), &checksum)) found[chunk] = checksum;
    done += count;
  }
  return found;
}

}  // namespace

TEST_CASE("each chunk's checksum is that of its bytes, however they come") {
  Value value = make_value(2 * kChunk + 17, 1);
  for (size_t step : {size_t{4'099}, size_t{65'536}, size_t{kChunk}, 3 * size_t{kChunk}}) {
    std::map<uint32_t, uint64_t> found = checksums(value, 0, step);
    REQUIRE(found.size() == 3);
    for (const auto& [chunk, checksum] : found) {
      Bytes rest = Bytes(value).subspan(chunk * kChunk);
      CHECK(checksum == chunk_checksum(rest.first(std::min<size_t>(rest.size(), kChunk))));
    }
  }
}

TEST_CASE("what is added within a chunk ends with that chunk first") {
  Value value = make_value(kChunk, 2);
  std::map<uint32_t, uint64_t> found = checksums(value, kChunk + 100, 10'000);
  REQUIRE(found.size() == 2);
  CHECK(found.at(1) == chunk_checksum(Bytes(value).first(kChunk - 100)));
  CHECK(found.at(2) == chunk_checksum(Bytes(value).last(100)));
}

TEST_CASE("what is skipped or cancelled is no longer due") {
  IncomingValue incoming;
  incoming.begin(0, 3 * kChunk);
  incoming.skip(kChunk);
  CHECK(incoming.left() == 2 * kChunk);
  incoming.cancel();
  CHECK(incoming.left() == 0);
}

}  // namespace kvstrata
