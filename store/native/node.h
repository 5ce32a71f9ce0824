// A node: its memory, pools, shards and listeners. Every public function may be called from any
// thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/native/admin_queue.h"
#include "store/native/connection_report.h"
#include "store/native/copier.h"
#include "store/native/pool.h"
#include "store/native/resp_journal.h"
#include "store/native/statistics.h"
#include "tiering/native/segment_pool.h"
#include "transport/native/hello.h"
#include "transport/native/reactor.h"
#include "transport/native/socket.h"
#include "transport/native/unix_socket.h"

namespace kvstrata {

class Shard;

struct NodeOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  uint32_t shard_count = 1;
  uint64_t memory_bytes = 0;
  bool populate_full = false;
  HugePages huge_pages = HugePages::Auto;
  uint32_t spin_us = 0;
  ReactorKind reactor = ReactorKind::Epoll;
  uint32_t credits = 0;
  uint32_t connection_count_max = 0;
  uint64_t connection_bytes_max =
      0;  // Output a connection may have pending before it is read from no more.
  uint64_t buffer_bytes_max = 0;  // Input of all connections that is not yet a whole capsule.
  uint64_t minimum_rate = 0;      // Bytes per second of a peer that holds memory.
  uint64_t stall_ms_max = 0;  // How long the rate is looked at; also for hellos and half capsules.
};

class Node {
 public:
  // Null on failure; `error` says why.
  static std::unique_ptr<Node> create(const NodeOptions& options, std::string* error);
  ~Node();

  uint16_t port() const noexcept { return port_; }
  const NodeId& node_id() const noexcept { return node_id_; }

  // Before the start: is reached under this path as well. An empty text, or why not.
  std::string listen_unix(const std::string& path);
  const std::string& unix_path() const noexcept { return unix_listener_.path(); }
  void start();
  // Sessions with work left get `timeout_ms`; false if some were cut off.
  bool stop(uint64_t timeout_ms);

  // Creates a pool or changes what may change. An empty text, or why not.
  std::string set_pool(const PoolSettings& settings);
  std::string drop_pool(const std::string& name);

  struct PoolReport {
    PoolSettings settings;
    std::vector<std::shared_ptr<const PoolStatistics>> by_shard;
  };
  std::vector<PoolReport> pools() const;
  std::vector<const ShardStatistics*> shards() const;
  SegmentPoolStatistics memory() const { return segments_->statistics(); }
  uint64_t buffered_bytes() const noexcept {
    return buffered_bytes_.load(std::memory_order_relaxed);
  }
  AdminQueue& admin() noexcept { return admin_; }
  // Of Valkey clients' commands.
  RespJournal& resp_journal() noexcept { return resp_journal_; }
  const RespJournal& resp_journal() const noexcept { return resp_journal_; }
  // What the shards tell within a second; a shard that does not is left out.
  std::vector<ConnectionReport> connections();
  // Closes those connections; how many there were.
  uint64_t kill_connections(const std::vector<uint64_t>& client_ids);
  void complete_admin(const AdminCall& call, Status status, std::vector<std::byte> payload);

  // For shards and sessions.
  uint32_t shard_count() const noexcept { return options_.shard_count; }
  Shard& shard(uint32_t index) noexcept { return *shards_[index]; }
  const Socket& listener() const noexcept { return listener_; }
  const UnixListener& unix_listener() const noexcept { return unix_listener_; }
  SegmentPool* segments() noexcept { return segments_.get(); }
  uint64_t hash_seed() const noexcept { return hash_seed_; }
  const NodeOptions& options() const noexcept { return options_; }
  uint32_t credits() const noexcept { return options_.credits; }
  uint64_t connection_bytes_max() const noexcept { return options_.connection_bytes_max; }
  uint64_t minimum_rate() const noexcept { return options_.minimum_rate; }
  uint64_t stall_ms_max() const noexcept { return options_.stall_ms_max; }

  uint64_t next_client_id() noexcept {
    return client_ids_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  Status authenticate(const std::string& pool, const std::string& secret, PoolId* id,
                      uint32_t* rights, std::string* message) const;
  bool pool_is_immutable(PoolId id) const;
  // Counts one connection more; false if there are as many as may be.
  bool take_connection_room() noexcept {
    if (connection_count_.fetch_add(1, std::memory_order_relaxed) < options_.connection_count_max) {
      return true;
    }
    remove_connection();
    return false;
  }
  void remove_connection() noexcept { connection_count_.fetch_sub(1, std::memory_order_relaxed); }
  // An input buffer has grown or shrunk; false when all of them are over the budget.
  bool rebuffer(uint64_t old_bytes, uint64_t new_bytes) noexcept;
  Copiers& copiers() noexcept { return *copiers_; }
  // A client's memory is mapped; false when all of it would be more than this machine has.
  bool take_region_room(uint64_t bytes) noexcept;
  void give_back_region_room(uint64_t bytes) noexcept {
    region_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  uint64_t region_bytes() const noexcept { return region_bytes_.load(std::memory_order_relaxed); }
  void unbuffer(uint64_t bytes) noexcept {
    buffered_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  // Stopping: shards report when they have nothing left to do for their own connections.
  void shard_drained() noexcept { drained_count_.fetch_add(1); }
  bool all_drained() const noexcept { return drained_count_.load() == options_.shard_count; }

 private:
  explicit Node(const NodeOptions& options);
  template <typename Answer, typename Ask>
  std::vector<Answer> ask_shards(Ask ask);

  // Shared with every shard until that has let go of the pool's last object.
  struct Pool {
    PoolId id = 0;
    PoolSettings settings;
    bool dropped = false;
    PoolUsage usage;
    std::vector<std::unique_ptr<PoolStatistics>> by_shard;
  };
  // Null if there is none.
  std::shared_ptr<Pool> find_pool(const std::string& name) const noexcept;
  std::shared_ptr<Pool> add_pool();

  NodeOptions options_;
  NodeId node_id_{};
  uint64_t hash_seed_ = 0;
  uint16_t port_ = 0;
  Socket listener_;
  UnixListener unix_listener_;
  std::unique_ptr<SegmentPool> segments_;
  mutable std::mutex pools_mutex_;
  std::vector<std::shared_ptr<Pool>> pools_;  // By place; see PoolId.
  std::vector<std::unique_ptr<Shard>> shards_;
  AdminQueue admin_;
  RespJournal resp_journal_;
  std::atomic<uint64_t> client_ids_{0};
  std::atomic<uint32_t> connection_count_{0};
  std::atomic<uint64_t> buffered_bytes_{0};
  uint64_t region_bytes_max_;
  std::atomic<uint64_t> region_bytes_{0};
  std::atomic<uint32_t> drained_count_{0};
  bool started_ = false;
  std::unique_ptr<Copiers> copiers_;  // What they let go of counts with the node.
};

}  // namespace kvstrata
