// Counters of a shard: one writer, its thread; any reader. Sums are made when somebody asks.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "store/native/resp_errors.h"
#include "store/resp_command_id.h"

namespace kvstrata {

// A counter with a single writer: no locked instruction, no torn read.
class Counter {
 public:
  void add(uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void set(uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Latencies by powers of two of a microsecond: bucket i counts those below 2^i us, the last one the
// rest.
class LatencyHistogram {
 public:
  static constexpr uint32_t kBucketCount = 24;
  void add(uint64_t nanoseconds) noexcept {
    auto bucket = static_cast<uint32_t>(std::bit_width(nanoseconds / 1000));
    buckets_[bucket < kBucketCount ? bucket : kBucketCount - 1].add();
    sum_ns_.add(nanoseconds);
  }
  uint64_t bucket(uint32_t index) const noexcept { return buckets_[index].value(); }
  uint64_t sum_ns() const noexcept { return sum_ns_.value(); }

 private:
  std::array<Counter, kBucketCount> buckets_;
  Counter sum_ns_;
};

// Per pool and shard.
struct PoolStatistics {
  Counter objects;           // Gauge.
  Counter bytes;             // Gauge: cells and extents of the live objects.
  Counter objects_expiring;  // Gauge, refreshed with the shard's.
  Counter gets, get_hits, get_bytes;
  Counter misses_absent, misses_expired, misses_evicted;
  Counter exists_checks, exists_hits;
  Counter puts, put_bytes, put_refusals;
  Counter deletes, evictions, evicted_bytes, expirations, corruptions;
  Counter retained_objects, retained_bytes, retained_bytes_hard;  // Gauges.
  Counter retains, retain_refusals;
  Counter retained_evictions;  // Of the evictions, those of softly retained objects.
};

// Of one command of Valkey clients.
struct RespCommandCounters {
  Counter calls;
  Counter failed;    // Answered with an error, of those carried out.
  Counter rejected;  // Before they were carried out.
  LatencyHistogram latency;
};

// Operations whose latency is kept, in the order of the histograms.
enum class LatencyKind : uint8_t { Read, Write, Lookup, Change, Scan, Admin };
constexpr uint32_t kLatencyKindCount = 6;

struct ShardStatistics {
  Counter connections_accepted, connections_refused;
  // Gauges; the others count some of the first.
  Counter connections_open, connections_open_unix, connections_open_shm;
  Counter connections_dropped_slow, connections_dropped_protocol, connections_dropped_budget;
  Counter commands, hops, received_bytes, sent_bytes;
  Counter copied_bytes;  // Between the arena and regions of clients.
  Counter memory_waits;  // Puts that had to wait for room.
  Counter loop_turns;
  Counter loop_stalls;  // Turns longer than 200 us of the thread's own time.
  Counter loop_turn_ns_max;
  Counter index_bytes, cell_bytes, extent_bytes, held_bytes, bookkeeping_bytes;  // Gauges.
  Counter reserved_bytes;  // Gauge: of writes under way.
  std::array<LatencyHistogram, kLatencyKindCount> latency;
  std::array<RespCommandCounters, kRespCommandCount + 1> resp_commands;  // By number.
  RespErrors resp_errors;
};

}  // namespace kvstrata
