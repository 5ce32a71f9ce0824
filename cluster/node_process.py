"""The node process: a running node, its HTTP, and the signals that end it."""

import hmac
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from kvstrata import _kernel
from kvstrata.cluster import banner
from kvstrata.cluster.counters import Counters
from kvstrata.cluster.exit_codes import ExitCode
from kvstrata.cluster.health import Health
from kvstrata.cluster.http_api import ObservedNode, make_api
from kvstrata.cluster.http_server import HttpServer
from kvstrata.cluster.listening import check_exposure, exposed_endpoints
from kvstrata.cluster.open_files import allow_connections
from kvstrata.store.config import LoadedConfig
from kvstrata.store.node import RunningNode
from kvstrata.store.pools import DEFAULT, PoolRegistry

log = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_POLL_S: Final = 0.05


def serve(loaded: LoadedConfig, *, insecure: bool, ready: TextIO = sys.stdout) -> ExitCode:
    """Run a node until SIGTERM or SIGINT; a second signal ends it at once.

    Args:
        loaded: the settings, and where they came from.
        insecure: let it listen beyond loopback without secrets.
        ready: where one line with the node's URLs goes once it serves.

    Raises:
        OSError: an address cannot be listened on.
        UsageError: a setting is not allowed.
    """
    config = loaded.config
    pools = PoolRegistry(config.pools, config.node.pools_file).describe()
    secret_counts = {name: banner.secret_count(pool) for name, pool in pools.items()}
    check_exposure(config, secret_counts, insecure=insecure)
    room = allow_connections(config.node.connections_max, config.node.shards)
    node_config = config.node.model_copy(update={"connections_max": room})
    # Before any thread begins, as threads inherit what is blocked: signals are taken in below.
    with _blocked_signals():
        node = RunningNode(node_config, config.pools)
        health = Health(
            lambda: Counters.of(node.native.statistics()),
            populate_full=config.node.populate == "full",
        )
        http = None
        try:
            if config.http.enabled:
                http = HttpServer(make_api(_observed(node, health, loaded)), config.http)
                http.start()
            http_url = http.url if http else None
            banner.log_start(node, loaded, pools, http_url, insecure=insecure)
            print("ready", banner.data_url(node), http_url or "", file=ready, flush=True)
            name = signal.Signals(signal.sigwait(_SIGNALS)).name
            seconds = config.node.stop_timeout
            log.info("stopping on %s, at most %g s; again: at once", name, seconds)
        finally:
            health.stopping()
            clean = _stop(node, http)
    log.info("stopped" if clean else "stopped; transfers under way were cut off")
    return ExitCode.OK


def _observed(node: RunningNode, health: Health, loaded: LoadedConfig) -> ObservedNode:
    config = loaded.config

    def admits(secret: str) -> bool:
        given = secret.encode()
        known = node.pools.admin_secrets(DEFAULT)
        return any([hmac.compare_digest(given, each.encode()) for each in known])

    guarded = (
        any(each.startswith("http.") for each in exposed_endpoints(config))
        and config.pools[DEFAULT].has_secrets
    )
    return ObservedNode(
        version=_kernel.version(),
        information=node.information,
        counters=lambda: Counters.of(node.native.statistics()),
        health=health,
        admits=admits if guarded else None,
    )


@contextmanager
def _blocked_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(node: RunningNode, http: HttpServer | None) -> bool:
    """End the node, and HTTP after it, so that probes see it stop. False if transfers were cut."""
    clean: list[bool] = []
    stopper = threading.Thread(target=lambda: clean.append(node.stop()), name="kvstrata-stop")
    stopper.start()
    while stopper.is_alive():
        if signal.sigtimedwait(_SIGNALS, _POLL_S) is not None:
            log.warning("stopped at once by a second signal; transfers under way were cut off")
            logging.shutdown()
            os._exit(ExitCode.FAULT)
    if http is not None:
        http.stop()
    return all(clean)
