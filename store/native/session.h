// One connection on the node's side: its socket, what was read and not yet handled, what is to be
// sent, and how much of either there may be. What the bytes mean, its protocol knows.
//
// A session reads while it may hold more: it pauses while its protocol waits and while what it has
// to send is beyond its budget, so that a slow peer only slows itself. A value's bytes are received
// straight into the arena.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "store/native/errand.h"
#include "store/native/output_queue.h"
#include "store/native/protocol.h"
#include "transport/native/hello.h"
#include "transport/native/reactor.h"
#include "transport/native/socket.h"

namespace kvstrata {

class Shard;

class Session {
 public:
  Session(Shard* shard, Socket socket, std::string peer);
  ~Session();

  // Begins to listen to the peer.
  void open() { watch(); }
  Watch* io_watch() noexcept { return &watch_; }
  const std::string& peer() const noexcept { return peer_; }
  // A number that no other connection of the node has had.
  uint64_t client_id() const noexcept { return client_id_; }
  void describe(ConnectionReport* report) const;
  Shard& shard() noexcept { return *shard_; }

  // A connection of the capsule protocol that another shard accepted and whose hello it read:
  // answers it here.
  void adopt(const ClientHello& hello, Bytes unread);

  void on_readable();
  void on_writable() { flush(); }
  // The reactor has received or sent for it: bytes, or 0 at the end, or -errno.
  void on_received(Bytes bytes, int32_t result);
  void on_sent(int32_t result);
  // The connection is broken, or closed from both sides: nobody is there to be answered.
  void on_hang_up();
  void on_work_done(const Work& work);
  void on_admin_done(Errand* errand, Status status, Bytes payload);
  // The last turn ended in the middle of what was read: handles the rest.
  void go_on();
  // Sends what is due. Called at the end of a turn for every session that asked for it.
  void flush();

  // Of what it is waiting for, nothing has come or gone since the last call: true when it is to be
  // dropped.
  bool is_stalled(uint64_t now_ns) noexcept;
  // True once nothing is left to finish.
  bool is_drained() noexcept;
  void close() noexcept;
  // After the replies to what it has asked.
  void close_when_answered() noexcept { closes_when_answered_ = true; }
  // For another shard to serve; this session is closed then.
  Socket take_socket() noexcept;
  bool moved() const noexcept { return moved_; }
  bool closed() const noexcept { return closed_; }
  // Closed, and nothing of it travels any more.
  bool finished() const noexcept { return closed_ && errand_count_ == 0 && watch_.is_quiet(); }

  // For its protocol.
  OutputQueue& output() noexcept { return output_; }
  // The output is the last: input is dropped, and the connection closed once it was sent.
  void end_output();
  bool closing() const noexcept { return closing_; }
  // What comes is of any use.
  bool takes_input() const noexcept { return !closed_ && !broken_ && !closing_; }
  // Room in the output; where there is none, the protocol is told when there is some again.
  bool has_room() const noexcept;
  void wait_for_room() noexcept { output_full_ = true; }
  // Errands in flight refer to the session.
  uint32_t errand_count() const noexcept { return errand_count_; }
  void begin_errand() noexcept { ++errand_count_; }
  void end_errand();
  // Others make output for it: so much, at most, counts as output from now on. Else a peer that
  // reads nothing could have any amount made for it.
  void await(Errand* errand, uint64_t bytes) noexcept;
  void await_no_more(Errand* errand) noexcept;
  // After a pause of the protocol: goes on with what came before it.
  void resume();

  // In the shard's lists.
  bool flush_due = false;
  bool continue_due = false;

 private:
  void end_input();
  bool is_over() const noexcept;
  bool read_once();
  bool send_output();
  bool hand_to_reactor();
  bool hand_bulk_to_reactor();
  bool receive_bulk_by_reactor();
  void on_received_directly(int32_t result);
  void on_batch_sent(int32_t result);
  bool is_broken(int32_t result) noexcept;
  void note_received(size_t bytes) noexcept;
  void note_sent(size_t bytes) noexcept;
  bool read_data();
  int64_t receive(const std::array<iovec, 2>& vectors);
  size_t consume(Bytes bytes);
  void choose_protocol(std::byte first);
  void keep_unread(Bytes bytes);
  void consume_input();
  bool account_input();
  void watch() noexcept;
  // Reads nothing at present. Data are read even while the output is full: their memory is taken.
  bool paused() const noexcept;
  void go_on_after_output();
  uint64_t data_left() const noexcept { return protocol_ ? protocol_->data_left() : 0; }

  Shard* shard_;
  Socket socket_;
  Watch watch_;
  std::string peer_;
  uint64_t client_id_;
  std::unique_ptr<Protocol> protocol_;  // Null until the first byte.
  bool closed_ = false;
  bool broken_ = false;  // To be closed, once nothing of it is read or written by others.
  bool moved_ = false;    // Another session has the connection now.
  bool closing_ = false;  // The output is the last; input is dropped.
  bool closes_when_answered_ = false;
  bool input_ended_ = false;  // The peer has ended its side of the stream.
  bool socket_full_ = false;  // It took less than it was offered.
  bool output_full_ = false;  // The protocol waits until the output has room.
  uint32_t errand_count_ = 0;
  ByteBuffer input_;              // An incomplete command, or what came while paused.
  uint64_t accounted_bytes_ = 0;  // Of the input, with the node.
  OutputQueue output_;
  ByteBuffer in_flight_;        // What the reactor sends, before all of the output.
  size_t in_flight_at_ = 0;     // Of it, already sent.
  std::unique_ptr<OutputBatch> batch_;  // Of the output, while others send it.
  MutableBytes direct_target_;          // Where others receive to; empty while they do not.
  uint64_t awaited_bytes_ = 0;  // Output that is being made by other shards, at most.

  uint64_t begin_ns_;
  uint64_t heard_ns_;  // When bytes last came.
  uint64_t received_bytes_ = 0;
  uint64_t sent_bytes_ = 0;

  // For the minimum rate.
  uint64_t progress_bytes_ = 0;
  uint64_t progress_seen_ = 0;
  uint64_t progress_ns_ = 0;
};

}  // namespace kvstrata
