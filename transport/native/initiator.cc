#include "transport/native/initiator.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "store/limits.h"
#include "transport/native/pieces.h"

namespace kvstrata {

namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr size_t kWindowsMax = 16;
// Capsules are encoded, and their values hashed, only this far ahead of the socket.
constexpr uint64_t kSendAheadBytes = 1024 * 1024;
// More than this in flight takes longer than a spin is worth.
constexpr uint64_t kSpinBytesMax = 64 * 1024;
// Below this, one copy through the buffer is cheaper than receiving ahead.
// What moves so much at a time keeps its processor busy for long.
constexpr size_t kBulkBytes = 64 * 1024;
constexpr size_t kAheadBytesMin = 4096;
constexpr size_t kAheadBytesMax = 256 * 1024;
constexpr size_t kReadOutcomeBytes = 40;
constexpr size_t kChecksumBytes = 8;
constexpr int kReceivesPerProgress = 4;
constexpr long kSliceMs = 200;  // How long a caller who presses Ctrl-C may have to wait.
// A node that lets go of a client's memory does so when it has copied what it is at.
constexpr int64_t kRevokeMs = 2'000;
constexpr uint32_t kSlotBits = 10;
static_assert(limits::kCreditsMax <= 1U << kSlotBits, "a command id must hold its slot");

}  // namespace

Initiator::Initiator(std::unique_ptr<Stream> stream, const NodeHello& node, std::string name,
                     bool verify, uint32_t spin_us)
    : stream_(std::move(stream)),
      terms_{node.chunk_bytes, node.value_bytes_max, node.in_capsule_bytes, nullptr},
      name_(std::move(name)),
      spin_(spin_us),
      slots_(limits::kCreditsMax, nullptr),
      credits_(std::min<uint32_t>(node.credits, limits::kCreditsMax)),
      data_(node.chunk_bytes, verify) {
  stream_->let_sleep(kSliceMs);
  free_slots_.reserve(slots_.size());
  for (size_t i = slots_.size(); i != 0; --i) free_slots_.push_back(static_cast<uint16_t>(i - 1));
}

Initiator::~Initiator() { close(kStatusClosed, "the connection was closed by its owner"); }

void Initiator::use_regions(std::unique_ptr<RegionTable> regions) {
  regions_ = std::move(regions);
  terms_.regions = regions_.get();
}

bool Initiator::tend_regions() {
  if (regions_ == nullptr || status_ != Status::Ok) return false;
  while (Transfer* notice = regions_->next_farewell()) queue_.push_back(notice);
  begin_queued();
  return !idle();
}

// What the node is told goes ahead of who uses it; it does not wait for the answer.
void Initiator::announce_regions(const Transfer& transfer) {
  while (Transfer* notice = regions_->next_farewell()) queue_.push_back(notice);
  while (Transfer* notice = regions_->next_notice(transfer, terms_.in_capsule_bytes)) {
    queue_.push_back(notice);
  }
}

void Initiator::submit(Transfer* transfer) {
  if (regions_ != nullptr && status_ == Status::Ok) announce_regions(*transfer);
  queue_.push_back(transfer);
  if (status_ == Status::Ok) {
    begin_queued();
    return;
  }
  queue_.pop_back();
  transfer->fail(status_, message_);
  transfer->owner->ended(*transfer);
}

bool Initiator::progress() {
  bool moved = false;
  stream_->wake();
  if (status_ == Status::Ok) moved = send();
  // Also when idle: a node that hung up is noticed so.
  for (int i = 0; i < kReceivesPerProgress && status_ == Status::Ok && receive(); ++i) {
    moved = true;
    if (idle()) break;
  }
  unfinished_ = status_ == Status::Ok && !stream_->may_sleep(!send_queue_.empty());
  return moved;
}

bool Initiator::drive(Deadline deadline) {
  Deadline slice = deadline.at_most_ms(kSliceMs);
  while (!idle()) {
    send();
    bool interrupted = status_ == Status::Ok && !await(deadline);
    if (idle()) break;
    if (!interrupted && !slice.passed()) continue;
    if (!deadline.passed()) return false;
    close(kStatusTimedOut, "no answer from " + name_ + " in time; the connection was closed");
  }
  return true;
}

