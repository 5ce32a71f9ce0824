// Large values of SET and its kin: received into their open record before the command is whole.
#include "store/native/node.h"
#include "store/native/resp_protocol.h"
#include "store/native/resp_state.h"
#include "store/native/shard.h"
#include "store/native/slot.h"

namespace kvstrata {

namespace {

// The argument that is the value, of commands that store one under one key; else 0.
size_t value_place(RespCommandId id) noexcept {
  switch (id) {
    case RespCommandId::Set:
    case RespCommandId::Setnx:
    case RespCommandId::Getset:
      return 2;
    case RespCommandId::Setex:
    case RespCommandId::Psetex:
      return 3;
    default:
      return 0;
  }
}

}  // namespace

uint64_t RespProtocol::data_left() const noexcept {
  return stream_ != nullptr && !stream_->waits ? stream_->value.left() : 0;
}

// `arguments` are those before the large one.
bool RespProtocol::may_stream(const RespArguments& arguments) const noexcept {
  const RespCommand* command = find_resp_command(as_text(arguments[0]));
  return command != nullptr && value_place(command->id) == arguments.size() && authenticated_ &&
         (rights_ & kRightWrite) != 0 && !is_in_transaction() && !shard_->stopping() &&
         arguments[1].size() <= limits::kKeyBytesMax;
}

void RespProtocol::begin_stream() {
  RespArguments arguments = reader_.arguments();
  const RespCommand* command = find_resp_command(as_text(arguments[0]));
  stream_ = std::make_unique<Stream>();
  RespCall* call = new_call(command);
  stream_->call = call;
  stream_->owner = slot_shard(key_slot(arguments[1]), shard_->node().shard_count());
  call->value_bytes = reader_.large_argument_bytes();
  call->add_part(command, stream_->owner);
  call->add_arguments(arguments);
  stream_->waits = true;
  ++call->pending;
  Work work{call, stream_->owner, Phase::Reserve};
  if (!shard_->begin_work(stream_->owner, work)) return;
  --call->pending;
  stream_is_reserved();
}

void RespProtocol::stream_is_reserved() {
  const RespCall& call = *stream_->call;
  stream_->waits = false;
  stream_->is_dropped = call.parts[0].open == 0;
  stream_->value.begin(0, call.value_bytes);
}

MutableBytes RespProtocol::data_target() {
  if (stream_->is_dropped) return {};
  const IncomingValue& value = stream_->value;
  return shard_->store()
      .piece(stream_->call->parts[0].open, value.chunk())
      .subspan(value.at() % limits::kChunkBytes, value.piece_left());
}

void RespProtocol::take_data(Bytes bytes) {
  if (stream_->is_dropped) {
    stream_->value.skip(bytes.size());
    return;
  }
  uint32_t chunk = stream_->value.chunk();
  uint64_t checksum = 0;
  if (stream_->value.take(bytes, &checksum)) {
    shard_->store().set_checksum(stream_->call->parts[0].open, chunk, checksum);
  }
}

// What came with other bytes, in the read buffer.
size_t RespProtocol::consume_value(Bytes bytes) {
  auto count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), stream_->value.left()));
  if (!stream_->is_dropped) {
    count = std::min<size_t>(count, stream_->value.piece_left());
    std::memcpy(data_target().data(), bytes.data(), count);
  }
  take_data(bytes.first(count));
  return count;
}

// The command is whole.
void RespProtocol::finish_stream(const Invocation& invocation) {
  RespCall* call = std::exchange(stream_->call, nullptr);
  stream_.reset();
  call->replace_arguments(invocation.arguments);
  enqueue(call);
  send(call);
}

// The command was refused, or the connection is gone.
void RespProtocol::abandon_stream() noexcept {
  if (stream_ == nullptr) return;
  RespCall* call = std::exchange(stream_->call, nullptr);
  bool waits = stream_->waits;
  stream_.reset();
  if (waits) return;  // It comes home, and finds nobody.
  if (call->parts[0].open != 0) {
    ++call->pending;
    if (!shard_->begin_work(call->parts[0].shard, {call, call->parts[0].shard, Phase::Abort}))
      return;
    --call->pending;
  }
  release(call);
}

}  // namespace kvstrata
