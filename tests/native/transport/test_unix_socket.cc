// UNIX sockets of a node: who gets a path, what becomes of it, and whom a secret is shown to.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "store/limits.h"
#include "transport/native/greeting.h"
#include "transport/native/unix_socket.h"

namespace kvstrata {

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = "/tmp/kvstrata-test-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Status connect(const std::string& path, std::string* error, int64_t timeout_ms = 5000) {
  Socket socket;
  return connect_unix(path, Deadline::after_ms(timeout_ms), &socket, error);
}

std::string refusal(const std::string& path) {
  std::string error;
  CHECK_FALSE(UnixListener::listen(path, 1, &error));
  return error;
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// As a node that was killed leaves it.
void leave_stale(const std::string& path) {
  std::string error;
  UnixListener listener = UnixListener::listen(path, 1, &error);
  REQUIRE_MESSAGE(listener, error);
  fs::rename(path, path + ".kept");
  listener.close();
  fs::rename(path + ".kept", path);
}

}  // namespace

TEST_CASE("a path can be connected to while it is listened on, by anybody, and is gone then") {
  Folder folder;
  std::string path = folder.file("node.sock");
  std::string error;
  UnixListener listener = UnixListener::listen(path, 1, &error);
  REQUIRE_MESSAGE(listener, error);
  struct stat found{};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0666);

  Socket socket;
  REQUIRE(connect_unix(path, Deadline::after_ms(5000), &socket, &error) == Status::Ok);
  CHECK((::fcntl(socket.fd(), F_GETFL) & O_NONBLOCK) != 0);
  CHECK(peer_credentials(socket).pid == ::getpid());
  Socket accepted = accept_from(listener.socket());
  CHECK(peer_credentials(accepted).uid == ::geteuid());
  CHECK(local_name(accepted) == path + ":0");

  UnixListener moved = std::move(listener);
  CHECK(connect(path, &error) == Status::Ok);
  moved.close();
  CHECK_FALSE(fs::exists(path));
  CHECK(connect(path, &error) == kStatusClosed);
  CHECK(says(error, "No such file"));
}

TEST_CASE("what a crashed node has left is replaced; a live one is not") {
  Folder folder;
  std::string path = folder.file("node.sock");
  leave_stale(path);
  std::string error;
  CHECK(connect(path, &error) == kStatusClosed);
  CHECK(says(error, "nobody listens there any more"));

  UnixListener listener = UnixListener::listen(path, 1, &error);
  REQUIRE_MESSAGE(listener, error);
  CHECK(says(refusal(path), "listens on the UNIX socket " + path));
  CHECK(connect(path, &error) == Status::Ok);
}

TEST_CASE("who ends does not take away the socket that another has put in its place") {
  Folder folder;
  std::string path = folder.file("node.sock");
  std::string error;
  UnixListener first = UnixListener::listen(path, 1, &error);
  fs::remove(path);
  UnixListener second = UnixListener::listen(path, 1, &error);
  REQUIRE_MESSAGE(second, error);
  first.close();
  CHECK(connect(path, &error) == Status::Ok);
}

TEST_CASE("of many that start at once over a stale socket one gets it") {
  Folder folder;
  std::string path = folder.file("node.sock");
  leave_stale(path);
  std::array<UnixListener, 8> listeners;
  std::vector<std::thread> threads;
  for (UnixListener& each : listeners) {
    threads.emplace_back([&each, &path] {
      std::string error;
      each = UnixListener::listen(path, 16, &error);  // The others look whether it answers.
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::ranges::count_if(listeners, [](const auto& each) { return bool(each); }) == 1);
  std::string error;
  CHECK(connect(path, &error) == Status::Ok);
}

TEST_CASE("paths that cannot be had are refused in words, and left as they are") {
  Folder folder;
  std::string file = folder.file("file");
  std::ofstream(file) << "precious";
  CHECK(says(refusal(file), "is no socket"));
  CHECK(fs::file_size(file) == 8);
  CHECK(says(refusal("node.sock"), "begins with /"));
  CHECK(says(refusal(folder.file("missing/node.sock")), "No such file"));
  CHECK(says(refusal(file + "/node.sock"), "Not a directory"));
  fs::create_symlink(file, folder.file("link"));
  CHECK(says(refusal(folder.file("link")), "is no socket"));

  std::string longest = folder.file("");
  longest.append(limits::kUnixPathBytesMax - longest.size(), 'x');
  CHECK(says(refusal(longest + "x"), "at most 107 bytes; this one has 108"));
  std::string error;
  CHECK_MESSAGE(UnixListener::listen(longest, 1, &error), error);
}

TEST_CASE("a folder that another process keeps locked is not waited for for ever") {
  Folder folder;
  Socket held(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(::flock(held.fd(), LOCK_EX) == 0);
  CHECK(says(refusal(folder.file("node.sock")), "keeps the folder locked"));
}

TEST_CASE("a node that takes no connections is told apart from none, by the deadline") {
  Folder folder;
  std::string path = folder.file("node.sock");
  std::string error;
  UnixListener listener = UnixListener::listen(path, 0, &error);
  REQUIRE_MESSAGE(listener, error);
  Socket first;
  REQUIRE(connect_unix(path, Deadline::after_ms(5000), &first, &error) == Status::Ok);
  CHECK(connect(path, &error, 50) == kStatusTimedOut);
  CHECK(says(error, "is it overloaded?"));
}

TEST_CASE("a secret is shown to this user's nodes and root's, to others' only if they are trusted" *
          doctest::skip(::geteuid() != 0)) {
  constexpr uid_t kNobody = 65534;
  Folder folder;
  fs::permissions(folder.path(), fs::perms::all);
  std::string path = folder.file("node.sock");
  std::string error;
  REQUIRE(::seteuid(kNobody) == 0);
  UnixListener listener = UnixListener::listen(path, 8, &error);
  REQUIRE(::seteuid(0) == 0);
  REQUIRE_MESSAGE(listener, error);

  ClientHello hello;
  auto bytes_shown = [&](bool trusts_any_owner, Status* status) {
    Socket socket;
    Socket memory;
    NodeHello node;
    Deadline deadline = Deadline::after_ms(20);  // Nobody answers.
    *status = greet_unix(path, trusts_any_owner, hello, deadline, &socket, &node, &memory, &error);
    Socket accepted = accept_from(listener.socket());
    std::array<std::byte, 256> shown;
    return ::recv(accepted.fd(), shown.data(), shown.size(), 0);
  };
  Status status{};
  CHECK(bytes_shown(false, &status) > 0);
  CHECK(status == kStatusTimedOut);
  hello.secret = "s3cret";
  CHECK(bytes_shown(false, &status) <= 0);
  CHECK(status == Status::Denied);
  CHECK(says(error, "belongs to user 65534"));
  CHECK(bytes_shown(true, &status) > 0);
  CHECK(status == kStatusTimedOut);
}

}  // namespace kvstrata
