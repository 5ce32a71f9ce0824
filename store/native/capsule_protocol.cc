#include "store/native/capsule_protocol.h"

#include "store/native/connection_report.h"
#include "store/native/look_ahead.h"
#include "store/native/node.h"
#include "store/native/shard.h"

namespace kvstrata {

CapsuleProtocol::CapsuleProtocol(Session* session) : session_(session), shard_(&session->shard()) {
  if (session->peer().transport == Transport::Shm) {
    regions_ = std::make_unique<ClientRegions>(&shard_->node());
  }
}

size_t CapsuleProtocol::consume(Bytes bytes) {
  switch (state_) {
    case State::Hello:
      return consume_hello(bytes);
    case State::Capsules: {
      if (!session_->has_room()) {
        session_->wait_for_room();
        return 0;
      }
      look_ahead_of(bytes);
      size_t count = consume_capsule(bytes);
      shard_->read_clock();
      looked_ahead_bytes_ -= std::min(count, looked_ahead_bytes_);
      return count;
    }
    case State::Data:
    case State::Discard:
      shard_->read_clock();
      return consume_data(bytes);
    case State::Paused:
      return 0;
  }
  return 0;
}

void CapsuleProtocol::describe(ConnectionReport* report) const {
  report->pool = pool_name_;
  report->commands = command_count_;
}

void CapsuleProtocol::look_ahead_of(Bytes bytes) {
  if (looked_ahead_bytes_ == 0) looked_ahead_bytes_ = look_ahead(*shard_, pool_, bytes);
}

void CapsuleProtocol::on_output_room() {
  while (!blocked_reads_.empty() && session_->has_room()) {
    Command* command = blocked_reads_.front();
    blocked_reads_.pop_front();
    run_windows(command);
  }
}

void CapsuleProtocol::on_closed() noexcept {
  if (write_ != nullptr) {
    Command* command = std::exchange(write_, nullptr);
    if (state_ == State::Data) abort_value(command, command->receiving);
    if (command->pending == 0) end(command);
  }
  for (Command* command : std::exchange(blocked_reads_, {})) end(command);
}

size_t CapsuleProtocol::consume_hello(Bytes bytes) {
  if (bytes.size() < kHelloPrefixBytes) return 0;
  HelloPrefix prefix;
  if (!decode(bytes.data(), &prefix)) {
    refuse_hello(Status::Invalid, "this is not a KVStrata hello, or its body is too long");
    return bytes.size();
  }
  size_t length = kHelloPrefixBytes + prefix.body_length;
  if (prefix.version_lowest > limits::kProtocolVersion ||
      prefix.version_highest < limits::kProtocolVersion) {
    refuse_hello(Status::Unsupported, "the client speaks capsule protocol versions " +
                                          std::to_string(prefix.version_lowest) + " to " +
                                          std::to_string(prefix.version_highest) +
                                          "; this node speaks version " +
                                          std::to_string(limits::kProtocolVersion));
    return bytes.size();
  }
  if (bytes.size() < length) return 0;
  Bytes whole = bytes.first(length);
  ClientHello hello;
  std::string error = "the hello's CRC does not match";
  Status status = hello_crc_matches(whole) ? decode(whole, &hello, &error) : Status::Invalid;
  if (status != Status::Ok) {
    refuse_hello(status, error);
    return bytes.size();
  }
  uint32_t wanted = hello.shard < shard_->node().shard_count() ? hello.shard : shard_->index();
  if (wanted != shard_->index() || session_->wants_rings(hello)) {
    shard_->hand_over(session_, wanted, hello, bytes.subspan(length));
    return bytes.size();
  }
  return greet(hello, bytes.subspan(length)) ? length : bytes.size();
}

bool CapsuleProtocol::greet(const ClientHello& hello, Bytes unread) {
  if (answer_hello(hello)) return true;
  shard_->hand_over(session_, shard_->index(), hello, unread);
  return false;
}

// False where the hello's pool is so new that this shard is yet to hear of it: the letter that
// tells it is on its way, and one sent now comes after it.
bool CapsuleProtocol::answer_hello(const ClientHello& hello) {
  Node& node = shard_->node();
  std::string message;
  Status status = node.authenticate(hello.pool, hello.secret, &pool_, &rights_, &message);
  if (status == Status::Ok && shard_->stopping()) {
    status = Status::Closing;
    message = "this node is stopping";
  }
  if (status != Status::Ok) {
    refuse_hello(status, message);
    return true;
  }
  if (shard_->store().partition(pool_) == nullptr) return false;
  pool_name_ = hello.pool;
  uint32_t wish = hello.credits == 0 ? node.credits() : hello.credits;
  credits_ = std::min(wish, node.credits());
  NodeHello answer;
  answer.version = limits::kProtocolVersion;
  if (regions_ != nullptr) {
    answer.features = kFeatureRings;
    answer.in_capsule_bytes = limits::kInCapsuleBytes;
  }
  answer.credits = credits_;
  answer.shard = shard_->index();
  answer.shard_count = node.shard_count();
  answer.chunk_bytes = limits::kChunkBytes;
  answer.value_bytes_max = shard_->store().value_bytes_max();
  answer.node_id = node.node_id();
  answer.rights = rights_;
  answer.pool_kind = node.pool_is_immutable(pool_) ? 1 : 0;
  answer.unix_path = node.unix_path();
  encode(answer, output());
  state_ = State::Capsules;
  return true;
}

void CapsuleProtocol::refuse_hello(Status status, std::string message) {
  NodeHello answer;
  answer.status = status;
  answer.message = std::move(message);
  encode(answer, output());
  shard_->statistics().connections_refused.add();
  session_->end_output();
}

// The stream has lost its meaning: say why, then close.
void CapsuleProtocol::fail(uint8_t opcode, uint32_t command_id, std::string_view message) {
  complete_failed(opcode, command_id, Status::Invalid, message);
  shard_->statistics().connections_dropped_protocol.add();
  session_->end_output();
}

size_t CapsuleProtocol::consume_capsule(Bytes bytes) {
  if (bytes.size() < kHeaderBytes) return 0;
  RequestHeader header;
  if (!decode(bytes.data(), &header)) {
    fail(header.opcode, header.command_id, "a length or count is beyond the protocol's limits");
    return bytes.size();
  }
  size_t length = kHeaderBytes + header.body_length;
  if (bytes.size() < length) return 0;
  if (!crc_matches(bytes.first(length))) {
    fail(header.opcode, header.command_id, "the capsule's CRC does not match");
    return bytes.size();
  }
  if (session_->errand_count() >= credits_) {
    fail(header.opcode, header.command_id,
         "more commands in flight than the " + std::to_string(credits_) + " credits allow");
    return bytes.size();
  }
  start(header, bytes.subspan(kHeaderBytes, header.body_length));
  return length;
}

}  // namespace kvstrata