// Receives something, or waits until sending may go on. False after a signal and when nothing has
// come for a while.
bool Initiator::await(Deadline deadline) {
  if (!send_queue_.empty()) {
    return receive() || status_ != Status::Ok ||
           stream_->wait(true, deadline.at_most_ms(kSliceMs)) == Wait::Ready;
  }
  bool bulk = in_flight_bytes_ > kSpinBytesMax || data_.left() > kSpinBytesMax;
  if (bulk || !spin_.enabled()) return receive_sleeping(deadline) || status_ != Status::Ok;
  auto begin = SpinPolicy::Clock::now();
  SpinPolicy::Clock::duration waited{};
  bool received = false;
  if (spin_.worthwhile()) {
    do {
      received = receive() || status_ != Status::Ok;
      if (!received) stream_->linger();
      waited = SpinPolicy::Clock::now() - begin;
    } while (!received && waited < spin_.budget());
  }
  if (!received) {
    received = receive_sleeping(deadline) || status_ != Status::Ok;
    waited = SpinPolicy::Clock::now() - begin;
  }
  spin_.observe(waited);
  return received;
}

// Sleeps in the receive call itself, which ends within kSliceMs.
bool Initiator::receive_sleeping(Deadline deadline) {
  if (deadline.left_ms() < kSliceMs) {
    return stream_->wait(false, deadline) == Wait::Ready && receive();
  }
  sleeps_ = true;
  bool received = receive();
  sleeps_ = false;
  return received;
}

void Initiator::begin_queued() {
  while (!queue_.empty() && in_flight_count_ < credits_ &&
         send_queue_.byte_count() < kSendAheadBytes) {
    Transfer* transfer = queue_.front();
    queue_.pop_front();
    if (begin(transfer)) continue;
    transfer->fail(Status::TooLarge, "the command does not fit into a capsule of " +
                                         std::to_string(limits::kCapsuleBodyBytesMax) + " bytes");
    transfer->owner->ended(*transfer);
  }
}

bool Initiator::begin(Transfer* transfer) {
  uint16_t slot = free_slots_.back();
  transfer->command_id = (sequence_++ << kSlotBits) | slot;
  size_t count = transfer->encode(terms_, send_queue_.staging());
  if (count == 0) return false;
  free_slots_.pop_back();
  slots_[slot] = transfer;
  ++in_flight_count_;
  newest_ = transfer;
  transfer->in_flight_bytes = transfer->data_bytes();
  in_flight_bytes_ += transfer->in_flight_bytes;
  send_queue_.push_staged(transfer, count);
  for (const TransferItem& item : transfer->items) {
    if (item.file != nullptr) {
      send_queue_.push(transfer, *item.file);
    } else if (!item.in_region) {
      send_queue_.push(transfer, item.source);
    }
  }
  return true;
}

bool Initiator::send() {
  bool moved = false;
  while (!send_queue_.empty()) {
    sent_.clear();
    ssize_t count = send_queue_.flush(stream_.get(), &sent_);
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      // What the node said before it closed is worth more than the broken pipe.
      while (status_ == Status::Ok && receive()) continue;
      fault("lost " + name_ + ": " + std::strerror(errno));
      return true;
    }
    moved = true;
    if (static_cast<size_t>(count) >= kBulkBytes) give_way();
    for (Transfer* transfer : sent_) {
      if (transfer->completed) end(transfer);
    }
    begin_queued();
  }
  return moved;
}

bool Initiator::receive() {
  if (data_.active()) return receive_data();
  if (Transfer* lone = lone_read()) return receive_ahead(lone);
  return receive_buffered();
}

// Returns the count received; 0 when nothing is there or the connection is over.
size_t Initiator::receive_into(std::span<const iovec> windows) {
  ssize_t received = sleeps_ ? stream_->receive_sleeping(windows) : stream_->receive(windows);
  if (received > 0) return static_cast<size_t>(received);
  if (received == 0) {
    fault("the node " + name_ + " closed the connection");
  } else if (errno != EAGAIN && errno != EINTR) {
    fault("lost " + name_ + ": " + std::strerror(errno));
  }
  return 0;
}

