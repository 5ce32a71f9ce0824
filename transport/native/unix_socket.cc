#include "transport/native/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "store/limits.h"

namespace kvstrata {

namespace {

constexpr int64_t kLockMsMax = 1000;  // Others hold it for the time of a few system calls.
constexpr std::chrono::milliseconds kLockPause{5};
// Unlike TCP's it does not grow by itself, and each time that it is full one side wakes the other.
// The kernel gives what net.core.wmem_max allows.
constexpr int kSendBufferBytes = 1 << 20;

static_assert(limits::kUnixPathBytesMax + 1 == sizeof(sockaddr_un::sun_path));

struct Address {
  sockaddr_un name{};
  const sockaddr* generic() const noexcept { return reinterpret_cast<const sockaddr*>(&name); }
};

// False, and words, for a path that no socket can have.
bool make_address(const std::string& path, Address* address, std::string* error) {
  bool absolute = path.starts_with('/') && path.find('\0') == path.npos;
  if (!absolute || path.size() > limits::kUnixPathBytesMax) {
    *error = absolute ? "the path of a UNIX socket has at most " +
                            std::to_string(limits::kUnixPathBytesMax) + " bytes; this one has " +
                            std::to_string(path.size()) + ": " + path
                      : "the path of a UNIX socket begins with /, not as '" + path + "'";
    return false;
  }
  address->name.sun_family = AF_UNIX;
  std::ranges::copy(path, address->name.sun_path);
  return true;
}

Socket open_socket() noexcept {
  return Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Of the folder, until it is destroyed. A crash lets go of it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    code_ = folder_ ? EWOULDBLOCK : errno;
    Deadline deadline = Deadline::after_ms(kLockMsMax);
    while (code_ == EWOULDBLOCK && !deadline.passed()) {
      code_ = ::flock(folder_.fd(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
      if (code_ == EWOULDBLOCK) std::this_thread::sleep_for(kLockPause);
    }
  }
  // Why it is not held; null if it is.
  const char* fault() const noexcept {
    if (code_ == EWOULDBLOCK) return "another process keeps the folder locked";
    return code_ == 0 ? nullptr : std::strerror(code_);
  }

 private:
  Socket folder_;
  int code_ = 0;
};

// Removes what a crashed node has left. False, and words, where something else is in the way.
bool remove_stale(const std::string& path, const Address& address, std::string* error) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0) return true;  // If it cannot be made, binding will tell.
  if (!S_ISSOCK(file.st_mode)) {
    *error = path + " is there and is no socket: remove it, or choose another node.unix_path";
    return false;
  }
  Socket probe = open_socket();
  bool answered = ::connect(probe.fd(), address.generic(), sizeof address.name) == 0;
  if (answered || errno == EAGAIN) {
    *error = "another process, perhaps another node, listens on the UNIX socket " + path +
             ": stop it, or choose another node.unix_path";
    return false;
  }
  bool stale = errno == ECONNREFUSED;
  if (stale && ::unlink(path.c_str()) == 0) return true;
  *error = "cannot replace the UNIX socket " + path + ", which belongs to user " +
           std::to_string(file.st_uid) + ": " + std::strerror(errno);
  return false;
}

// Before it listens nobody can connect, so nobody does with the mode that the umask made.
bool bind_and_listen(const Socket& socket, const std::string& path, const Address& address,
                     int backlog, struct stat* file) noexcept {
  constexpr mode_t kForAll = 0666;
  if (!socket || ::bind(socket.fd(), address.generic(), sizeof address.name) != 0) return false;
  if (::chmod(path.c_str(), kForAll) == 0 && ::listen(socket.fd(), backlog) == 0 &&
      ::lstat(path.c_str(), file) == 0) {
    return true;
  }
  int code = errno;
  ::unlink(path.c_str());
  errno = code;
  return false;
}

}  // namespace

PeerCredentials peer_credentials(const Socket& socket) noexcept {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return {0, static_cast<uid_t>(-1)};
  }
  return {credentials.pid, credentials.uid};
}

void prepare_unix(const Socket& socket) noexcept {
  setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
}

bool is_own_or_root(uid_t uid) noexcept { return uid == 0 || uid == ::geteuid(); }

Status connect_unix(const std::string& path, Deadline deadline, Socket* socket,
                    std::string* error) {
  Address address;
  if (!make_address(path, &address, error)) return Status::Invalid;
  // A connect that blocks waits for room in the listener's queue; one that does not, never.
  Socket opened(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int failed = 0;
  do {
    int64_t left_ms = std::max<int64_t>(deadline.left_ms(), 1);
    timeval patience{left_ms / 1000, left_ms % 1000 * 1000};
    setsockopt(opened.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    failed = ::connect(opened.fd(), address.generic(), sizeof address.name);
  } while (failed != 0 && errno == EINTR && !deadline.passed());
  if (failed == 0) {
    fcntl(opened.fd(), F_SETFL, O_NONBLOCK);
    prepare_unix(opened);
    *socket = std::move(opened);
    return Status::Ok;
  }
  if (errno == EAGAIN || errno == EINTR) {
    *error =
        "the node does not take connections on the UNIX socket " + path + ": is it overloaded?";
    return kStatusTimedOut;
  }
  const char* why = errno == ECONNREFUSED ? "nobody listens there any more" : std::strerror(errno);
  *error = "cannot connect to the UNIX socket " + path + ": " + why;
  return kStatusClosed;
}

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  if (this == &other) return *this;
  close();
  socket_ = std::move(other.socket_);
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

UnixListener UnixListener::listen(const std::string& path, int backlog, std::string* error) {
  Address address;
  if (!make_address(path, &address, error)) return {};
  FolderLock lock(path.substr(0, std::max<size_t>(path.rfind('/'), 1)));
  if (const char* fault = lock.fault()) {
    *error = "cannot make the UNIX socket " + path + ": " + fault;
    return {};
  }
  if (!remove_stale(path, address, error)) return {};
  UnixListener made;
  made.socket_ = open_socket();
  struct stat file{};
  if (!bind_and_listen(made.socket_, path, address, backlog, &file)) {
    *error = "cannot make the UNIX socket " + path + ": " + std::strerror(errno);
    return {};
  }
  made.path_ = path;
  made.device_ = file.st_dev;
  made.inode_ = file.st_ino;
  return made;
}

void UnixListener::close() noexcept {
  struct stat file{};
  bool own = socket_ && ::lstat(path_.c_str(), &file) == 0 && file.st_dev == device_ &&
             file.st_ino == inode_;
  if (own) ::unlink(path_.c_str());
  socket_.close();
}

}  // namespace kvstrata
