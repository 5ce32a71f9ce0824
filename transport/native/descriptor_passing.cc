#include "transport/native/descriptor_passing.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace kvstrata {

namespace {

// Room for one descriptor exactly: where two fit, a second would be received and stay open.
struct Control {
  alignas(cmsghdr) std::array<std::byte, CMSG_LEN(sizeof(int))> bytes{};

  void attach(msghdr* message) noexcept {
    message->msg_control = bytes.data();
    message->msg_controllen = bytes.size();
  }
};

}  // namespace

ssize_t send_with_descriptor(const Socket& socket, Bytes bytes, int descriptor) noexcept {
  Control control;
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  control.attach(&message);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t receive_with_descriptor(const Socket& socket, MutableBytes into, int flags,
                                Socket* descriptor) noexcept {
  Control control;
  iovec vector{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  control.attach(&message);
  ssize_t count = ::recvmsg(socket.fd(), &message, flags | MSG_CMSG_CLOEXEC);
  if (count <= 0) return count;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return count;
  }
  int received = -1;
  std::memcpy(&received, CMSG_DATA(header), sizeof received);
  *descriptor = Socket(received);
  return count;
}

}  // namespace kvstrata
