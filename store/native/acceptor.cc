#include "store/native/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "store/native/node.h"
#include "store/native/shard.h"

namespace kvstrata {

namespace {

constexpr uint32_t kAcceptsPerTurn = 32;

// One connection too many is told so, as far as a single send goes.
void refuse_busy(const Socket& socket) {
  NodeHello answer;
  answer.status = Status::Busy;
  answer.message = "this node has as many connections as it may; try again later";
  ByteBuffer bytes;
  encode(answer, &bytes);
  [[maybe_unused]] auto sent =
      ::send(socket.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(socket.fd(), SHUT_WR);
}

// A peer that vanished without a word is noticed within about a minute and a half.
void keep_alive(const Socket& socket) noexcept {
  int on = 1;
  int idle_s = 30;
  int interval_s = 10;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
}

Peer meet_tcp(const Socket& socket) {
  prepare_tcp(socket);
  keep_alive(socket);
  return {peer_name(socket), Transport::Tcp, -1};
}

// Its peer has no name of its own, so it is called by the path that it came by.
Peer meet_unix(const Socket& socket, const std::string& path) {
  prepare_unix(socket);
  PeerCredentials credentials = peer_credentials(socket);
  return {path + ":" + std::to_string(credentials.pid), Transport::Unix, credentials.uid};
}

}  // namespace

Acceptor::Acceptor(Node* node, Shard* shard) noexcept : node_(node), shard_(shard) {
  doors_.emplace_back(node->listener(), Transport::Tcp);
  if (node->unix_listener()) doors_.emplace_back(node->unix_listener().socket(), Transport::Unix);
  for (Door& door : doors_) watch(&door);
}

void Acceptor::accept_connections(const Watch* ready) {
  for (Door& door : doors_) {
    if (&door.watch != ready) continue;
    accept_some(door);
    if (!rests_ && !stopped_) watch(&door);
  }
}

void Acceptor::accept_some(const Door& door) {
  for (uint32_t count = 0; count < kAcceptsPerTurn; ++count) {
    Socket socket = accept_from(*door.listener);
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) rest();
      return;
    }
    if (!node_->take_connection_room()) {
      shard_->statistics().connections_refused.add();
      refuse_busy(socket);
      continue;
    }
    bool is_tcp = door.transport == Transport::Tcp;
    deal(std::move(socket), is_tcp ? meet_tcp(socket) : meet_unix(socket, node_->unix_path()));
  }
}

// Each to the next shard.
void Acceptor::deal(Socket socket, Peer peer) {
  Counter& accepted = shard_->statistics().connections_accepted;
  uint32_t target = static_cast<uint32_t>(accepted.value()) % node_->shard_count();
  accepted.add();
  if (target == shard_->index()) {
    shard_->adopt(std::move(socket), std::move(peer));
    return;
  }
  auto shared = std::make_shared<Socket>(std::move(socket));
  node_->shard(target).post(
      [shared, peer](Shard& shard) { shard.adopt(std::move(*shared), peer); });
}

void Acceptor::watch(Door* door) noexcept {
  shard_->reactor().watch(&door->watch, Input::Ready, false);
}

// Descriptors have run out, and who waits to be accepted keeps a listener ready: all are left alone
// until the next tick.
void Acceptor::rest() noexcept {
  rests_ = true;
  for (Door& door : doors_) shard_->reactor().remove(&door.watch);
}

void Acceptor::resume() noexcept {
  if (!std::exchange(rests_, false) || stopped_) return;
  for (Door& door : doors_) watch(&door);
}

void Acceptor::stop() noexcept {
  stopped_ = true;
  for (Door& door : doors_) shard_->reactor().remove(&door.watch);
}

}  // namespace kvstrata
