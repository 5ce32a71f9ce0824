// A whole node under clients that do everything at once, over real sockets.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "tests/native/store/node_client.h"

namespace kvstrata {
namespace {

constexpr uint32_t kKeyCount = 300;
constexpr uint64_t kStampBytes = 16;

uint64_t key_number(std::string_view key) { return key_hash(as_bytes(key), 1); }

// A value says whose it is, how long, and is all one byte otherwise: what is torn or another's
// shows.
Value stamped_value(std::string_view key, uint64_t length, uint8_t fill) {
  Value value(length, std::byte{fill});
  if (length < kStampBytes) return value;
  store_le(value.data(), key_number(key));
  store_le(value.data() + 8, length);
  return value;
}

bool is_stamped(std::string_view key, Bytes value) {
  Bytes filled = value.size() < kStampBytes ? value : value.subspan(kStampBytes);
  bool even = std::ranges::all_of(filled, [&](std::byte each) { return each == filled[0]; });
  if (value.size() < kStampBytes) return even;
  return even && load_le<uint64_t>(value.data()) == key_number(key) &&
         load_le<uint64_t>(value.data() + 8) == value.size();
}

// What went wrong on any thread, in words.
class Faults {
 public:
  void add(const std::string& fault) {
    std::lock_guard lock(mutex_);
    all_ += fault + "\n";
  }
  const std::string& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::string all_;
};

// One connection's life: some rounds of commands in flight together, then an end, decent or not.
class Load {
 public:
  Load(uint16_t port, uint64_t seed, Faults* faults)
      : port_(port), random_(seed), faults_(faults) {}

  void run(uint32_t connection_count) {
    static const std::string kPools[] = {"default", "default", "fifo", "fixed", "passing"};
    for (uint32_t i = 0; i < connection_count; ++i) {
      pool_ = kPools[random_() % std::size(kPools)];
      Client client(port_, pool_, random_() % 2 == 0 ? kNoShard : random_() % 4);
      if (client.status != Status::Ok) {
        expect(client.status == Status::Denied && pool_ == "passing", "hello", client.status);
        continue;
      }
      for (uint32_t round = 0; round < 12; ++round) {
        if (!run_round(client)) break;
      }
    }
  }

  uint64_t commands() const { return commands_; }

 private:
  void expect(bool holds, std::string_view what, Status status = Status::Ok) {
    if (!holds) faults_->add(pool_ + ": " + std::string(what) + " " + std::to_string(int(status)));
  }

  // False when the connection is to be dropped, with commands in flight.
  bool run_round(Client& client) {
    std::vector<Transfer*> transfers;
    std::list<Value> sources;
    for (uint32_t i = 1 + random_() % 6; i > 0; --i) {
      transfers.push_back(&start(client, &sources));
      client.submit(*transfers.back());
    }
    commands_ += transfers.size();
    if (random_() % 24 == 0) {
      client.initiator->progress();
      client.initiator->close(kStatusClosed, "dropped");
      return false;
    }
    expect(client.finish(), client.initiator->message());
    for (Transfer* transfer : transfers) check(*transfer);
    client.forget();
    return client.initiator->status() == Status::Ok;
  }

  std::string random_key() { return "key" + std::to_string(random_() % kKeyCount); }
  uint64_t random_length() {
    switch (random_() % 8) {
      case 0:
        return 0;
      case 1:
        return random_() % 1'500'000;
      case 2:
        return random_() % 100'000;
      default:
        return random_() % 3000;
    }
  }

  Transfer& start(Client& client, std::list<Value>* sources) {
    static constexpr Opcode kOpcodes[] = {
        Opcode::Get,    Opcode::Get,    Opcode::GetRange, Opcode::Put,
        Opcode::Put,    Opcode::Append, Opcode::Exists,   Opcode::PrefixLength,
        Opcode::Delete, Opcode::Expire, Opcode::Stat,     Opcode::Scan,
        Opcode::Noop,   Opcode::Retain, Opcode::Release,  Opcode::Extend};
    Opcode opcode = kOpcodes[random_() % std::size(kOpcodes)];
    bool single = opcode == Opcode::Stat || opcode == Opcode::Append;
    bool large = !opcode_writes(opcode) && random_() % 10 == 0;
    std::vector<std::string> keys(single ? 1 : 1 + random_() % (large ? 512 : 8));
    for (std::string& key : keys) key = random_key();
    if (opcode == Opcode::Append) keys[0] = "log" + std::to_string(random_() % 20);
    if (opcode == Opcode::Scan) keys = {"key1"};
    if (opcode == Opcode::Noop) keys.clear();
    if (opcode_takes_handles(opcode)) keys = {handle_, handle_};
    Transfer& transfer = client.start(opcode, keys);
    transfer.offset = random_() % 600'000;
    transfer.length = random_() % 700'000;
    transfer.count_max = 1 + random_() % 50;
    bool has_ttl = opcode != Opcode::Put || random_() % 4 == 0;
    transfer.ttl_ms = has_ttl ? 20 + random_() % 500 : 0;
    if (opcode == Opcode::Retain && random_() % 2 == 0) transfer.entry_flags = kFlagHard;
    if (opcode == Opcode::Put && random_() % 3 == 0) transfer.entry_flags = kFlagIfAbsent;
    if (opcode == Opcode::Append) transfer.at = random_() % 3 == 0 ? 0 : append_at_;
    for (TransferItem& item : transfer.items) {
      if (!opcode_writes(opcode)) break;
      auto fill = static_cast<uint8_t>(opcode == Opcode::Put ? random_() : 'a');
      uint64_t length = random_length();
      std::string_view key = as_text(item.key);
      sources->push_back(opcode == Opcode::Put ? stamped_value(key, length, fill)
                                               : Value(length, std::byte{fill}));
      item.source = sources->back();
    }
    return transfer;
  }

