// The objects of one shard: pools' indexes over records and chunks in the shard's memory. Knows
// nothing of connections.
//
// An object is written in two steps: `reserve` takes memory for an open record, which the caller
// fills, `commit` makes it visible, whole, in place of whatever the key named before. From the one
// to the object's end its memory is charged to the pool. Readers take references on extents, so
// nothing they read is reused under them. Not thread-safe: it belongs to its shard's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/native/index.h"
#include "store/native/index_memory.h"
#include "store/native/pool.h"
#include "store/native/record.h"
#include "store/native/retention_table.h"
#include "store/native/statistics.h"
#include "tiering/native/eviction.h"
#include "tiering/native/shard_memory.h"
#include "transport/native/capsule.h"

namespace kvstrata {

class Partition;

// Keys evicted lately, so that a miss can say why. A small direct-mapped table of fingerprints:
// newer ones overwrite older ones.
class EvictedKeys {
 public:
  void remember(uint64_t hash) noexcept;
  bool contains(uint64_t hash) const noexcept;

 private:
  static constexpr uint32_t kSlotCount = 16'384;
  std::unique_ptr<uint32_t[]> fingerprints_;
};

struct WriteRequest {
  Bytes key;
  Bytes attributes;
  uint64_t hash = 0;
  uint64_t value_length = 0;
  uint64_t ttl_ms = 0;
  bool if_absent = false;
};

struct CommitOutcome {
  Status status = Status::Ok;
  WriteResult result = WriteResult::Nothing;
  uint64_t value_length = 0;
  uint64_t version = 0;
};

class ObjectStore final : public RecordResolver {
 public:
  ObjectStore(SegmentPool* segments, uint64_t hash_seed, uint32_t shard_count,
              ShardStatistics* statistics);
  ~ObjectStore() override;

  // Pools. Dropping one lets go of its objects bit by bit (see `maintain`). The last reference to
  // `usage` goes with its last object and open record; until then the statistics must live, and no
  // other pool may be set at its place.
  void set_pool(PoolId id, const PoolSettings& settings, std::shared_ptr<PoolUsage> usage,
                PoolStatistics* statistics);
  void drop_pool(PoolId id);
  // Null for a pool that was dropped, whatever came to its place.
  Partition* partition(PoolId id) noexcept;

  void set_clock(uint64_t now_ms) noexcept { now_ms_ = now_ms; }
  uint64_t now_ms() const noexcept { return now_ms_; }
  uint64_t hash(Bytes key) const noexcept;
  RecordView view(Location location) const noexcept { return RecordView(memory_.at(location)); }
  std::byte* at(ArenaOffset offset) const noexcept { return memory_.at(offset); }

  // The live record of a key, or 0. `read` and `exists` count hits, and misses with their reasons,
  // and tell the eviction policy.
  Location read(Partition& partition, uint64_t hash, Bytes key) noexcept;
  bool exists(Partition& partition, uint64_t hash, Bytes key) noexcept;
  Location find(Partition& partition, uint64_t hash, Bytes key) noexcept;
  // Brings what looking these up will touch into the cache, the misses all at once.
  static constexpr size_t kPrefetchCount = 64;
  void prefetch(const Partition& partition, std::span<const uint64_t> hashes) const noexcept;

  // True if chunk `index` of a record matches its checksum; a mismatch drops the object.
  bool chunk_is_sound(Partition& partition, Location location, uint32_t index) noexcept;

  void retain(const Extent& extent) noexcept;
  void release(const Extent& extent) noexcept;

  // Takes memory for an open record. Returns Ok; Exists or Immutable (the key is there and may not
  // be replaced; `outcome` tells its size); TooLarge; NoSpace (nothing may be evicted); Busy: room
  // is being made, or transfers under way hold it: call again with the same *location after
  // `make_progress`. Whatever it returns, a *location that is not 0 is the caller's to commit or
  // abort.
  Status reserve(Partition& partition, const WriteRequest& request, Location* location,
                 CommitOutcome* outcome);
  // The memory of piece `index` (the chunk's, or the inline value) of an open record.
  MutableBytes piece(Location location, uint32_t index) const noexcept;
  void set_checksum(Location location, uint32_t index, uint64_t checksum) noexcept;
  CommitOutcome commit(Partition& partition, Location location, uint64_t hash, bool if_absent);
  void abort(Location location) noexcept;
  // A whole value that fits inside a record, in one step: it replaces `present`, the key's live
  // record or 0, as `find` told just before. Returns as `reserve` does; Ok: it is there.
  Status put_small(Partition& partition, const WriteRequest& request, Location present, Bytes value,
                   Location* location, CommitOutcome* outcome);

