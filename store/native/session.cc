#include "store/native/session.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "store/native/capsule_protocol.h"
#include "store/native/connection_report.h"
#include "store/native/node.h"
#include "store/native/resp_protocol.h"
#include "store/native/shard.h"

namespace kvstrata {

namespace {

// What only comes in several of these steps is bulk data.
constexpr uint64_t kBulkBytes = 128 * 1024;
constexpr size_t kReadBytesMin = 16 * 1024;
constexpr size_t kSmallInputBytes = 32 * 1024;
// So much of a value is received straight into its place.
constexpr uint64_t kReadyBytesMin = 16 * 1024;

}  // namespace

Session::Session(Shard* shard, Peer peer)
    : shard_(shard),
      peer_(std::move(peer)),
      client_id_(shard->node().next_client_id()),
      begin_ns_(shard->now_ns()),
      heard_ns_(shard->now_ns()),
      progress_ns_(shard->now_ns()) {}

Session::~Session() { shard_->node().unbuffer(accounted_bytes_); }

void Session::open(std::unique_ptr<Channel> channel) {
  channel_ = std::move(channel);
  watch();
}

void Session::on_readable() {
  // Not while capsules that came already wait for the next turn: they would pile up.
  while (!closed_ && !broken_ && !continue_due && !paused() && !input_ended_) {
    if (channel_->takes_input() || !read_once() || shard_->turn_is_long()) break;
  }
  if (!closed_) flush();
}

void Session::on_received(Bytes bytes, int32_t result) {
  if (result <= 0) {
    if (!is_broken(result)) flush();
    return;
  }
  note_received(bytes.size());
  if (input_.empty() && !continue_due && !paused()) {
    keep_unread(bytes.subspan(consume(bytes)));
  } else {
    input_.append(bytes);
    if (account_input() && !continue_due && !paused()) consume_input();
  }
  if (!closed_) flush();
}

void Session::on_value_received(MutableBytes bytes, int32_t result, bool more) {
  if (is_broken(result)) return;
  if (!bytes.empty()) {
    note_received(bytes.size());
    protocol_->take_data(bytes);
  }
  if (more && !closed_) channel_->takes_input();
  if (!closed_) flush();
}

bool Session::is_broken(int32_t result) noexcept {
  if (broken_) {
    close();
    return true;
  }
  if (result == 0) {
    end_input();
    return closed_;
  }
  bool goes_on = result > 0 || result == -EAGAIN || result == -EINTR || result == -ENOBUFS;
  if (!goes_on) close();
  return !goes_on;
}

MutableBytes Session::direct_target(uint64_t bytes_min) {
  return input_.empty() && data_left() >= bytes_min ? protocol_->data_target() : MutableBytes{};
}

void Session::note_received(size_t bytes) noexcept {
  progress_bytes_ += bytes;
  received_bytes_ += bytes;
  heard_ns_ = shard_->now_ns();
  shard_->statistics().received_bytes.add(bytes);
  if (data_left() > kBulkBytes) shard_->note_bulk();
}

void Session::note_sent(size_t bytes) noexcept {
  progress_bytes_ += bytes;
  sent_bytes_ += bytes;
  shard_->statistics().sent_bytes.add(bytes);
}

// Returns true if more may be there to be read at once.
bool Session::read_once() {
  if (data_left() != 0 && input_.empty()) return read_data();
  MutableBytes target = shard_->read_buffer();
  bool into_input = !input_.empty();
  size_t kept = input_.size();
  if (into_input) {
    size_t room = std::max(kReadBytesMin, input_.capacity() - kept);
    target = {input_.extend(room), room};
    if (!account_input()) return false;
  }
  iovec vector{target.data(), target.size()};
  int64_t count = receive({&vector, 1});
  if (into_input) input_.truncate(kept + static_cast<size_t>(std::max<int64_t>(count, 0)));
  if (count <= 0) return false;
  if (into_input) {
    consume_input();
  } else {
    Bytes bytes = target.first(static_cast<size_t>(count));
    keep_unread(bytes.subspan(consume(bytes)));
  }
  return static_cast<size_t>(count) == target.size();
}

// Data go straight to where they belong; what follows them on the stream comes with the same call.
bool Session::read_data() {
  MutableBytes buffer = shard_->read_buffer();
  MutableBytes target = protocol_->data_target();
  bool dropped = target.empty();
  if (dropped) target = buffer;
  // What is received is hashed too, which makes a step about twice as long as one of sending.
  size_t step = shard_->step_bytes() / 2;
  target = target.first(std::min({target.size(), step, size_t{data_left()}}));
  // Dropped bytes land in the very buffer that what follows would need.
  std::array<iovec, 2> vectors = {iovec{target.data(), target.size()},
                                  iovec{buffer.data(), dropped ? 0 : buffer.size()}};
  int64_t count = receive(std::span(vectors).first(dropped ? 1 : 2));
  if (count <= 0) return false;
  auto direct = std::min(static_cast<size_t>(count), target.size());
  protocol_->take_data(target.first(direct));
  Bytes rest = Bytes(buffer).first(static_cast<size_t>(count) - direct);
  if (!closed_ && !rest.empty()) keep_unread(rest.subspan(consume(rest)));
  return static_cast<size_t>(count) == target.size() + vectors[1].iov_len;
}

int64_t Session::receive(std::span<const iovec> vectors) {
  ssize_t count = channel_->stream().receive(vectors);
  if (count > 0) {
    note_received(static_cast<size_t>(count));
  } else if (count == 0) {
    end_input();
  } else if (errno != EAGAIN) {
    close();
  }
  return count;
}

// Handles whole commands and data; returns how many bytes were used.
size_t Session::consume(Bytes bytes) {
  size_t used = 0;
  while (takes_input() && used < bytes.size()) {
    if (used != 0 && shard_->input_was_long()) {
      shard_->continue_later(this);
      break;
    }
    if (protocol_ == nullptr) choose_protocol(bytes[0]);
    size_t count = protocol_->consume(bytes.subspan(used));
    if (count == 0) break;
    used += count;
  }
  if (protocol_ != nullptr && !closed_) protocol_->on_consumed();
  return takes_input() ? used : bytes.size();
}

void Session::choose_protocol(std::byte first) {
  if (first == kCapsuleFirstByte) {
    protocol_ = std::make_unique<CapsuleProtocol>(this);
  } else {
    protocol_ = std::make_unique<RespProtocol>(this);
  }
}

void Session::go_on() {
  continue_due = false;
  resume();
  if (!closed_) flush();
}

void Session::keep_unread(Bytes bytes) {
  if (bytes.empty() || closed_) return;
  input_.append(bytes);
  account_input();
}

void Session::consume_input() {
  size_t used = consume(input_.view());
  if (closed_) return;
  if (used != 0) input_.erase_front(used);
  if (input_.empty()) input_.release_memory();
  account_input();
}

// Tells the node what this connection's input takes; false if that was too much, and the connection
// is closed. Little is never too much: those that hold back large capsules must not keep others
// from being served.
bool Session::account_input() {
  uint64_t before = std::exchange(accounted_bytes_, input_.capacity());
  bool fits = shard_->node().rebuffer(before, accounted_bytes_);
  if (fits || accounted_bytes_ <= kSmallInputBytes) return true;
  shard_->statistics().connections_dropped_budget.add();
  close();
  input_.release_memory();
  shard_->node().unbuffer(std::exchange(accounted_bytes_, 0));
  return false;
}

void Session::adopt(const ClientHello& hello, Bytes unread) {
  auto protocol = std::make_unique<CapsuleProtocol>(this);
  CapsuleProtocol& capsules = *protocol;
  protocol_ = std::move(protocol);
  if (!capsules.greet(hello, unread)) return;
  if (!closed_) keep_unread(unread.subspan(consume(unread)));
  if (!closed_) flush();
}

void Session::on_work_done(const Work& work) {
  --work.errand->pending;
  protocol_->on_work_done(work);
  if (!closed_) shard_->flush_later(this);
}

void Session::on_admin_done(Errand* errand, Status status, Bytes payload) {
  protocol_->on_admin_done(errand, status, payload);
  if (!closed_) shard_->flush_later(this);
}

void Session::end_errand() {
  --errand_count_;
  if (closed_) shard_->drop(this);
  if (!closed_ && closes_when_answered_ && errand_count_ == 0) end_output();
}

void Session::end_copy() {
  --copy_count_;
  if (broken_) close();
}

void Session::await(Errand* errand, uint64_t bytes) noexcept {
  errand->awaited_bytes = bytes;
  awaited_bytes_ += bytes;
}

void Session::await_no_more(Errand* errand) noexcept {
  awaited_bytes_ -= std::exchange(errand->awaited_bytes, 0);
}

void Session::end_output() {
  closing_ = true;
  shard_->flush_later(this);
}

// After a pause: what came before it was kept.
void Session::resume() {
  bool may = !closed_ && !broken_ && !(protocol_ && protocol_->is_paused());
  if (may && !input_.empty()) consume_input();
}

void Session::on_hang_up() {
  if (!paused()) on_readable();
  // Nobody is there to be answered.
  if (!closed_ && (paused() || input_ended_)) close();
}

// The peer sends no more, but may wait for replies to what it has sent.
void Session::end_input() {
  if (protocol_ == nullptr || !protocol_->is_idle()) {
    close();
  } else {
    input_ended_ = true;
  }
}

// The peer's last command was answered. What is left of its input will never be a whole one.
bool Session::is_over() const noexcept {
  if (!input_ended_) return false;
  bool goes_on = continue_due || (protocol_->is_paused() && !input_.empty());
  return !goes_on && !protocol_->owes_replies() && output_.empty() &&
         channel_->sending_bytes() == 0;
}

void Session::flush() {
  if (closed_ || broken_ || !send_output()) return;
  bool waits_for_sent = channel_->is_sending();
  if (!output_.empty() && !waits_for_sent) shard_->note_bulk();
  bool is_last = closing_ && !protocol_->owes_replies();
  if (output_.empty() && !waits_for_sent && is_last && !input_ended_) {
    // The peer's end of the stream, or the stall limit, closes it: to close over unread input would
    // be a reset, which may overtake the last word.
    channel_->stream().end_output();
    watch();
    return;
  }
  if (output_full_ && has_room()) go_on_after_output();
  if (!closed_ && is_over()) close();
  if (closed_) return;
  watch();
  if (!output_.empty() && !stream_full_ && !waits_for_sent) shard_->flush_later(this);
}

// Sends until the stream takes no more or the turn is long. False if the connection broke.
bool Session::send_output() {
  std::vector<OwnedExtent> released;
  uint64_t sent_now = 0;
  stream_full_ = false;
  if (channel_->takes_output()) return true;
  while (!output_.empty() && !stream_full_ && (sent_now == 0 || !shard_->turn_is_long())) {
    uint64_t step = shard_->step_bytes();
    uint64_t due = std::min(step, output_.pinned_bytes() + output_.owned_bytes());
    int64_t sent = output_.flush(&channel_->stream(), step, &released);
    bool broken = sent < 0 && errno != EAGAIN;
    if (broken) {
      shard_->release(&released);
      close();
      return false;
    }
    stream_full_ = sent < static_cast<int64_t>(due);
    sent_now += static_cast<uint64_t>(std::max<int64_t>(sent, 0));
  }
  shard_->release(&released);
  note_sent(sent_now);
  return true;
}

void Session::go_on_after_output() {
  output_full_ = false;
  protocol_->on_output_room();
  resume();
  if (!closed_ && !output_.empty()) shard_->flush_later(this);
}

// Tells the reactor what this connection waits for.
void Session::watch() noexcept {
  Input input = data_left() > kReadyBytesMin ? Input::Ready : Input::Bytes;
  if (paused() || continue_due || input_ended_ || channel_->is_receiving()) input = Input::None;
  channel_->watch(input, !output_.empty() && stream_full_);
}

bool Session::paused() const noexcept {
  if (protocol_ == nullptr) return false;
  return protocol_->is_paused() ||
         (protocol_->data_left() == 0 && protocol_->is_greeted() && !has_room());
}

bool Session::has_room() const noexcept {
  uint64_t bytes =
      output_.pinned_bytes() + output_.owned_bytes() + channel_->sending_bytes() + awaited_bytes_;
  return bytes < shard_->node().connection_bytes_max();
}

bool Session::is_stalled(uint64_t now_ns) noexcept {
  if (broken_) return false;
  // A peer that has said nothing yet costs little: clients open connections ahead of need.
  bool greeted = protocol_ == nullptr || protocol_->is_greeted();
  bool owes = protocol_ != nullptr && protocol_->owes_data();
  bool owed = !output_.empty() || channel_->sending_bytes() != 0;
  bool waits = owes || owed || !greeted || !input_.empty() || closing_;
  bool paused = protocol_ != nullptr && protocol_->is_paused();
  if (!waits || (greeted && paused && !owed)) {
    progress_ns_ = now_ns;
    progress_seen_ = progress_bytes_;
    return false;
  }
  uint64_t elapsed_ms = (now_ns - progress_ns_) / 1'000'000;
  if (elapsed_ms < shard_->node().stall_ms_max()) return false;
  uint64_t moved = progress_bytes_ - progress_seen_;
  progress_ns_ = now_ns;
  progress_seen_ = progress_bytes_;
  // A hello, or a last word, is through by now or never will be. Half a command may be that of a
  // busy client, caught in between.
  if (!greeted || closing_) return true;
  return moved * 1000 < shard_->node().minimum_rate() * elapsed_ms;
}

void Session::describe(ConnectionReport* report) const {
  uint64_t now_ns = shard_->now_ns();
  report->client_id = client_id_;
  report->shard = shard_->index();
  report->fd = channel_->stream().fd();
  report->peer = peer_;
  report->local = local_name(channel_->stream().socket());
  report->age_ms = (now_ns - begin_ns_) / 1'000'000;
  report->idle_ms = (now_ns - heard_ns_) / 1'000'000;
  report->input_bytes = input_.size();
  report->input_capacity = input_.capacity();
  report->output_bytes = output_.pinned_bytes() + output_.owned_bytes() + channel_->sending_bytes();
  report->received_bytes = received_bytes_;
  report->sent_bytes = sent_bytes_;
  if (protocol_ != nullptr) protocol_->describe(report);
}

bool Session::is_drained() noexcept {
  return output_.empty() && channel_->sending_bytes() == 0 &&
         (protocol_ == nullptr || (protocol_->is_idle() && !protocol_->owes_replies()));
}

Socket Session::take_socket() noexcept {
  closed_ = true;
  moved_ = true;
  shard_->drop(this);
  return channel_->stream().take_socket();
}

void Session::close() noexcept {
  if (closed_) return;
  if (channel_->holds_memory()) {
    // It is let go of when that has ended, which this hastens.
    if (!std::exchange(broken_, true)) channel_->hasten_end();
    return;
  }
  closed_ = true;
  shard_->drop(this);
  std::vector<OwnedExtent> released;
  output_.discard(&released);
  shard_->release(&released);
  if (protocol_ != nullptr) protocol_->on_closed();
  if (channel_->is_quiet()) {
    channel_->stream().close();
  } else {
    channel_->stream().end();  // What is under way ends with it.
  }
}

}  // namespace kvstrata
