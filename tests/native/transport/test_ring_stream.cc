// A connection through shared memory: bytes arrive as they were sent, nobody sleeps through what
// comes, and what the other end scribbles into the memory harms nobody.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "store/limits.h"
#include "transport/native/ring_stream.h"

namespace kvstrata {
namespace {

using Value = std::vector<std::byte>;

constexpr size_t kLineBytes = 128;  // PROTOCOL.md, section 8: where the lines lie.
constexpr size_t kSubmissionWriter = kLineBytes;
constexpr size_t kSubmissionReader = 2 * kLineBytes;

struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    std::string error;
    auto made = RingStream::make_memory(&error);
    REQUIRE_MESSAGE(made != nullptr, error);
    Socket descriptor(::dup(made->fd()));
    auto mapped = RingStream::map_memory(descriptor, &error);
    REQUIRE_MESSAGE(mapped != nullptr, error);
    memory = made->data();
    node = std::make_unique<RingStream>(Socket(ends[0]), std::move(made), RingSide::Node);
    client = std::make_unique<RingStream>(Socket(ends[1]), std::move(mapped), RingSide::Client);
  }
  void scribble(size_t offset, uint64_t count) {
    std::memcpy(memory + offset, &count, sizeof count);
  }

  std::byte* memory = nullptr;
  std::unique_ptr<RingStream> node;
  std::unique_ptr<RingStream> client;
};

Value random_bytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  Value bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

ssize_t send_some(Stream* stream, Bytes bytes) {
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return stream->send({&vector, 1});
}

ssize_t receive_some(Stream* stream, MutableBytes into) {
  iovec vector{into.data(), into.size()};
  return stream->receive({&vector, 1});
}

