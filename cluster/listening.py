"""Who could reach the node: it listens beyond loopback only where every pool asks for a secret."""

import ipaddress
import socket
from collections.abc import Mapping

from kvstrata.store.config import Config
from kvstrata.store.errors import UsageError


def is_loopback(host: str) -> bool:
    """Whether an address or name leads to this machine only.

    Raises:
        UsageError: it is a name that cannot be resolved.
    """
    if host == "":
        return False  # Every address of the machine.
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # The second of a name that no resolver takes.
        raise UsageError(f"cannot resolve {host!r} to listen on: {error}") from error
    return all(ipaddress.ip_address(address[0]).is_loopback for *_, address in found)


def exposed_endpoints(config: Config) -> list[str]:
    """Each endpoint that other machines can reach, as "node.host 0.0.0.0"."""
    endpoints = [("node.host", config.node.host)]
    if config.http.enabled:
        endpoints.append(("http.host", config.http.host))
    return [f"{name} {host}" for name, host in endpoints if not is_loopback(host)]


def check_exposure(config: Config, secret_counts: Mapping[str, int], *, insecure: bool) -> None:
    """Let a node beyond loopback start only if strangers cannot use it, or on explicit word.

    Args:
        config: the whole configuration.
        secret_counts: for each pool, how many secrets there are to use it.
        insecure: the operator's word that the network is trusted.

    Raises:
        UsageError: a pool would be open to whoever reaches the node.
    """
    exposed = exposed_endpoints(config)
    open_pools = [name for name, count in secret_counts.items() if count == 0]
    if exposed and open_pools and not insecure:
        raise UsageError(
            f"{' and '.join(exposed)} can be reached from other machines, but anybody could use"
            f" the pool {', '.join(map(repr, open_pools))}: set a secret (--admin-secret-file FILE,"
            ' or admin = "..." under [pools.<name>]), listen on 127.0.0.1, or say --insecure'
        )
