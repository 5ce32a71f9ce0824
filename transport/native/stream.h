// A connection's bytes, both ways: over a socket, or through rings in memory that both ends map.
//
// Either has a socket: its descriptor is what one sleeps on, and its end is the connection's.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <utility>

#include "transport/native/deadline.h"
#include "transport/native/socket.h"

namespace kvstrata {

class Stream {
 public:
  explicit Stream(Socket socket) noexcept : socket_(std::move(socket)) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // As recvmsg(2) and sendmsg(2) that never wait: how many bytes went; 0, of `receive` alone: the
  // peer has ended its side; -1 with errno, which is EAGAIN where nothing goes at present.
  virtual ssize_t receive(std::span<const iovec> into) noexcept = 0;
  virtual ssize_t send(std::span<const iovec> from) noexcept = 0;

  // For loops: false if something can be received already (or sent, if `sends`). Else fd() will
  // poll readable when that is so; to be sent to, it may also have to be polled for room.
  virtual bool may_sleep(bool sends) noexcept = 0;
  virtual bool polls_for_room() const noexcept = 0;
  // For loops, when fd() was polled readable: takes in what it tells.
  virtual void wake() noexcept {}

  // For callers that block. As `receive`, but sleeps at first, until something comes, a signal or
  // the time given to `let_sleep`: -1 then, with EINTR or EAGAIN.
  virtual ssize_t receive_sleeping(std::span<const iovec> into) noexcept = 0;
  // Sleeps until something can be received, or sent if `sends`.
  virtual Wait wait(bool sends, Deadline deadline) noexcept = 0;
  // Lets a moment pass while looking for something to receive; others may go first.
  virtual void linger() noexcept = 0;
  void let_sleep(int64_t milliseconds) noexcept;
  // Ends this side, and waits until the peer has ended its own.
  void await_end(Deadline deadline) noexcept;

  int fd() const noexcept { return socket_.fd(); }
  const Socket& socket() const noexcept { return socket_; }
  // Nothing more is sent; what was sent will still arrive.
  void end_output() noexcept;
  // Nothing more goes, in either direction.
  void end() noexcept;
  void close() noexcept { socket_.close(); }
  Socket take_socket() noexcept { return std::move(socket_); }

 protected:
  Socket socket_;
};

// Bytes of a socket.
class SocketStream final : public Stream {
 public:
  using Stream::Stream;

  ssize_t receive(std::span<const iovec> into) noexcept override;
  ssize_t send(std::span<const iovec> from) noexcept override;
  bool may_sleep(bool) noexcept override { return true; }
  bool polls_for_room() const noexcept override { return true; }
  ssize_t receive_sleeping(std::span<const iovec> into) noexcept override;
  Wait wait(bool sends, Deadline deadline) noexcept override;
  void linger() noexcept override;
};

}  // namespace kvstrata
