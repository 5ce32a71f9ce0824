// MULTI, EXEC and WATCH: commands that wait until all of them are carried out in one go, on the
// shard that owns their keys.
#include "store/native/node.h"
#include "store/native/resp_protocol.h"
#include "store/native/resp_state.h"
#include "store/native/shard.h"
#include "store/native/slot.h"

namespace kvstrata {

namespace {

constexpr size_t kQueuedMax = 64 * 1024;
constexpr std::string_view kCrossSlot = "CROSSSLOT Keys in request don't hash to the same slot";

}  // namespace

void RespProtocol::multi() {
  if (transaction_ != nullptr && transaction_->is_open) {
    reply_error("ERR MULTI calls can not be nested");
    return;
  }
  if (transaction_ == nullptr) transaction_ = std::make_unique<Transaction>();
  transaction_->is_open = true;
  transaction_->call = new_call(*find_resp_command("EXEC"));
  reply_writer().simple_string("OK");
}

void RespProtocol::discard() {
  if (transaction_ == nullptr || !transaction_->is_open) {
    reply_error("ERR DISCARD without MULTI");
    return;
  }
  end_transaction();
  reply_writer().simple_string("OK");
}

// False, and an error was written, where another slot is named than before.
bool RespProtocol::joins_slot(uint16_t slot) {
  if (transaction_->has_slot && transaction_->slot != slot) {
    reply_error(kCrossSlot);
    break_transaction();
    return false;
  }
  transaction_->has_slot = true;
  transaction_->slot = slot;
  return true;
}

void RespProtocol::queue(const Invocation& invocation) {
  const RespCommand& command = invocation.command;
  if (route_of(command.id) != RespRoute::Keyed) {
    reply_error("ERR Command not allowed inside a transaction");
    break_transaction();
    return;
  }
  if (transaction_->call->parts.size() == kQueuedMax) {
    reply_error("ERR a transaction has at most 65536 commands");
    break_transaction();
    return;
  }
  if (!keys_are_sound(invocation)) return;
  for (size_t place : key_places(command, invocation.arguments)) {
    if (!joins_slot(key_slot(invocation.arguments[place]))) return;
  }
  RespCall* call = transaction_->call;
  call->add_part(&command, 0).arguments = call->keep(invocation.arguments);
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
  uint32_t owner = shard_->index();
  if (transaction_->has_slot) owner = slot_shard(transaction_->slot, shard_->node().shard_count());
  call->watches = std::move(transaction_->watches);
  call->version = version_;
  call->pool = pool_;
  for (RespCall::Part& part : call->parts) part.shard = owner;
  end_transaction();
  enqueue(call);
  ++call->pending;
  if (!shard_->begin_work(owner, {call, owner, Phase::Execute})) return;
  --call->pending;
  finish(call);
}

void RespProtocol::watch(const Invocation& invocation) {
  if (transaction_ != nullptr && transaction_->is_open) {
    reply_error("ERR WATCH inside MULTI is not allowed");
    return;
  }
  if (!keys_are_sound(invocation)) return;
  if (transaction_ == nullptr) transaction_ = std::make_unique<Transaction>();
  for (size_t index = 1; index < invocation.arguments.size(); ++index) {
    if (!joins_slot(key_slot(invocation.arguments[index]))) return;
  }
  is_asking_ = true;
  run_as_call(invocation, slot_shard(transaction_->slot, shard_->node().shard_count()), 0);
}

void RespProtocol::unwatch() {
  end_transaction();
  reply_writer().simple_string("OK");
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
