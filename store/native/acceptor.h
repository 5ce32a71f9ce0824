// Accepts a node's connections, on the thread of its first shard, and deals them out to all shards.
#pragma once

#include <cstdint>

#include "transport/native/reactor.h"
#include "transport/native/socket.h"

namespace kvstrata {

class Node;
class Shard;

class Acceptor {
 public:
  // Watches the node's listener from now on.
  Acceptor(Node* node, Shard* shard) noexcept;
  const Watch* io_watch() const noexcept { return &watch_; }

  // Takes some of those who wait to be accepted.
  void accept_connections();
  // Watches the listener again if it rested.
  void resume() noexcept;
  void stop() noexcept;
  // Whether `resume` is needed.
  bool rests() const noexcept { return rests_; }

 private:
  void accept_some();
  void watch() noexcept;
  void rest() noexcept;
  void deal(Socket socket);

  Node* node_;
  Shard* shard_;
  Watch watch_;
  bool rests_ = false;
  bool stopped_ = false;
};

}  // namespace kvstrata
