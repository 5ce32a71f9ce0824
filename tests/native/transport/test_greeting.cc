// Connecting and the hello, against listeners on loopback that answer as each test says.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <future>
#include <string_view>
#include <thread>

#include "transport/native/greeting.h"

namespace kvstrata {

namespace {

NodeHello good_answer() {
  NodeHello answer;
  answer.version = 1;
  answer.credits = 16;
  answer.chunk_bytes = 4096;
  return answer;
}

struct Greeted {
  Status status;
  NodeHello node;
  std::string error;
  Socket socket;
};

Greeted greet_port(uint16_t port, int64_t timeout_ms = 5000) {
  Greeted result;
  result.status = greet("localhost", port, ClientHello{}, Deadline::after_ms(timeout_ms),
                        &result.socket, &result.node, &result.error);
  return result;
}

// Connects to a listener that accepts, reads the client's hello, sends `answer` and closes.
Greeted greet_listener(Bytes answer) {
  std::string error;
  Socket listener = listen_tcp("127.0.0.1", 0, 1, &error);
  REQUIRE_MESSAGE(listener, error);
  std::thread node([&] {
    wait_ready(listener.fd(), POLLIN, Deadline::after_ms(5000));
    Socket socket = accept_from(listener);
    wait_ready(socket.fd(), POLLIN, Deadline::after_ms(5000));
    std::byte hello[512];
    ::recv(socket.fd(), hello, sizeof hello, 0);
    ::send(socket.fd(), answer.data(), answer.size(), MSG_NOSIGNAL);
  });
  Greeted result = greet_port(local_port(listener));
  node.join();
  return result;
}

Greeted greet_with(const NodeHello& answer) {
  ByteBuffer bytes;
  encode(answer, &bytes);
  return greet_listener(bytes.view());
}

constexpr std::string_view kHangingHost = "hangs.invalid";
constexpr std::chrono::seconds kPatience{20};  // Of a test that fails.

// The one look-up of `kHangingHost`: it answers when it is let go.
struct HangingLookup {
  std::promise<void> begun;
  std::promise<void> let_go;
  std::promise<void> answered;
};
HangingLookup hanging;

bool has_come(const std::future<void>& event, std::chrono::seconds patience) {
  return event.wait_for(patience) == std::future_status::ready;
}

}  // namespace

// Stands before the C library's in this program, and treats one name otherwise.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  static auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  bool hangs = host != nullptr && host == kHangingHost && (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (!hangs) return real(host, service, hints, list);
  hanging.begun.set_value();
  hanging.let_go.get_future().wait_for(kPatience);
  int code = real("127.0.0.1", service, hints, list);
  hanging.answered.set_value();
  return code;
}

TEST_CASE("a hello that goes well leaves an open socket and the node's answer") {
  Greeted greeted = greet_with(good_answer());
  CHECK(greeted.status == Status::Ok);
  CHECK(greeted.socket);
  CHECK(greeted.node.credits == 16);
}

TEST_CASE("a refusal brings the node's own words") {
  NodeHello refusal;
  refusal.status = Status::Denied;
  refusal.message = "the secret of pool 'default' is wrong";
  Greeted greeted = greet_with(refusal);
  CHECK(greeted.status == Status::Denied);
  CHECK(greeted.error == refusal.message);
  CHECK_FALSE(greeted.socket);
}

TEST_CASE("answers that would make the client misbehave are refused") {
  NodeHello no_chunks = good_answer();
  no_chunks.chunk_bytes = 0;
  NodeHello no_credits = good_answer();
  no_credits.credits = 0;
  NodeHello later_version = good_answer();
  later_version.version = 2;
  for (const NodeHello& answer : {no_chunks, no_credits, later_version}) {
    CHECK(greet_with(answer).status == Status::Invalid);
  }
}

TEST_CASE("another protocol, a broken hello and a hang-up are told apart") {
  Greeted resp = greet_listener(as_bytes("-ERR unknown command, with args beginning with"));
  CHECK(resp.status == Status::Invalid);
  CHECK(resp.error.find("does not speak the capsule protocol") != std::string::npos);

  ByteBuffer bytes;
  encode(good_answer(), &bytes);
  bytes.data()[30] ^= std::byte{1};
  CHECK(greet_listener(bytes.view()).status == Status::Corrupt);

  Greeted hang_up = greet_listener({});
  CHECK(hang_up.status == kStatusClosed);
  CHECK(hang_up.error.find("closed the connection instead") != std::string::npos);
}

TEST_CASE("nobody there, and nobody who answers") {
  std::string error;
  Socket listener = listen_tcp("127.0.0.1", 0, 1, &error);
  REQUIRE(listener);
  Greeted silent = greet_port(local_port(listener), 50);
  CHECK(silent.status == kStatusTimedOut);
  CHECK(silent.error.find("did not answer the hello") != std::string::npos);

  uint16_t port = local_port(listener);
  listener.close();
  Greeted refused = greet_port(port);
  CHECK(refused.status == kStatusClosed);
  CHECK(refused.error.find("start one with 'kvstrata serve'") != std::string::npos);

  Socket socket;
  CHECK(connect_tcp("no-such-host.invalid", 1, Deadline::after_ms(30'000), &socket, &error) ==
        kStatusClosed);
  CHECK(error.starts_with("cannot resolve host 'no-such-host.invalid'"));
}

TEST_CASE("a resolver that hangs is left behind at the deadline") {
  std::future<void> begun = hanging.begun.get_future();
  std::future<void> answered = hanging.answered.get_future();
  Socket socket;
  std::string error;
  CHECK(connect_tcp(std::string(kHangingHost), 1, Deadline::after_ms(50), &socket, &error) ==
        kStatusTimedOut);
  CHECK(error.starts_with("host 'hangs.invalid' was not resolved in time"));
  CHECK_FALSE(socket);
  CHECK(has_come(begun, kPatience));
  CHECK_FALSE(has_come(answered, std::chrono::seconds(0)));
  // The late answer is nobody's, and yet freed, as LeakSanitizer sees.
  hanging.let_go.set_value();
  CHECK(has_come(answered, kPatience));
}

TEST_CASE("a port in use is told") {
  std::string error;
  Socket first = listen_tcp("127.0.0.1", 0, 1, &error);
  REQUIRE(first);
  CHECK_FALSE(listen_tcp("127.0.0.1", local_port(first), 1, &error));
  CHECK(error.find("Address already in use") != std::string::npos);
}

TEST_CASE("an IPv6 address is written in brackets") {
  CHECK(endpoint_name("::1", 18400) == "[::1]:18400");
  CHECK(endpoint_name("host", 1) == "host:1");
}

}  // namespace kvstrata
