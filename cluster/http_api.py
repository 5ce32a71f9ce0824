"""The HTTP API of a node: health, metrics, status. Reads only; it changes nothing.

`/livez` and `/readyz` are for probes and ask for nothing. Where HTTP listens beyond loopback and
the pool `default` has secrets, the rest wants one of them with the admin right (HTTP Basic, user
`default`), since it tells of all pools.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Response
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from kvstrata.cluster.counters import Counters
from kvstrata.cluster.health import Health
from kvstrata.cluster.metrics import Exposition
from kvstrata.cluster.status import Liveness, NodeStatus, Readiness, node_status
from kvstrata.store.payloads import Payload
from kvstrata.store.pools import DEFAULT

_basic = HTTPBasic(auto_error=False, description="User `default`, and an admin secret of it.")


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """What the API needs of a node.

    Attributes:
        version: of kvstrata.
        information: the node in short.
        counters: as they are now.
        health: judges them.
        admits: whether a secret gives the admin right on the pool `default`; None: nobody is
            asked for one.
    """

    version: str
    information: Callable[[], Payload]
    counters: Callable[[], Counters]
    health: Health
    admits: Callable[[str], bool] | None


def make_api(node: ObservedNode) -> FastAPI:
    """The application that answers for one node."""
    api = FastAPI(
        title="KVStrata node",
        version=node.version,
        description="Health, metrics and status of one node.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # These pages load scripts from elsewhere, which a node must not ask for.
        redoc_url=None,
    )
    exposition = Exposition(node.counters, node.version)

    def check_secret(
        credentials: Annotated[HTTPBasicCredentials | None, Depends(_basic)],
    ) -> None:
        if node.admits is None:
            return
        if (
            credentials is None
            or credentials.username != DEFAULT
            or not node.admits(credentials.password)
        ):
            raise HTTPException(
                401,
                f"give user {DEFAULT!r} and an admin secret of that pool",
                {"WWW-Authenticate": "Basic"},
            )

    guarded = [Depends(check_secret)]

    @api.get("/livez", summary="Whether the process answers")
    def livez() -> Liveness:
        return Liveness(alive=True)

    @api.get(
        "/readyz",
        summary="Whether the node can serve",
        responses={503: {"model": Readiness, "description": "It cannot; `failures` tells why."}},
    )
    def readyz(response: Response) -> Readiness:
        failures = node.health.failures()
        response.status_code = 503 if failures else 200
        return Readiness(ready=not failures, failures=failures)

    @api.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        dependencies=guarded,
    )
    def metrics() -> Response:
        return Response(exposition.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @api.get("/api/v1/status", summary="The node and its pools", dependencies=guarded)
    def status() -> NodeStatus:
        ready = not node.health.failures()
        return node_status(node.information(), node.counters(), ready=ready)

    return api
