// Accepts a node's connections, on the thread of its first shard, and deals them out to all shards.
#pragma once

#include <deque>

#include "store/native/peer.h"
#include "transport/native/reactor.h"
#include "transport/native/socket.h"

namespace kvstrata {

class Node;
class Shard;

class Acceptor {
 public:
  // Watches the node's listeners from now on.
  Acceptor(Node* node, Shard* shard) noexcept;

  // Takes some of those who wait to be accepted by the listener that is meant.
  void accept_connections(const Watch* ready);
  // Watches the listeners again if they rested.
  void resume() noexcept;
  void stop() noexcept;
  // Whether `resume` is needed.
  bool rests() const noexcept { return rests_; }

 private:
  struct Door {
    Door(const Socket& socket, Transport leads_to) noexcept
        : listener(&socket), transport(leads_to), watch(socket.fd(), nullptr) {}
    const Socket* listener;
    Transport transport;
    Watch watch;
  };

  void accept_some(const Door& door);
  void watch(Door* door) noexcept;
  void rest() noexcept;
  void deal(Socket socket, Peer peer);

  Node* node_;
  Shard* shard_;
  std::deque<Door> doors_;  // They stay where they are.
  bool rests_ = false;
  bool stopped_ = false;
};

}  // namespace kvstrata
