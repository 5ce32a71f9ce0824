"""Where a store is and how to talk to it: `kvstrata://pool:secret@host:18400?timeout=2&spin=0`."""

from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypedDict, cast, get_args
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from kvstrata.store import host_memory, limits
from kvstrata.store.errors import UsageError
from kvstrata.store.pools import check_name
from kvstrata.store.units import parse_duration

TransportWish = Literal["auto", "tcp", "unix", "shm"]

DEFAULT_URL: Final = f"kvstrata://127.0.0.1:{limits.DATA_PORT}"

# Long enough for a node on the same host to answer a small request, short enough to be no waste.
_SPIN_US_DEFAULT: Final = 100
_SPIN_US_MAX: Final = 10_000

_NAMES: Final = ("transport", "verify", "spin", "timeout", "client_name")  # In the query.
_TRANSPORTS: Final = ", ".join(get_args(TransportWish))
_ENCODE: Final = (
    "in a secret, write each character that is neither letter nor digit percent-encoded, so / as"
    " %2F, ? as %3F, # as %23, [ as %5B, % as %25"
)


@dataclass(frozen=True, slots=True)
class Target:
    """One node, the pool wanted there, and how calls are made.

    Attributes:
        timeout: seconds a call may take unless it says otherwise.
        verify: whether checksums of values are verified on arrival.
        spin_us: microseconds to look for a reply before sleeping; 0 sleeps at once.
        transport: "auto", or the one that is insisted on.
        client_name: text for the node's operator; empty: host name and process id.
    """

    host: str = "127.0.0.1"
    port: int = limits.DATA_PORT
    pool: str = "default"
    secret: str = field(default="", repr=False)
    timeout: float = limits.DEADLINE_MS_DEFAULT / 1000
    verify: bool = True
    spin_us: int = field(default_factory=lambda: _spin_us(True))
    transport: TransportWish = "auto"
    client_name: str = ""

    def __str__(self) -> str:
        """The URL without the secret, for messages and logs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"kvstrata://{quote(self.pool)}@{host}:{self.port}"


class Settings(TypedDict, total=False):
    """What a URL's query or arguments say beside the address; named as in `Target`."""

    pool: str
    secret: str
    timeout: float
    verify: bool
    spin_us: int
    transport: TransportWish
    client_name: str


def parse(url: str) -> Target:
    """Read a URL.

    Raises:
        UsageError: it is malformed, or asks for what this version does not have.
    """
    parts = _split(url)
    try:
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{_masked(url)} is not a URL: {error}") from error
    if parts.scheme == "kvstratas":
        raise UsageError(
            "kvstratas:// (TLS) is not in this version: use kvstrata:// on a network you trust"
        )
    if parts.scheme != "kvstrata":
        raise UsageError(f"{_masked(url)} does not begin with kvstrata://")
    if "," in parts.netloc.rpartition("@")[2]:
        raise UsageError(f"{_masked(url)} names several hosts; this version talks to one")
    if parts.path not in ("", "/") or parts.fragment:
        raise UsageError(
            f"{_masked(url)} has a path or a fragment; a pool stands before the host:"
            " kvstrata://pool:secret@host"
        )
    address = Target(
        host=unquote(parts.hostname or "127.0.0.1"),
        port=limits.DATA_PORT if port is None else port,
        pool=unquote(parts.username or "default"),
        secret=unquote(parts.password or ""),
    )
    return _checked(replace(address, **_query(parts.query)))


def changed(
    target: Target,
    *,
    pool: str | None,
    secret: str | None,
    timeout: float | None,
    verify: bool | None,
    spin: bool | int | None,
    transport: str | None,
    client_name: str | None,
) -> Target:
    """A copy in which the arguments that are given replace what the URL said.

    Raises:
        UsageError: one is not allowed.
    """
    settings: Settings = {}
    if pool is not None:
        settings["pool"] = pool
    if secret is not None:
        settings["secret"] = secret
    if timeout is not None:
        settings["timeout"] = check_timeout(timeout)
    if verify is not None:
        settings["verify"] = verify
    if spin is not None:
        settings["spin_us"] = _spin_us(spin)
    if transport is not None:
        settings["transport"] = _transport(transport)
    if client_name is not None:
        settings["client_name"] = client_name
    return _checked(replace(target, **settings))


