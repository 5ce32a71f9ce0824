// A connection's bytes through two rings in memory that client and node map. The socket beside them
// carries doorbells (a byte, when the other end sleeps) and descriptors of further memory.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "transport/native/ring.h"
#include "transport/native/shared_memory.h"
#include "transport/native/stream.h"

namespace kvstrata {

enum class RingSide : uint8_t { Client, Node };

class RingStream final : public Stream {
 public:
  // Memory with two empty rings, to be shared with the client. Null on failure.
  static std::unique_ptr<SharedMemory> make_memory(std::string* error);
  // The client's view of what the node has made; null if it is none.
  static std::unique_ptr<SharedMemory> map_memory(const Socket& descriptor, std::string* error);

  RingStream(Socket socket, std::unique_ptr<SharedMemory> memory, RingSide side) noexcept;

  ssize_t receive(std::span<const iovec> into) noexcept override;
  ssize_t send(std::span<const iovec> from) noexcept override;
  bool may_sleep(bool sends) noexcept override { return may_sleep(true, sends); }
  bool polls_for_room() const noexcept override { return false; }
  void wake() noexcept override;
  ssize_t receive_sleeping(std::span<const iovec> into) noexcept override;
  Wait wait(bool sends, Deadline deadline) noexcept override;
  void linger() noexcept override;

  // As the other; what is not wanted wakes nobody.
  bool may_sleep(bool receives, bool sends) noexcept;
  // Whether there is something to receive, or an end to be told; much room to send.
  bool has_input() noexcept { return reader_.has_something() || ended_; }
  bool has_room() noexcept { return writer_.has_much_room(); }
  bool ended() const noexcept { return ended_; }

  // The node's first words, which go over the socket; `with_memory`: the rings come along, for the
  // client alone. False if it has gone.
  bool share(Bytes words, bool with_memory) noexcept;
  // Gives the other end the memory of a descriptor. False if it cannot be told of it now.
  bool send_descriptor(int fd) noexcept;
  // The next that the other end has sent; empty if there is none.
  Socket take_descriptor() noexcept;

 private:
  // What came over the socket: nothing, something, or as much as one call takes.
  enum class Heard { Nothing, Something, Much };
  Heard hear(int flags) noexcept;
  void ring_doorbell() noexcept;

  std::unique_ptr<SharedMemory> memory_;
  RingReader reader_;
  RingWriter writer_;
  std::deque<Socket> descriptors_;
  bool ended_ = false;  // The socket has.
};

}  // namespace kvstrata
