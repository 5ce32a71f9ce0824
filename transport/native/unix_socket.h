// Stream sockets with a name in the file system, by which a node is reached from its own host.
// Every socket made here is non-blocking and closed on exec.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "transport/native/client_status.h"
#include "transport/native/deadline.h"
#include "transport/native/socket.h"

namespace kvstrata {

// Who is at the other end, as the kernel saw when it connected, or began to listen.
struct PeerCredentials {
  pid_t pid = 0;  // 0 for a process of another PID namespace.
  uid_t uid = 0;
};
PeerCredentials peer_credentials(const Socket& socket) noexcept;

// What connections that came by a UNIX socket are to have.
void prepare_unix(const Socket& socket) noexcept;

// Whether a secret may be shown to that user: it is root or this process's own.
bool is_own_or_root(uid_t uid) noexcept;

// Returns: Ok; kStatusClosed or kStatusTimedOut, and `error` says what to do.
Status connect_unix(const std::string& path, Deadline deadline, Socket* socket, std::string* error);

// Listens under a path, and removes it again at its end, unless another has taken its place.
//
// A path that a crashed node has left behind is taken over: nobody answers there. Of several that
// start on one path at the same time, one gets it: they look and bind under a lock of its folder.
class UnixListener {
 public:
  UnixListener() = default;
  ~UnixListener() { close(); }
  UnixListener(UnixListener&& other) noexcept { *this = std::move(other); }
  UnixListener& operator=(UnixListener&& other) noexcept;

  // Anyone who may enter the folder may connect. An empty one on failure, and `error` says why.
  static UnixListener listen(const std::string& path, int backlog, std::string* error);

  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  const Socket& socket() const noexcept { return socket_; }
  const std::string& path() const noexcept { return path_; }
  void close() noexcept;

 private:
  Socket socket_;
  std::string path_;
  dev_t device_ = 0;  // Of the file, to know it by.
  ino_t inode_ = 0;
};

}  // namespace kvstrata
