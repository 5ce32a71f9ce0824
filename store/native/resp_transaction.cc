// MULTI, EXEC and WATCH: commands that wait until all of them are carried out in one go, on the
// shard that owns their keys.
#include <algorithm>

#include "store/native/node.h"
#include "store/native/resp_protocol.h"
#include "store/native/resp_state.h"
#include "store/native/shard.h"
#include "store/native/slot.h"

namespace kvstrata {

namespace {

constexpr size_t kQueuedMax = 64 * 1024;

}  // namespace

std::string not_in_transaction(const RespCommand& command) {
  return "ERR Command '" + std::string(command.name) + "' not allowed inside a transaction";
}

void RespProtocol::multi() {
  if (transaction_ == nullptr) transaction_ = std::make_unique<Transaction>();
  transaction_->is_open = true;
  transaction_->call = new_call(find_resp_command("EXEC"));
  reply_writer().ok();
}

void RespProtocol::discard() {
  if (transaction_ == nullptr || !transaction_->is_open) {
    reply_error("ERR DISCARD without MULTI");
    return;
  }
  end_transaction();
  reply_writer().ok();
}

// False, and an error was written, where the keys are not of one slot, or of another shard than
// before. Of several commands, each may name a slot of its own: only EXEC finds that wrong.
bool RespProtocol::joins_transaction(const Invocation& invocation) {
  Transaction& transaction = *transaction_;
  uint32_t shard_count = shard_->node().shard_count();
  std::vector<size_t> places = key_places(invocation.command, invocation.arguments);
  if (places.empty()) return true;
  uint16_t slot = key_slot(invocation.arguments[places[0]]);
  bool is_of_one = std::ranges::all_of(
      places, [&](size_t place) { return key_slot(invocation.arguments[place]) == slot; });
  uint32_t shard = slot_shard(slot, shard_count);
  bool crosses = transaction.is_open && transaction.has_slot && transaction.slot != slot;
  if (!is_of_one || (!crosses && transaction.has_shard && transaction.shard != shard)) {
    refuse(&invocation.command, kCrossSlot);
    return false;
  }
  transaction.has_slots = transaction.has_slots || crosses;
  if (crosses) return true;
  transaction.has_shard = true;
  transaction.shard = shard;
  if (!transaction.is_open) return true;
  transaction.has_slot = true;
  transaction.slot = slot;
  return true;
}

void RespProtocol::queue(const Invocation& invocation) {
  const RespCommand& command = invocation.command;
  if (!fits_transaction(command)) {
    refuse(&command, not_in_transaction(command));
    return;
  }
  if (transaction_->call->parts.size() == kQueuedMax) {
    refuse(&command, "ERR a transaction has at most 65536 commands");
    return;
  }
  if (!keys_are_sound(invocation) || !joins_transaction(invocation)) return;
  RespCall* call = transaction_->call;
  call->add_part(&command, 0).is_of_connection = route_of(command) == RespRoute::Connection;
  call->add_arguments(invocation.arguments);
  reply_writer().simple_string("QUEUED");
}

void RespProtocol::exec() {
  if (transaction_ == nullptr || !transaction_->is_open) {
    reply_error("ERR EXEC without MULTI");
    return;
  }
  if (transaction_->is_broken) {
    end_transaction();
    reply_error("EXECABORT Transaction discarded because of previous errors.");
    return;
  }
  RespCall* call = std::exchange(transaction_->call, nullptr);
  uint32_t owner = transaction_->has_shard ? transaction_->shard : shard_->index();
  call->watches = std::move(transaction_->watches);
  call->join = RespJoin::Array;
  call->crosses_slots = transaction_->has_slots;
  call->version = version_;
  call->pool = pool_;
  for (RespCall::Part& part : call->parts) {
    part.shard = owner;
    if (part.is_of_connection) awaited_ = call;
  }
  call->replies_of_shard(owner);
  end_transaction();
  enqueue(call);
  ++call->pending;
  if (!shard_->begin_work(owner, {call, owner, Phase::Execute})) return;
  --call->pending;
  finish(call);
}

// The commands of a transaction that are the connection's, once the others were carried out.
void RespProtocol::run_parts_of_connection(RespCall* call) {
  if (call->is_refused) return;
  for (RespCall::Part& part : call->parts) {
    if (!part.is_of_connection || part.done) continue;
    reply_sink_ = &call->replies_of_connection();
    run_now({*part.command, call->arguments_of(part)});
    reply_sink_ = nullptr;
    call->end_reply(&part);
  }
}

void RespProtocol::watch(const Invocation& invocation) {
  if (!keys_are_sound(invocation)) return;
  if (transaction_ == nullptr) transaction_ = std::make_unique<Transaction>();
  if (!joins_transaction(invocation)) return;
  RespCall* call = new_call(&invocation.command);
  call->add_part(&invocation.command, transaction_->shard);
  call->add_arguments(invocation.arguments);
  enqueue(call);
  awaited_ = call;
  send(call);
}

void RespProtocol::unwatch() {
  end_transaction();
  reply_writer().ok();
}

void RespProtocol::break_transaction() noexcept {
  if (transaction_ != nullptr && transaction_->is_open) transaction_->is_broken = true;
}

void RespProtocol::end_transaction() noexcept {
  if (transaction_ == nullptr) return;
  if (transaction_->call != nullptr) release(transaction_->call);
  transaction_.reset();
}

}  // namespace kvstrata
