// The client's end of a connection, with requests of every kind in flight, fed with whatever a node
// might answer.
#include "transport/native/initiator.h"

#include <sys/socket.h>

#include <memory>
#include <string>

#include "tests/native/fuzz/input.h"

using namespace kvstrata;

namespace {

constexpr size_t kSinkBytes = 256;

// One transfer of each opcode, with two items where the opcode takes several.
class Requests : public TransferOwner {
 public:
  explicit Requests(bool asks_sinks) {
    for (Opcode opcode :
         {Opcode::Get, Opcode::GetRange, Opcode::Put, Opcode::Append, Opcode::Exists,
          Opcode::PrefixLength, Opcode::Delete, Opcode::Expire, Opcode::Stat, Opcode::Scan,
          Opcode::Admin, Opcode::Retain, Opcode::Release, Opcode::Extend}) {
      Transfer& transfer = *transfers_.emplace_back(std::make_unique<Transfer>(this, opcode));
      transfer.asks_sinks = asks_sinks && opcode_reads(opcode);
      transfer.length = kSinkBytes;
      bool single = opcode == Opcode::Stat || opcode == Opcode::Scan || opcode == Opcode::Admin ||
                    opcode == Opcode::Append || opcode == Opcode::GetRange;
      for (int count = single ? 1 : 2; count != 0; --count) add_item(&transfer);
    }
  }

  void submit_to(Initiator* initiator) {
    for (auto& transfer : transfers_) initiator->submit(transfer.get());
  }
  void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept override {
    for (size_t index = first; index < first + count; ++index) {
      TransferItem& item = transfer.items[index];
      if (item.moved > 1 << 20) continue;  // Its data are dropped.
      sinks_.push_back(std::vector<std::byte>(item.moved));
      item.sink = sinks_.back();
    }
  }
  void ended(Transfer&) noexcept override { ++ended_count_; }
  bool all_ended() const { return ended_count_ == transfers_.size(); }

 private:
  void add_item(Transfer* transfer) {
    TransferItem& item = transfer->items.emplace_back();
    item.key = as_bytes("key");
    item.source = as_bytes("value");
    if (transfer->asks_sinks) return;
    sinks_.push_back(std::vector<std::byte>(kSinkBytes));
    item.sink = sinks_.back();
  }

  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<std::vector<std::byte>> sinks_;
  size_t ended_count_ = 0;
};

// Command ids as the node learns them from the requests, for the fuzzer to be hit upon.
std::vector<uint32_t> command_ids(int fd) {
  std::vector<uint32_t> ids;
  std::vector<std::byte> sent(64 * 1024);
  ssize_t count = ::recv(fd, sent.data(), sent.size(), MSG_DONTWAIT);
  Bytes rest = Bytes(sent).first(static_cast<size_t>(count > 0 ? count : 0));
  RequestHeader header;
  while (rest.size() >= kHeaderBytes && decode(rest.data(), &header)) {
    ids.push_back(header.command_id);
    rest = rest.subspan(kHeaderBytes + header.body_length + header.data_length);
  }
  return ids;
}

void name_commands(std::vector<std::byte>* stream, const std::vector<uint32_t>& ids) {
  size_t at = 0;
  while (!ids.empty() && stream->size() - at >= kHeaderBytes) {
    std::byte* header = stream->data() + at;
    auto chosen = load_le<uint32_t>(header + 8);
    store_le(header + 8, ids[chosen % ids.size()]);
    uint64_t length = kHeaderBytes + uint64_t{load_le<uint32_t>(header + 12)};
    auto data_length = load_le<uint64_t>(header + 16);
    if (length > stream->size() - at || data_length > stream->size() - at - length) return;
    at += length + data_length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 64 * 1024) return -1;
  std::vector<std::byte> stream = exact_copy(data + 2, size - 2);
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "no pair of sockets");
  Socket node(ends[1]);
  NodeHello hello;
  hello.credits = 32;
  hello.chunk_bytes = 128;
  hello.value_bytes_max = 1 << 30;
  Requests requests((data[0] & 1) != 0);
  Initiator initiator(std::make_unique<SocketStream>(Socket(ends[0])), hello, "node:1",
                      (data[0] & 2) != 0, 0);
  requests.submit_to(&initiator);
  initiator.progress();
  name_commands(&stream, command_ids(node.fd()));
  mend_capsules(&stream);
  // In parts, so that the initiator meets every kind of cut.
  size_t part_bytes = data[1] == 0 ? stream.size() + 1 : data[1];
  for (Bytes rest = stream; !rest.empty() && initiator.status() == Status::Ok;) {
    Bytes part = rest.first(std::min(part_bytes, rest.size()));
    ssize_t sent = ::send(node.fd(), part.data(), part.size(), MSG_NOSIGNAL);
    if (sent > 0) rest = rest.subspan(static_cast<size_t>(sent));
    bool moved = initiator.progress();
    if (sent <= 0 && !moved) break;
  }
  node.close();
  while (initiator.status() == Status::Ok && initiator.progress()) continue;
  initiator.close(kStatusClosed, "over");
  require(requests.all_ended(), "a transfer was never ended");
  return 0;
}
