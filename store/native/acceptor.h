// Accepts a node's connections, on the thread of its first shard, and deals them out to all shards.
#pragma once

#include <cstdint>

#include "transport/native/socket.h"

namespace kvstrata {

class Node;
class Shard;

class Acceptor {
 public:
  // Watches the node's listener from now on; `epoll` is the shard's and reports it as `token`.
  Acceptor(Node* node, Shard* shard, int epoll, uint64_t token) noexcept;

  // Takes some of those who wait to be accepted.
  void accept_connections();
  // Watches the listener again if it rested.
  void resume() noexcept;
  void stop() noexcept;
  // Whether `resume` is needed.
  bool rests() const noexcept { return rests_; }

 private:
  void watch() noexcept;
  void rest() noexcept;
  void deal(Socket socket);

  Node* node_;
  Shard* shard_;
  int epoll_;
  uint64_t token_;
  bool rests_ = false;
};

}  // namespace kvstrata
