// Commands of a Valkey client: which shards carry them out.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "store/native/node.h"
#include "store/native/resp_expiry.h"
#include "store/native/resp_protocol.h"
#include "store/native/resp_state.h"
#include "store/native/scan_cursor.h"
#include "store/native/shard.h"
#include "store/native/slot.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

// Whether each key can be dealt with by itself, and how the replies are joined then.
bool splits_by_key(RespCommandId id, RespJoin* join) noexcept {
  switch (id) {
    case RespCommandId::Mget:
      *join = RespJoin::Array;
      return true;
    case RespCommandId::Mset:
      *join = RespJoin::AllOk;
      return true;
    case RespCommandId::Del:
    case RespCommandId::Unlink:
    case RespCommandId::Exists:
    case RespCommandId::Touch:
      *join = RespJoin::Sum;
      return true;
    default:
      return false;
  }
}

// What does for one key what the command does for many.
const RespCommand* command_for_one(const RespCommand& command) noexcept {
  if (command.id == RespCommandId::Mget) return find_resp_command("GET");
  if (command.id == RespCommandId::Mset) return find_resp_command("SET");
  return &command;
}

// As Valkey takes one: whatever C takes for a number of 64 bits, but none that is below 0.
bool parse_cursor(const std::string& text, uint64_t* cursor) noexcept {
  int64_t number = 0;
  if (parse_decimal(text, &number) && number < 0) return false;
  char* end = nullptr;
  errno = 0;
  *cursor = std::strtoull(text.c_str(), &end, 10);
  return errno == 0 && end != text.c_str() && *end == '\0';
}

}  // namespace

// The places of a command's keys; none where the arguments name fewer than they say.
std::vector<size_t> key_places(const RespCommand& command, const RespArguments& arguments) {
  std::vector<size_t> places;
  const RespKeyPlaces& keys = command.keys;
  if (keys.step == 0) return places;
  size_t size = arguments.size();
  size_t end = size;
  if (keys.count_at != 0) {
    int64_t count = 0;
    bool counts = keys.count_at < size && parse_decimal(as_text(arguments[keys.count_at]), &count);
    if (!counts || count <= 0 || static_cast<uint64_t>(count) > size) return places;
    end = keys.first + static_cast<size_t>(count) * keys.step;
    if (end > size) return places;
  } else if (keys.last >= 0) {
    end = size_t{keys.first} + static_cast<size_t>(keys.last) + 1;
  }
  for (size_t at = keys.first; at < std::min(end, size); at += keys.step) places.push_back(at);
  return places;
}

bool RespProtocol::keys_are_sound(const Invocation& invocation) {
  for (size_t place : key_places(invocation.command, invocation.arguments)) {
    size_t bytes = invocation.arguments[place].size();
    if (bytes <= limits::kKeyBytesMax) continue;
    std::string text = "ERR a key of " + std::to_string(bytes) + " bytes is longer than the " +
                       std::to_string(limits::kKeyBytesMax) + " that a key may have";
    refuse(&invocation.command, text);
    return false;
  }
  return true;
}

void RespProtocol::run_keyed(const Invocation& invocation) {
  uint32_t shard_count = shard_->node().shard_count();
  const RespKeyPlaces& keys = invocation.command.keys;
  // Most have one key, and most nodes' shards are few.
  bool has_one = keys.step != 0 && keys.last == 0 && keys.count_at == 0;
  if (has_one && invocation.arguments[keys.first].size() <= limits::kKeyBytesMax) {
    Bytes key = invocation.arguments[keys.first];
    run_at(invocation, shard_count == 1 ? 0 : slot_shard(key_slot(key), shard_count));
    return;
  }
  uint32_t owner = shard_->index();
  bool lacks_value = keys.step == 2 && keys.count_at == 0 && invocation.arguments.size() % 2 == 0;
  if (lacks_value) {
    run_at(invocation, owner);  // Which says so: nobody knows what its keys are.
    return;
  }
  if (!keys_are_sound(invocation)) return;
  bool is_first = true;
  bool has_several_owners = false;
  for (size_t place : key_places(invocation.command, invocation.arguments)) {
    uint32_t each = slot_shard(key_slot(invocation.arguments[place]), shard_count);
    has_several_owners = has_several_owners || (!is_first && each != owner);
    owner = each;
    is_first = false;
  }
  RespJoin join = RespJoin::Only;
  if (!has_several_owners) {
    run_at(invocation, owner);
  } else if (splits_by_key(invocation.command.id, &join)) {
    run_by_key(invocation);
  } else {
    refuse(&invocation.command, kCrossSlot);
  }
}

