#include "store/native/resp_protocol.h"

#include <algorithm>
#include <string>

#include "store/native/connection_report.h"
#include "store/native/node.h"
#include "store/native/resp_expiry.h"
#include "store/native/resp_journal.h"
#include "store/native/resp_look_ahead.h"
#include "store/native/resp_state.h"
#include "store/native/shard.h"

namespace kvstrata {

namespace {

// What the reader may keep of its memory while nothing comes.
constexpr size_t kReaderBytesKept = 1024;
// Of what is quoted from a command that is not known.
constexpr size_t kQuotedBytesMax = 128;

uint32_t right_for(const RespCommand& command) noexcept {
  if ((command.flags & kRespFlagWrite) != 0) return kRightWrite;
  return (command.flags & kRespFlagReadonly) != 0 ? kRightRead : 0;
}

std::string unknown_command(const RespArguments& arguments) {
  std::string text = "ERR unknown command '";
  text.append(quotable(as_text(arguments[0]), kQuotedBytesMax));
  text += "', with args beginning with: ";
  std::string quoted;
  for (size_t index = 1; index < arguments.size() && quoted.size() < kQuotedBytesMax; ++index) {
    size_t room = kQuotedBytesMax - quoted.size();
    quoted += '\'';
    quoted.append(quotable(as_text(arguments[index]), room));
    quoted += "' ";
  }
  return text + quoted;
}

std::string unknown_subcommand(const RespCommand& container, std::string_view name) {
  std::string upper(container.name);
  for (char& letter : upper) letter = static_cast<char>(std::toupper(letter));
  return "ERR unknown subcommand '" + std::string(quotable(name, kQuotedBytesMax)) + "'. Try " +
         upper + " HELP.";
}

// What a browser sends, which a page may have made to do mischief.
bool is_http(std::string_view name) noexcept {
  return is_word(name, "POST") || is_word(name, "HOST:");
}

}  // namespace

RespProtocol::RespProtocol(Session* session) : session_(session), shard_(&session->shard()) {
  // A pool that is open to all needs no word.
  take_pool("default", "");
}

RespProtocol::~RespProtocol() = default;

bool RespProtocol::is_paused() const noexcept {
  return awaited_ != nullptr || call_count_ >= kRespCallsMax ||
         (stream_ != nullptr && stream_->waits);
}

size_t RespProtocol::consume(Bytes bytes) {
  if (is_paused()) return 0;
  if (data_left() != 0) return consume_value(bytes);
  if (!session_->has_room()) {
    session_->wait_for_room();
    return 0;
  }
  bool may_be_plain = authenticated_ && reader_.is_between_requests();
  size_t used = may_be_plain ? consume_pipeline(bytes) : 0;
  return used != 0 ? used : consume_request(bytes);
}

// Whole, small commands, several in a row. Returns 0 if what is first is not one.
size_t RespProtocol::consume_pipeline(Bytes bytes) {
  RespPipeline pipeline;
  size_t count = pipeline.read(bytes);
  look_ahead_resp(*shard_, pool_, pipeline, count);
  size_t used = 0;
  for (size_t index = 0; index < count; ++index) {
    bool may_go_on = index == 0 || (!is_paused() && authenticated_ && session_->takes_input() &&
                                    session_->has_room() && !shard_->input_was_long());
    if (!may_go_on) break;
    start(pipeline.arguments(index));
    used = pipeline.end(index);
  }
  return used;
}

// Whatever there is, as far as it has come.
size_t RespProtocol::consume_request(Bytes bytes) {
  size_t used = 0;
  RespEvent event = reader_.read(bytes, &used);
  if (event == RespEvent::LargeArgument) {
    if (may_stream(reader_.arguments())) {
      used = reader_.divert();
      begin_stream();
      return used;
    }
    event = reader_.read(bytes, &used);
  }
  if (event == RespEvent::Command) start(reader_.arguments());
  if (event == RespEvent::Fault) {
    reply_error(reader_.error());
    shard_->statistics().connections_dropped_protocol.add();
    session_->end_output();
    return bytes.size();
  }
  bool ends_here = used == bytes.size() && reader_.held_bytes() > kReaderBytesKept;
  if (ends_here) reader_.release_memory();
  return used;
}

// The command, whose number of arguments is right. Null: it was refused.
const RespCommand* RespProtocol::identify(const RespArguments& arguments) {
  std::string_view name = as_text(arguments[0]);
  const RespCommand* command = find_resp_command(name);
  if (command == nullptr) {
    if (is_http(name)) {
      session_->close();
    } else {
      refuse(nullptr, unknown_command(arguments));
    }
    return nullptr;
  }
  if (has_subcommands(command->id) && arguments.size() > 1) {
    const RespCommand* container = command;
    command = find_resp_command(as_text(arguments[1]), container->id);
    if (command == nullptr) {
      refuse(nullptr, unknown_subcommand(*container, as_text(arguments[1])));
      return nullptr;
    }
  }
  if (command->takes(arguments.size())) return command;
  refuse(command, "ERR wrong number of arguments for '" + std::string(command->name) + "' command");
  return nullptr;
}

bool RespProtocol::is_in_transaction() const noexcept {
  return transaction_ != nullptr && transaction_->is_open;
}

bool RespProtocol::admits(const RespCommand& command) {
  uint32_t right = right_for(command);
  bool is_plain = authenticated_ && transaction_ == nullptr && !shard_->stopping();
  if (is_plain && (rights_ & right) == right) return true;
  std::string refusal;
  if (!authenticated_ && (command.flags & kRespFlagNoAuth) == 0) {
    refusal = "NOAUTH Authentication required.";
  } else if ((command.flags & kRespFlagNoMulti) != 0 && is_in_transaction()) {
    refusal = not_in_transaction(command);
  } else if ((rights_ & right) != right) {
    refusal = "NOPERM User " + pool_name_ + " has no permissions to run the '" +
              std::string(command.name) + "' command";
  } else if (shard_->stopping()) {
    refusal = "ERR this node is stopping";
  }
  if (refusal.empty()) return true;
  refuse(&command, refusal);
  return false;
}

// A command was refused before it was carried out, or queued: that spoils a transaction. EXEC ends
// it, and says why.
void RespProtocol::refuse(const RespCommand* command, std::string_view text) {
  if (command != nullptr) {
    shard_->statistics().resp_commands[static_cast<size_t>(command->id)].rejected.add();
  }
  break_transaction();
  std::string aborted;
  if (command != nullptr && command->id == RespCommandId::Exec) {
    end_transaction();
    if (text.starts_with("ERR ")) text.remove_prefix(4);
    aborted = "EXECABORT Transaction discarded because of: " + std::string(text);
    text = aborted;
  }
  shard_->statistics().resp_errors.note(text);
  reply_error(text);
}

void RespProtocol::start(const RespArguments& arguments) {
  ++command_count_;
  shard_->statistics().commands.add();
  if (replies_ == Replies::SkipThis) replies_ = Replies::On;
  if (replies_ == Replies::SkipNext) replies_ = Replies::SkipThis;
  const RespCommand* command = identify(arguments);
  if (command == nullptr) {
    abandon_stream();
    return;
  }
  last_command_ = command->id;
  if (!admits(*command)) {
    abandon_stream();
    return;
  }
  Invocation invocation{*command, arguments};
  if (is_in_transaction() && !acts_at_once(command->id)) {
    queue(invocation);
  } else {
    dispatch(invocation);
  }
}

void RespProtocol::dispatch(const Invocation& invocation) {
  if (stream_ != nullptr) {
    finish_stream(invocation);
    return;
  }
  switch (route_of(invocation.command)) {
    case RespRoute::Keyed:
      run_keyed(invocation);
      return;
    case RespRoute::Connection:
      send_gathered();  // What comes behind it may have another meaning.
      run_now(invocation);
      return;
    case RespRoute::Python:
      run_in_python(invocation);
      return;
    case RespRoute::SumOfShards:
      run_on_all(invocation, RespJoin::Sum);
      return;
    case RespRoute::AllShards:
      run_on_all(invocation, RespJoin::AllOk);
      return;
    case RespRoute::ArraysOfShards:
      run_on_all(invocation, RespJoin::Arrays);
      return;
    case RespRoute::AnyShard:
      run_on_all(invocation, RespJoin::AnyOne);
      return;
    case RespRoute::Scan:
      run_scan(invocation);
      return;
    case RespRoute::Slot:
      run_on_slot(invocation);
      return;
  }
}

// Where the reply of a command goes that is answered now: the output, unless others are due before
// it, or nobody wants it.
OutputQueue& RespProtocol::begin_reply() {
  if (reply_sink_ != nullptr) return *reply_sink_;
  if (is_silent()) return shard_->scratch_output();
  if (first_ == nullptr) {
    shard_->flush_later(session_);
    return session_->output();
  }
  return gather()->replies_made_at_once();
}

void RespProtocol::reply_error(std::string_view text) { reply_writer().error(text); }

// A command was carried out.
void RespProtocol::count(const Invocation& invocation, uint64_t nanoseconds, Bytes reply) {
  auto id = static_cast<size_t>(invocation.command.id);
  RespCommandCounters& counters = shard_->statistics().resp_commands[id];
  counters.calls.add();
  counters.latency.add(nanoseconds);
  RespJournal& journal = shard_->node().resp_journal();
  if (!reply.empty() && as_text(reply)[0] == '-') {
    counters.failed.add();
    shard_->statistics().resp_errors.note(as_text(reply.subspan(1)));
  }
  if (!journal.is_slow(nanoseconds)) return;
  journal.note_slow(invocation.arguments, nanoseconds, session_->peer().name,
                    client_ == nullptr ? std::string() : client_->name, pool_name_,
                    (invocation.command.flags & kRespFlagFast) != 0);
}

void RespProtocol::on_closed() noexcept {
  abandon_stream();
  end_transaction();
  // What travels comes home first; what is here goes now.
  if (gathered_ != nullptr) std::exchange(gathered_, nullptr)->done = true;
  for (RespCall* call = first_; call != nullptr;) {
    RespCall* next = call->next;
    if (call->done && call->pending == 0) drop(call);
    call = next;
  }
  first_ = last_ = nullptr;
}

void RespProtocol::describe(ConnectionReport* report) const {
  report->speaks_resp = true;
  report->pool = pool_name_;
  report->resp_version = static_cast<uint32_t>(version_);
  report->commands = command_count_;
  report->no_touch = !touches_;
  report->replies_off = replies_ == Replies::Off;
  if (last_command_ != RespCommandId::None) {
    report->last_command = resp_commands()[static_cast<size_t>(last_command_) - 1].name;
  }
  if (client_ != nullptr) {
    report->name = client_->name;
    report->library_name = client_->library_name;
    report->library_version = client_->library_version;
    report->no_evict = client_->no_evict;
  }
  if (transaction_ == nullptr) return;
  report->watch_count = static_cast<uint32_t>(transaction_->watches.size());
  if (transaction_->is_open) {
    report->multi_count = static_cast<int32_t>(transaction_->call->parts.size());
  }
}

}  // namespace kvstrata
