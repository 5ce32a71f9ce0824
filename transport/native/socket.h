// TCP sockets: owned descriptors, connecting and listening. Every socket made here is non-blocking,
// closed on exec, and sends small packets at once (TCP_NODELAY).
#pragma once

#include <cstdint>
#include <string>

#include "transport/native/client_status.h"
#include "transport/native/deadline.h"

namespace kvstrata {

// Owns one descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void close() noexcept;
  int release() noexcept;

 private:
  int fd_ = -1;
};

// "host:port", with brackets around an IPv6 address.
std::string endpoint_name(const std::string& host, uint16_t port);

// Resolves the name and tries every address of it, IPv4 and IPv6, all by the deadline.
// Returns: Ok; kStatusClosed or kStatusTimedOut, and `error` says what to do.
Status connect_tcp(const std::string& host, uint16_t port, Deadline deadline, Socket* socket,
                   std::string* error);

// Listens on the first address of `host`; port 0 lets the system choose. An empty socket on
// failure, and `error` says why.
Socket listen_tcp(const std::string& host, uint16_t port, int backlog, std::string* error);

// A connection that waits on a listener of any kind, or an empty socket with errno set.
Socket accept_from(const Socket& listener) noexcept;
// What connections that came by TCP are to have.
void prepare_tcp(const Socket& socket) noexcept;

// Whether both ends are of this host, or of one to which a loopback address is forwarded.
bool stays_on_host(const Socket& socket) noexcept;

// The port a socket is bound to.
uint16_t local_port(const Socket& socket) noexcept;

// "address:port" of a socket's ends, with brackets around an IPv6 address, "path:0" of a UNIX
// socket; "unknown" without one.
std::string peer_name(const Socket& socket);
std::string local_name(const Socket& socket);

enum class Wait { Ready, TimedOut, Interrupted };
// Waits for `events` of poll(2) or an error on the descriptor.
Wait wait_ready(int fd, short events, Deadline deadline) noexcept;

}  // namespace kvstrata
