#include "store/native/socket_channel.h"

#include <algorithm>

#include "store/native/session.h"
#include "store/native/shard.h"

namespace kvstrata {

namespace {

constexpr size_t kInFlightBytesKept = 4096;
// From so much on, values are moved by another thread than the shard's: to copy them takes longer
// than a turn may.
constexpr uint64_t kBulkBytesMin = 256 * 1024;
// So much at a time: a socket takes no more at once by default (tcp_wmem), and whoever sends in
// smaller steps wakes the peer with each.
constexpr uint64_t kBulkBytesMax = 4 * 1024 * 1024;
// What was received is hashed by the shard, out of memory that another core has written.
constexpr uint64_t kBulkReceivedBytesMax = 256 * 1024;

}  // namespace

SocketChannel::SocketChannel(Session* session, Socket socket)
    : Channel(session, std::make_unique<SocketStream>(std::move(socket))) {}

Reactor& SocketChannel::reactor() noexcept { return session_->shard().reactor(); }

void SocketChannel::watch(Input input, bool output) noexcept {
  reactor().watch(&watch_, input, output);
}

void SocketChannel::remove() noexcept { reactor().remove(&watch_); }

void SocketChannel::handle(const IoEvent& event) {
  if (event.sent) {
    on_sent(event.result);
    return;
  }
  session_->shard().note_served(session_);
  if (event.received) {
    on_received(event.bytes, event.result);
    return;
  }
  if (event.writable) session_->flush();
  if (session_->closed()) return;
  if (event.hung_up) {
    session_->on_hang_up();
  } else if (event.readable) {
    session_->on_readable();
  }
}

void SocketChannel::on_received(Bytes bytes, int32_t result) {
  if (direct_target_.empty()) {
    session_->on_received(bytes, result);
    return;
  }
  MutableBytes target = std::exchange(direct_target_, MutableBytes{});
  auto count = static_cast<size_t>(std::max(result, 0));
  // If it is less than there was room for, there was no more.
  session_->on_value_received(target.first(count), result, count == target.size());
}

// Small output goes with the loop's next system call. False if there is more than that, or if it is
// the last: the connection ends behind it, and the loop does not wait to be told that it was sent.
bool SocketChannel::hand_over_small() {
  if (!in_flight_.empty()) {
    // When it is sent, the output follows.
    if (session_->has_more_to_send()) reactor().hurry();
    return true;
  }
  if (session_->closing() || !reactor().sends()) return false;
  OutputQueue& output = session_->output();
  if (!output.is_small() || output.empty()) return false;
  output.take(&in_flight_);
  reactor().send(&watch_, in_flight_.view());
  return true;
}

// Much output is sent by others than this thread.
bool SocketChannel::hand_over_bulk() {
  if (batch_ != nullptr) return true;
  OutputQueue& output = session_->output();
  if (!reactor().sends() || output.pinned_bytes() < kBulkBytesMin) return false;
  batch_ = output.next_batch(kBulkBytesMax);
  reactor().send_bulk(&watch_, &batch_->message);
  return true;
}

// The same for much input, now that there is some: true if it is on its way to where it belongs.
bool SocketChannel::takes_input() {
  if (is_receiving()) return true;
  if (!reactor().sends() || watch_.is_receiving()) return false;
  MutableBytes target = session_->direct_target(kBulkBytesMin);
  if (target.empty()) return false;
  direct_target_ = target.first(std::min<size_t>(target.size(), kBulkReceivedBytesMax));
  reactor().receive_bulk(&watch_, direct_target_);
  return true;
}

void SocketChannel::on_sent(int32_t result) {
  if (batch_ != nullptr) {
    on_batch_sent(result);
    return;
  }
  if (session_->is_broken(result)) return;
  auto count = static_cast<size_t>(std::max(result, 0));
  session_->note_sent(count);
  in_flight_at_ += count;
  if (in_flight_at_ < in_flight_.size()) {
    reactor().send(&watch_, in_flight_.view().subspan(in_flight_at_));
    return;
  }
  in_flight_at_ = 0;
  if (in_flight_.capacity() > kInFlightBytesKept) {
    in_flight_.release_memory();
  } else {
    in_flight_.clear();
  }
  session_->flush();
}

void SocketChannel::on_batch_sent(int32_t result) {
  std::unique_ptr<OutputBatch> batch = std::move(batch_);
  if (session_->is_broken(result)) return;
  std::vector<OwnedExtent> released;
  auto count = static_cast<uint64_t>(std::max(result, 0));
  session_->output().note_sent(count, &released);
  session_->shard().release(&released);
  session_->note_sent(count);
  if (count < batch->length) {
    session_->await_stream();
  } else {
    session_->flush();
  }
}

}  // namespace kvstrata
