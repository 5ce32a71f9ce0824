// io_uring: receives into buffers that the kernel picks as bytes come, so that thousands of idle
// connections hold none; sends what was given; and for anything larger says when a descriptor is
// ready. Everything asked for since the last wait goes to the kernel with the next one.
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <utility>

#include "transport/native/reactor.h"
#include "transport/native/uring_library.h"

namespace kvstrata {

namespace {

constexpr unsigned kSubmissionCount = 256;
constexpr unsigned kCompletionCount = 4096;
constexpr uint16_t kBufferCount = 128;  // A power of two.
constexpr size_t kBufferBytes = 16 * 1024;
constexpr int kBufferGroup = 0;
constexpr uint64_t kKindMask = alignof(Watch) - 1;
// How long a loop that several connections keep busy waits for all of them.
constexpr long long kGatherNs = 30'000;
constexpr unsigned kGatherCountMax = 48;

}  // namespace

class UringReactor final : public Reactor {
 public:
  ~UringReactor() override {
    if (ring_.ring_fd > 0) library_->queue_exit(&ring_);
    if (buffers_ != MAP_FAILED) ::munmap(buffers_, kBuffersBytes);
  }

  bool open() noexcept {
    library_ = UringLibrary::load();
    if (library_ == nullptr) return false;
    io_uring_params parameters{};
    parameters.flags =
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    parameters.cq_entries = kCompletionCount;
    if (library_->queue_init_params(kSubmissionCount, &ring_, &parameters) != 0) {
      ring_.ring_fd = 0;
      return false;
    }
    // Bulk is copied one piece after the other: those of one loop would only fight for caches.
    std::array<unsigned, 2> threads{0, 1};  // For files: as it is. For sockets: one.
    if (library_->register_iowq_max_workers(&ring_, threads.data()) != 0) return false;
    buffers_ = ::mmap(nullptr, kBuffersBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (buffers_ == MAP_FAILED) return false;
    buffer_ring_ = reinterpret_cast<io_uring_buf_ring*>(static_cast<std::byte*>(buffers_) +
                                                        kBufferBytes * kBufferCount);
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<uint64_t>(buffer_ring_);
    registration.ring_entries = kBufferCount;
    registration.bgid = kBufferGroup;
    if (library_->register_buf_ring(&ring_, &registration, 0) != 0) return false;
    io_uring_buf_ring_init(buffer_ring_);
    for (uint16_t buffer = 0; buffer < kBufferCount; ++buffer) give_back(buffer);
    return true;
  }

  std::string_view name() const noexcept override { return "io_uring"; }

  void watch(Watch* watch, Input input, bool output) noexcept override {
    bool awaits_input = (watch->pending_ & (Watch::kReceive | Watch::kInput)) != 0;
    if (input != Input::None && !awaits_input) {
      if (input == Input::Bytes) {
        receive(watch);
      } else {
        poll(watch, Watch::kInput, POLLIN);
      }
    }
    if (output && (watch->pending_ & Watch::kOutput) == 0) poll(watch, Watch::kOutput, POLLOUT);
    // Polling for nothing still tells of errors, and of the end of both directions.
    if (input == Input::None && !awaits_input && watch->pending_ == 0)
      poll(watch, Watch::kHangUp, 0);
  }

  void remove(Watch* watch) noexcept override {
    // What is under way holds the descriptor open: it ends with its connection, or is cancelled.
    for (uint8_t kind : {Watch::kInput, Watch::kOutput, Watch::kReceive, Watch::kHangUp}) {
      if ((watch->pending_ & kind) == 0) continue;
      io_uring_sqe* entry = next_entry();
      io_uring_prep_cancel64(entry, tag(watch, kind), 0);
      io_uring_sqe_set_data64(entry, 0);
    }
  }

  bool sends() const noexcept override { return true; }

  void send(Watch* watch, Bytes bytes) noexcept override {
    assert((watch->pending_ & Watch::kSend) == 0);
    io_uring_sqe* entry = next_entry();
    io_uring_prep_send(entry, watch->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    begin(entry, watch, Watch::kSend);
    ++sends_submitted_;
  }

  // Forced to a thread of the kernel's, which never waits there for one of the peers.
  void send_bulk(Watch* watch, const msghdr* message) noexcept override {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_sendmsg(entry, watch->fd(), message, MSG_NOSIGNAL | MSG_DONTWAIT);
    entry->flags |= IOSQE_ASYNC;
    begin(entry, watch, Watch::kSend);
  }

  void receive_bulk(Watch* watch, MutableBytes target) noexcept override {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_recv(entry, watch->fd(), target.data(), target.size(), MSG_DONTWAIT);
    entry->flags |= IOSQE_ASYNC;
    begin(entry, watch, Watch::kReceive);
  }

  void hurry() noexcept override { hurries_ = true; }

  size_t wait(std::span<IoEvent> events, int timeout_ms, bool gathers) noexcept override {
    if (io_uring_cq_ready(&ring_) == 0 || io_uring_sq_ready(&ring_) != 0)
      enter(timeout_ms, gathers);
    last_count_ = 0;
    return take(events);
  }

  void finish(const IoEvent& event) noexcept override {
    if (event.received && !event.bytes.empty()) give_back(event.buffer);
  }

 private:
  static constexpr size_t kBuffersBytes =
      kBufferBytes * kBufferCount + sizeof(io_uring_buf) * kBufferCount;

  static uint64_t tag(const Watch* watch, uint8_t kind) noexcept {
    return reinterpret_cast<uint64_t>(watch) | kind;
  }

  io_uring_sqe* next_entry() noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
      library_->submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
    }
    return entry;
  }