  void check(const Transfer& transfer) {
    // The pool may go away under a client; its commands then fail whole or key by key.
    bool passing = pool_ == "passing";
    if (passing && transfer.status == Status::Denied) return;
    expect(transfer.status == Status::Ok, transfer.message, transfer.status);
    for (const TransferItem& item : transfer.items) {
      if (passing && item.status == Status::Denied) continue;
      check_item(transfer, item);
    }
  }

  void check_item(const Transfer& transfer, const TransferItem& item) {
    auto allow = [&](std::initializer_list<Status> more) {
      bool allowed =
          item.status == Status::Ok || std::ranges::find(more, item.status) != more.end();
      expect(allowed, "opcode " + std::to_string(int(transfer.opcode)), item.status);
      return item.status == Status::Ok;
    };
    switch (transfer.opcode) {
      case Opcode::Get:
        if (allow({Status::NotFound})) expect(is_stamped(as_text(item.key), item.sink), "torn");
        return;
      case Opcode::GetRange:
        if (allow({Status::NotFound})) expect(item.moved <= transfer.length, "too long");
        return;
      case Opcode::Put:
        if (allow({Status::Exists, Status::NoSpace, Status::Busy})) {
          expect(item.value_length == item.source.size(), "length");
        }
        return;
      case Opcode::Append:
        allow({Status::Mismatch, Status::NoSpace, Status::Busy});
        append_at_ = item.value_length < 3'000'000 ? item.value_length : 0;
        return;
      case Opcode::Expire:
        allow({Status::NotFound, Status::NoSpace, Status::Busy});
        return;
      case Opcode::Retain:
        if (allow({Status::NotFound, Status::Denied, Status::Busy})) {
          std::memcpy(handle_.data(), &item.handle, sizeof item.handle);
        }
        return;
      case Opcode::Release:
      case Opcode::Extend:
        allow({Status::NotFound, Status::Denied});
        return;
      default:
        allow({Status::NotFound});
    }
  }

