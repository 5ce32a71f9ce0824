"""The application without a server: what it answers, by the state of its node."""

import httpx
import pytest

from kvstrata.cluster.counters import Counters
from kvstrata.cluster.health import Health
from kvstrata.cluster.http_api import ObservedNode, make_api
from tests.unit.cluster.node_counters import statistics

INFORMATION = {
    "version": "1.2.3",
    "node_id": "ab",
    "protocol_version": 1,
    "host": "127.0.0.1",
    "port": 18400,
    "shards": 1,
    "memory": 32 << 20,
    "uptime": 5.0,
}


class Api:
    def __init__(self, secret: str | None = None) -> None:
        self.populated = 2
        self.health = Health(self.counters, populate_full=False)
        admits = None if secret is None else secret.__eq__
        node = ObservedNode("1.2.3", lambda: INFORMATION, self.counters, self.health, admits)
        self.transport = httpx.ASGITransport(make_api(node))

    def counters(self) -> Counters:
        return Counters.of(statistics(populated=self.populated))

    async def get(self, path: str, auth: tuple[str, str] | None = None) -> httpx.Response:
        async with httpx.AsyncClient(transport=self.transport, base_url="http://node") as client:
            return await client.get(path, auth=auth)


async def test_readiness_names_what_fails() -> None:
    api = Api()
    assert (await api.get("/readyz")).status_code == 200
    api.populated = 0
    api.health.stopping()
    response = await api.get("/readyz")
    assert response.status_code == 503
    assert set(response.json()["failures"]) == {"memory", "accepting"}
    assert (await api.get("/livez")).status_code == 200


async def test_status_brings_the_counters_together() -> None:
    status = (await Api().get("/api/v1/status")).json()
    assert status["uptime_seconds"] == 5.0
    assert status["memory"] == {
        "total_bytes": 32 << 20,
        "used_bytes": 10,
        "populated_bytes": 8 << 20,
        "huge_pages": "none",
    }
    assert status["pools"]["default"]["hit_ratio"] == 0.75


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/status"])
async def test_guarded_reads(path: str) -> None:
    api = Api("s3cret")
    assert (await api.get(path)).status_code == 401
    assert (await api.get(path, ("default", "guess"))).status_code == 401
    assert (await api.get(path, ("default", "s3cret"))).status_code == 200


async def test_there_is_nothing_else() -> None:
    assert (await Api().get("/docs")).status_code == 404