def check_timeout(timeout: float) -> float:
    """The timeout itself.

    Raises:
        UsageError: it is not above 0 and at most a day.
    """
    try:
        allowed = 0 < timeout <= 86_400
    except TypeError:  # No number at all.
        allowed = False
    if not allowed:
        raise UsageError(f"a timeout is above 0 and at most 86400 seconds, not {timeout!r}")
    return timeout


def _split(url: str) -> SplitResult:
    """The parts. A secret that ends early is told here: other errors could show what follows."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        if "@" not in url:
            raise UsageError(f"{url!r} is not a URL: {error}") from error
        raise UsageError(f"{_masked(url)} is not a URL: {_ENCODE}") from None
    first_name = parts.query.partition("=")[0]
    if "@" in parts.path + parts.fragment or ("@" in parts.query and first_name not in _NAMES):
        raise UsageError(f"{_masked(url)} has one of / ? # before the @: {_ENCODE}")
    return parts


def _query(text: str) -> Settings:
    settings: Settings = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name == "transport":
            settings["transport"] = _transport(value)
        elif name == "verify":
            settings["verify"] = _flag(name, value)
        elif name == "spin":
            number = int(value) if value.isdigit() and value not in "01" else _flag(name, value)
            settings["spin_us"] = _spin_us(number)
        elif name == "timeout":
            settings["timeout"] = _timeout(value)
        elif name == "client_name":
            settings["client_name"] = value
        else:
            raise UsageError(f"unknown {name!r} in the URL; known: {', '.join(_NAMES)}")
    return settings


def _transport(name: str) -> TransportWish:
    if name == "rdma":
        raise UsageError(f"transport={name} is not in this version, which has {_TRANSPORTS}")
    if name not in get_args(TransportWish):
        raise UsageError(f"unknown transport {name!r}; this version has {_TRANSPORTS}")
    return cast("TransportWish", name)


def _timeout(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"timeout={text} in the URL: {error}") from error
    return check_timeout(seconds)


def _flag(name: str, value: str) -> bool:
    flags = {"1": True, "true": True, "0": False, "false": False}
    if value not in flags:
        raise UsageError(f"{name}={value} in the URL: use 1 or 0")
    return flags[value]


def _spin_us(spin: bool | int) -> int:
    if spin is False:
        return 0
    if spin is True:
        # With one processor the node could not answer while we spin.
        return _SPIN_US_DEFAULT if host_memory.usable_cpu_count() > 1 else 0
    if not 0 <= spin <= _SPIN_US_MAX:
        raise UsageError(f"spin is 0 to {_SPIN_US_MAX} microseconds, not {spin}")
    return spin


def _checked(target: Target) -> Target:
    for name in ("host", "pool", "secret", "client_name"):
        try:
            getattr(target, name).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the {name} has no UTF-8 form: use other characters") from error
    check_name(target.pool)
    secret_size = len(target.secret.encode())
    if secret_size > limits.SECRET_BYTES_MAX:
        raise UsageError(
            f"a secret has at most {limits.SECRET_BYTES_MAX} bytes; the one given has {secret_size}"
        )
    if not 1 <= target.port <= 65_535:
        raise UsageError(f"a port is 1 to 65535, not {target.port}")
    if len(target.client_name.encode()) > 128:
        raise UsageError(f"client_name has at most 128 bytes, not {target.client_name!r}")
    return target


def _masked(url: str) -> str:
    """The URL with what may be a secret left out."""
    head, at, tail = url.rpartition("@")
    return repr(f"{head.partition('://')[0]}://***@{tail}" if at else url)