  uint16_t port_;
  std::mt19937_64 random_;
  Faults* faults_;
  std::string pool_;
  uint64_t append_at_ = 0;
  std::string handle_ = "a handle";  // Of what was retained last, in whatever pool.
  uint64_t commands_ = 0;
};

}  // namespace

TEST_CASE(
    "a node of four shards keeps its word to many clients while pools and connections come and "
    "go") {
  NodeOptions options = small_node(4);
  options.connection_bytes_max = 256 * 1024;
  std::unique_ptr<Node> node = start_node(options);
  CHECK(node->set_pool(open_pool("default")).empty());
  PoolSettings fifo = open_pool("fifo", EvictionKind::S3Fifo);
  fifo.open_rights |= kRightAdmin;  // May retain hard.
  CHECK(node->set_pool(fifo).empty());
  PoolSettings fixed = open_pool("fixed", EvictionKind::None);
  fixed.quota_bytes = 4 << 20;
  CHECK(node->set_pool(fixed).empty());
  Faults faults;
  std::atomic<bool> over = false;
  std::thread pools([&] {
    while (!over) {
      if (!node->set_pool(open_pool("passing")).empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      node->drop_pool("passing");
    }
  });
  std::vector<Load> loads;
  for (uint64_t seed = 1; seed <= 8; ++seed) loads.emplace_back(node->port(), seed, &faults);
  std::vector<std::thread> threads;
  for (Load& load : loads) threads.emplace_back([&load] { load.run(12); });
  for (std::thread& thread : threads) thread.join();
  over = true;
  pools.join();
  CHECK(faults.all() == "");
  uint64_t commands = 0;
  for (const Load& load : loads) commands += load.commands();
  CHECK(commands > 1000);
  CHECK(node->stop(5000));
  uint64_t hops = 0;
  for (const ShardStatistics* shard : node->shards()) {
    hops += shard->hops.value();
    CHECK(shard->connections_open.value() == 0);
  }
  CHECK(hops > 1000);
  CHECK(node->buffered_bytes() == 0);
}

TEST_CASE(
    "reads beyond the output's budget wait, and the value that comes behind them is not "
    "disturbed") {
  NodeOptions options = small_node(4);
  options.connection_bytes_max = 16 * 1024;
  std::unique_ptr<Node> node = start_node(options);
  CHECK(node->set_pool(open_pool("default")).empty());
  Client client(node->port(), "default");
  REQUIRE(client.status == Status::Ok);
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < 512; ++i) keys.push_back("key" + std::to_string(i));
  std::list<Value> values;
  Transfer& put = client.start(Opcode::Put, keys);
  for (TransferItem& item : put.items) {
    values.push_back(stamped_value(as_text(item.key), 12'000, 7));
    item.source = values.back();
  }
  client.submit(put);
  REQUIRE(client.finish());
  std::vector<Transfer*> transfers;
  Value large = stamped_value("large", 6'000'000, 9);
  for (uint32_t i = 0; i < 12; ++i) {
    Transfer& write = client.start(Opcode::Put, {"large"});
    write.items[0].source = large;
    for (Transfer* each :
         {&client.start(Opcode::Get, keys), &client.start(Opcode::Get, keys), &write}) {
      transfers.push_back(each);
      client.submit(*each);
    }
  }
  REQUIRE(client.finish());
  for (Transfer* transfer : transfers) {
    CHECK(transfer->status == Status::Ok);
    for (const TransferItem& item : transfer->items) {
      REQUIRE(item.status == Status::Ok);
      if (opcode_reads(transfer->opcode)) REQUIRE(is_stamped(as_text(item.key), item.sink));
    }
  }
  CHECK(node->stop(5000));
}

TEST_CASE("a batch's refused and corrupt entries leave the others alone") {
  std::unique_ptr<Node> node = start_node(small_node(2));
  CHECK(node->set_pool(open_pool("default")).empty());
  Client client(node->port(), "default");
  REQUIRE(client.status == Status::Ok);
  std::vector<std::string> keys = {"a", "b", "c", "a", "d", "e"};
  std::list<Value> values;
  for (uint64_t length : {0, 100'000, 0, 1'200'000, 5, 70'000}) values.push_back(Value(length));
  for (uint32_t round = 0; round < 3; ++round) {
    Transfer& put = client.start(Opcode::Put, keys);
    put.entry_flags = kFlagIfAbsent;
    auto value = values.begin();
    for (TransferItem& item : put.items) item.source = *value++;
    client.submit(put);
    REQUIRE(client.finish());
    for (size_t i = 0; i < keys.size(); ++i) {
      Status expected = round == 0 && i != 3 ? Status::Ok : Status::Exists;
      CHECK(put.items[i].status == expected);
    }
  }
  Transfer& get = client.start(Opcode::Get, keys);
  client.submit(get);
  REQUIRE(client.finish());
  CHECK(get.items[0].value_length == 0);
  CHECK(get.items[1].value_length == 100'000);
  CHECK(get.items[5].value_length == 70'000);
}

TEST_CASE("a write that waits in vain is answered, and one whose client left is forgotten") {
  std::unique_ptr<Node> node = start_node(small_node(2));
  CHECK(node->set_pool(open_pool("default", EvictionKind::None)).empty());
  Client client(node->port(), "default");
  REQUIRE(client.status == Status::Ok);
  Value value(500'000);
  Status status = Status::Ok;
  uint32_t count = 0;
  for (; status == Status::Ok; ++count) {
    REQUIRE(count < 200);
    Transfer& put = client.start(Opcode::Put, {std::to_string(count)});
    put.items[0].source = value;
    put.deadline_ms = 3000;
    client.submit(put);
    REQUIRE(client.finish());
    status = put.items[0].status;
  }
  CHECK(status == Status::NoSpace);
  CHECK(count > 30);
  for (uint32_t i = 0; i < 20; ++i) {
    Client leaver(node->port(), "default");
    REQUIRE(leaver.status == Status::Ok);
    Transfer& put = leaver.start(Opcode::Put, {"more" + std::to_string(i)});
    put.items[0].source = value;
    leaver.submit(put);
    leaver.initiator->progress();
  }
  Transfer& get = client.start(Opcode::Get, {"0"});
  client.submit(get);
  REQUIRE(client.finish());
  CHECK(get.items[0].status == Status::Ok);
  CHECK(node->stop(5000));
  for (const ShardStatistics* shard : node->shards()) CHECK(shard->connections_open.value() == 0);
}

}  // namespace kvstrata
