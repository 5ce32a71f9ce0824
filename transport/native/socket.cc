#include "transport/native/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <future>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace kvstrata {

namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// What a host name leads to, or why there is nothing.
struct Resolution {
  Addresses addresses;
  Status status;
  std::string error;
};

Resolution resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code == 0) return {Addresses(list), Status::Ok, {}};
  const char* why = code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
  return {nullptr, kStatusClosed, "cannot resolve host '" + host + "': " + why};
}

Resolution resolve_in_thread(const std::string& host, uint16_t port) {
  // Signals are for the threads that expect them, such as Python's main thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  return resolve(host, port, 0);
}

// getaddrinfo() has no bound and cannot be interrupted, so it gets a thread. A caller whose
// deadline passes leaves that thread behind: it ends when the resolver gives up (resolv.conf:
// attempts times timeout), and whoever is the last to know the result frees it.
Resolution resolve_by(const std::string& host, uint16_t port, Deadline deadline) {
  // An address is resolved without asking anybody, and so without a thread.
  Resolution numeric = resolve(host, port, AI_NUMERICHOST);
  if (numeric.status == Status::Ok) return numeric;
  std::packaged_task<Resolution()> task([host, port] { return resolve_in_thread(host, port); });
  std::future<Resolution> answer = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error& refusal) {
    return {nullptr, kStatusClosed,
            "cannot start a thread to resolve host '" + host + "': " + refusal.what()};
  }
  auto left = std::chrono::milliseconds(deadline.left_ms());
  if (answer.wait_for(left) == std::future_status::ready) return answer.get();
  return {nullptr, kStatusTimedOut,
          "host '" + host +
              "' was not resolved in time: check its name and the name server, or give an address"};
}

Socket open_socket(const addrinfo& address) noexcept {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int on = 1;
  if (socket) setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

bool same_address(const sockaddr_storage& left, const sockaddr_storage& right) noexcept {
  if (left.ss_family != right.ss_family) return false;
  if (left.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(left).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(right).sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(left).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(right).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

bool is_loopback(const sockaddr_storage& address) noexcept {
  if (address.ss_family == AF_INET) {
    constexpr uint32_t kFirstByte = 127;
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kFirstByte;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return address.ss_family == AF_INET6 && std::memcmp(&v6, &in6addr_loopback, sizeof v6) == 0;
}

// Between two ends on one host there is no congestion. A host whose default is BBR would pace the
// data there and stop them for 200 ms every ten seconds, to measure a round trip.
void relieve_of_pacing(const Socket& socket) noexcept {
  if (!stays_on_host(socket)) return;
  constexpr std::string_view kAlwaysAllowed = "reno";
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, kAlwaysAllowed.data(),
             kAlwaysAllowed.size());
}

// Returns 0 or an errno; ETIMEDOUT when the deadline passed first.
int connect_one(const addrinfo& address, Deadline deadline, Socket* result) {
  Socket socket = open_socket(address);
  if (!socket) return errno;
  int code = 0;
  if (::connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    Wait wait = Wait::Interrupted;
    while (wait == Wait::Interrupted) wait = wait_ready(socket.fd(), POLLOUT, deadline);
    if (wait == Wait::TimedOut) return ETIMEDOUT;
    socklen_t size = sizeof code;
    if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) return errno;
  }
  if (code == 0) relieve_of_pacing(socket);
  if (code == 0) *result = std::move(socket);
  return code;
}

std::string explain(int code, const std::string& name) {
  switch (code) {
    case ECONNREFUSED:
      return "connection refused by " + name +
             ": is a node running there? start one with 'kvstrata serve'";
    case ETIMEDOUT:
      return "no answer from " + name +
             ": check host, port and firewall, or allow a longer timeout";
    default:
      return "cannot connect to " + name + ": " + std::strerror(code);
  }
}

std::string name_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (address->sa_family == AF_UNIX) {
    return std::string(reinterpret_cast<const sockaddr_un*>(address)->sun_path) + ":0";
  }
  int failed = ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                             NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed != 0) return "unknown";
  std::string text(host.data());
  return (text.find(':') == std::string::npos ? text : "[" + text + "]") + ":" + port.data();
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

void Socket::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int Socket::release() noexcept { return std::exchange(fd_, -1); }

std::string endpoint_name(const std::string& host, uint16_t port) {
  bool bare_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Status connect_tcp(const std::string& host, uint16_t port, Deadline deadline, Socket* socket,
                   std::string* error) {
  auto [addresses, status, why] = resolve_by(host, port, deadline);
  if (status != Status::Ok) {
    *error = why;
    return status;
  }
  int64_t left = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) ++left;
  int code = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next, --left) {
    // A share of the time each, so that one dead address does not use up that of all.
    code = connect_one(*each, deadline.at_most_ms(deadline.left_ms() / left), socket);
    if (code == 0) return Status::Ok;
  }
  *error = explain(code, endpoint_name(host, port));
  return code == ETIMEDOUT ? kStatusTimedOut : kStatusClosed;
}

Socket listen_tcp(const std::string& host, uint16_t port, int backlog, std::string* error) {
  auto [addresses, status, why] = resolve(host, port, AI_PASSIVE);
  if (status != Status::Ok) {
    *error = why;
    return Socket();
  }
  Socket socket = open_socket(*addresses);
  int on = 1;
  if (socket && setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      ::bind(socket.fd(), addresses->ai_addr, addresses->ai_addrlen) == 0 &&
      ::listen(socket.fd(), backlog) == 0) {
    return socket;
  }
  *error = "cannot listen on " + endpoint_name(host, port) + ": " + std::strerror(errno);
  return Socket();
}

Socket accept_from(const Socket& listener) noexcept {
  return Socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

void prepare_tcp(const Socket& socket) noexcept {
  int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  relieve_of_pacing(socket);
}

bool stays_on_host(const Socket& socket) noexcept {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof here;
  socklen_t there_size = sizeof there;
  return getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
         getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&there), &there_size) == 0 &&
         (is_loopback(there) || same_address(here, there));
}

uint16_t local_port(const Socket& socket) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string peer_name(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  return ::getpeername(socket.fd(), generic, &size) == 0 ? name_of(generic, size) : "unknown";
}

std::string local_name(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  return ::getsockname(socket.fd(), generic, &size) == 0 ? name_of(generic, size) : "unknown";
}

Wait wait_ready(int fd, short events, Deadline deadline) noexcept {
  pollfd waiting{fd, events, 0};
  int timeout_ms = static_cast<int>(std::min<int64_t>(deadline.left_ms(), INT_MAX));
  int ready = ::poll(&waiting, 1, timeout_ms);
  if (ready > 0) return Wait::Ready;
  return ready == 0 ? Wait::TimedOut : Wait::Interrupted;
}

}  // namespace kvstrata
