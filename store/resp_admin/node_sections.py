"""INFO's sections about what the node is and has."""

import os
import platform
import resource
import time
from pathlib import Path
from typing import Final

from kvstrata.store.resp_admin.memory_amount import show_memory
from kvstrata.store.resp_admin.parameters import POLICY_BY_EVICTION
from kvstrata.store.resp_admin.sections import Fields, Readings

# Clients choose what they use by these. The first is what Valkey itself answers to clients that
# know no Valkey; the second is the Valkey whose commands and replies ours are compared with.
_REDIS_VERSION: Final = "7.2.4"
_VALKEY_VERSION: Final = "9.1.0"

_SECONDS_OF_DAY: Final = 86_400


def server(readings: Readings) -> Fields:
    """What runs here, where it listens, since when."""
    state = readings.state
    uptime = int(time.monotonic() - state.started)
    host, port = state.config.host, state.native.port
    return {
        "redis_version": _REDIS_VERSION,
        "server_name": "kvstrata",
        "valkey_version": _VALKEY_VERSION,
        "kvstrata_version": state.version,
        "redis_mode": "cluster",
        "server_mode": "cluster",
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "arch_bits": 64,
        "multiplexing_api": "epoll",
        "process_id": os.getpid(),
        "run_id": state.id_text,
        "tcp_port": port,
        "server_time_usec": time.time_ns() // 1000,
        "uptime_in_seconds": uptime,
        "uptime_in_days": uptime // _SECONDS_OF_DAY,
        "listener0": f"name=tcp,bind={host},port={port}",
    }


def memory(readings: Readings) -> Fields:
    """What is used; to who administers a pool alone, what its objects take."""
    quota = readings.settings["quota"]
    dataset = readings.of_pools("bytes")
    policy = POLICY_BY_EVICTION[readings.settings["eviction"]]
    bound: Fields = {
        "maxmemory": quota,
        "maxmemory_human": show_memory(quota),
        "maxmemory_policy": policy,
    }
    if not readings.of_node:
        return {
            "used_memory": dataset,
            "used_memory_human": show_memory(dataset),
            "used_memory_dataset": dataset,
            **bound,
        }
    index = readings.of_shards("index_bytes") + readings.of_shards("bookkeeping_bytes")
    buffered = readings.memory["buffered_bytes"]
    values = readings.of_shards("cell_bytes") + readings.of_shards("extent_bytes")
    used = values + index + buffered
    resident = _resident_bytes()
    total = _memory_of_machine()
    return {
        "used_memory": used,
        "used_memory_human": show_memory(used),
        "used_memory_rss": resident,
        "used_memory_rss_human": show_memory(resident),
        "used_memory_overhead": used - dataset,
        "used_memory_dataset": dataset,
        "total_system_memory": total,
        "total_system_memory_human": show_memory(total),
        **bound,
        "kvstrata_arena_bytes": readings.memory["memory_bytes"],
        "mem_clients_normal": buffered,
        "active_defrag_running": 0,
    }


def persistence(_readings: Readings) -> Fields:
    """Nothing is written to disk, so nothing of it is under way and nothing ever was."""
    return {
        "loading": 0,
        "async_loading": 0,
        "rdb_bgsave_in_progress": 0,
        "rdb_last_bgsave_time_sec": -1,
        "rdb_current_bgsave_time_sec": -1,
        "rdb_saves": 0,
        "aof_enabled": 0,
        "aof_rewrite_in_progress": 0,
        "aof_rewrite_scheduled": 0,
        "aof_last_rewrite_time_sec": -1,
        "aof_current_rewrite_time_sec": -1,
        "aof_rewrites": 0,
        "module_fork_in_progress": 0,
    }


def replication(_readings: Readings) -> Fields:
    """There are no replicas, and nothing is kept for any."""
    return {
        "role": "master",
        "connected_slaves": 0,
        "master_failover_state": "no-failover",
        "master_repl_offset": 0,
        "second_repl_offset": -1,
        "repl_backlog_active": 0,
        "repl_backlog_size": 0,
        "repl_backlog_first_byte_offset": 0,
        "repl_backlog_histlen": 0,
    }


def cpu(readings: Readings) -> Fields:
    """Processor time of the process, in seconds."""
    if not readings.of_node:
        return {}
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "used_cpu_sys": f"{own.ru_stime:.6f}",
        "used_cpu_user": f"{own.ru_utime:.6f}",
        "used_cpu_sys_children": f"{children.ru_stime:.6f}",
        "used_cpu_user_children": f"{children.ru_utime:.6f}",
    }


def modules(_readings: Readings) -> Fields:
    """There are none."""
    return {}


def cluster(_readings: Readings) -> Fields:
    """The node is a cluster of its own."""
    return {"cluster_enabled": 1}


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _memory_of_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
