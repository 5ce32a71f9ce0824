// One connection on the node's side: what was read and not yet handled, what is to be sent, and how
// much of either there may be. What the bytes mean, its protocol knows; how they travel, its
// channel.
//
// A session reads while it may hold more: it pauses while its protocol waits and while what it has
// to send is beyond its budget, so that a slow peer only slows itself. A value's bytes are received
// straight into the arena.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "store/native/channel.h"
#include "store/native/errand.h"
#include "store/native/output_queue.h"
#include "store/native/peer.h"
#include "store/native/protocol.h"
#include "transport/native/hello.h"

namespace kvstrata {

class Shard;

class Session {
 public:
  Session(Shard* shard, Peer peer);
  ~Session();

  // Begins to listen to the peer.
  void open(std::unique_ptr<Channel> channel);
  Channel& channel() noexcept { return *channel_; }
  const Peer& peer() const noexcept { return peer_; }
  // Whether what comes after the hello is to go through shared memory.
  bool wants_rings(const ClientHello& hello) const noexcept {
    return (hello.features & kFeatureRings) != 0 && peer_.transport != Transport::Tcp;
  }
  // A number that no other connection of the node has had.
  uint64_t client_id() const noexcept { return client_id_; }
  void describe(ConnectionReport* report) const;
  Shard& shard() noexcept { return *shard_; }

  // A connection of the capsule protocol that another shard accepted and whose hello it read:
  // answers it here.
  void adopt(const ClientHello& hello, Bytes unread);

  // For its channel.
  void on_readable();
  // What was received for it: `bytes`, or `result` 0 at the end, or -errno. The value's bytes are
  // in their place already.
  void on_received(Bytes bytes, int32_t result);
  // `more`: there may be more to be had at once.
  void on_value_received(MutableBytes bytes, int32_t result, bool more);
  // The connection is broken, or closed from both sides: nobody is there to be answered.
  void on_hang_up();
  // After something was sent or received for it. True if the connection ended with it, and is
  // closed. To have no buffer for what comes is no end.
  bool is_broken(int32_t result) noexcept;
  void note_sent(size_t bytes) noexcept;
  // What the stream took was less than it was offered: the rest waits until it has room.
  void await_stream() noexcept {
    stream_full_ = true;
    watch();
  }
  // Where the bytes of a value belong that nothing else comes before, if so many of them are due.
  MutableBytes direct_target(uint64_t bytes_min);
  bool has_more_to_send() const noexcept {
    return !output_.empty() || output_full_ || closing_ || input_ended_;
  }

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
  // Closed, or about to be: nobody is there to be answered.
  bool is_gone() const noexcept { return closed_ || broken_; }
  // Closed, and nothing of it travels any more.
  bool finished() const noexcept { return closed_ && errand_count_ == 0 && channel_->is_quiet(); }
  // Memory of the node is being read or written for it by others than this thread.
  bool holds_memory() const noexcept { return channel_->holds_memory(); }

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
  // Copiers are at memory of its client: it is not closed before they are done.
  void begin_copy() noexcept { ++copy_count_; }
  void end_copy();
  bool is_copying() const noexcept { return copy_count_ != 0; }
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
  void note_received(size_t bytes) noexcept;
  bool read_data();
  int64_t receive(std::span<const iovec> vectors);
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
  std::unique_ptr<Channel> channel_;
  Peer peer_;
  uint64_t client_id_;
  std::unique_ptr<Protocol> protocol_;  // Null until the first byte.
  bool closed_ = false;
  bool broken_ = false;   // To be closed, once nothing of it is read or written by others.
  bool moved_ = false;    // Another session has the connection now.
  bool closing_ = false;  // The output is the last; input is dropped.
  bool closes_when_answered_ = false;
  bool input_ended_ = false;  // The peer has ended its side of the stream.
  bool stream_full_ = false;  // It took less than it was offered.
  bool output_full_ = false;  // The protocol waits until the output has room.
  uint32_t errand_count_ = 0;
  uint32_t copy_count_ = 0;
  ByteBuffer input_;              // An incomplete command, or what came while paused.
  uint64_t accounted_bytes_ = 0;  // Of the input, with the node.
  OutputQueue output_;
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