  // Append: the open record shares the present one's whole chunks and holds a copy of its ragged
  // tail; the caller fills from byte `at` on. `commit_append` fails with Mismatch if the object
  // changed meanwhile.
  Status reserve_append(Partition& partition, const WriteRequest& request, uint64_t at,
                        Location* location, CommitOutcome* outcome);
  CommitOutcome commit_append(Partition& partition, Location location, uint64_t hash, uint64_t at);

  bool remove(Partition& partition, uint64_t hash, Bytes key) noexcept;
  // Removes every object of the pool on this shard at once for whoever looks; their memory comes
  // back bit by bit (see `maintain`).
  void flush(Partition& partition) noexcept;
  // Versions only grow; the next write's is this one. Whether an object of this version or a later
  // one has gone since, of the key or, hardly ever, of another.
  uint64_t next_version() const noexcept { return next_version_; }
  bool has_removed(uint64_t hash, uint64_t version) const noexcept {
    return removed_versions_[hash % kRemovedSlotCount] >= version;
  }
  // As if the same value had been written again.
  void renew(Location location) noexcept { view(location).header().version = next_version_++; }
  // Of the index: expired, or flushed; it is as good as removed.
  bool is_gone(const Partition& partition, Location location) const noexcept;
  // Objects in the pool on this shard, those included that have expired unnoticed.
  uint64_t object_count(const Partition& partition) const noexcept;
  // What an object takes of the arena.
  uint64_t memory_of(Location location) const noexcept;
  // `ttl_ms` from now, kTtlNever for none. Ok, NotFound; NoSpace, Busy (the record had to grow).
  Status expire(Partition& partition, uint64_t hash, Bytes key, uint64_t ttl_ms) noexcept;

  // Retentions: see retention.cc. Keeps the key's object from eviction for so long by one more
  // claim of the retention `*number`, or of a new one if that is 0 or differs in its end or kind.
  // Ok; NotFound; Busy (the pool's retentions are at their bounds); TooLarge (hard, and larger than
  // all that the pool may retain so).
  Status retain_object(Partition& partition, uint64_t hash, Bytes key, uint64_t ttl_ms,
                       bool is_hard, uint64_t* number) noexcept;
  // Ok; NotFound: there is no such retention, or it has ended.
  Status extend_retention(Partition& partition, uint64_t number, bool is_hard,
                          uint64_t ttl_ms) noexcept;
  Status release_retention(Partition& partition, uint64_t number, bool is_hard) noexcept;
  // Where the retentions of all pools get their numbers.
  uint64_t* next_retention() noexcept { return &next_retention_; }

  // The largest value that could ever be held.
  uint64_t value_bytes_max() const noexcept;
  uint64_t reserved_bytes() const noexcept { return reserved_bytes_; }

  // Grows with every record evicted or looked at by a drain: whether waiting writes get anywhere.
  uint64_t reclaim_count() const noexcept { return reclaim_count_; }

  // One bounded step of making room for who waits. False when there is nothing left to evict or
  // drain.
  bool make_progress() noexcept;
  // Bounded background work of a loop turn: expiry, head-room, dropped pools, segments other shards
  // want. True if more is due at once.
  bool maintain() noexcept;
  bool has_expiring() const noexcept { return expiring_count_ != 0; }
  void publish_gauges() noexcept;

  // RecordResolver.
  std::span<const std::byte> key_at(Location location) const noexcept override;
  uint64_t hash_at(Location location) const noexcept override;
  void prefetch(Location location) const noexcept override;

 private:
  friend class Partition;

  static constexpr uint32_t kRemovedSlotCount = 1024;
  // Owner of extents whose record has gone: readers, or an append that will fail, hold them.
  static constexpr uint64_t kNobody = 1;

  // Bytes that can be free, at most: once all is evicted that can be now, and once the transfers
  // under way have ended as well.
  struct Reach {
    uint64_t now_bytes;
    uint64_t later_bytes;
  };

