// An object store on memory of its own, and the steps of a write and a read as a session takes
// them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/native/object_store.h"
#include "store/native/partition.h"
#include "tests/native/tiering/test_pool.h"
#include "transport/native/checksum.h"

namespace kvstrata {

using Value = std::vector<std::byte>;

inline Value make_value(size_t length, uint64_t seed) {
  Value value(length);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (std::byte& each : value) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    each = static_cast<std::byte>(state >> 56);
  }
  return value;
}

struct PutOptions {
  uint64_t ttl_ms = 0;
  bool if_absent = false;
  Bytes attributes = {};
};

// A write that was begun and is neither committed nor aborted.
struct OpenWrite {
  std::string key;
  Value value;
  uint64_t at = 0;  // Where the value begins in the object.
  bool appends = false;
  bool if_absent = false;
  Location location = 0;
};

class StoreFixture {
 public:
  explicit StoreFixture(uint64_t memory_bytes) : StoreFixture(make_pool(memory_bytes), 1) {}
  // One of several shards that share `memory`.
  StoreFixture(std::shared_ptr<SegmentPool> memory, uint32_t shard_count)
      : segments(std::move(memory)), store(segments.get(), 7, shard_count, &statistics) {
    store.set_clock(1'000'000);
  }

  Partition& add_pool(PoolId id, EvictionKind eviction, uint64_t quota_bytes = 0,
                      bool immutable = false, std::shared_ptr<PoolUsage> shared_usage = nullptr) {
    PoolSettings settings;
    settings.name = std::to_string(id);
    settings.eviction = eviction;
    settings.quota_bytes = quota_bytes;
    settings.immutable = immutable;
    auto& books = pools[id];
    if (books == nullptr) books = std::make_unique<Books>();
    if (shared_usage != nullptr) books->usage = shared_usage;
    store.set_pool(id, settings, books->usage, &books->statistics);
    return *store.partition(id);
  }

  uint64_t hash(std::string_view key) const { return store.hash(as_bytes(key)); }

  // Reserves once.
  Status reserve(Partition& partition, OpenWrite* write, const PutOptions& options = {}) {
    WriteRequest request{as_bytes(write->key), options.attributes, hash(write->key),
                         write->value.size(),  options.ttl_ms,     options.if_absent};
    write->if_absent = options.if_absent;
    refused = {};
    return write->appends
               ? store.reserve_append(partition, request, write->at, &write->location, &refused)
               : store.reserve(partition, request, &write->location, &refused);
  }

  // Reserves, making room as the shard does. Never Busy: a wait without end is a failure.
  Status open(Partition& partition, OpenWrite* write, const PutOptions& options = {}) {
    Status status = Status::Busy;
    for (busy_count = 0; status == Status::Busy && busy_count < 20'000; ++busy_count) {
      if (busy_count != 0 && while_busy) while_busy();
      status = reserve(partition, write, options);
    }
    REQUIRE(status != Status::Busy);
    if (status != Status::Ok && write->location != 0) {
      store.abort(write->location);
      write->location = 0;
    }
    return status;
  }

  void fill(const OpenWrite& write) {
    for (uint64_t done = 0; done < write.value.size();) {
      uint64_t at = write.at + done;
      auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
      MutableBytes target = store.piece(write.location, index).subspan(at % limits::kChunkBytes);
      uint64_t count = std::min<uint64_t>(target.size(), write.value.size() - done);
      Bytes source = Bytes(write.value).subspan(done, count);
      std::ranges::copy(source, target.begin());
      store.set_checksum(write.location, index, chunk_checksum(source));
      done += count;
    }
  }

  CommitOutcome commit(Partition& partition, OpenWrite* write) {
    fill(*write);
    Location location = std::exchange(write->location, 0);
    return write->appends ? store.commit_append(partition, location, hash(write->key), write->at)
                          : store.commit(partition, location, hash(write->key), write->if_absent);
  }

  CommitOutcome put(Partition& partition, const std::string& key, const Value& value,
                    const PutOptions& options = {}) {
    OpenWrite write{.key = key, .value = value};
    Status status = open(partition, &write, options);
    if (status != Status::Ok) return {status, WriteResult::Nothing, 0, 0};
    return commit(partition, &write);
  }

  CommitOutcome append(Partition& partition, const std::string& key, const Value& value,
                       uint64_t at) {
    OpenWrite write{.key = key, .value = value, .at = at, .appends = true};
    Status status = open(partition, &write);
    if (status != Status::Ok) {
      return {status, WriteResult::Nothing, refused.value_length, refused.version};
    }
    return commit(partition, &write);
  }

  // Every chunk is checked against the checksum that is kept with it.
  std::optional<Value> get(Partition& partition, const std::string& key) {
    Location location = store.read(partition, hash(key), as_bytes(key));
    if (location == 0) return std::nullopt;
    RecordView record = store.view(location);
    Value value;
    for (uint32_t index = 0; index < record.chunk_count(); ++index) {
      Bytes piece = store.piece(location, index);
      REQUIRE(chunk_checksum(piece) == record.checksum(index));
      value.insert(value.end(), piece.begin(), piece.end());
    }
    REQUIRE(value.size() == record.value_length());
    return value;
  }

  bool remove(Partition& partition, const std::string& key) {
    return store.remove(partition, hash(key), as_bytes(key));
  }

  uint64_t used_bytes() {
    store.publish_gauges();
    return statistics.cell_bytes.value() + statistics.extent_bytes.value();
  }
  uint64_t pool_bytes() const {
    uint64_t sum = 0;
    for (const auto& [id, books] : pools) sum += books->statistics.bytes.value();
    return sum;
  }

  // What is charged to the pools is their objects and the writes under way. Not for pools that are
  // shared with other shards.
  void check_charges() const {
    uint64_t charged_bytes = 0;
    for (const auto& [id, books] : pools) charged_bytes += books->usage->bytes.load();
    REQUIRE(charged_bytes == pool_bytes() + store.reserved_bytes());
  }

  // With nothing stored, open or read, every byte is back.
  void check_empty() {
    check_charges();
    for (const auto& [id, books] : pools) {
      CHECK(books->statistics.objects.value() == 0);
      CHECK(books->statistics.bytes.value() == 0);
    }
    CHECK(used_bytes() == 0);
    CHECK(store.reserved_bytes() == 0);
    CHECK(statistics.held_bytes.value() <= segments->segment_bytes());
    CHECK(segments->free_count() * segments->segment_bytes() + statistics.held_bytes.value() ==
          segments->segment_count() * segments->segment_bytes());
  }

  struct Books {
    std::shared_ptr<PoolUsage> usage = std::make_shared<PoolUsage>();
    PoolStatistics statistics;
  };
  std::shared_ptr<SegmentPool> segments;
  ShardStatistics statistics;
  std::map<PoolId, std::unique_ptr<Books>> pools;
  ObjectStore store;
  CommitOutcome refused;             // What the last `open` told about the object in the way.
  std::function<void()> while_busy;  // What others do while a write waits.
  uint32_t busy_count = 0;
};

}  // namespace kvstrata
