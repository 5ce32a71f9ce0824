// Parts of a Valkey client's connection that few of them need: a value that streams in, a
// transaction; and what kind of thing each command is.
#pragma once

#include "store/native/resp_protocol.h"

namespace kvstrata {

// Calls on their way, for one connection; further commands wait in its input.
constexpr uint32_t kRespCallsMax = 1024;

struct RespProtocol::Stream {
  RespCall* call = nullptr;
  IncomingValue value;
  uint32_t owner = 0;
  bool waits = false;       // For memory.
  bool is_dropped = false;  // There is none: the bytes go nowhere.
};

struct RespProtocol::Transaction {
  RespCall* call = nullptr;  // Its parts are the commands that wait.
  bool is_open = false;      // After MULTI.
  bool is_broken = false;    // EXEC will refuse.
  bool has_slot = false;     // Of the commands' keys,
  bool has_slots = false;    // or several: EXEC will refuse.
  uint16_t slot = 0;
  bool has_shard = false;  // Of these keys and those that are watched.
  uint32_t shard = 0;
  std::vector<RespWatch> watches;
};

// Who carries a command out.
enum class RespRoute : uint8_t {
  Keyed,           // The owners of its keys.
  Connection,      // The connection's shard, at once.
  Python,          // The administrative desk.
  SumOfShards,     // Every shard: the sum,
  AllShards,       // OK,
  ArraysOfShards,  // all elements,
  AnyShard,        // or one reply.
  Scan,            // The shard that the cursor names.
  Slot,            // The shard of the slot that is an argument.
};

// Of commands about connections: which the connection's shard cannot answer by itself.
constexpr bool concerns_all(RespCommandId id) noexcept {
  return id == RespCommandId::ClientInfo || id == RespCommandId::ClientList ||
         id == RespCommandId::ClientKill || id == RespCommandId::CommandList;
}

constexpr RespRoute route_of_single(RespCommandId id) noexcept {
  switch (id) {
    case RespCommandId::Dbsize:
      return RespRoute::SumOfShards;
    case RespCommandId::Flushdb:
    case RespCommandId::Flushall:
      return RespRoute::AllShards;
    case RespCommandId::Keys:
      return RespRoute::ArraysOfShards;
    case RespCommandId::Randomkey:
      return RespRoute::AnyShard;
    case RespCommandId::Scan:
      return RespRoute::Scan;
    case RespCommandId::Info:
    case RespCommandId::Wait:
      return RespRoute::Python;
    case RespCommandId::Hello:
    case RespCommandId::Auth:
    case RespCommandId::Select:
    case RespCommandId::Quit:
    case RespCommandId::Reset:
    case RespCommandId::Command:
    case RespCommandId::Multi:
    case RespCommandId::Exec:
    case RespCommandId::Discard:
    case RespCommandId::Watch:
    case RespCommandId::Unwatch:
    case RespCommandId::Asking:
    case RespCommandId::Readonly:
    case RespCommandId::Readwrite:
      return RespRoute::Connection;
    default:
      return RespRoute::Keyed;
  }
}

constexpr RespRoute route_of(const RespCommand& command) noexcept {
  switch (command.container) {
    case RespCommandId::None:
      return route_of_single(command.id);
    case RespCommandId::Client:
    case RespCommandId::Command:
      return concerns_all(command.id) ? RespRoute::Python : RespRoute::Connection;
    case RespCommandId::Cluster:
      if (command.id == RespCommandId::ClusterKeyslot) return RespRoute::Connection;
      return command.id == RespCommandId::ClusterCountkeysinslot ||
                     command.id == RespCommandId::ClusterGetkeysinslot
                 ? RespRoute::Slot
                 : RespRoute::Python;
    case RespCommandId::Memory:
    case RespCommandId::Object:
      return RespRoute::Keyed;
    default:
      return RespRoute::Python;
  }
}

// Within a transaction, that is.
constexpr bool acts_at_once(RespCommandId id) noexcept {
  return id == RespCommandId::Exec || id == RespCommandId::Discard || id == RespCommandId::Quit ||
         id == RespCommandId::Reset;
}

// Not those that change what its other commands mean, nor those that other shards take part in.
constexpr bool fits_transaction(const RespCommand& command) noexcept {
  RespRoute route = route_of(command);
  bool changes_rest = command.id == RespCommandId::Hello || command.id == RespCommandId::Auth;
  return route == RespRoute::Keyed || (route == RespRoute::Connection && !changes_rest);
}

// Why a command cannot be part of one.
std::string not_in_transaction(const RespCommand& command);

constexpr bool has_subcommands(RespCommandId id) noexcept {
  switch (id) {
    case RespCommandId::Client:
    case RespCommandId::Command:
    case RespCommandId::Config:
    case RespCommandId::Acl:
    case RespCommandId::Memory:
    case RespCommandId::Object:
    case RespCommandId::Slowlog:
    case RespCommandId::Latency:
    case RespCommandId::Cluster:
      return true;
    default:
      return false;
  }
}

}  // namespace kvstrata
