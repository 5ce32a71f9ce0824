// Valkey's protocol on the node's side: commands from a stream, carried out by the shards that own
// their keys, replies in the order of the commands.
//
// What this shard can answer at once is answered straight into the output. Anything else becomes a
// call, which travels; what comes behind it goes on meanwhile, and its reply waits its turn. A
// large value of SET and its kin is received into its open record before the command is whole.
#pragma once

#include <memory>
#include <string>

#include "store/native/incoming_value.h"
#include "store/native/resp_call.h"
#include "store/native/resp_client.h"
#include "store/native/session.h"
#include "transport/native/resp_reader.h"

namespace kvstrata {

class RespProtocol final : public Protocol {
 public:
  explicit RespProtocol(Session* session);
  ~RespProtocol() override;

  size_t consume(Bytes bytes) override;
  void on_consumed() override { send_gathered(); }
  uint64_t data_left() const noexcept override;
  MutableBytes data_target() override;
  void take_data(Bytes bytes) override;
  bool is_paused() const noexcept override;
  void on_output_room() override {}
  void on_work_done(const Work& work) override;
  void on_admin_done(Errand* errand, Status status, Bytes payload) override;
  void on_closed() noexcept override;
  bool owes_data() const noexcept override { return data_left() != 0; }
  bool is_greeted() const noexcept override { return true; }
  bool is_idle() const noexcept override { return stream_ == nullptr; }
  bool owes_replies() const noexcept override { return first_ != nullptr; }
  void describe(ConnectionReport* report) const override;

 private:
  // A value that comes before its command is whole.
  struct Stream;
  // Commands that wait for EXEC, and the keys that it depends on.
  struct Transaction;
  // Whether the client wants replies.
  enum class Replies : uint8_t { On, Off, SkipNext, SkipThis };
  struct Invocation {
    const RespCommand& command;
    const RespArguments& arguments;
    std::string_view text(size_t index) const noexcept { return as_text(arguments[index]); }
  };

  // resp_protocol.cc: from bytes to commands, from replies to bytes.
  size_t consume_pipeline(Bytes bytes);
  size_t consume_request(Bytes bytes);
  void start(const RespArguments& arguments);
  const RespCommand* identify(const RespArguments& arguments);
  bool admits(const RespCommand& command);
  bool is_in_transaction() const noexcept;
  bool is_silent() const noexcept {
    return replies_ == Replies::Off || replies_ == Replies::SkipThis;
  }
  void dispatch(const Invocation& invocation);
  OutputQueue& begin_reply();
  RespWriter reply_writer() { return RespWriter(begin_reply().bytes(), version_); }
  void reply_error(std::string_view text);
  void count(const Invocation& invocation, uint64_t nanoseconds, Bytes reply);
  void refuse(const RespCommand* command, std::string_view text);

  // resp_routing.cc: which shards carry a command out.
  bool keys_are_sound(const Invocation& invocation);
  void run_keyed(const Invocation& invocation);
  void run_at(const Invocation& invocation, uint32_t owner);
  void run_as_call(const Invocation& invocation, uint32_t owner, Location open);
  void run_by_key(const Invocation& invocation);
  void run_on_all(const Invocation& invocation, RespJoin join);
  void run_scan(const Invocation& invocation);
  void run_on_slot(const Invocation& invocation);

  // resp_delivery.cc: calls set out, and come home.
  void run_in_python(const Invocation& invocation);
  RespCall* new_call(const RespCommand* command);
  void enqueue(RespCall* call);
  RespCall* gather();
  void send_gathered();
  void send(RespCall* call);
  void send_step(RespCall* call, const RespCall::Part& part);
  void work_done(const Work& work);
  void finish(RespCall* call);
  void deliver();
  void write_replies(RespCall* call, OutputQueue* output);
  void drop(RespCall* call);
  void release(RespCall* call);

  // resp_stream.cc
  bool may_stream(const RespArguments& arguments) const noexcept;
  void begin_stream();
  void stream_is_reserved();
  void finish_stream(const Invocation& invocation);
  void abandon_stream() noexcept;
  size_t consume_value(Bytes bytes);

  // resp_transaction.cc
  void multi();
  void discard();
  void exec();
  void watch(const Invocation& invocation);
  void unwatch();
  void queue(const Invocation& invocation);
  bool joins_transaction(const Invocation& invocation);
  void run_parts_of_connection(RespCall* call);
  void break_transaction() noexcept;
  void end_transaction() noexcept;

  // resp_connection.cc
  void run_now(const Invocation& invocation);
  void hello(const Invocation& invocation);
  void authenticate(const Invocation& invocation);
  bool take_pool(const std::string& pool, const std::string& secret);
  void select(const Invocation& invocation);
  void reset();
  void client(const Invocation& invocation);
  void set_client_info(const Invocation& invocation);
  void set_replies(const Invocation& invocation);
  void describe_commands(const Invocation& invocation);
  void list_keys_of(const Invocation& invocation);
  RespClient& client_details();

  Session* session_;
  Shard* shard_;
  RespReader reader_;
  PoolId pool_ = 0;
  uint32_t rights_ = 0;
  uint32_t call_count_ = 0;  // Commands of the calls in the list.
  RespVersion version_ = RespVersion::Resp2;
  Replies replies_ = Replies::On;
  bool authenticated_ = false;
  bool touches_ = true;
  RespCommandId last_command_ = RespCommandId::None;
  uint64_t command_count_ = 0;
  std::string pool_name_;
  std::unique_ptr<RespClient> client_;        // Null until it says something.
  std::unique_ptr<Stream> stream_;            // Null when no value streams in.
  std::unique_ptr<Transaction> transaction_;  // Null without MULTI and WATCH.
  RespCall* first_ = nullptr;                 // Calls in the order of their replies.
  RespCall* last_ = nullptr;
  RespCall* gathered_ = nullptr;       // The last of them, while more commands may join it.
  const RespCall* awaited_ = nullptr;  // Nothing goes on before it is home.
  OutputQueue* reply_sink_ = nullptr;  // Of the command that is carried out, if not the output.
};

// The places of a command's keys; none where the arguments name fewer than they say.
std::vector<size_t> key_places(const RespCommand& command, const RespArguments& arguments);

}  // namespace kvstrata
