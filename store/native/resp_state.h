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

constexpr RespRoute route_of(RespCommandId id) noexcept {
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
    case RespCommandId::ClusterCountkeysinslot:
    case RespCommandId::ClusterGetkeysinslot:
      return RespRoute::Slot;
    case RespCommandId::ClientInfo:
    case RespCommandId::ClientList:
    case RespCommandId::ClientKill:
    case RespCommandId::CommandList:
    case RespCommandId::Wait:
    case RespCommandId::Info:
    case RespCommandId::ConfigGet:
    case RespCommandId::ConfigSet:
    case RespCommandId::AclList:
    case RespCommandId::AclCat:
    case RespCommandId::AclGetuser:
    case RespCommandId::AclWhoami:
    case RespCommandId::SlowlogGet:
    case RespCommandId::SlowlogLen:
    case RespCommandId::SlowlogReset:
    case RespCommandId::LatencyHistogram:
    case RespCommandId::LatencyHistory:
    case RespCommandId::LatencyLatest:
    case RespCommandId::LatencyReset:
    case RespCommandId::ClusterInfo:
    case RespCommandId::ClusterLinks:
    case RespCommandId::ClusterMyid:
    case RespCommandId::ClusterNodes:
    case RespCommandId::ClusterShards:
    case RespCommandId::ClusterSlots:
      return RespRoute::Python;
    case RespCommandId::Hello:
    case RespCommandId::Auth:
    case RespCommandId::Select:
    case RespCommandId::Quit:
    case RespCommandId::Reset:
    case RespCommandId::ClientId:
    case RespCommandId::ClientSetname:
    case RespCommandId::ClientGetname:
    case RespCommandId::ClientSetinfo:
    case RespCommandId::ClientNoEvict:
    case RespCommandId::ClientNoTouch:
    case RespCommandId::ClientReply:
    case RespCommandId::ClientTracking:
    case RespCommandId::Command:
    case RespCommandId::CommandCount:
    case RespCommandId::CommandDocs:
    case RespCommandId::CommandGetkeys:
    case RespCommandId::CommandInfo:
    case RespCommandId::ClusterKeyslot:
    case RespCommandId::Multi:
    case RespCommandId::Exec:
    case RespCommandId::Discard:
    case RespCommandId::Watch:
    case RespCommandId::Unwatch:
      return RespRoute::Connection;
    default:
      return RespRoute::Keyed;
  }
}

// Within a transaction, that is.
constexpr bool acts_at_once(RespCommandId id) noexcept {
  return id == RespCommandId::Exec || id == RespCommandId::Discard || id == RespCommandId::Quit ||
         id == RespCommandId::Reset;
}

// Not those that change what its other commands mean, nor those that other shards take part in.
constexpr bool fits_transaction(RespCommandId id) noexcept {
  RespRoute route = route_of(id);
  return route == RespRoute::Keyed || (route == RespRoute::Connection &&
                                       id != RespCommandId::Hello && id != RespCommandId::Auth);
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