// True if a byte lies in the socket: the other end has rung.
bool has_rung(const RingStream& stream) {
  std::byte any{};
  return ::recv(stream.fd(), &any, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

// Sends all of it in pieces of chance lengths, sleeping while there is no room.
void send_all(RingStream* stream, Bytes bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!bytes.empty()) {
    size_t first = std::min<size_t>(bytes.size(), 1 + random() % (random() % 8 == 0 ? 90'000 : 90));
    size_t second = std::min(bytes.size() - first, size_t{random() % 50});
    auto* data = const_cast<std::byte*>(bytes.data());
    std::array<iovec, 2> vectors = {iovec{data, first}, iovec{data + first, second}};
    ssize_t count = stream->send(vectors);
    if (count > 0) bytes = bytes.subspan(static_cast<size_t>(count));
    if (count < 0) {
      REQUIRE(errno == EAGAIN);
      REQUIRE(stream->wait(true, Deadline::after_ms(20'000)) == Wait::Ready);
    }
  }
}

Value receive_all(RingStream* stream, size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  Value bytes(size);
  size_t filled = 0;
  while (filled < size) {
    size_t limit = std::min<size_t>(size - filled, 1 + random() % (random() % 8 ? 200 : 300'000));
    ssize_t count = receive_some(stream, MutableBytes(bytes).subspan(filled, limit));
    if (count > 0) filled += static_cast<size_t>(count);
    if (count < 0) {
      REQUIRE(errno == EAGAIN);
      REQUIRE(stream->wait(false, Deadline::after_ms(20'000)) == Wait::Ready);
    }
  }
  return bytes;
}

TEST_CASE("what two threads send arrives whole and in order, and neither sleeps through it") {
  Pair pair;
  Value there = random_bytes(20 * limits::kRingBytes + 17, 1);
  Value back = random_bytes(20 * limits::kRingBytes + 3, 2);
  Value got_there;
  Value got_back;
  std::thread client_sends([&] { send_all(pair.client.get(), there, 3); });
  std::thread node_receives([&] { got_there = receive_all(pair.node.get(), there.size(), 4); });
  client_sends.join();
  node_receives.join();
  std::thread node_sends([&] { send_all(pair.node.get(), back, 5); });
  got_back = receive_all(pair.client.get(), back.size(), 6);
  node_sends.join();
  CHECK(got_there == there);
  CHECK(got_back == back);
}

TEST_CASE("requests and replies alternate with both ends asleep in between") {
  Pair pair;
  constexpr int kRounds = 20'000;
  std::thread node([&] {
    for (int round = 0; round < kRounds; ++round) {
      Value request = receive_all(pair.node.get(), 100, static_cast<uint64_t>(round));
      send_all(pair.node.get(), request, static_cast<uint64_t>(round));
    }
  });
  pair.client->let_sleep(20'000);
  for (int round = 0; round < kRounds; ++round) {
    Value request(100, static_cast<std::byte>(round));
    REQUIRE(send_some(pair.client.get(), request) == 100);
    Value reply(100);
    for (size_t filled = 0; filled < reply.size();) {
      iovec vector{reply.data() + filled, reply.size() - filled};
      ssize_t count = pair.client->receive_sleeping({&vector, 1});
      REQUIRE(count > 0);
      filled += static_cast<size_t>(count);
    }
    REQUIRE(reply == request);
  }
  node.join();
}

TEST_CASE("only who sleeps is rung, and once") {
  Pair pair;
  Value bytes(10);
  CHECK(send_some(pair.client.get(), bytes) == 10);
  CHECK_FALSE(has_rung(*pair.node));
  CHECK_FALSE(pair.node->may_sleep(true, false));  // Something is there.
  CHECK(receive_some(pair.node.get(), bytes) == 10);
  CHECK(pair.node->may_sleep(true, false));
  CHECK(send_some(pair.client.get(), bytes) == 10);
  CHECK(has_rung(*pair.node));
  pair.node->wake();
  CHECK_FALSE(has_rung(*pair.node));
  CHECK(send_some(pair.client.get(), bytes) == 10);
  CHECK_FALSE(has_rung(*pair.node));
}

TEST_CASE("who waits for room is rung when half of the ring is free") {
  Pair pair;
  Value full(limits::kRingBytes);
  CHECK(send_some(pair.client.get(), full) == static_cast<ssize_t>(full.size()));
  CHECK(send_some(pair.client.get(), full) == -1);
  CHECK(errno == EAGAIN);
  CHECK(pair.client->may_sleep(false, true));
  CHECK(receive_some(pair.node.get(), MutableBytes(full).first(full.size() / 2 - 1)) > 0);
  CHECK_FALSE(has_rung(*pair.client));
  CHECK(receive_some(pair.node.get(), MutableBytes(full).first(1)) == 1);
  CHECK(has_rung(*pair.client));
}

TEST_CASE("an end is told behind what was sent before it") {
  Pair pair;
  Value bytes = random_bytes(100, 7);
  CHECK(send_some(pair.client.get(), bytes) == 100);
  pair.client->close();
  pair.node->wake();
  Value got(200);
  CHECK(receive_some(pair.node.get(), got) == 100);
  CHECK(receive_some(pair.node.get(), got) == 0);
  CHECK(send_some(pair.node.get(), bytes) == -1);
  CHECK(errno == EPIPE);
}

TEST_CASE("impossible indices are faults, whatever they are") {
  for (uint64_t lie : {uint64_t{limits::kRingBytes + 1}, uint64_t{1} << 40, uint64_t{1} << 63}) {
    Pair reading;
    reading.scribble(kSubmissionWriter, lie);
    Value bytes(1000);
    CHECK(receive_some(reading.node.get(), bytes) == -1);
    CHECK(errno == EPROTO);
    CHECK(reading.node->has_input());  // Something is to be told: it must not be slept through.
    Pair writing;
    writing.scribble(kSubmissionReader, lie);
    CHECK(send_some(writing.client.get(), bytes) == -1);
    CHECK(errno == EPROTO);
    CHECK(writing.client->has_room());
  }
}

TEST_CASE("an end goes by what it has read itself, not by what its line was made to say") {
  Pair pair;
  Value bytes = random_bytes(1000, 8);
  CHECK(send_some(pair.client.get(), bytes) == 1000);
  pair.scribble(kSubmissionReader, 12'345'678);
  Value got(1000);
  CHECK(receive_some(pair.node.get(), got) == 1000);
  CHECK(got == bytes);
}

// A client that writes whatever it likes, wherever it likes, all the time.
TEST_CASE("a memory that changes under both hands kills nobody") {
  Pair pair;
  std::atomic<bool> over{false};
  std::thread scribbler([&] {
    std::mt19937_64 random(9);
    while (!over) {
      auto* line = reinterpret_cast<std::atomic<uint64_t>*>(
          pair.memory + kLineBytes * (1 + random() % 4) + 8 * (random() % 2));
      uint64_t value = random() % 4 == 0 ? random() : random() % (2 * limits::kRingBytes);
      line->store(value, std::memory_order_relaxed);
    }
  });
  Value bytes(3 * limits::kRingBytes);
  for (int round = 0; round < 2'000; ++round) {
    ssize_t received = receive_some(pair.node.get(), bytes);
    CHECK(received <= static_cast<ssize_t>(limits::kRingBytes));
    ssize_t sent = send_some(pair.node.get(), bytes);
    CHECK(sent <= static_cast<ssize_t>(limits::kRingBytes));
    pair.node->may_sleep(true, true);
    pair.node->wake();
  }
  over = true;
  scribbler.join();
}

TEST_CASE("descriptors come in the order they were sent, and not more than were asked for") {
  Pair pair;
  std::string error;
  std::vector<std::unique_ptr<SharedMemory>> sent;
  for (uint64_t bytes : {4096, 8192, 12288}) {
    sent.push_back(SharedMemory::create("test", bytes, &error));
    CHECK(pair.client->send_descriptor(sent.back()->fd()));
  }
  for (const auto& each : sent) {
    Socket descriptor = pair.node->take_descriptor();
    REQUIRE(descriptor);
    CHECK(SharedMemory::map(descriptor, each->size(), Access::Read, &error) != nullptr);
    CHECK(SharedMemory::map(descriptor, each->size() + 1, Access::Read, &error) == nullptr);
  }
  CHECK_FALSE(pair.node->take_descriptor());
}

TEST_CASE("memory that could shrink, or fail when touched, is not mapped") {
  std::string error;
  Socket unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(unsealed.fd(), 4096) == 0);
  CHECK(SharedMemory::map(unsealed, 4096, Access::Read, &error) == nullptr);
  CHECK(error == "the memfd is not sealed against shrinking");
  Socket null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(SharedMemory::map(null_device, 4096, Access::Read, &error) == nullptr);
  CHECK(error == "the descriptor is not a memfd");
  CHECK(SharedMemory::map(Socket(), 4096, Access::Read, &error) == nullptr);
  // Sealed against writing: a region to be written cannot be mapped, and that is said.
  Socket read_only(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(read_only.fd(), 4096) == 0);
  REQUIRE(::fcntl(read_only.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
  CHECK(SharedMemory::map(read_only, 4096, Access::Read, &error) != nullptr);
  CHECK(SharedMemory::map(read_only, 4096, Access::ReadWrite, &error) == nullptr);
}

TEST_CASE("rings of another layout are refused in words") {
  std::string error;
  auto made = RingStream::make_memory(&error);
  uint32_t version = 9;
  std::memcpy(made->data() + 8, &version, sizeof version);
  Socket descriptor(::dup(made->fd()));
  CHECK(RingStream::map_memory(descriptor, &error) == nullptr);
  CHECK(error.find("version 9") != std::string::npos);
}

}  // namespace
}  // namespace kvstrata
