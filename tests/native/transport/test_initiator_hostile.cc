// A node that lies or falls silent: the connection ends, and no byte is written behind a caller's
// buffer.
#include <doctest/doctest.h>

#include <functional>

#include "tests/native/transport/scripted_node.h"

namespace kvstrata {

namespace {

constexpr size_t kSinkBytes = 8000;

struct Lie {
  const char* what;
  std::function<Bytes(Completion*)> tell;
};

ReadOutcome outcome_of(uint64_t value_length, uint64_t offset, uint64_t length) {
  ReadOutcome outcome;
  outcome.value_length = value_length;
  outcome.offset = offset;
  outcome.length = length;
  return outcome;
}

const std::vector<Lie> kLies = {
    {"longer than the sink",
     [](Completion* it) { return it->add_value(pattern(kSinkBytes + 1, 1)).finish(); }},
    {"data length below the sum",
     [](Completion* it) { return it->add_value(pattern(5000, 1)).finish_lying(4999); }},
    {"data length above the sum",
     [](Completion* it) { return it->add_value(pattern(5000, 1)).finish_lying(5001); }},
    {"data length that overflows",
     [](Completion* it) {
       return it->add(outcome_of(UINT64_MAX, 0, UINT64_MAX)).finish_lying(UINT64_MAX);
     }},
    {"offset that overflows",
     [](Completion* it) { return it->add(outcome_of(8, UINT64_MAX - 2, 8)).finish_lying(8); }},
    {"a part where the whole was asked for",
     [](Completion* it) { return it->add_value(pattern(5000, 1), 4096).finish(); }},
    {"no checksums",
     [](Completion* it) { return it->add_value(pattern(5000, 1), {}, 0, {}).finish(); }},
    {"more outcomes than keys",
     [](Completion* it) {
       return it->add_value(pattern(10, 1)).add_value(pattern(10, 1)).finish();
     }},
    {"no outcomes", [](Completion* it) { return it->finish(); }},
    {"a miss with data",
     [](Completion* it) {
       ReadOutcome outcome = outcome_of(5, 0, 5);
       outcome.status = Status::NotFound;
       return it->add(outcome).finish_lying(5);
     }},
    {"a failed command with outcomes",
     [](Completion* it) { return it->add_value(pattern(10, 1)).finish(0, Status::Busy); }},
    {"a failed command with more to come",
     [](Completion* it) { return it->finish(kFlagMore, Status::Busy); }},
    {"outcomes that end in the middle",
     [](Completion* it) {
       it->writer().add_status(Status::Ok);
       return it->finish();
     }},
    {"a body longer than its outcomes",
     [](Completion* it) {
       it->add_value(pattern(10, 1));
       it->writer().set_message("rest");
       return it->finish();
     }},
    {"no credits left",
     [](Completion* it) { return it->add_value(pattern(10, 1)).finish(0, Status::Ok, 0); }},
};

}  // namespace

TEST_CASE("a completion that contradicts the request ends the connection") {
  for (const Lie& lie : kLies) {
    for (size_t part : {1 << 20, 50}) {
      CAPTURE(lie.what);
      CAPTURE(part);
      ScriptedNode node;
      ReadInto read(&node, 1, kSinkBytes);
      Completion completion(node.exchange(&read.transfer));
      node.send_in_parts(lie.tell(&completion), part);
      CHECK(node.initiator->status() == kStatusClosed);
      CHECK(node.initiator->message().find("node:1") != std::string::npos);
      REQUIRE(node.done.size() == 1);
      CHECK(read.item().status == kStatusClosed);
      CHECK(read.item().moved == 0);
      CHECK(read.guards_untouched());
      CHECK(node.initiator->fd() == -1);
    }
  }
}

TEST_CASE(
    "completions of commands that are not in flight, and bytes that are none, end the connection") {
  std::vector<std::function<void(Request*)>> lies = {
      [](Request* it) { it->header.command_id ^= 1U << 20; },
      [](Request* it) { it->header.command_id ^= 1; },
      [](Request* it) { it->header.command_id |= 1023; },
      [](Request* it) { it->header.opcode = static_cast<uint8_t>(Opcode::GetRange); },
  };
  for (const auto& lie : lies) {
    ScriptedNode node;
    ReadInto read(&node, 1, kSinkBytes);
    Request request = node.exchange(&read.transfer);
    lie(&request);
    Completion completion(request);
    node.send(completion.add_value(pattern(10, 1)).finish());
    CHECK(node.initiator->status() == kStatusClosed);
  }
  ScriptedNode node;
  ReadInto read(&node, 1, kSinkBytes);
  Completion completion(node.exchange(&read.transfer));
  Bytes answer = completion.add_value(pattern(10, 1)).finish();
  std::vector<std::byte> flipped(answer.begin(), answer.end());
  flipped[40] ^= std::byte{1};
  node.send(flipped);
  CHECK(node.initiator->message() == "a completion from node:1 has a wrong CRC");
}

TEST_CASE("a command is completed once") {
  ScriptedNode node;
  ReadInto read(&node, 1, kSinkBytes);
  Request request = node.exchange(&read.transfer);
  for (int i = 0; i < 2; ++i) {
    Completion completion(request);
    node.send(completion.add_value(pattern(10, 1)).finish());
  }
  CHECK(node.done.size() == 1);
  CHECK(read.item().status == Status::Ok);
  CHECK(node.initiator->status() == kStatusClosed);
}

TEST_CASE("a connection lost in the middle of a value ends what was in flight") {
  ScriptedNode node;
  ReadInto read(&node, 2, kSinkBytes);
  Completion completion(node.exchange(&read.transfer));
  completion.add_value(pattern(4000, 1)).add_value(pattern(4000, 2));
  Bytes answer = completion.finish();
  node.send(answer.first(answer.size() - 100));
  CHECK(node.done.empty());
  node.hang_up();
  node.initiator->progress();
  REQUIRE(node.done.size() == 1);
  CHECK(read.item(0).status == Status::Ok);
  CHECK(read.item(1).status == kStatusClosed);
  CHECK(read.item(1).moved == 0);
  CHECK(read.transfer.status == kStatusClosed);
}

TEST_CASE("a silent node ends in a timeout, after which the buffer is the caller's") {
  ScriptedNode node;
  ReadInto read(&node, 1, kSinkBytes);
  node.initiator->submit(&read.transfer);
  auto begin = Deadline::Clock::now();
  Deadline deadline = Deadline::after_ms(50);
  while (!node.initiator->drive(deadline)) continue;
  CHECK(Deadline::Clock::now() - begin >= std::chrono::milliseconds(50));
  CHECK(node.initiator->status() == kStatusTimedOut);
  CHECK(read.item().status == kStatusTimedOut);
  CHECK(node.initiator->fd() == -1);
}

TEST_CASE("what the node said before it closed is not lost") {
  ScriptedNode node;
  ReadInto first(&node, 1, kSinkBytes);
  ReadInto second(&node, 1, kSinkBytes);
  Completion completion(node.exchange(&first.transfer));
  node.initiator->submit(&second.transfer);
  Bytes answer = completion.add_value(pattern(10, 1)).finish();
  node.send_unseen(answer);
  node.hang_up();
  while (node.initiator->progress()) continue;
  CHECK(first.item().status == Status::Ok);
  CHECK(second.item().status == kStatusClosed);
}

}  // namespace kvstrata
