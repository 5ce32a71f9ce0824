// What is shown of a connection: collected on its shard, when somebody asks.
#pragma once

#include <cstdint>
#include <string>

#include "store/native/peer.h"

namespace kvstrata {

struct ConnectionReport {
  uint64_t client_id = 0;
  uint32_t shard = 0;
  int fd = -1;
  Peer peer;
  std::string local;
  std::string pool;
  bool speaks_resp = false;
  uint64_t age_ms = 0;
  uint64_t idle_ms = 0;
  uint64_t input_bytes = 0;
  uint64_t input_capacity = 0;
  uint64_t output_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  uint64_t commands = 0;
  // Of Valkey clients.
  std::string name;
  std::string library_name;
  std::string library_version;
  std::string last_command;
  uint32_t resp_version = 0;
  int32_t multi_count = -1;  // Commands that wait for EXEC; -1 without MULTI.
  uint32_t watch_count = 0;
  bool no_evict = false;
  bool no_touch = false;
  bool replies_off = false;
};

}  // namespace kvstrata
