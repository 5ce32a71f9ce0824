// The capsule protocol on the node's side (transport/PROTOCOL.md): capsules become commands, their
// outcomes completions. Writes are received one value at a time, straight into the arena.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "store/native/client_regions.h"
#include "store/native/command.h"
#include "store/native/copier.h"
#include "store/native/incoming_value.h"
#include "store/native/session.h"

namespace kvstrata {

class CapsuleProtocol final : public Protocol {
 public:
  explicit CapsuleProtocol(Session* session);

  // A hello that another shard has read. False if the connection was handed on instead.
  bool greet(const ClientHello& hello, Bytes unread);

  size_t consume(Bytes bytes) override;
  void on_consumed() override {}
  uint64_t data_left() const noexcept override { return value_.left(); }
  MutableBytes data_target() override;
  void take_data(Bytes bytes) override;
  bool is_paused() const noexcept override { return state_ == State::Paused; }
  void on_output_room() override;
  void on_work_done(const Work& work) override;
  void on_admin_done(Errand* errand, Status status, Bytes payload) override;
  void on_closed() noexcept override;
  bool owes_data() const noexcept override { return write_ != nullptr && state_ == State::Data; }
  bool is_greeted() const noexcept override { return state_ != State::Hello; }
  bool is_idle() const noexcept override { return write_ == nullptr; }
  bool owes_replies() const noexcept override { return session_->errand_count() != 0; }
  void describe(ConnectionReport* report) const override;

 private:
  enum class State : uint8_t {
    Hello,     // Waits for the client's hello.
    Capsules,  // Reads commands.
    Data,      // Reads the value of a write.
    Discard,   // Reads and drops the data of what was refused.
    Paused,    // Reads nothing until there is memory for the next value.
  };

  // A value of a write that is made visible in its turn: writes of one connection keep their order.
  struct PendingCommit {
    Command* command;
    uint32_t task;
    bool goes_whole;
    uint32_t copying;  // The number of the job that brings it; 0: all of it is there.
  };
  // A region that was removed while transfers use it; the command waits for them.
  struct LeavingRegion {
    ClientRegions::Memory memory;
    Command* command;
  };

  // capsule_protocol.cc
  size_t consume_hello(Bytes bytes);
  bool answer_hello(const ClientHello& hello);
  void refuse_hello(Status status, std::string message);
  size_t consume_capsule(Bytes bytes);
  void look_ahead_of(Bytes bytes);
  void fail(uint8_t opcode, uint32_t command_id, std::string_view message);

  // capsule_command.cc
  void start(const RequestHeader& header, Bytes body);
  Status check_entry(const Entry& entry, Opcode opcode) const;
  Status check_handle(const Entry& entry, Opcode opcode) const;
  bool read_entries(Command* command, const RequestHeader& header, Bytes body);
  Status refusal(const RequestHeader& header, Bytes attributes, std::string* message) const;
  void run_windows(Command* command);
  bool finish_window(Command* command);
  bool answer_window(Command* command);
  void release_window(Command* command);
  void encode_reads(Command* command);
  void encode_outcomes(Command* command);
  void encode_outcome(const Command& command, const Task& task, CapsuleWriter* writer);
  void complete_failed(uint8_t opcode, uint32_t command_id, Status status,
                       std::string_view message);
  void start_admin(Command* command);
  void await(Command* command);
  void end(Command* command);

  // capsule_region.cc
  Status check_place(const Entry& entry, Opcode opcode) const noexcept;
  bool is_in_region(const Command& command, const Task& task) const noexcept;
  void change_regions(Command* command);
  void settle_leaving();
  bool copy_window(Command* command);
  void gather_value();
  bool lay_out_copy(const Command& command, Task* task, CopyJob* job);
  void copy_gathered(Command* command);
  bool copy_now_or_start(std::shared_ptr<CopyJob> job, const Work& work);
  void values_copied(uint32_t job);
  bool keep_checksums(const PendingCommit& pending);
  void copy_done(const Work& work);

  // capsule_write.cc
  void next_value();
  bool begin_value(Task& task);
  void receive_value(const Task& task);
  void write_work_done(const Work& work);
  size_t consume_data(Bytes bytes);
  void finish_value();
  void commit_ready();
  void finish_value_and_go_on();
  void refuse_value(Status status);
  void finish_write(Command* command);
  void abort_value(Command* command, uint32_t task) noexcept;
  bool may_go_whole(const Task& task) const noexcept;

  ByteBuffer* output() noexcept { return session_->output().bytes(); }

  Session* session_;
  Shard* shard_;
  State state_ = State::Hello;
  PoolId pool_ = 0;
  std::string pool_name_;
  uint32_t rights_ = 0;
  uint32_t credits_ = 0;
  uint64_t command_count_ = 0;
  size_t looked_ahead_bytes_ = 0;       // Of what comes next, their keys were looked at.
  std::deque<Command*> blocked_reads_;  // Their next windows wait for room in the output.

  std::unique_ptr<ClientRegions> regions_;  // Null where no memory is shared.
  std::vector<LeavingRegion> leaving_;

  // The write being received.
  Command* write_ = nullptr;
  bool goes_whole_ = false;        // The value being received is collected in its task.
  uint64_t travelling_bytes_ = 0;  // Of values that were sent to their shards so.
  std::deque<PendingCommit> commits_;
  std::shared_ptr<CopyJob> gathered_;  // The next job; null while there is nothing for it.
  uint32_t job_number_ = 1;            // Its number.
  IncomingValue value_;                // Being received or dropped.
  uint32_t piece_ = 0;                 // Index of its present piece in its checksums.
};

}  // namespace kvstrata
