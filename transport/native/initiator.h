// The client's end of one capsule connection: a state machine over a stream that does not wait.
//
// Event loops call submit() and progress(), blocking callers submit() and drive(). The connection
// ends with the first fault, since the byte stream has no meaning after it; every transfer is then
// ended, and no sink is touched any more. Not thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transport/native/deadline.h"
#include "transport/native/hello.h"
#include "transport/native/inbound_data.h"
#include "transport/native/region_table.h"
#include "transport/native/send_queue.h"
#include "transport/native/spin.h"
#include "transport/native/stream.h"
#include "transport/native/transfer.h"

namespace kvstrata {

class Initiator {
 public:
  // `node` is the answer to the hello of this connection; `name` is the node's for messages.
  Initiator(std::unique_ptr<Stream> stream, const NodeHello& node, std::string name, bool verify,
            uint32_t spin_us);
  ~Initiator();
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;

  // Before the first transfer, where the node shares memory: the sinks and sources that lie in
  // these regions are named to it.
  void use_regions(std::unique_ptr<RegionTable> regions);
  // Tells the node of regions that were closed. True if there are any; then drive() until idle.
  bool tend_regions();

  // Queues a transfer; it goes out as credits allow. On a closed connection it is ended at once.
  void submit(Transfer* transfer);
  // Sends and receives what goes without waiting, but no more than a few hundred KiB. True if
  // anything went.
  bool progress();
  // Blocks until everything has ended, or the deadline has passed: then the connection is closed as
  // timed out. Returns false, with work left, after a signal and a few times a second, for the
  // caller to look whether anybody wants it to stop.
  bool drive(Deadline deadline);

  bool idle() const noexcept { return in_flight_count_ == 0 && queue_.empty(); }
  // For event loops: fd() is to be polled for room too; progress() is to be called again at once.
  bool wants_write() const noexcept { return !send_queue_.empty() && stream_->polls_for_room(); }
  bool is_unfinished() const noexcept { return unfinished_; }
  size_t in_flight() const noexcept { return in_flight_count_ + queue_.size(); }

  // Ends everything with `status`; a second call changes nothing.
  void close(Status status, std::string why);

  // For a forked child: closes the descriptor, which says nothing to the peer as the parent still
  // holds it, and touches nothing else, since another thread of the parent may have been at work.
  void abandon() noexcept;

  int fd() const noexcept { return stream_->fd(); }
  Status status() const noexcept { return status_; }  // Ok while usable.
  const std::string& message() const noexcept { return message_; }
  uint32_t credits() const noexcept { return credits_; }

 private:
  void announce_regions(const Transfer& transfer);
  bool uses_regions() const noexcept;
  void begin_queued();
  bool begin(Transfer* transfer);
  bool send();

  bool receive();
  bool receive_data();
  bool receive_ahead(Transfer* lone);
  bool receive_buffered();
  Transfer* lone_read() const noexcept;
  size_t receive_into(std::span<const iovec> windows);
  bool await(Deadline deadline);
  bool receive_sleeping(Deadline deadline);
  void parse();
  bool parse_completion();
  void take_completion(const CompletionHeader& header, Bytes body);
  void reserve_buffer(size_t count);

  void complete(Transfer* transfer);
  void end(Transfer* transfer);
  void fault(const std::string& why);

  std::unique_ptr<Stream> stream_;
  TransferTerms terms_;
  std::unique_ptr<RegionTable> regions_;  // Null without shared memory.
  std::string name_;
  Status status_ = Status::Ok;
  std::string message_;
  SpinPolicy spin_;
  bool sleeps_ = false;      // The next receive may wait.
  bool unfinished_ = false;  // progress() stopped though more could have gone.

  std::deque<Transfer*> queue_;  // Not begun: waiting for credits.
  SendQueue send_queue_;
  std::vector<Transfer*> sent_;  // Scratch of send().
  // In flight, by the low bits of their command ids; the high bits grow, so that a late or invented
  // id is noticed.
  std::vector<Transfer*> slots_;
  std::vector<uint16_t> free_slots_;
  uint32_t sequence_ = 0;
  Transfer* newest_ = nullptr;  // The one begun last, while in flight.
  size_t in_flight_count_ = 0;
  uint64_t in_flight_bytes_ = 0;
  uint32_t credits_;

  ByteBuffer buffer_;  // Received and not yet parsed: [buffer_begin_, buffer_.size()).
  size_t buffer_begin_ = 0;
  InboundData data_;
  Transfer* data_transfer_ = nullptr;  // Whose data `data_` is.
};

}  // namespace kvstrata
