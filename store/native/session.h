// One connection of the capsule protocol on the node's side: bytes in, commands; outcomes, bytes
// out.
//
// A session reads while it may hold more: it pauses while a write waits for memory and while what
// it has to send is beyond its budget, so that a slow peer only slows itself. Writes are received
// one value at a time, straight into the arena.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "store/native/command.h"
#include "store/native/output_queue.h"
#include "transport/native/checksum.h"
#include "transport/native/hello.h"
#include "transport/native/socket.h"

namespace kvstrata {

class Shard;

class Session {
 public:
  Session(Shard* shard, Socket socket, std::string peer);
  ~Session();

  int fd() const noexcept { return socket_.fd(); }
  const std::string& peer() const noexcept { return peer_; }
  PoolId pool() const noexcept { return pool_; }
  uint32_t rights() const noexcept { return rights_; }
  const std::string& pool_name() const noexcept { return pool_name_; }

  // A connection another shard accepted and whose hello it read: answers it here.
  void adopt(const ClientHello& hello, Bytes unread);

  void on_readable();
  void on_writable();
  // The connection is broken, or closed from both sides: nobody is there to be answered.
  void on_hang_up();
  // Work that travelled, or waited for memory, is done.
  void on_work_done(const Work& work);
  void on_admin_done(Command* command, Status status, Bytes payload);
  // The last turn ended in the middle of what was read: handles the rest.
  void go_on();
  // Sends what is due. Called at the end of a turn for every session that asked for it.
  void flush();

  // Of what it is waiting for, nothing has come or gone since the last call: true when it is to be
  // dropped.
  bool is_stalled(uint64_t now_ns) noexcept;
  // For the hello's own time limit.
  bool greeted() const noexcept { return state_ != State::Hello; }
  // No new commands; true once nothing is left to finish.
  bool drain() noexcept;
  void close() noexcept;
  // For another shard to serve; this session is closed then.
  Socket take_socket() noexcept;
  bool moved() const noexcept { return moved_; }
  bool closed() const noexcept { return closed_; }
  // Closed, and nothing of it travels any more.
  bool finished() const noexcept { return closed_ && command_count_ == 0; }

  // In the shard's lists.
  bool flush_due = false;
  bool continue_due = false;

 private:
  enum class State : uint8_t {
    Hello,     // Waits for the client's hello.
    Capsules,  // Reads commands.
    Data,      // Reads the value of a write.
    Discard,   // Reads and drops the data of what was refused.
    Paused,    // Reads nothing until there is memory for the next value.
  };

  // session.cc
  bool read_once();
  bool send_output();
  bool read_data();
  int64_t receive(const std::array<iovec, 2>& vectors);
  size_t consume(Bytes bytes);
  size_t consume_hello(Bytes bytes);
  bool answer_hello(const ClientHello& hello);
  void refuse_hello(Status status, std::string message);
  void fail(uint8_t opcode, uint32_t command_id, std::string_view message);
  void keep_unread(Bytes bytes);
  void consume_input();
  bool account_input();
  void watch() noexcept;
  // Reads nothing at present. Data are read even while the output is full: their memory is taken.
  bool paused() const noexcept;
  void go_on_after_output();
  void resume();
  bool has_room() const noexcept;
  void await(Command* command);

  // session_command.cc
  size_t consume_capsule(Bytes bytes);
  void start(const RequestHeader& header, Bytes body);
  bool read_entries(Command* command, const RequestHeader& header, Bytes body);
  Status refusal(const RequestHeader& header, Bytes attributes, std::string* message) const;
  void run_windows(Command* command);
  bool finish_window(Command* command);
  void encode_reads(Command* command);
  void encode_outcomes(Command* command);
  void encode_outcome(const Command& command, const Task& task, CapsuleWriter* writer);
  void complete_failed(uint8_t opcode, uint32_t command_id, Status status,
                       std::string_view message);
  void start_admin(Command* command);
  void end(Command* command);

  // session_write.cc
  void next_value();
  bool begin_value(Task& task);
  void receive_value(const Task& task);
  void write_work_done(const Work& work);
  void begin_piece();
  size_t consume_data(Bytes bytes);
  void take_data(Bytes bytes);
  MutableBytes data_target() const noexcept;
  void finish_value();
  void finish_value_and_go_on();
  void refuse_value(Status status);
  void finish_write(Command* command);
  void abort_value(Command* command, uint32_t task) noexcept;
  bool may_go_whole(const Task& task) const noexcept;

  Shard* shard_;
  Socket socket_;
  std::string peer_;
  State state_ = State::Hello;
  bool closed_ = false;
  bool moved_ = false;    // Another session has the connection now.
  bool closing_ = false;  // The output is the last; input is dropped.
  bool watches_input_ = true;
  bool watches_output_ = false;
  bool socket_full_ = false;  // It took less than it was offered.
  bool output_full_ = false;  // Capsules or blocked reads wait until the output has room.
  PoolId pool_ = 0;
  std::string pool_name_;
  uint32_t rights_ = 0;
  uint32_t credits_ = 0;
  uint32_t command_count_ = 0;    // In flight.
  ByteBuffer input_;              // An incomplete capsule, or what came while paused.
  uint64_t accounted_bytes_ = 0;  // Of the input, with the node.
  OutputQueue output_;
  uint64_t awaited_bytes_ = 0;  // Output that is being made by other shards, at most.

  // The write being received.
  Command* write_ = nullptr;
  std::deque<Command*> blocked_reads_;  // Their next windows wait for room in the output.
  bool goes_whole_ = false;             // The value being received is collected in its task.
  uint64_t travelling_bytes_ = 0;       // Of values that were sent to their shards so.
  uint64_t value_left_ = 0;             // Of the value being received or dropped.
  uint64_t value_at_ = 0;               // Offset in the object where the next byte goes.
  uint32_t piece_ = 0;                  // Index of the present piece in the value's checksums.
  uint64_t piece_left_ = 0;             // Of the present piece.
  bool piece_begun_ = false;
  ChecksumStream piece_hash_;

  // For the minimum rate.
  uint64_t progress_bytes_ = 0;
  uint64_t progress_seen_ = 0;
  uint64_t progress_ns_ = 0;
};

}  // namespace kvstrata