// Straight into the sinks; what follows them in the stream is caught by the buffer in the same
// call.
bool Initiator::receive_data() {
  std::array<iovec, kWindowsMax + 1> windows;
  size_t count = data_.windows({windows.data(), kWindowsMax});
  size_t data_bytes = 0;
  for (size_t i = 0; i < count; ++i) data_bytes += windows[i].iov_len;
  bool all = data_bytes == data_.left();
  if (all || count == 0) {
    reserve_buffer(kBufferBytes);
    windows[count++] = {buffer_.data() + buffer_.size(), buffer_.capacity() - buffer_.size()};
  }
  size_t received = receive_into(std::span(windows).first(count));
  if (received == 0) return false;
  size_t in_place = std::min(received, data_bytes);
  data_.advance(in_place);
  if (in_place >= kBulkBytes) give_way();
  buffer_.extend(received - in_place);
  parse();
  return true;
}

// A single read is all that is in flight, so its completion must come next, and its length is
// foreseeable: the data behind it are received into the sink in the same call.
Transfer* Initiator::lone_read() const noexcept {
  if (in_flight_count_ != 1 || !buffer_.empty()) return nullptr;
  Transfer* transfer = newest_;
  if (transfer == nullptr || !opcode_reads(transfer->opcode) || transfer->items.size() != 1) {
    return nullptr;
  }
  const TransferItem& item = transfer->items[0];
  return item.sink.size() >= kAheadBytesMin && !item.in_region ? transfer : nullptr;
}

bool Initiator::receive_ahead(Transfer* lone) {
  MutableBytes sink = lone->items[0].sink;
  uint64_t asked =
      lone->opcode == Opcode::Get ? sink.size() : std::min<uint64_t>(lone->length, sink.size());
  uint64_t pieces = piece_count(lone->offset % terms_.chunk_bytes, asked, terms_.chunk_bytes);
  size_t expected = kHeaderBytes + kReadOutcomeBytes + kChecksumBytes * pieces;
  if (expected > kBufferBytes) return receive_buffered();
  reserve_buffer(kBufferBytes);
  std::array<iovec, 2> windows = {iovec{buffer_.data(), expected},
                                  iovec{sink.data(), std::min(sink.size(), kAheadBytesMax)}};
  size_t received = receive_into(windows);
  if (received == 0) return false;
  buffer_.extend(std::min(received, expected));
  size_t ahead = received - buffer_.size();
  CompletionHeader header;
  bool exact = ahead != 0 && decode(buffer_.data(), &header) &&
               header.body_length + kHeaderBytes == expected && header.data_length >= ahead &&
               header.data_length <= sink.size();
  // The completion was shorter or longer than foreseen: its true place is the buffer.
  if (ahead != 0 && !exact) buffer_.append({sink.data(), ahead});
  parse();
  if (exact && status_ == Status::Ok && data_.active()) {
    data_.advance(ahead);
    parse();
  }
  return true;
}

bool Initiator::receive_buffered() {
  reserve_buffer(kBufferBytes / 2);
  iovec window{buffer_.data() + buffer_.size(), buffer_.capacity() - buffer_.size()};
  size_t received = receive_into({&window, 1});
  if (received == 0) return false;
  buffer_.extend(received);
  parse();
  return true;
}

// Makes room for `count` bytes more, without growing where moving the unparsed bytes to the front
// is enough.
void Initiator::reserve_buffer(size_t count) {
  if (buffer_begin_ == buffer_.size()) {
    buffer_.clear();
    buffer_begin_ = 0;
    if (buffer_.capacity() > 2 * kBufferBytes) buffer_.release_memory();
  }
  if (buffer_.capacity() - buffer_.size() >= count) return;
  buffer_.erase_front(buffer_begin_);
  buffer_begin_ = 0;
  size_t size = buffer_.size();
  buffer_.extend(std::max(count, kBufferBytes - std::min(size, kBufferBytes)));
  buffer_.truncate(size);
}

void Initiator::parse() {
  while (status_ == Status::Ok) {
    Bytes unparsed = buffer_.view().subspan(buffer_begin_);
    if (data_.active()) buffer_begin_ += data_.feed(unparsed);
    if (data_.active()) break;
    if (data_transfer_ != nullptr) {
      Transfer* transfer = std::exchange(data_transfer_, nullptr);
      if (transfer->completed) complete(transfer);
    }
    if (!parse_completion()) break;
  }
  if (buffer_begin_ == buffer_.size()) {
    buffer_.clear();
    buffer_begin_ = 0;
  }
}