  void begin(io_uring_sqe* entry, Watch* watch, uint8_t kind) noexcept {
    io_uring_sqe_set_data64(entry, tag(watch, kind));
    watch->pending_ |= kind;
  }

  void receive(Watch* watch) noexcept {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_recv(entry, watch->fd(), nullptr, kBufferBytes, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = kBufferGroup;
    entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
    begin(entry, watch, Watch::kReceive);
  }

  void poll(Watch* watch, uint8_t kind, unsigned mask) noexcept {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_poll_add(entry, watch->fd(), mask);
    begin(entry, watch, kind);
  }

  void give_back(uint16_t buffer) noexcept {
    auto* memory = static_cast<std::byte*>(buffers_) + size_t{buffer} * kBufferBytes;
    io_uring_buf_ring_add(buffer_ring_, memory, kBufferBytes, buffer,
                          io_uring_buf_ring_mask(kBufferCount), 0);
    io_uring_buf_ring_advance(buffer_ring_, 1);
  }

  // What was sent at once is complete before anything is waited for, and does not count unless
  // somebody waits for it.
  void enter(int timeout_ms, bool gathers) noexcept {
    unsigned sends = std::exchange(sends_submitted_, 0);
    if (std::exchange(hurries_, false)) {
      sends = 0;
      gathers = false;
    }
    if (timeout_ms == 0) {
      library_->submit_and_get_events(&ring_);
      return;
    }
    io_uring_cqe* first = nullptr;
    if (gathers && last_count_ > 1) {
      __kernel_timespec gather{0, kGatherNs};
      unsigned wanted = std::min(last_count_, kGatherCountMax) + sends;
      library_->submit_and_wait_timeout(&ring_, &first, wanted, &gather, nullptr);
      if (io_uring_cq_ready(&ring_) > sends) return;
    }
    __kernel_timespec timeout{timeout_ms / 1000,
                              static_cast<long long>(timeout_ms % 1000) * 1'000'000};
    library_->submit_and_wait_timeout(&ring_, &first, sends + 1,
                                      timeout_ms < 0 ? nullptr : &timeout, nullptr);
  }

  size_t take(std::span<IoEvent> events) noexcept {
    size_t count = 0;
    unsigned seen = 0;
    unsigned head = 0;
    io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring_, head, completion) {
      if (count == events.size()) break;
      ++seen;
      if (!report(*completion, &events[count])) continue;
      if (!events[count].sent) ++last_count_;
      ++count;
    }
    io_uring_cq_advance(&ring_, seen);
    return count;
  }

  // False if it is of no interest.
  bool report(const io_uring_cqe& completion, IoEvent* event) noexcept {
    auto* watch = reinterpret_cast<Watch*>(completion.user_data & ~kKindMask);
    auto kind = static_cast<uint8_t>(completion.user_data & kKindMask);
    if (watch == nullptr) return false;
    watch->pending_ &= static_cast<uint8_t>(~kind);
    *event = IoEvent{};
    event->watch = watch;
    event->result = completion.res;
    if (kind == Watch::kSend) {
      event->sent = true;
    } else if (kind == Watch::kReceive) {
      event->received = true;
      if ((completion.flags & IORING_CQE_F_BUFFER) != 0) {
        event->buffer = static_cast<uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
        auto* memory = static_cast<std::byte*>(buffers_) + size_t{event->buffer} * kBufferBytes;
        // A buffer that nothing came into is given back here.
        if (completion.res <= 0) give_back(event->buffer);
        if (completion.res > 0) event->bytes = {memory, static_cast<size_t>(completion.res)};
      }
    } else if (completion.res > 0) {
      auto bits = static_cast<unsigned>(completion.res);
      event->readable = (bits & POLLIN) != 0;
      event->writable = (bits & POLLOUT) != 0;
      event->hung_up = (bits & (POLLHUP | POLLERR)) != 0;
    }
    return true;
  }

  const UringLibrary* library_ = nullptr;
  io_uring ring_{};
  void* buffers_ = MAP_FAILED;
  io_uring_buf_ring* buffer_ring_ = nullptr;
  unsigned sends_submitted_ = 0;  // Since the last wait.
  bool hurries_ = false;
  unsigned last_count_ = 0;
};

std::unique_ptr<Reactor> make_uring_reactor() {
  auto reactor = std::make_unique<UringReactor>();
  if (!reactor->open()) return nullptr;
  return reactor;
}

bool uring_is_usable() noexcept {
  static const bool usable = UringReactor().open();
  return usable;
}

}  // namespace kvstrata
