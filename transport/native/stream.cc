#include "transport/native/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "transport/native/spin.h"

namespace kvstrata {

namespace {

msghdr message_of(std::span<const iovec> vectors) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors.data());
  message.msg_iovlen = vectors.size();
  return message;
}

}  // namespace

// Calls that must not wait say so; those that may sleep are ended by this timeout.
void Stream::let_sleep(int64_t milliseconds) noexcept {
  timeval slice{milliseconds / 1000, milliseconds % 1000 * 1000};
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
  int flags = ::fcntl(fd(), F_GETFL);
  ::fcntl(fd(), F_SETFL, flags & ~O_NONBLOCK);
}

// Whatever else the socket brings is of no interest any more.
void Stream::await_end(Deadline deadline) noexcept {
  end_output();
  std::array<std::byte, 4096> dropped;
  while (wait_ready(fd(), POLLIN, deadline) != Wait::TimedOut) {
    ssize_t count = ::recv(fd(), dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

void Stream::end_output() noexcept { ::shutdown(fd(), SHUT_WR); }

void Stream::end() noexcept { ::shutdown(fd(), SHUT_RDWR); }

ssize_t SocketStream::receive(std::span<const iovec> into) noexcept {
  msghdr message = message_of(into);
  ssize_t received = 0;
  do {
    received = ::recvmsg(fd(), &message, MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  return received;
}

ssize_t SocketStream::send(std::span<const iovec> from) noexcept {
  msghdr message = message_of(from);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

// Sleeping in the call itself saves one to poll.
ssize_t SocketStream::receive_sleeping(std::span<const iovec> into) noexcept {
  msghdr message = message_of(into);
  return ::recvmsg(fd(), &message, 0);
}

Wait SocketStream::wait(bool sends, Deadline deadline) noexcept {
  auto events = static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN);
  return wait_ready(fd(), events, deadline);
}

void SocketStream::linger() noexcept { give_way(); }

}  // namespace kvstrata
