// The client's end of a connection against a node that answers what each test says.
#include <doctest/doctest.h>

#include "store/limits.h"
#include "tests/native/transport/scripted_node.h"

namespace kvstrata {

TEST_CASE("a value arrives in its sink, whatever the cuts of the stream") {
  for (size_t size : {0, 1, 100, 4095, 4096, 4097, 20'000, 300'000}) {
    for (size_t part : {size_t{1 << 20}, size_t{70'000}, size_t{4096}, size_t{33}, size_t{79}}) {
      for (size_t extra : {0, 1, 5000}) {
        CAPTURE(size);
        CAPTURE(part);
        CAPTURE(extra);
        ScriptedNode node;
        ReadInto read(&node, 1, size + extra);
        Request request = node.exchange(&read.transfer);
        CHECK(request.entries()[0].descriptor.length == size + extra);
        std::vector<std::byte> value = pattern(size, 1);
        Completion completion(request);
        node.send_in_parts(completion.add_value(value).finish(), part);
        REQUIRE(node.done.size() == 1);
        CHECK(read.transfer.status == Status::Ok);
        CHECK(read.item().status == Status::Ok);
        CHECK(read.item().moved == size);
        CHECK(read.item().version == 7);
        CHECK(equal(read.bytes(0, size), value));
        CHECK(read.guards_untouched());
      }
    }
  }
}

TEST_CASE("a completion longer than foreseen does not shift the value") {
  ScriptedNode node;
  ReadInto read(&node, 1, 10'000);
  std::vector<std::byte> value = pattern(10'000, 2);
  std::vector<std::byte> attributes = pattern(64, 3);
  Completion completion(node.exchange(&read.transfer));
  node.send(completion.add_value(value, 0, attributes).finish());
  REQUIRE(node.done.size() == 1);
  CHECK(equal(read.bytes(0, value.size()), value));
  CHECK(equal(as_bytes(read.transfer.reply), attributes));
}

TEST_CASE("a miss leaves the sink as it was") {
  ScriptedNode node;
  ReadInto read(&node, 1, 10'000);
  ReadOutcome outcome;
  outcome.status = Status::NotFound;
  Completion completion(node.exchange(&read.transfer));
  node.send(completion.add(outcome).finish());
  REQUIRE(node.done.size() == 1);
  CHECK(read.item().status == Status::NotFound);
  CHECK(equal(read.bytes(0, 10'000), std::vector<std::byte>(10'000)));
}

TEST_CASE("a range that begins within a chunk is verified by its own pieces") {
  ScriptedNode node;
  ReadInto read(&node, 1, 9000, Opcode::GetRange);
  read.transfer.offset = 4000;
  read.transfer.length = 9000;
  std::vector<std::byte> part = pattern(9000, 4);
  Completion completion(node.exchange(&read.transfer));
  node.send(completion.add_value(part, 4000).finish());
  REQUIRE(node.done.size() == 1);
  CHECK(read.item().moved == 9000);
  CHECK(read.item().value_length == 13'000);
  CHECK(equal(read.bytes(0, 9000), part));
}

TEST_CASE("one flipped bit in any piece makes that key corrupt, and no other") {
  for (size_t flipped : {0, 4095, 4096, 9999}) {
    for (size_t part : {1 << 20, 1000}) {
      ScriptedNode node;
      ReadInto read(&node, 3, 10'000);
      Request request = node.exchange(&read.transfer);
      Completion completion(request);
      for (uint32_t key = 0; key < 3; ++key) {
        std::vector<std::byte> value = pattern(10'000, key);
        std::vector<uint64_t> checksums = piece_checksums(value);
        if (key == 1) value[flipped] ^= std::byte{1};
        completion.add_value(value, checksums, 0, {});
      }
      node.send_in_parts(completion.finish(), part);
      REQUIRE(node.done.size() == 1);
      CHECK(read.item(0).status == Status::Ok);
      CHECK(read.item(1).status == Status::Corrupt);
      CHECK(read.item(1).moved == 0);
      CHECK(read.item(2).status == Status::Ok);
      CHECK(equal(read.bytes(2, 10'000), pattern(10'000, 2)));
    }
  }
}

TEST_CASE("outcomes may come in any partition") {
  ScriptedNode node;
  ReadInto read(&node, 5, 6000);
  Request request = node.exchange(&read.transfer);
  auto value = [](uint32_t key) { return pattern(1000 * key, key); };
  Completion first(request, 0);
  node.send(first.add_value(value(0)).add_value(value(1)).finish(kFlagMore));
  Completion second(request, 2);
  node.send(second.finish(kFlagMore));
  Completion third(request, 2);
  node.send(third.add_value(value(2)).add_value(value(3)).finish(kFlagMore));
  CHECK(node.done.empty());
  Completion fourth(request, 4);
  node.send(fourth.add_value(value(4)).finish());
  REQUIRE(node.done.size() == 1);
  for (uint32_t key = 0; key < 5; ++key) {
    CHECK(equal(read.bytes(key, 1000 * key), value(key)));
  }
}

TEST_CASE("sinks are asked for when sizes are known, and data without one are dropped") {
  for (bool provides : {true, false}) {
    ScriptedNode node;
    node.provides = provides;
    ReadInto read(&node, 2, 0);
    read.transfer.asks_sinks = true;
    Request request = node.exchange(&read.transfer);
    CHECK(request.entries()[0].descriptor.length == 1 << 30);
    Completion completion(request);
    node.send(completion.add_value(pattern(90'000, 1)).add_value(pattern(5, 2)).finish());
    REQUIRE(node.done.size() == 1);
    if (provides) CHECK(equal(read.item(0).sink, pattern(90'000, 1)));
    if (provides) CHECK(equal(read.item(1).sink, pattern(5, 2)));
    ReadInto next(&node, 1, 10);
    Completion after(node.exchange(&next.transfer));
    node.send(after.add_value(pattern(10, 3)).finish());
    CHECK(equal(next.bytes(0, 10), pattern(10, 3)));
  }
}

TEST_CASE("completions may come in any order") {
  ScriptedNode node;
  ReadInto first(&node, 1, 5000);
  ReadInto second(&node, 1, 5000);
  Request first_request = node.exchange(&first.transfer);
  Request second_request = node.exchange(&second.transfer);
  Completion answer_second(second_request);
  node.send(answer_second.add_value(pattern(5000, 2)).finish());
  CHECK(node.done == std::vector<Transfer*>{&second.transfer});
  Completion answer_first(first_request);
  node.send(answer_first.add_value(pattern(5000, 1)).finish());
  CHECK(node.done == std::vector<Transfer*>{&second.transfer, &first.transfer});
  CHECK(equal(first.bytes(0, 5000), pattern(5000, 1)));
  CHECK(equal(second.bytes(0, 5000), pattern(5000, 2)));
}

TEST_CASE("never more commands in flight than the credits in force") {
  ScriptedNode node(2);
  std::deque<ReadInto> reads;
  for (int i = 0; i < 5; ++i) {
    reads.emplace_back(&node, 1, 10);
    node.initiator->submit(&reads.back().transfer);
  }
  node.initiator->progress();
  Request first = node.receive_request();
  Request second = node.receive_request();
  CHECK_FALSE(node.has_request());
  Completion lowering(first);
  node.send(lowering.add_value(pattern(3, 1)).finish(0, Status::Ok, 1));
  CHECK_FALSE(node.has_request());
  Completion raising(second);
  node.send(raising.add_value(pattern(3, 1)).finish(0, Status::Ok, 3));
  for (int i = 0; i < 3; ++i) node.receive_request();
  CHECK(node.initiator->in_flight() == 3);
  node.initiator->close(kStatusClosed, "over");
  CHECK(node.done.size() == 5);
}

TEST_CASE("a failed command gives its status and words to every key") {
  ScriptedNode node;
  ReadInto read(&node, 3, 10);
  Completion completion(node.exchange(&read.transfer));
  completion.writer().set_message("out of buffers");
  node.send(completion.finish(0, Status::Busy));
  REQUIRE(node.done.size() == 1);
  CHECK(read.transfer.status == Status::Busy);
  CHECK(read.transfer.message == "out of buffers");
  CHECK(read.item(2).status == Status::Busy);
  CHECK(node.initiator->status() == Status::Ok);
}

TEST_CASE("an operation that no capsule can carry fails alone") {
  ScriptedNode node;
  std::string key(limits::kKeyBytesMax, 'k');
  Transfer transfer(&node, Opcode::Exists);
  transfer.items.resize(300);
  for (TransferItem& item : transfer.items) item.key = as_bytes(key);
  node.initiator->submit(&transfer);
  REQUIRE(node.done.size() == 1);
  CHECK(transfer.items[299].status == Status::TooLarge);
  CHECK(node.initiator->status() == Status::Ok);
}

TEST_CASE("keys without values: statuses, prefix, scan, stat and administration") {
  ScriptedNode node;
  Transfer exists(&node, Opcode::Exists);
  exists.items.resize(2);
  Completion statuses(node.exchange(&exists));
  node.send(statuses.add_status(Status::NotFound).add_status(Status::Ok).finish());
  CHECK(exists.items[0].status == Status::NotFound);
  CHECK(exists.items[1].status == Status::Ok);

  Transfer prefix(&node, Opcode::PrefixLength);
  prefix.items.resize(9);
  Completion length(node.exchange(&prefix));
  length.writer().add_u32(4);
  node.send(length.finish());
  CHECK(prefix.prefix_length == 4);

  Transfer scan(&node, Opcode::Scan);
  scan.items.resize(1);
  Completion page(node.exchange(&scan));
  page.writer().add_scan(99, 1);
  page.writer().add_scan_key(as_bytes("key"), 5);
  node.send(page.finish());
  CHECK(scan.cursor == 99);
  CHECK(scan.key_count == 1);

  Transfer stat(&node, Opcode::Stat);
  stat.items.resize(1);
  StatOutcome outcome;
  outcome.value_length = 12;
  Completion found(node.exchange(&stat));
  node.send(found.add(outcome).finish());
  CHECK(stat.items[0].value_length == 12);

  Transfer admin(&node, Opcode::Admin);
  admin.items.resize(1);
  Completion done(node.exchange(&admin));
  done.writer().add_admin(Status::Denied, as_bytes("no"));
  node.send(done.finish());
  CHECK(admin.items[0].status == Status::Denied);
  CHECK(admin.reply == "no");
  CHECK(node.done.size() == 5);
}

}  // namespace kvstrata
