// Pools of a whole node that come, go and are full, over real sockets.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <thread>

#include "tests/native/store/node_client.h"

namespace kvstrata {

namespace {

// Places of dropped pools are free again within some ticks of the shards.
template <typename Try>
bool within_seconds(Try&& succeeds) {
  for (uint32_t tries = 0; tries < 10'000; ++tries) {
    if (succeeds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

bool make_pool_in_time(Node& node, const PoolSettings& settings) {
  return within_seconds([&] { return node.set_pool(settings).empty(); });
}

Status put(Client& client, const std::string& key, Bytes value) {
  Transfer& transfer = client.start(Opcode::Put, {key});
  transfer.items[0].source = value;
  client.submit(transfer);
  REQUIRE(client.finish());
  return transfer.status == Status::Ok ? transfer.items[0].status : transfer.status;
}

Status get(Client& client, const std::string& key) {
  Transfer& transfer = client.start(Opcode::Get, {key});
  client.submit(transfer);
  REQUIRE(client.finish());
  return transfer.status == Status::Ok ? transfer.items[0].status : transfer.status;
}

// A connection that has announced a value and sends none of it.
Socket announce_put(uint16_t port, const std::string& pool, uint64_t value_length) {
  ClientHello hello;
  hello.pool = pool;
  Socket socket;
  NodeHello node;
  std::string error;
  Deadline deadline = Deadline::after_ms(30'000);
  REQUIRE(greet("127.0.0.1", port, hello, deadline, &socket, &node, &error) == Status::Ok);
  std::vector<std::byte> checksums((value_length + limits::kChunkBytes - 1) / limits::kChunkBytes *
                                   sizeof(uint64_t));
  Entry entry;
  entry.key = as_bytes("key");
  entry.value_length = value_length;
  entry.descriptor.length = value_length;
  entry.checksums = {checksums.data(), static_cast<uint32_t>(checksums.size() / sizeof(uint64_t))};
  ByteBuffer capsule;
  CapsuleWriter writer(&capsule);
  writer.begin_request(Opcode::Put, 1, 30'000);
  writer.add_entry(entry);
  writer.finish_request(value_length);
  REQUIRE(::send(socket.fd(), capsule.data(), capsule.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(capsule.size()));
  return socket;
}

uint64_t sum_of(const Node& node, Counter ShardStatistics::* counter) {
  uint64_t sum = 0;
  for (const ShardStatistics* shard : node.shards()) sum += (shard->*counter).value();
  return sum;
}

uint64_t used_bytes(const Node& node) {
  return sum_of(node, &ShardStatistics::cell_bytes) + sum_of(node, &ShardStatistics::extent_bytes);
}

}  // namespace

TEST_CASE("a node has pools without end, one after the other") {
  std::unique_ptr<Node> node = start_node(small_node(2));
  CHECK(node->set_pool(open_pool("default")).empty());
  Value value = make_value(1000, 1);
  for (uint32_t round = 0; round < 5000; ++round) {
    REQUIRE(make_pool_in_time(*node, open_pool("passing")));
    if (round % 100 == 0) {
      Client client(node->port(), "passing");
      REQUIRE(client.status == Status::Ok);
      REQUIRE(get(client, "key0") == Status::NotFound);
      for (uint32_t i = 0; i < 50; ++i) {
        REQUIRE(put(client, "key" + std::to_string(i), value) == Status::Ok);
      }
    }
    REQUIRE(node->drop_pool("passing").empty());
  }
  CHECK(within_seconds([&] { return used_bytes(*node) == 0; }));
  CHECK(node->pools().size() == 1);
  CHECK(node->stop(5000));
}

TEST_CASE("a dropped pool's sessions see nothing of the pool that has its place") {
  std::unique_ptr<Node> node = start_node(small_node(1));
  CHECK(node->set_pool(open_pool("default")).empty());
  std::list<Client> bound;
  Value value = make_value(1000, 1);
  for (uint32_t round = 0; round < 5; ++round) {
    REQUIRE(make_pool_in_time(*node, open_pool("passing")));
    // No other place is left.
    for (uint32_t i = 2; round == 0 && i < limits::kPoolCountMax; ++i) {
      REQUIRE(node->set_pool(open_pool("pool" + std::to_string(i))).empty());
    }
    Client& client = bound.emplace_back(node->port(), "passing");
    REQUIRE(client.status == Status::Ok);
    CHECK(get(client, "key") == Status::NotFound);
    CHECK(put(client, "key", value) == Status::Ok);
    for (Client& each : bound) {
      Status expected = &each == &client ? Status::Ok : Status::Denied;
      CHECK(get(each, "key") == expected);
      CHECK(put(each, "key", value) == expected);
    }
    CHECK(node->drop_pool("passing").empty());
    REQUIRE(make_pool_in_time(*node, open_pool("between")));
    for (Client& each : bound) CHECK(get(each, "key") == Status::Denied);
    CHECK(node->drop_pool("between").empty());
  }
}

TEST_CASE("a node has so many pools at a time, and room for another once one was dropped") {
  std::unique_ptr<Node> node = start_node(small_node(2));
  for (uint32_t i = 0; i < limits::kPoolCountMax; ++i) {
    REQUIRE(node->set_pool(open_pool("pool" + std::to_string(i))).empty());
  }
  CHECK(node->set_pool(open_pool("more")).find("1024 pools") != std::string::npos);
  CHECK(node->set_pool(open_pool("pool7", EvictionKind::S3Fifo)).empty());
  CHECK(node->drop_pool("pool7").empty());
  CHECK(make_pool_in_time(*node, open_pool("more")));
  CHECK(node->set_pool(open_pool("again")).find("1024 pools") != std::string::npos);
}

TEST_CASE("a pool's place is not used again while a write to the pool is under way") {
  std::unique_ptr<Node> node = start_node(small_node(1));
  for (uint32_t i = 0; i < limits::kPoolCountMax; ++i) {
    REQUIRE(node->set_pool(open_pool("pool" + std::to_string(i))).empty());
  }
  Socket writer = announce_put(node->port(), "pool7", 12 << 20);
  REQUIRE(
      within_seconds([&] { return sum_of(*node, &ShardStatistics::reserved_bytes) >= 12 << 20; }));
  REQUIRE(node->drop_pool("pool7").empty());
  // Time for the shard to let go of what it can.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(!node->set_pool(open_pool("more")).empty());
  writer.close();
  CHECK(make_pool_in_time(*node, open_pool("more")));
  CHECK(within_seconds([&] { return used_bytes(*node) == 0; }));
}

TEST_CASE("writes that are announced and not sent hold no more than the pool's quota") {
  std::unique_ptr<Node> node = start_node(small_node(1));
  PoolSettings settings = open_pool("default", EvictionKind::None);
  settings.quota_bytes = 8 << 20;
  CHECK(node->set_pool(settings).empty());
  std::vector<Socket> writers;
  for (uint32_t i = 0; i < 5; ++i) {
    writers.push_back(announce_put(node->port(), "default", 3 << 20));
  }
  CHECK(within_seconds([&] { return sum_of(*node, &ShardStatistics::reserved_bytes) >= 6 << 20; }));
  Client client(node->port(), "default");
  Value value = make_value(1 << 20, 1);
  CHECK(put(client, "fits", value) == Status::Ok);
  CHECK(put(client, "more", value) == Status::NoSpace);
  CHECK(used_bytes(*node) <= settings.quota_bytes);
  writers.clear();
  CHECK(within_seconds([&] { return sum_of(*node, &ShardStatistics::reserved_bytes) == 0; }));
  CHECK(put(client, "more", value) == Status::Ok);
}

TEST_CASE("clients that put large values at once leave no more than the pool's quota") {
  constexpr uint64_t kQuota = 8 << 20;
  constexpr uint32_t kClientCount = 8;
  constexpr uint32_t kPutsEach = 10;
  for (uint32_t shard_count : {1, 4}) {
    for (EvictionKind kind : {EvictionKind::Lru, EvictionKind::None}) {
      CAPTURE(shard_count);
      std::unique_ptr<Node> node = start_node(small_node(shard_count));
      PoolSettings settings = open_pool("default", kind);
      settings.quota_bytes = kQuota;
      CHECK(node->set_pool(settings).empty());
      Value value = make_value(3'000'000, 1);
      std::atomic<uint32_t> stored = 0;
      std::atomic<uint32_t> refused = 0;
      auto run_client = [&](uint32_t number) {
        Client client(node->port(), "default", number % shard_count);
        for (uint32_t i = 0; i < kPutsEach && client.status == Status::Ok; ++i) {
          std::string key = std::to_string(number) + "-" + std::to_string(i);
          Status status = put(client, key, value);
          if (status == Status::Ok) ++stored;
          if (status == Status::NoSpace) ++refused;
        }
      };
      std::vector<std::thread> threads;
      for (uint32_t number = 0; number < kClientCount; ++number) {
        threads.emplace_back(run_client, number);
      }
      for (std::thread& thread : threads) thread.join();
      CHECK(stored + refused == kPutsEach * kClientCount);
      // Two of them fit.
      CHECK(stored == (kind == EvictionKind::None ? 2 : kPutsEach * kClientCount));
      // Several shards may each make room for the last put, which then is all that is left.
      bool evicts_at_once = kind != EvictionKind::None && shard_count > 1;
      uint64_t left = (evicts_at_once ? 1 : 2) * value.size();
      CHECK(within_seconds([&] {
        return used_bytes(*node) >= left && used_bytes(*node) <= kQuota &&
               sum_of(*node, &ShardStatistics::reserved_bytes) == 0;
      }));
      CHECK(node->stop(5000));
    }
  }
}

}  // namespace kvstrata
