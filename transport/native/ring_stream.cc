#include "transport/native/ring_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>

#include "store/limits.h"
#include "transport/native/descriptor_passing.h"
#include "transport/native/spin.h"

namespace kvstrata {

namespace {

constexpr uint64_t kMagic = 0x676E697253564B;  // "KVSring", little-endian.
constexpr uint32_t kLayoutVersion = 1;
constexpr uint64_t kRingBytes = limits::kRingBytes;
constexpr size_t kFirstRing = 4096;
constexpr size_t kMemoryBytes = kFirstRing + 2 * kRingBytes;
// What is copied before the other end is told: it copies at the same time, from the same cache.
constexpr size_t kTileBytes = 32 * 1024;
constexpr int kLooks = 32;
// That were sent before anybody took them.
constexpr size_t kDescriptorsMax = 16;
constexpr size_t kDoorbellsPerCall = 64;

static_assert((kRingBytes & (kRingBytes - 1)) == 0, "indices are masked");

// Submissions go from the client to the node, completions back.
struct Header {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t ring_bytes;
  RingLine submission_writer;
  RingLine submission_reader;
  RingLine completion_writer;
  RingLine completion_reader;
};
static_assert(offsetof(Header, submission_writer) == 128 && sizeof(Header) == 640);

Header* header_of(const SharedMemory& memory) noexcept {
  return reinterpret_cast<Header*>(memory.data());
}

MutableBytes ring_of(const SharedMemory& memory, size_t number) noexcept {
  return {memory.data() + kFirstRing + number * kRingBytes, kRingBytes};
}

RingReader reader_of(const SharedMemory& memory, RingSide side) noexcept {
  Header* header = header_of(memory);
  if (side == RingSide::Node) {
    return {&header->submission_reader, &header->submission_writer, ring_of(memory, 0)};
  }
  return {&header->completion_reader, &header->completion_writer, ring_of(memory, 1)};
}

RingWriter writer_of(const SharedMemory& memory, RingSide side) noexcept {
  Header* header = header_of(memory);
  if (side == RingSide::Node) {
    return {&header->completion_writer, &header->completion_reader, ring_of(memory, 1)};
  }
  return {&header->submission_writer, &header->submission_reader, ring_of(memory, 0)};
}

ssize_t failed(int code) noexcept {
  errno = code;
  return -1;
}

MutableBytes bytes_of(const iovec& vector) noexcept {
  return {static_cast<std::byte*>(vector.iov_base), vector.iov_len};
}

}  // namespace

std::unique_ptr<SharedMemory> RingStream::make_memory(std::string* error) {
  auto memory = SharedMemory::create("kvstrata-ring", kMemoryBytes, error);
  if (memory == nullptr) return nullptr;
  auto* header = new (memory->data()) Header{};
  header->magic = kMagic;
  header->layout_version = kLayoutVersion;
  header->ring_bytes = static_cast<uint32_t>(kRingBytes);
  return memory;
}

std::unique_ptr<SharedMemory> RingStream::map_memory(const Socket& descriptor, std::string* error) {
  auto memory = SharedMemory::map(descriptor, kMemoryBytes, Access::ReadWrite, error);
  if (memory == nullptr) return nullptr;
  const Header* header = header_of(*memory);
  if (header->magic == kMagic && header->layout_version == kLayoutVersion &&
      header->ring_bytes == kRingBytes) {
    return memory;
  }
  *error = "the node's rings are laid out as version " + std::to_string(header->layout_version) +
           ", with " + std::to_string(header->ring_bytes) + " bytes; this client knows version " +
           std::to_string(kLayoutVersion) + ", with " + std::to_string(kRingBytes);
  return nullptr;
}

RingStream::RingStream(Socket socket, std::unique_ptr<SharedMemory> memory, RingSide side) noexcept
    : Stream(std::move(socket)),
      memory_(std::move(memory)),
      reader_(reader_of(*memory_, side)),
      writer_(writer_of(*memory_, side)) {}

ssize_t RingStream::receive(std::span<const iovec> into) noexcept {
  bool ended = ended_;  // Before the last look: what was written before the end is still read.
  size_t ready = reader_.available();
  if (reader_.broken()) return failed(EPROTO);
  if (ready == 0) return ended ? 0 : failed(EAGAIN);
  size_t received = 0;
  for (const iovec& vector : into) {
    for (MutableBytes rest = bytes_of(vector); !rest.empty() && received < ready;) {
      size_t count = std::min({rest.size(), ready - received, kTileBytes});
      reader_.take(rest.first(count));
      rest = rest.subspan(count);
      received += count;
      bool tile = count == kTileBytes && received < ready;
      if (tile && reader_.publish()) ring_doorbell();
    }
  }
  if (reader_.publish()) ring_doorbell();
  return static_cast<ssize_t>(received);
}

ssize_t RingStream::send(std::span<const iovec> from) noexcept {
  if (ended_) return failed(EPIPE);
  size_t room = writer_.room();
  if (writer_.broken()) return failed(EPROTO);
  if (room == 0) return failed(EAGAIN);
  size_t sent = 0;
  for (const iovec& vector : from) {
    for (Bytes rest = bytes_of(vector); !rest.empty() && sent < room;) {
      size_t count = std::min({rest.size(), room - sent, kTileBytes});
      writer_.put(rest.first(count));
      rest = rest.subspan(count);
      sent += count;
      bool tile = count == kTileBytes && sent < room;
      if (tile && writer_.publish()) ring_doorbell();
    }
  }
  if (writer_.publish()) ring_doorbell();
  return static_cast<ssize_t>(sent);
}

bool RingStream::may_sleep(bool receives, bool sends) noexcept {
  if (receives) reader_.announce_sleep();
  if (sends) writer_.announce_sleep();
  if (!(receives && has_input()) && !(sends && has_room())) return true;
  reader_.announce_awake();
  writer_.announce_awake();
  return false;
}

void RingStream::wake() noexcept {
  reader_.announce_awake();
  writer_.announce_awake();
  while (hear(MSG_DONTWAIT) == Heard::Much) continue;
}

// A doorbell may have been for what was found before it came.
ssize_t RingStream::receive_sleeping(std::span<const iovec> into) noexcept {
  while (may_sleep(true, false)) {
    if (hear(0) == Heard::Nothing) break;
  }
  reader_.announce_awake();
  return receive(into);
}

Wait RingStream::wait(bool sends, Deadline deadline) noexcept {
  if (!may_sleep(true, sends)) return Wait::Ready;
  Wait outcome = wait_ready(fd(), POLLIN, deadline);
  wake();
  return outcome;
}

void RingStream::linger() noexcept {
  for (int look = 0; look < kLooks; ++look) {
    if (has_input()) return;
    relax();
  }
  give_way();
}

void RingStream::ring_doorbell() noexcept {
  // Where the socket takes no more, it has doorbells enough.
  std::byte any{};
  [[maybe_unused]] auto sent = ::send(fd(), &any, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Takes doorbells, or a descriptor, off the socket.
RingStream::Heard RingStream::hear(int flags) noexcept {
  std::array<std::byte, kDoorbellsPerCall> doorbells;
  Socket descriptor;
  ssize_t count = receive_with_descriptor(socket_, doorbells, flags, &descriptor);
  if (count <= 0) {
    ended_ = ended_ || count == 0 || (errno != EAGAIN && errno != EINTR);
    return Heard::Nothing;
  }
  bool much = count == static_cast<ssize_t>(doorbells.size()) || descriptor;
  if (descriptor && descriptors_.size() < kDescriptorsMax) {
    descriptors_.push_back(std::move(descriptor));
  }
  return much ? Heard::Much : Heard::Something;
}

bool RingStream::share(Bytes words, bool with_memory) noexcept {
  ssize_t sent = with_memory ? send_with_descriptor(socket_, words, memory_->fd())
                             : ::send(fd(), words.data(), words.size(), MSG_NOSIGNAL);
  memory_->close_descriptor();
  return sent == static_cast<ssize_t>(words.size());
}

bool RingStream::send_descriptor(int descriptor) noexcept {
  std::byte any{};
  return send_with_descriptor(socket_, {&any, 1}, descriptor) == 1;
}

Socket RingStream::take_descriptor() noexcept {
  while (descriptors_.empty() && hear(MSG_DONTWAIT) == Heard::Much) continue;
  if (descriptors_.empty()) return Socket();
  Socket first = std::move(descriptors_.front());
  descriptors_.pop_front();
  return first;
}

}  // namespace kvstrata