// All of it on one shard.
void RespProtocol::run_at(const Invocation& invocation, uint32_t owner) {
  Location open = 0;
  Partition* partition = shard_->store().partition(pool_);
  bool travels_alone = owner == shard_->index() || is_silent();
  if (owner == shard_->index() && !is_silent() && partition != nullptr &&
      !shard_->has_waiting(session_)) {
    OutputQueue& reply = begin_reply();
    size_t begin = reply.bytes()->size();
    RespExecution execution{shard_->store(), *partition, owner, &invocation.command,
                            invocation.arguments};
    execution.version = version_;
    execution.reply = &reply;
    execution.open = &open;
    execution.touches = touches_;
    // The end of one command is the beginning of the next.
    uint64_t begin_ns = shard_->clock_ns();
    if (execute(execution) != Status::Busy) {
      count(invocation, shard_->read_clock() - begin_ns, reply.bytes()->view().subspan(begin));
      return;
    }
  }
  if (travels_alone) {
    run_as_call(invocation, owner, open);
  } else {
    RespCall* call = gather();
    call->add_part(&invocation.command, owner);
    call->add_arguments(invocation.arguments);
  }
}

void RespProtocol::run_as_call(const Invocation& invocation, uint32_t owner, Location open) {
  RespCall* call = new_call(&invocation.command);
  call->add_part(&invocation.command, owner).open = open;
  call->add_arguments(invocation.arguments);
  enqueue(call);
  send(call);
}

void RespProtocol::run_by_key(const Invocation& invocation) {
  const RespKeyPlaces& keys = invocation.command.keys;
  const RespCommand* each = command_for_one(invocation.command);
  uint32_t shard_count = shard_->node().shard_count();
  RespCall* call = new_call(&invocation.command);
  splits_by_key(invocation.command.id, &call->join);
  const RespArguments& arguments = invocation.arguments;
  for (size_t at = keys.first; at < arguments.size(); at += keys.step) {
    call->add_part(each, slot_shard(key_slot(arguments[at]), shard_count));
    call->add_argument(arguments[0]);
    call->add_argument(arguments[at]);
    if (keys.step == 2) call->add_argument(arguments[at + 1]);
  }
  enqueue(call);
  send(call);
}

void RespProtocol::run_on_all(const Invocation& invocation, RespJoin join) {
  bool flushes = join == RespJoin::AllOk;
  if (flushes && invocation.arguments.size() > 1) {
    bool is_known = invocation.arguments.size() == 2 &&
                    (is_word(invocation.text(1), "SYNC") || is_word(invocation.text(1), "ASYNC"));
    if (!is_known) {
      reply_error("ERR syntax error");
      return;
    }
  }
  RespCall* call = new_call(&invocation.command);
  call->join = join;
  for (uint32_t shard = 0; shard < shard_->node().shard_count(); ++shard) {
    call->add_part(&invocation.command, shard);
    call->add_arguments(invocation.arguments);
  }
  enqueue(call);
  send(call);
}

void RespProtocol::run_scan(const Invocation& invocation) {
  uint64_t cursor = 0;
  if (!parse_cursor(std::string(invocation.text(1)), &cursor)) {
    reply_error("ERR invalid cursor");
    return;
  }
  // One that is not of this node is as good as one near the end.
  auto begin = ScanCursor::from(cursor);
  begin.shard = std::min(begin.shard, shard_->node().shard_count() - 1);
  RespCall* call = new_call(&invocation.command);
  call->join = RespJoin::Scan;
  call->add_part(&invocation.command, begin.shard).cursor = begin.index_cursor;
  call->add_arguments(invocation.arguments);
  enqueue(call);
  send(call);
}

void RespProtocol::run_on_slot(const Invocation& invocation) {
  int64_t slot = 0;
  int64_t count = 0;
  bool lists = invocation.command.id == RespCommandId::ClusterGetkeysinslot;
  if (!parse_decimal(invocation.text(2), &slot) ||
      (lists && !parse_decimal(invocation.text(3), &count))) {
    reply_error("ERR value is not an integer or out of range");
    return;
  }
  if (slot < 0 || slot >= static_cast<int64_t>(limits::kSlotCount) || count < 0) {
    reply_error(lists ? "ERR Invalid slot or number of keys" : "ERR Invalid slot");
    return;
  }
  RespCall* call = new_call(&invocation.command);
  call->join = lists ? RespJoin::Arrays : RespJoin::Only;
  uint32_t owner = slot_shard(static_cast<uint16_t>(slot), shard_->node().shard_count());
  call->add_part(&invocation.command, owner);
  call->add_arguments(invocation.arguments);
  enqueue(call);
  send(call);
}

}  // namespace kvstrata