bool Initiator::parse_completion() {
  Bytes unparsed = buffer_.view().subspan(buffer_begin_);
  if (unparsed.size() < kHeaderBytes) return false;
  CompletionHeader header;
  if (!decode(unparsed.data(), &header)) {
    fault("the node " + name_ + " sent something that is not a completion");
    return false;
  }
  size_t length = kHeaderBytes + header.body_length;
  if (unparsed.size() < length) {
    reserve_buffer(length - unparsed.size());
    return false;
  }
  Bytes capsule = unparsed.first(length);
  if (!crc_matches(capsule)) {
    fault("a completion from " + name_ + " has a wrong CRC");
    return false;
  }
  buffer_begin_ += length;
  take_completion(header, capsule.subspan(kHeaderBytes));
  return true;
}

void Initiator::take_completion(const CompletionHeader& header, Bytes body) {
  size_t slot = header.command_id & ((1U << kSlotBits) - 1);
  Transfer* transfer = slot < slots_.size() ? slots_[slot] : nullptr;
  if (transfer == nullptr || transfer->command_id != header.command_id || transfer->completed ||
      header.opcode != static_cast<uint8_t>(transfer->opcode)) {
    fault("the node " + name_ + " completed a command that is not in flight");
    return;
  }
  if (header.credits == 0) {
    fault("the node " + name_ + " took all credits away");
    return;
  }
  credits_ = std::min<uint32_t>(header.credits, limits::kCreditsMax);
  const char* error = nullptr;
  bool more = (header.flags & kFlagMore) != 0;
  if (header.status != Status::Ok) {
    bool bare = header.outcome_count == 0 && header.data_length == 0 && !more;
    if (!bare) error = "a failed command has outcomes, data or more to come";
    transfer->fail(header.status, std::string(as_text(body)));
  } else {
    error = transfer->settle(header, body, terms_, data_.reads(), data_.checksums());
    if (error == nullptr && !more && !transfer->all_settled()) {
      error = "the last completion of a command leaves outcomes open";
    }
  }
  if (error != nullptr) {
    fault("the node " + name_ + " broke the protocol: " + error);
    return;
  }
  transfer->completed = !more;
  data_.begin();
  if (data_.active()) {
    data_transfer_ = transfer;
  } else if (transfer->completed) {
    complete(transfer);
  }
}

// All outcomes and data are here; but sources of a write that was refused early may still be on
// their way out.
void Initiator::complete(Transfer* transfer) {
  if (transfer->unsent_segment_count == 0) end(transfer);
}

void Initiator::end(Transfer* transfer) {
  uint32_t slot = transfer->command_id & ((1U << kSlotBits) - 1);
  slots_[slot] = nullptr;
  free_slots_.push_back(static_cast<uint16_t>(slot));
  --in_flight_count_;
  in_flight_bytes_ -= transfer->in_flight_bytes;
  if (newest_ == transfer) newest_ = nullptr;
  transfer->owner->ended(*transfer);
  if (status_ == Status::Ok) begin_queued();
}

void Initiator::fault(const std::string& why) { close(kStatusClosed, why); }

void Initiator::abandon() noexcept {
  stream_->close();
  status_ = kStatusClosed;
}

bool Initiator::uses_regions() const noexcept {
  return std::ranges::any_of(slots_, [](const Transfer* transfer) {
    return transfer != nullptr && std::ranges::any_of(transfer->items, &TransferItem::in_region);
  });
}

void Initiator::close(Status status, std::string why) {
  if (status_ != Status::Ok) return;
  status_ = status;
  message_ = std::move(why);
  // The node may be copying to or from memory that the callers have back from now on.
  if (uses_regions()) stream_->await_end(Deadline::after_ms(kRevokeMs));
  stream_->close();
  data_.abandon(status);
  data_transfer_ = nullptr;
  send_queue_.clear();
  buffer_.release_memory();
  buffer_begin_ = 0;
  for (Transfer* transfer : slots_) {
    if (transfer == nullptr) continue;
    transfer->fail(status, message_);
    end(transfer);
  }
  while (!queue_.empty()) {
    Transfer* transfer = queue_.front();
    queue_.pop_front();
    transfer->fail(status, message_);
    transfer->owner->ended(*transfer);
  }
}

}  // namespace kvstrata