  Status reserve_room(Partition& partition, const WriteRequest& request, Location* location);
  bool overwrite(Partition& partition, const WriteRequest& request, Location present, Bytes value,
                 CommitOutcome* outcome) noexcept;
  void set_expiry(Partition& partition, Location location, uint64_t expiry_ms) noexcept;
  Status check_size(const Partition& partition, const RecordShape& shape) const noexcept;
  Status open_record(Partition& partition, RecordShape shape, const WriteRequest& request,
                     uint32_t shared_count, Location* location);
  Status open_append(Partition& partition, const WriteRequest& request, Location present,
                     Location* location);
  Location find_again(Partition& partition, const WriteRequest& request,
                      CommitOutcome* outcome) noexcept;
  Status allocate(uint64_t bytes, bool as_extent, uint64_t owner, ArenaOffset* offset);
  Status allocate_chunks(Location location);
  Status allocate_chunks_or_close(Location* location);
  Status make_room(uint64_t bytes, uint32_t* attempt) noexcept;
  Status make_room_for_chunks(const RecordView& record) noexcept;
  CommitOutcome publish(Partition& partition, Location location, uint64_t hash, Location present,
                        WriteResult result);
  Partition& writing_partition(Location location) noexcept;
  uint64_t charge_of(Location location) const noexcept;
  void close_reservation(Partition& partition, Location location) noexcept;
  void share_whole_chunks(Location from, Location to) noexcept;
  Status copy_ragged_tail(Partition& partition, Location from, Location to) noexcept;
  Status widen_with_expiry(Partition& partition, uint64_t hash, Bytes key,
                           Location* location) noexcept;
  void remove_gone(Partition& partition, uint64_t hash, Location location) noexcept;
  void disown_chunks(Location location) noexcept;
  void free_chunks(Location location) noexcept;
  void free_record(Location location) noexcept;
  void link(Partition& partition, uint64_t hash, Location location) noexcept;
  void unlink(Partition& partition, uint64_t hash, Location location) noexcept;
  void replace(Partition& partition, uint64_t hash, Location present, Location location,
               uint64_t kept_bytes) noexcept;
  void take_out(Partition& partition, Location location, uint64_t kept_bytes) noexcept;
  uint64_t expiry_for(const Partition& partition, uint64_t ttl_ms) const noexcept;

  // quota.cc
  bool over_quota(const Partition& partition, uint64_t more_bytes) const noexcept;
  Status charge(Partition& partition, uint64_t bytes) noexcept;
  Status make_room_in(Partition& partition, uint64_t bytes) noexcept;
  bool keep_to_quotas() noexcept;

  // retention.cc
  uint64_t hard_bytes_max(const Partition& partition) const noexcept;
  Status claim(Partition& partition, Location location, uint64_t end_ms, bool is_hard,
               uint64_t* number) noexcept;
  bool end_retentions() noexcept;
  void end_claims(Partition& partition, const RetentionTable::Retention& ended) noexcept;
  void end_retaining(Partition& partition, Location location) noexcept;
  void set_aside(Partition& partition, Location location, uint32_t index) noexcept;
  uint32_t put_back(Partition& partition, Location location) noexcept;
  Location next_victim(Partition& partition) noexcept;
  bool may_evict(const Partition& partition, Location location) const noexcept;

  // reclaim.cc
  void note_room_found() noexcept;
  void note_freed(uint64_t bytes) noexcept;
  Reach reach() const noexcept;
  Status shortage() const noexcept;
  bool evict_one(Partition& partition) noexcept;
  void evict(Partition& partition, Location victim) noexcept;
  Partition* partition_to_evict() noexcept;
  bool begin_drain(bool evictable) noexcept;
  void start_drain(SegmentId segment) noexcept;
  bool ask_others() noexcept;
  bool drain_step() noexcept;
  void drain_resident(const ShardMemory::Resident& resident) noexcept;
  bool move_record(Partition& partition, Location location) noexcept;
  bool move_chunk(Location record, const Extent& extent) noexcept;
  bool is_movable(Location location) const noexcept;
  bool give_back_wanted() noexcept;
  bool keep_head_room() noexcept;
  bool expire_step() noexcept;
  bool flush_step() noexcept;
  bool drop_step() noexcept;

  uint64_t hash_seed_;
  uint32_t shard_count_;
  uint64_t now_ms_ = 0;
  uint64_t next_version_ = 1;
  std::array<uint64_t, kRemovedSlotCount> removed_versions_{};  // The last of each, by hash.
  uint64_t expiring_count_ = 0;
  uint64_t reserved_bytes_ = 0;  // Charged for open records, of all pools.
  SegmentPool* segments_;
  ShardMemory memory_;
  IndexMemory index_memory_;
  ShardStatistics* statistics_;
  std::vector<std::unique_ptr<Partition>> partitions_;  // By the pools' places.
  std::vector<std::unique_ptr<Partition>> dropped_;     // While they have objects or open records.
  uint32_t expire_turn_ = 0;
  uint64_t flushed_count_ = 0;  // In the indexes of all pools, to be removed.
  uint64_t claim_count_ = 0;    // Of retentions, in the tables of all pools.
  uint64_t next_retention_ = 0;

  // Making room for an allocation that failed; see reclaim.cc.
  uint64_t needed_bytes_ = 0;
  uint64_t evicted_bytes_ = 0;  // Since room was last found.
  uint64_t freed_bytes_ = 0;    // Since drains were last worth while.
  uint64_t reclaim_count_ = 0;
  uint32_t fruitless_drains_ = 0;
  uint32_t wanted_segments_ = 0;  // Asked of the other shards.
  SegmentId draining_ = kNoSegment;
  uint64_t drain_position_ = 0;
  uint64_t held_before_drain_ = 0;
  uint64_t moved_bytes_ = 0;   // By drains, ever.
  uint64_t ask_again_ms_ = 0;  // Until then the others are given time, or left in peace.
};

}  // namespace kvstrata
