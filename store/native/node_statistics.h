// Names of the counters, in one table for the binding and whoever else shows them.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "store/native/statistics.h"

namespace kvstrata {

template <typename Owner>
using NamedCounter = std::pair<std::string_view, Counter Owner::*>;

constexpr auto kPoolCounters = std::to_array<NamedCounter<PoolStatistics>>({
    {"objects", &PoolStatistics::objects},
    {"bytes", &PoolStatistics::bytes},
    {"objects_expiring", &PoolStatistics::objects_expiring},
    {"gets", &PoolStatistics::gets},
    {"get_hits", &PoolStatistics::get_hits},
    {"get_bytes", &PoolStatistics::get_bytes},
    {"misses_absent", &PoolStatistics::misses_absent},
    {"misses_expired", &PoolStatistics::misses_expired},
    {"misses_evicted", &PoolStatistics::misses_evicted},
    {"exists_checks", &PoolStatistics::exists_checks},
    {"exists_hits", &PoolStatistics::exists_hits},
    {"puts", &PoolStatistics::puts},
    {"put_bytes", &PoolStatistics::put_bytes},
    {"put_refusals", &PoolStatistics::put_refusals},
    {"deletes", &PoolStatistics::deletes},
    {"evictions", &PoolStatistics::evictions},
    {"evicted_bytes", &PoolStatistics::evicted_bytes},
    {"expirations", &PoolStatistics::expirations},
    {"corruptions", &PoolStatistics::corruptions},
    {"retained_objects", &PoolStatistics::retained_objects},
    {"retained_bytes", &PoolStatistics::retained_bytes},
    {"retained_bytes_hard", &PoolStatistics::retained_bytes_hard},
    {"retains", &PoolStatistics::retains},
    {"retain_refusals", &PoolStatistics::retain_refusals},
    {"retained_evictions", &PoolStatistics::retained_evictions},
});

constexpr auto kShardCounters = std::to_array<NamedCounter<ShardStatistics>>({
    {"connections_accepted", &ShardStatistics::connections_accepted},
    {"connections_refused", &ShardStatistics::connections_refused},
    {"connections_open", &ShardStatistics::connections_open},
    {"connections_open_unix", &ShardStatistics::connections_open_unix},
    {"connections_open_shm", &ShardStatistics::connections_open_shm},
    {"connections_dropped_slow", &ShardStatistics::connections_dropped_slow},
    {"connections_dropped_protocol", &ShardStatistics::connections_dropped_protocol},
    {"connections_dropped_budget", &ShardStatistics::connections_dropped_budget},
    {"commands", &ShardStatistics::commands},
    {"hops", &ShardStatistics::hops},
    {"received_bytes", &ShardStatistics::received_bytes},
    {"copied_bytes", &ShardStatistics::copied_bytes},
    {"sent_bytes", &ShardStatistics::sent_bytes},
    {"memory_waits", &ShardStatistics::memory_waits},
    {"loop_turns", &ShardStatistics::loop_turns},
    {"loop_stalls", &ShardStatistics::loop_stalls},
    {"loop_turn_ns_max", &ShardStatistics::loop_turn_ns_max},
    {"index_bytes", &ShardStatistics::index_bytes},
    {"cell_bytes", &ShardStatistics::cell_bytes},
    {"extent_bytes", &ShardStatistics::extent_bytes},
    {"held_bytes", &ShardStatistics::held_bytes},
    {"bookkeeping_bytes", &ShardStatistics::bookkeeping_bytes},
    {"reserved_bytes", &ShardStatistics::reserved_bytes},
});

constexpr std::array<std::string_view, kLatencyKindCount> kLatencyNames = {
    "read", "write", "lookup", "change", "scan", "admin"};

}  // namespace kvstrata
