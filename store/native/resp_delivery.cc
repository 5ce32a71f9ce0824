// Calls of a Valkey client: how they set out, and how replies come home and leave in the order of
// the commands.
#include <algorithm>
#include <string>

#include "store/native/node.h"
#include "store/native/resp_protocol.h"
#include "store/native/resp_state.h"
#include "store/native/shard.h"

namespace kvstrata {

RespCall* RespProtocol::new_call(const RespCommand* command) {
  RespCall* call = shard_->take_resp_call();
  session_->begin_errand();
  call->session = session_;
  call->pool = pool_;
  call->keeps_order = true;
  call->command = command;
  call->version = version_;
  call->touches = touches_;
  call->is_silent = is_silent();
  call->begin_ns = shard_->read_clock();
  call->deadline_ns = call->begin_ns + limits::kDeadlineMsDefault * 1'000'000;
  return call;
}

void RespProtocol::enqueue(RespCall* call) {
  send_gathered();
  if (last_ == nullptr) {
    first_ = call;
  } else {
    last_->next = call;
  }
  last_ = call;
  call_count_ += call->command_count;
}

// The call that a command joins which is for another shard, or whose reply has to wait for those of
// such. It goes once all that came with it was looked at: one letter to each shard, one home, and
// one piece of output for all of them.
RespCall* RespProtocol::gather() {
  if (gathered_ != nullptr && gathered_->is_full()) send_gathered();
  if (gathered_ != nullptr) {
    ++gathered_->command_count;
    ++call_count_;
    return gathered_;
  }
  RespCall* call = new_call(nullptr);
  call->join = RespJoin::Each;
  // What is not sent yet joins too.
  OutputQueue& output = session_->output();
  if (first_ == nullptr && !output.empty() && output.is_small()) {
    call->replies_made_at_once().append(&output);
  }
  enqueue(call);
  gathered_ = call;
  return call;
}

void RespProtocol::send_gathered() {
  if (gathered_ != nullptr) send(std::exchange(gathered_, nullptr));
}

// Once to each owner of a part.
void RespProtocol::send(RespCall* call) {
  uint64_t sent = 0;
  uint64_t reply_count = std::max<uint64_t>(call->parts.size(), call->command_count);
  session_->await(call, reply_count * limits::kRecordBytesInlineMax);
  ++call->pending;  // It is not done before everything was sent.
  for (const RespCall::Part& part : call->parts) {
    if (part.done || (sent & (uint64_t{1} << part.shard)) != 0) continue;
    sent |= uint64_t{1} << part.shard;
    send_step(call, part);
  }
  if (--call->pending == 0) finish(call);
}

// The steps of a walk are a turn each, on this shard too.
void RespProtocol::send_step(RespCall* call, const RespCall::Part& part) {
  ++call->pending;
  Work work{call, part.shard, Phase::Execute};
  if (walks(part.command->id)) {
    shard_->send_work(part.shard, work);
  } else if (shard_->begin_work(part.shard, work)) {
    --call->pending;
  }
}

void RespProtocol::on_work_done(const Work& work) {
  bool was_paused = is_paused();
  work_done(work);
  if (was_paused && !session_->closed() && !is_paused()) session_->resume();
}

void RespProtocol::work_done(const Work& work) {
  auto* call = static_cast<RespCall*>(work.errand);
  if (session_->closed()) {
    bool holds_memory = !call->parts.empty() && call->parts[0].open != 0;
    if (holds_memory && work.phase != Phase::Abort) {
      ++call->pending;
      Work abort{call, call->parts[0].shard, Phase::Abort};
      if (!shard_->begin_work(call->parts[0].shard, abort)) return;
      --call->pending;
    }
    if (call->pending == 0) drop(call);
    return;
  }
  if (work.phase == Phase::Reserve) {
    stream_is_reserved();
    return;
  }
  if (work.phase == Phase::Abort) {
    if (call->pending == 0) release(call);
    return;
  }
  for (const RespCall::Part& part : call->parts) {
    if (part.shard != work.part || part.done || part.is_of_connection) continue;
    send_step(call, part);
    return;
  }
  if (call->pending == 0) finish(call);
}

// Its parts are done.
void RespProtocol::finish(RespCall* call) {
  session_->await_no_more(call);
  if (awaited_ == call) awaited_ = nullptr;
  if (call->is(RespCommandId::Exec)) run_parts_of_connection(call);
  call->done = true;
  if (session_->closed()) {
    drop(call);
    return;
  }
  if (call->is(RespCommandId::Watch)) {
    std::ranges::move(call->watches, std::back_inserter(transaction_->watches));
  }
  deliver();
}

// Replies that are due and there.
void RespProtocol::deliver() {
  while (first_ != nullptr && first_->done) {
    RespCall* call = first_;
    first_ = call->next;
    if (first_ == nullptr) last_ = nullptr;
    call_count_ -= call->command_count;
    write_replies(call, call->is_silent ? &shard_->scratch_output() : &session_->output());
    if (call->is_silent) shard_->scratch_output();  // Which lets go of what is in it.
    release(call);
  }
  shard_->flush_later(session_);
}

void RespProtocol::write_replies(RespCall* call, OutputQueue* output) {
  if (call->command != nullptr) {
    size_t begin = output->bytes()->size();
    call->join_parts(shard_->node().shard_count(), output);
    RespArguments arguments = call->parts.empty() ? RespArguments({}, 0, nullptr, nullptr)
                                                  : call->arguments_of(call->parts[0]);
    count({*call->command, arguments}, call->execution_ns(),
          output->bytes()->view().subspan(begin));
    return;
  }
  for (const RespCall::Part& part : call->parts) {
    size_t begin = output->bytes()->size();
    call->take_reply(part, output);
    if (part.command == nullptr) continue;  // They were counted.
    count({*part.command, call->arguments_of(part)}, part.execution_ns,
          output->bytes()->view().subspan(begin));
  }
}

// Nobody wants its replies any more.
void RespProtocol::drop(RespCall* call) {
  std::vector<OwnedExtent> released;
  call->discard(&released);
  shard_->release(&released);
  release(call);
}

void RespProtocol::release(RespCall* call) {
  call->reset();
  shard_->return_resp_call(call);
  session_->end_errand();
}

void RespProtocol::run_in_python(const Invocation& invocation) {
  AdminCall admin;
  for (size_t index = 0; index < invocation.arguments.size(); ++index) {
    admin.arguments.emplace_back(invocation.text(index));
  }
  admin.resp_version = static_cast<uint32_t>(version_);
  admin.client_id = session_->client_id();
  admin.pool = pool_name_;
  admin.rights = rights_;
  admin.peer = session_->peer().name;
  RespCall* call = new_call(&invocation.command);
  enqueue(call);
  if (!shard_->start_admin(call, std::move(admin))) {
    RespWriter(call->replies_made_at_once().bytes(), version_)
        .error("ERR too many administrative commands wait; try again");
    finish(call);
    return;
  }
  call->pending = 1;
  awaited_ = call;
}

void RespProtocol::on_admin_done(Errand* errand, Status status, Bytes payload) {
  auto* call = static_cast<RespCall*>(errand);
  OutputQueue& reply = call->replies_made_at_once();
  call->pending = 0;
  if (status == Status::Ok) {
    reply.bytes()->append(payload);
  } else {
    RespWriter(reply.bytes(), version_)
        .error(status == Status::Deadline ? "ERR the command was not answered in time"
                                          : "ERR the command failed");
  }
  finish(call);
  if (!session_->closed()) session_->resume();
}

}  // namespace kvstrata
