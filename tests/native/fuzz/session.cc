// A whole node of two shards, fed with whatever a client might send behind its hello.
//
// The node outlives the inputs, so what one stores the next one meets.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>

#include "store/native/node.h"
#include "tests/native/fuzz/input.h"
#include "transport/native/socket.h"

using namespace kvstrata;

namespace {

constexpr int kWaitMs = 20'000;
constexpr size_t kInputBytesMax = 64 * 1024;

// Answers administrative commands with their own payload.
void answer_commands(Node* node) {
  pollfd waiting{node->admin().fd(), POLLIN, 0};
  while (::poll(&waiting, 1, -1) >= 0 || errno == EINTR) {
    while (std::optional<AdminCall> call = node->admin().pop()) {
      node->complete_admin(*call, Status::Ok, {call->payload.begin(), call->payload.end()});
    }
  }
}

std::unique_ptr<Node> start_node() {
  NodeOptions options;
  options.shard_count = 2;
  options.memory_bytes = 16 << 20;
  options.huge_pages = HugePages::Off;
  options.credits = 64;
  options.connection_count_max = 1'000;
  options.connection_bytes_max = 256 * 1024;
  options.buffer_bytes_max = 16 << 20;
  options.minimum_rate = 1'024;
  options.stall_ms_max = 1'000;
  std::string error;
  std::unique_ptr<Node> node = Node::create(options, &error);
  require(node != nullptr, error.c_str());
  PoolSettings pool;
  pool.name = "default";
  pool.open_rights = kRightRead | kRightWrite | kRightAdmin;
  require(node->set_pool(pool).empty(), "no pool");
  pool.name = "fixed";
  pool.immutable = true;
  pool.quota_bytes = 4 << 20;
  require(node->set_pool(pool).empty(), "no second pool");
  node->start();
  std::thread(answer_commands, node.get()).detach();
  return node;
}

void send_all(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // The node has closed.
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

std::vector<std::byte> receive_to_end(int fd) {
  std::vector<std::byte> said;
  std::array<std::byte, 4096> part;
  while (true) {
    Wait wait = Wait::Interrupted;  // By the fuzzer's own timer.
    while (wait == Wait::Interrupted) wait = wait_ready(fd, POLLIN, Deadline::after_ms(kWaitMs));
    require(wait == Wait::Ready, "the node neither answers nor closes");
    ssize_t count = ::recv(fd, part.data(), part.size(), 0);
    if (count <= 0) return said;
    said.insert(said.end(), part.begin(), part.begin() + count);
  }
}

void check_answers(Bytes said) {
  HelloPrefix prefix;
  if (said.size() < kHelloPrefixBytes) return;
  require(decode(said.data(), &prefix), "an answer that is no hello");
  require(said.size() >= kHelloPrefixBytes + prefix.body_length, "half an answer to the hello");
  said = said.subspan(kHelloPrefixBytes + prefix.body_length);
  while (said.size() >= kHeaderBytes) {
    CompletionHeader header;
    require(decode(said.data(), &header), "a completion beyond the limits");
    size_t length = kHeaderBytes + header.body_length;
    if (length > said.size()) return;
    require(crc_matches(said.first(length)), "a completion with a wrong CRC");
    if (header.data_length > said.size() - length) return;
    said = said.subspan(length + header.data_length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Node* node = start_node().release();  // Until the very end: threads use it.
  if (size == 0 || size > kInputBytesMax) return -1;
  std::vector<std::byte> stream = exact_copy(data + 1, size - 1);
  ClientHello hello;
  hello.pool = (data[0] & 1) != 0 ? "fixed" : "default";
  hello.shard = data[0] >> 1 & 1;
  ByteBuffer greeting;
  encode(hello, &greeting);
  if ((data[0] & 4) == 0) mend_capsules(&stream);
  Socket socket;
  std::string error;
  Deadline deadline = Deadline::after_ms(kWaitMs);
  Status status = connect_tcp("127.0.0.1", node->port(), deadline, &socket, &error);
  require(status == Status::Ok, error.c_str());
  send_all(socket.fd(), greeting.view());
  send_all(socket.fd(), stream);
  ::shutdown(socket.fd(), SHUT_WR);
  check_answers(receive_to_end(socket.fd()));
  return 0;
}
