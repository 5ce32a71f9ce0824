// A node's end of a connection that does what a test says: reads requests, and answers with
// whatever bytes the test wants.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "transport/native/checksum.h"
#include "transport/native/initiator.h"
#include "transport/native/pieces.h"

namespace kvstrata {

constexpr uint32_t kTestChunkBytes = 4096;

struct Request {
  RequestHeader header;
  std::vector<std::byte> body;
  std::vector<std::byte> data;

  // Of the request's entries; they point into `body`.
  std::vector<Entry> entries() const {
    EntryReader reader(static_cast<Opcode>(header.opcode), header.entry_count, body);
    std::vector<Entry> list;
    Entry entry;
    while (reader.next(&entry)) list.push_back(entry);
    REQUIRE_FALSE(reader.malformed());
    return list;
  }
};

inline std::vector<std::byte> pattern(size_t size, uint32_t seed) {
  std::vector<std::byte> bytes(size);
  uint32_t state = seed * 2654435761U + 1;
  for (std::byte& each : bytes) {
    state = state * 1664525U + 1013904223U;
    each = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

inline std::vector<uint64_t> piece_checksums(Bytes value, uint64_t offset = 0) {
  std::vector<uint64_t> checksums;
  while (!value.empty()) {
    auto length = static_cast<size_t>(piece_length(offset, value.size(), kTestChunkBytes));
    checksums.push_back(chunk_checksum(value.first(length)));
    value = value.subspan(length);
    offset += length;
  }
  return checksums;
}

// Bytes of one completion, assembled outcome by outcome.
class Completion {
 public:
  explicit Completion(const Request& request, uint16_t first_outcome = 0) : writer_(&bytes_) {
    writer_.begin_completion(request.header.opcode, request.header.command_id, first_outcome);
  }
  // A value, whole, or from `offset` on of something longer.
  Completion& add_value(Bytes value, uint64_t offset = 0, Bytes attributes = {}) {
    std::vector<uint64_t> checksums = piece_checksums(value, offset);
    return add_value(value, checksums, offset, attributes);
  }
  Completion& add_value(Bytes value, const std::vector<uint64_t>& checksums, uint64_t offset,
                        Bytes attributes) {
    ReadOutcome outcome;
    outcome.value_length = offset + value.size();
    outcome.version = 7;
    outcome.offset = offset;
    outcome.length = value.size();
    outcome.checksums = {reinterpret_cast<const std::byte*>(checksums.data()),
                         static_cast<uint32_t>(checksums.size())};
    outcome.attributes = attributes;
    data_.append(value);
    return add(outcome);
  }
  template <typename Outcome>
  Completion& add(const Outcome& outcome) {
    writer_.add_outcome(outcome);
    return *this;
  }
  Completion& add_status(Status status) {
    writer_.add_status(status);
    return *this;
  }
  CapsuleWriter& writer() { return writer_; }

  // With its data; `data_length` other than that of the data is a lie.
  Bytes finish(uint8_t flags = 0, Status status = Status::Ok, uint32_t credits = 8) {
    return finish_lying(data_.size(), flags, status, credits);
  }
  Bytes finish_lying(uint64_t data_length, uint8_t flags = 0, Status status = Status::Ok,
                     uint32_t credits = 8) {
    writer_.finish_completion(status, data_length, credits, flags);
    bytes_.append(data_.view());
    return bytes_.view();
  }

 private:
  ByteBuffer bytes_;
  ByteBuffer data_;
  CapsuleWriter writer_;
};

// The two ends of one connection: an initiator, and the node that the test plays.
class ScriptedNode : public TransferOwner {
 public:
  explicit ScriptedNode(uint32_t credits = 8) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    socket_ = Socket(ends[1]);
    NodeHello hello;
    hello.credits = credits;
    hello.chunk_bytes = kTestChunkBytes;
    hello.value_bytes_max = 1 << 30;
    initiator = std::make_unique<Initiator>(std::make_unique<SocketStream>(Socket(ends[0])), hello,
                                            "node:1", true, 0);
  }

  // Submits and sends a transfer, and returns what the node got.
  Request exchange(Transfer* transfer) {
    initiator->submit(transfer);
    initiator->progress();
    return receive_request();
  }

  Request receive_request() {
    Request request;
    std::vector<std::byte> head = receive(kHeaderBytes);
    REQUIRE(decode(head.data(), &request.header));
    request.body = receive(request.header.body_length);
    std::vector<std::byte> capsule = head;
    capsule.insert(capsule.end(), request.body.begin(), request.body.end());
    CHECK(crc_matches(capsule));
    request.data = receive(request.header.data_length);
    return request;
  }

  bool has_request() {
    std::byte one{};
    return ::recv(socket_.fd(), &one, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
  }

  void send(Bytes bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) bytes = bytes.subspan(static_cast<size_t>(count));
      if (count <= 0 && initiator->status() != Status::Ok) return;
      if (count <= 0) initiator->progress();
    }
    while (initiator->progress()) continue;
  }

  // The initiator sees every cut.
  void send_in_parts(Bytes bytes, size_t part_bytes) {
    while (!bytes.empty()) {
      size_t count = std::min(part_bytes, bytes.size());
      send(bytes.first(count));
      bytes = bytes.subspan(count);
    }
  }

  // The initiator does not look at them yet.
  void send_unseen(Bytes bytes) {
    REQUIRE(::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }

  void hang_up() { socket_.close(); }

  void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept override {
    for (size_t i = first; provides && i < first + count; ++i) {
      TransferItem& item = transfer.items[i];
      provided.push_back(std::vector<std::byte>(item.moved));
      item.sink = provided.back();
    }
  }
  void ended(Transfer& transfer) noexcept override { done.push_back(&transfer); }

  std::unique_ptr<Initiator> initiator;
  std::vector<Transfer*> done;
  std::vector<std::vector<std::byte>> provided;
  bool provides = true;

 private:
  std::vector<std::byte> receive(size_t count) {
    std::vector<std::byte> bytes(count);
    size_t filled = 0;
    while (filled < count) {
      ssize_t got = ::recv(socket_.fd(), bytes.data() + filled, count - filled, MSG_DONTWAIT);
      if (got <= 0) REQUIRE_MESSAGE(initiator->progress(), "the initiator sends no more");
      if (got > 0) filled += static_cast<size_t>(got);
    }
    return bytes;
  }

  Socket socket_;
};

// A read of keys "0", "1", ... into sinks of one size; the bytes behind every sink must stay as
// they are.
class ReadInto {
 public:
  ReadInto(ScriptedNode* node, size_t count, size_t sink_bytes, Opcode opcode = Opcode::Get)
      : transfer(node, opcode), memory_(count, std::vector<std::byte>(sink_bytes + kGuardBytes)) {
    keys_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      keys_.push_back(std::to_string(i));
      TransferItem& item = transfer.items.emplace_back();
      item.key = as_bytes(keys_.back());
      item.sink = {memory_[i].data(), sink_bytes};
    }
  }

  TransferItem& item(size_t index = 0) { return transfer.items[index]; }
  Bytes bytes(size_t index, size_t count) const { return Bytes(memory_[index]).first(count); }
  bool guards_untouched() const {
    for (const auto& each : memory_) {
      for (std::byte byte : Bytes(each).last(kGuardBytes)) {
        if (byte != std::byte{0}) return false;
      }
    }
    return true;
  }

  Transfer transfer;

 private:
  static constexpr size_t kGuardBytes = 512;
  std::vector<std::string> keys_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace kvstrata
