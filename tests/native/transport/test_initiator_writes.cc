// Writes of the client's end: what reaches the node, and when a source is the caller's again.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/native/transport/scripted_node.h"

namespace kvstrata {

namespace {

Transfer make_write(ScriptedNode* node, Opcode opcode,
                    const std::vector<std::vector<std::byte>>& values) {
  Transfer transfer(node, opcode);
  for (const auto& value : values) transfer.items.emplace_back().source = value;
  return transfer;
}

// In memory, and with the checksums that it has now.
FileSource file_of(const std::vector<std::byte>& content) {
  int fd = ::memfd_create("source", MFD_CLOEXEC);
  REQUIRE(::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  return FileSource(fd, content.size(), piece_checksums(content));
}

}  // namespace

TEST_CASE("values follow their capsule, with the checksums of their pieces") {
  ScriptedNode node;
  std::vector<std::vector<std::byte>> values = {pattern(0, 0), pattern(100, 1), pattern(4096, 2),
                                                pattern(1 << 20, 3), pattern(9000, 4)};
  Transfer put = make_write(&node, Opcode::Put, values);
  node.initiator->submit(&put);
  node.initiator->progress();
  Request request = node.receive_request();
  std::vector<Entry> entries = request.entries();
  Bytes data = request.data;
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(entries[i].value_length == values[i].size());
    std::vector<uint64_t> checksums = piece_checksums(values[i]);
    REQUIRE(entries[i].checksums.size() == checksums.size());
    for (uint32_t k = 0; k < checksums.size(); ++k) CHECK(entries[i].checksums[k] == checksums[k]);
    CHECK(equal(data.first(values[i].size()), values[i]));
    data = data.subspan(values[i].size());
  }
  Completion completion(request);
  for (size_t i = 0; i < values.size(); ++i) {
    completion.add(WriteOutcome{Status::Ok, WriteResult::Replaced, values[i].size(), i});
  }
  node.send(completion.finish());
  REQUIRE(node.done.size() == 1);
  CHECK(put.items[4].result == WriteResult::Replaced);
  CHECK(put.items[4].version == 4);
}

TEST_CASE("files are sent as values are, among them and in turn") {
  ScriptedNode node;
  std::vector<std::vector<std::byte>> values = {pattern(100, 1), pattern(3'000'001, 2),
                                                pattern(7, 3), pattern(1, 4), pattern(9000, 5)};
  FileSource large = file_of(values[1]);
  FileSource tiny = file_of(values[3]);
  Transfer put = make_write(&node, Opcode::Put, values);
  put.items[1].source = {};
  put.items[1].file = &large;
  put.items[3].source = {};
  put.items[3].file = &tiny;
  node.initiator->submit(&put);
  node.initiator->progress();
  Request request = node.receive_request();
  std::vector<Entry> entries = request.entries();
  Bytes data = request.data;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<uint64_t> checksums = piece_checksums(values[i]);
    REQUIRE(entries[i].checksums.size() == checksums.size());
    CHECK(entries[i].checksums[0] == checksums[0]);
    CHECK(entries[i].value_length == values[i].size());
    CHECK(equal(data.first(values[i].size()), values[i]));
    data = data.subspan(values[i].size());
  }
  Completion completion(request);
  for (const auto& value : values) {
    completion.add(WriteOutcome{Status::Ok, WriteResult::Created, value.size(), 1});
  }
  node.send(completion.finish());
  REQUIRE(node.done.size() == 1);
}

TEST_CASE("what is gone from a file is sent as zeros") {
  ScriptedNode node;
  std::vector<std::byte> value = pattern(1'000'000, 1);
  int fd = ::memfd_create("source", MFD_CLOEXEC);
  FileSource file(fd, value.size(), piece_checksums(value));
  REQUIRE(::write(fd, value.data(), 600'000) == 600'000);
  Transfer put = make_write(&node, Opcode::Put, {{}});
  put.items[0].file = &file;
  node.initiator->submit(&put);
  node.initiator->progress();
  std::vector<std::byte> data = node.receive_request().data;
  std::fill(value.begin() + 600'000, value.end(), std::byte{0});
  CHECK(equal(data, value));
  node.initiator->close(kStatusClosed, "over");
}

TEST_CASE("an append is cut where the object's chunks end") {
  ScriptedNode node;
  std::vector<std::vector<std::byte>> values = {pattern(10'000, 1)};
  Transfer append = make_write(&node, Opcode::Append, values);
  append.at = 4000;
  node.initiator->submit(&append);
  node.initiator->progress();
  Request request = node.receive_request();
  Entry entry = request.entries()[0];
  CHECK(entry.at == 4000);
  CHECK(entry.checksums.size() == 4);
  CHECK(entry.checksums[0] == chunk_checksum(Bytes(values[0]).first(96)));
  node.initiator->close(kStatusClosed, "over");
}

TEST_CASE("a write refused early has not ended before its source has left") {
  ScriptedNode node;
  std::vector<std::vector<std::byte>> values = {pattern(8 << 20, 1)};
  Transfer put = make_write(&node, Opcode::Put, values);
  node.initiator->submit(&put);
  node.initiator->progress();
  CHECK(node.initiator->wants_write());
  Request request;
  request.header.opcode = static_cast<uint8_t>(Opcode::Put);
  request.header.command_id = put.command_id;
  Completion refusal(request);
  node.send(refusal.add(WriteOutcome{Status::NoSpace}).finish());
  CHECK(node.done.empty());
  CHECK(equal(node.receive_request().data, values[0]));
  node.initiator->progress();
  REQUIRE(node.done.size() == 1);
  CHECK(put.items[0].status == Status::NoSpace);
}

TEST_CASE("only what has not reached the wire can be sent again") {
  ScriptedNode node(1);
  std::vector<std::vector<std::byte>> values = {pattern(10, 1)};
  Transfer sent = make_write(&node, Opcode::Put, values);
  Transfer waiting = make_write(&node, Opcode::Put, values);
  node.initiator->submit(&sent);
  node.initiator->submit(&waiting);
  node.initiator->progress();
  node.receive_request();
  node.hang_up();
  node.initiator->progress();
  CHECK(node.initiator->status() == kStatusClosed);
  CHECK(node.done.size() == 2);
  CHECK(sent.begun);
  CHECK_FALSE(waiting.begun);
  CHECK(waiting.items[0].status == kStatusClosed);
  CHECK(waiting.message == "the node node:1 closed the connection");
  Transfer late = make_write(&node, Opcode::Put, values);
  node.initiator->submit(&late);
  CHECK(late.status == kStatusClosed);
}

}  // namespace kvstrata
