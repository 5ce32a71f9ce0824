// What a thread's connections wait for: input, output, or that bytes were received or sent for
// them.
//
// There are two: with epoll the owner of a descriptor reads and writes it when told that it can;
// with io_uring small reads and writes are also done for it, all that a turn of the loop asked for
// in one system call. Each belongs to the thread that first waits.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "transport/native/bytes.h"

namespace kvstrata {

enum class ReactorKind : uint8_t { Epoll, Uring };

// How input is waited for.
enum class Input : uint8_t {
  None,   // Tell only when the connection is gone.
  Ready,  // Tell when there is some.
  Bytes,  // Receive it, where the reactor does; else as Ready.
};

// A descriptor that is waited for. Must stay where it is until remove() and until it is_quiet().
class alignas(32) Watch {
 public:
  Watch(int fd, void* owner) noexcept : fd_(fd), owner_(owner) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int fd() const noexcept { return fd_; }
  void* owner() const noexcept { return owner_; }
  // Nothing is under way in the kernel that will still be reported.
  bool is_quiet() const noexcept { return pending_ == 0; }
  bool is_receiving() const noexcept { return (pending_ & (kReceive | kInput)) != 0; }

 private:
  friend class EpollReactor;
  friend class UringReactor;
  static constexpr uint8_t kReceive = 1;
  static constexpr uint8_t kInput = 2;
  static constexpr uint8_t kOutput = 4;
  static constexpr uint8_t kSend = 8;
  static constexpr uint8_t kHangUp = 16;

  int fd_;
  void* owner_;
  uint8_t pending_ = 0;  // io_uring: operations under way.
  bool added_ = false;
  bool watches_input_ = false;
  bool watches_output_ = false;
};

struct IoEvent {
  Watch* watch = nullptr;
  bool readable = false;
  bool writable = false;
  bool hung_up = false;
  bool received = false;  // `bytes`, or `result` 0 at the end of the stream, or -errno.
  bool sent = false;      // `result` bytes, or -errno.
  int32_t result = 0;
  Bytes bytes;
  uint16_t buffer = 0;  // The reactor's.
};

class Reactor {
 public:
  virtual ~Reactor() = default;
  virtual std::string_view name() const noexcept = 0;

  // From now on, until the next call: what is reported once may not be again without another call.
  virtual void watch(Watch* watch, Input input, bool output) noexcept = 0;
  // Nothing new is reported; what is under way may be, before the watch is quiet.
  virtual void remove(Watch* watch) noexcept = 0;
  // Whether it sends, instead of telling when that can be done.
  virtual bool sends() const noexcept = 0;
  // `bytes` must stay until they are reported as sent; one at a time.
  virtual void send(Watch* watch, Bytes bytes) noexcept = 0;
  // The same for what takes long, away from this thread: any number of pieces, or a place to
  // receive into, reported as received without bytes. Both must stay until then. For reactors that
  // send.
  virtual void send_bulk(Watch* watch, const msghdr* message) noexcept = 0;
  virtual void receive_bulk(Watch* watch, MutableBytes target) noexcept = 0;
  // Somebody waits for what is being sent: the next wait ends with the first that is.
  virtual void hurry() noexcept = 0;

  // Fills `events`, waiting for the first of them at most so long. `gathers`: it may wait some
  // microseconds for more, if several came the last time.
  virtual size_t wait(std::span<IoEvent> events, int timeout_ms, bool gathers) noexcept = 0;
  // The event was dealt with: its bytes are the reactor's again.
  virtual void finish(const IoEvent& event) noexcept = 0;
};

std::unique_ptr<Reactor> make_epoll_reactor();
// Null where this machine has no io_uring, or not enough of it.
std::unique_ptr<Reactor> make_uring_reactor();
// Whether make_uring_reactor() gives one.
bool uring_is_usable() noexcept;

}  // namespace kvstrata
