"""INFO: sections, true figures, and what of it a tenant sees."""

import os
import time

import pytest

from kvstrata.store.pools import READ
from tests.unit.store.resp_admin.recorded_node import (
    Asker,
    RecordedNode,
    asker,
    command_counters,
    connection,
    pool_counters,
    shard_counters,
    with_secret,
)

DEFAULT = (
    "# Server # Clients # Memory # Persistence # Stats # Replication # CPU # Modules # Errorstats"
    " # Cluster # Keyspace"
)
ALL = DEFAULT.replace("# Errorstats", "# Commandstats # Errorstats # Latencystats")


@pytest.fixture
def node() -> Asker:
    one = shard_counters(
        commands=10,
        connections_accepted=5,
        received_bytes=100,
        sent_bytes=200,
        cell_bytes=1_000,
        extent_bytes=2_000,
        index_bytes=30,
        bookkeeping_bytes=4,
        resp_commands={"get": command_counters(3, 6_000, at2=2, at4=1)},
        errors={"ERR": 3, "WRONGTYPE": 1},
    )
    other = shard_counters(
        commands=1,
        resp_commands={
            "get": command_counters(1, 1_999, at2=1),
            "client|id": command_counters(0, 0) | {"rejected": 2},
        },
        errors={"ERR": 1},
    )
    pools = {
        "default": pool_counters(objects=3, objects_expiring=1, bytes=700, gets=9, get_hits=4),
        "team": pool_counters(objects=2, bytes=50, gets=2, get_hits=1, expirations=6, evictions=8),
    }
    connections = [
        connection(1),
        connection(2, watch_count=2, input_bytes=77),
        connection(3, pool="team"),
    ]
    recorded = RecordedNode(shards=[one, other], pools=pools, open_connections=connections)
    return asker(recorded, team=with_secret())


def sections(reply: bytes) -> str:
    return " ".join(line for line in reply.decode().split("\r\n") if line.startswith("#"))


def test_which_sections(node: Asker) -> None:
    assert sections(node.ask("INFO")) == DEFAULT
    assert sections(node.ask("INFO default")) == DEFAULT
    assert sections(node.ask("INFO Everything")) == ALL
    assert sections(node.ask("INFO all", rights=READ)) == ALL
    assert sections(node.ask("INFO memory nope SERVER")) == "# Server # Memory"
    assert sections(node.ask("INFO commandstats default")) == DEFAULT.replace(
        "# Errorstats", "# Commandstats # Errorstats"
    )


def test_exact_bytes(node: Asker) -> None:
    assert node.ask("INFO cluster") == b"$30\r\n# Cluster\r\ncluster_enabled:1\r\n\r\n"
    assert node.ask("INFO cluster", 3) == b"=34\r\ntxt:# Cluster\r\ncluster_enabled:1\r\n\r\n"
    assert node.ask("INFO modules cluster") == (
        b"$43\r\n# Modules\r\n\r\n# Cluster\r\ncluster_enabled:1\r\n\r\n"
    )
    assert node.ask("INFO nope") == b"$0\r\n\r\n"
    assert node.ask("INFO nope", 3) == b"=4\r\ntxt:\r\n"


def test_server(node: Asker) -> None:
    fields = node.lines("INFO server")
    assert fields["redis_version"] == "7.2.4"
    assert fields["server_name"] == "kvstrata"
    assert fields["kvstrata_version"] == "0.1.0"
    assert fields["process_id"] == str(os.getpid())
    assert fields["run_id"] == "000102030405060708090a0b0c0d0e0f00000000"
    assert fields["tcp_port"] == "18400"
    assert abs(int(fields["uptime_in_seconds"]) - time.monotonic()) < 10
    assert abs(int(fields["server_time_usec"]) / 1e6 - time.time()) < 10


def test_figures_are_summed(node: Asker) -> None:
    fields = node.lines("INFO everything")
    assert fields["connected_clients"] == "3"
    assert fields["watching_clients"] == "1"
    assert fields["client_recent_max_input_buffer"] == "77"
    assert fields["used_memory"] == str(1_000 + 2_000 + 30 + 4 + 5)
    assert fields["used_memory_dataset"] == "750"
    assert fields["used_memory_overhead"] == str(3_039 - 750)
    assert int(fields["used_memory_rss"]) > 1 << 20
    assert fields["total_commands_processed"] == "11"
    assert fields["total_net_output_bytes"] == "200"
    assert fields["total_error_replies"] == "5"
    assert fields["keyspace_hits"] == "5"
    assert fields["keyspace_misses"] == "6"
    assert fields["expired_keys"] == "6"
    assert fields["evicted_keys"] == "8"
    assert float(fields["used_cpu_user"]) > 0
    assert fields["maxmemory_policy"] == "allkeys-lru"


def test_commands_and_errors(node: Asker) -> None:
    fields = node.lines("INFO everything")
    assert fields["cmdstat_get"] == (
        "calls=4,usec=7,usec_per_call=1.75,rejected_calls=0,failed_calls=0"
    )
    assert fields["cmdstat_client|id"] == (
        "calls=0,usec=0,usec_per_call=0.00,rejected_calls=2,failed_calls=0"
    )
    assert fields["errorstat_ERR"] == "count=4"
    assert fields["errorstat_WRONGTYPE"] == "count=1"
    assert fields["latency_percentiles_usec_get"] == "p50=4.000,p99=16.000,p99.9=16.000"
    assert "latency_percentiles_usec_client|id" not in fields


def test_keyspace(node: Asker) -> None:
    assert node.ask("INFO keyspace") == (
        b"$62\r\n# Keyspace\r\ndb0:keys=3,expires=1\r\npool_team:keys=2,expires=0\r\n\r\n"
    )
    assert node.ask("INFO keyspace", pool="team") == (
        b"$34\r\n# Keyspace\r\ndb0:keys=2,expires=0\r\n\r\n"
    )
    node.node.pools["team"]["objects"] = 0
    assert node.ask("INFO keyspace", pool="team") == b"$12\r\n# Keyspace\r\n\r\n"


def test_a_tenant_sees_its_pool_alone(node: Asker) -> None:
    fields = node.lines("INFO everything", pool="team")
    assert fields["connected_clients"] == "1"
    assert fields["used_memory"] == "50"
    assert fields["keyspace_hits"] == "1"
    assert fields["keyspace_misses"] == "1"
    of_node = (
        "total_commands_processed",
        "used_memory_rss",
        "used_cpu_sys",
        "cmdstat_get",
        "errorstat_ERR",
    )
    assert not {*of_node} & fields.keys()
    assert "pool_default" not in fields
    assert sections(node.ask("INFO everything", pool="team")) == ALL
    assert (
        node.lines("INFO stats", rights=READ).keys() == node.lines("INFO stats", pool="team").keys()
    )
