// A real node in this process, and a blocking client of it.
#pragma once

#include <doctest/doctest.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "store/native/node.h"
#include "tests/native/store/store_fixture.h"
#include "transport/native/greeting.h"
#include "transport/native/initiator.h"

namespace kvstrata {

inline NodeOptions small_node(uint32_t shard_count) {
  NodeOptions options;
  options.shard_count = shard_count;
  options.memory_bytes = 32 << 20;
  options.credits = 64;
  options.connection_count_max = 100;
  options.connection_bytes_max = 1 << 20;
  options.buffer_bytes_max = 64 << 20;
  options.minimum_rate = 1024;
  options.stall_ms_max = 60'000;
  return options;
}

inline std::unique_ptr<Node> start_node(const NodeOptions& options) {
  std::string error;
  std::unique_ptr<Node> node = Node::create(options, &error);
  REQUIRE_MESSAGE(node != nullptr, error);
  node->start();
  return node;
}

inline PoolSettings open_pool(const std::string& name, EvictionKind eviction = EvictionKind::Lru) {
  PoolSettings settings;
  settings.name = name;
  settings.eviction = eviction;
  settings.open_rights = kRightRead | kRightWrite;
  return settings;
}

class Client final : public TransferOwner {
 public:
  Client(uint16_t port, const std::string& pool, uint32_t shard = kNoShard) {
    ClientHello hello;
    hello.pool = pool;
    hello.shard = shard;
    Socket socket;
    std::string error;
    status = greet("127.0.0.1", port, hello, deadline(), &socket, &node, &error);
    if (status != Status::Ok) return;
    initiator = std::make_unique<Initiator>(std::make_unique<SocketStream>(std::move(socket)), node,
                                            "test", true, 0);
  }
  ~Client() override {
    if (initiator != nullptr) initiator->close(kStatusClosed, "over");
  }

  // The transfer lives as long as the client; its keys are kept with it.
  Transfer& start(Opcode opcode, const std::vector<std::string>& keys) {
    Transfer& transfer = transfers_.emplace_back(this, opcode);
    transfer.asks_sinks = opcode_reads(opcode);
    for (const std::string& key : keys) {
      transfer.items.emplace_back().key = as_bytes(kept_keys_.emplace_back(key));
    }
    return transfer;
  }
  void submit(Transfer& transfer) { initiator->submit(&transfer); }
  // False when the connection broke.
  bool finish() {
    Deadline end = deadline();
    while (!initiator->idle() && initiator->status() == Status::Ok) initiator->drive(end);
    return initiator->status() == Status::Ok;
  }
  void forget() {
    transfers_.clear();
    kept_keys_.clear();
    sinks_.clear();
  }

  void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept override {
    for (size_t i = first; i < first + count; ++i) {
      TransferItem& item = transfer.items[i];
      if (item.moved != 0) item.sink = sinks_.emplace_back(item.moved);
    }
  }
  void ended(Transfer&) noexcept override {}

  Status status = Status::Ok;
  NodeHello node;
  std::unique_ptr<Initiator> initiator;

 private:
  static Deadline deadline() { return Deadline::after_ms(30'000); }
  std::list<Transfer> transfers_;
  std::list<std::string> kept_keys_;
  std::list<Value> sinks_;
};

}  // namespace kvstrata
