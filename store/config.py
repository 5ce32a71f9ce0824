"""The one tree of settings, and where each value came from.

Precedence: arguments > environment (`KVSTRATA_<SECTION>__<FIELD>`) > TOML file > defaults. The
names of environment variables are derived from the tree. Only names with a double underscore are
ours: Kubernetes itself sets KVSTRATA_PORT and the like where a service has our name. Unknown keys
are errors. `os.environ` is read here and nowhere else.
"""

import difflib
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from kvstrata.store import host_memory, limits
from kvstrata.store.errors import UsageError
from kvstrata.store.units import format_duration, format_size, parse_duration, parse_size

URL_VARIABLE: Final = "KVSTRATA_URL"
UNIX_PATH_AUTO: Final = "auto"
_PREFIX: Final = "KVSTRATA_"


@dataclass(frozen=True, slots=True)
class Shown:
    """How values of a type are written for people, with their unit."""

    words: Callable[[Any], str]


Size = Annotated[int, BeforeValidator(parse_size), Shown(format_size)]
Rate = Annotated[int, BeforeValidator(parse_size), Shown(lambda rate: f"{format_size(rate)}/s")]
Duration = Annotated[float, BeforeValidator(parse_duration), Shown(format_duration)]


def _as_host(value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"{value!r} is no address or name of a host")
    return value


Host = Annotated[str, AfterValidator(_as_host)]


def _as_secrets(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_as_secrets), Field(max_length=2)]


def _default_memory() -> int:
    return max(limits.MEMORY_BYTES_MIN, host_memory.available_memory_bytes() // 2)


def _default_shards() -> int:
    # The other half is for clients on this host, the kernel's network stack and Python.
    return min(max(1, host_memory.usable_cpu_count() // 2), 16)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class NodeConfig(_Section):
    """The node: where it listens, and what it may take of the machine."""

    host: Host = Field(
        default="127.0.0.1", description="Address to listen on; beyond loopback needs secrets."
    )
    port: int = Field(
        default=limits.DATA_PORT,
        ge=0,
        le=65_535,
        description="TCP port for capsules; 0 lets the system choose.",
    )
    unix_path: str = Field(
        default=UNIX_PATH_AUTO,
        description="UNIX socket for clients on this host, from /; auto: in a folder of our own,"
        " named after the port; empty: none.",
    )
    shards: int = Field(
        default_factory=_default_shards,
        ge=1,
        le=limits.SHARD_COUNT_MAX,
        description="Threads that each own part of the keys; half of the processors, at most 16.",
    )
    memory: Size = Field(
        default_factory=_default_memory,
        ge=limits.MEMORY_BYTES_MIN,
        description="Bytes for values and their records; half of what cgroup and host leave.",
    )
    populate: Literal["used", "full"] = Field(
        default="used",
        description="Touch memory as it is used, or all of it at the start.",
    )
    huge_pages: Literal["auto", "off", "transparent", "explicit"] = Field(
        default="auto",
        description="For values and their index; explicit ones are those reserved in"
        " vm.nr_hugepages. Auto takes what there is; transparent and explicit insist.",
    )
    spin: Duration = Field(
        default=100e-6,
        ge=0,
        le=0.01,
        description="Seconds a shard looks for work before it sleeps; 0 sleeps at once.",
    )
    io: Literal["auto", "io_uring", "epoll"] = Field(
        default="auto",
        description="How shards wait for connections; auto takes io_uring where it works.",
    )
    credits: int = Field(
        default=limits.CREDITS_DEFAULT,
        ge=1,
        le=limits.CREDITS_MAX,
        description="Commands one connection may have in flight.",
    )
    connections_max: int = Field(
        default=16_384,
        ge=1,
        le=1_000_000,
        description="Connections at a time; further ones are told BUSY.",
    )
    connection_memory_max: Size = Field(
        default=8 << 20,
        ge=64 * 1024,
        description="Bytes one connection's work may hold outside the arena: bounds a slow peer.",
    )
    buffer_memory_max: Size = Field(
        default=256 << 20,
        ge=1 << 20,
        description="Bytes all connections' buffers may hold together; beyond it: BUSY.",
    )
    minimum_rate: Rate = Field(
        default=64 << 10,
        ge=0,
        le=1 << 40,
        description="Bytes a second below which a peer that holds memory is dropped; 0: never.",
    )
    stall_max: Duration = Field(
        default=10,
        gt=0,
        le=3600,
        description="Seconds a peer may hold memory before its rate is judged.",
    )
    stop_timeout: Duration = Field(
        default=10,
        gt=0,
        le=3600,
        description="Seconds that transfers under way get to end when the node stops.",
    )
    pools_file: Path | None = Field(
        default=None,
        description="Where pools created at run time are kept over restarts; unset: they are not.",
    )


class HttpConfig(_Section):
    """The HTTP endpoint: health, metrics, status."""

    enabled: bool = Field(default=True, description="Serve HTTP beside the data port.")
    host: Host = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=limits.HTTP_PORT, ge=0, le=65_535, description="TCP port; 0 lets the system choose."
    )


class PoolConfig(_Section):
    """One pool: what its objects are, how much they may take, and who may use it."""

    kind: Literal["mutable", "immutable"] = Field(
        default="mutable",
        description="Immutable objects are never overwritten. A pool's kind never changes.",
    )
    eviction: Literal["lru", "s3fifo", "none"] = Field(
        default="lru",
        description="Which object goes when the pool is full; none: puts answer that it is full.",
    )
    quota: Size = Field(
        default=0, ge=0, description="Bytes the pool may take of the node's memory; 0: all."
    )
    ttl: Duration = Field(
        default=0,
        ge=0,
        le=10**10,
        description="Seconds objects live that were put without a TTL; 0: forever.",
    )
    retained_max: Size = Field(
        default=0,
        ge=0,
        description="Bytes that hard retentions may keep from eviction; 0: a quarter of the quota.",
    )
    copies: Literal[1] = Field(default=1, description="Durable copies; a single node keeps 1.")
    acknowledge: Literal["memory"] = Field(
        default="memory", description="Where a value is when its put is acknowledged."
    )
    read: Secrets = Field(
        default=(), description="Secrets that may read; at most two, so that one can be rotated."
    )
    write: Secrets = Field(default=(), description="Secrets that may read and write; at most two.")
    admin: Secrets = Field(
        default=(), description="Secrets that may do everything in the pool; at most two."
    )
    read_file: Path | None = Field(
        default=None, description="File with one or two secrets that may read, one a line."
    )
    write_file: Path | None = Field(default=None, description="The same for reading and writing.")
    admin_file: Path | None = Field(default=None, description="The same for everything.")

    @model_validator(mode="after")
    def _check_secrets(self) -> Self:
        for role in ("read", "write", "admin"):
            given: tuple[SecretStr, ...] = getattr(self, role)
            if given and getattr(self, f"{role}_file") is not None:
                raise ValueError(f"give either {role} or {role}_file, not both")
            for secret in given:
                size = len(secret.get_secret_value().encode())
                if not 1 <= size <= limits.SECRET_BYTES_MAX:
                    raise ValueError(
                        f"a secret has 1 to {limits.SECRET_BYTES_MAX} bytes, and one of {role!r}"
                        f" has {size}"
                    )
        return self

    @property
    def has_secrets(self) -> bool:
        """Whether a client must show a secret."""
        files = (self.read_file, self.write_file, self.admin_file)
        return bool(self.read or self.write or self.admin or any(files))


class ClientConfig(_Section):
    """What the commands that talk to a node use."""

    url: str = Field(
        default=f"kvstrata://127.0.0.1:{limits.DATA_PORT}",
        description=f"Node to talk to; {URL_VARIABLE} sets it as well.",
    )


class LogConfig(_Section):
    """What is logged, and how."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity."
    )
    format: Literal["text", "json"] = Field(
        default="text", description="For people or for machines."
    )


class Config(_Section):
    """The whole tree."""

    node: NodeConfig = Field(default_factory=lambda: NodeConfig())
    http: HttpConfig = Field(default_factory=lambda: HttpConfig())
    pools: dict[str, PoolConfig] = Field(
        default_factory=dict, description="Pools by name; `default` exists always."
    )
    client: ClientConfig = Field(default_factory=lambda: ClientConfig())
    log: LogConfig = Field(default_factory=lambda: LogConfig())

    @model_validator(mode="before")
    @classmethod
    def _add_default_pool(cls, tree: object) -> object:
        if isinstance(tree, dict) and isinstance(tree.get("pools", {}), dict):
            return {**tree, "pools": {"default": {}, **tree.get("pools", {})}}
        return tree


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The settings, and for each the source that had the last word.

    Attributes:
        config: the validated tree.
        origins: "default", "argument", or the name of a variable or file, by dotted path.
    """

    config: Config
    origins: dict[str, str]


def load_config(
    path: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """Read all sources and validate the result.

    Args:
        path: TOML file; None reads none.
        overrides: arguments, nested as the tree is; a value of None counts as not given.
        environment: variables; None means those of this process.

    Raises:
        UsageError: a file cannot be read, a key is unknown, a value is not allowed.
    """
    values: dict[tuple[str, ...], tuple[object, str]] = {}
    if path is not None:
        values.update({key: (value, str(path)) for key, value in _leaves(_read_toml(path))})
    values.update(_from_environment(os.environ if environment is None else environment))
    for key, value in _leaves(overrides or {}):
        if value is not None:
            values[key] = (value, "argument")

    tree: dict[str, Any] = {}
    for key, (value, origin) in values.items():
        _plant(tree, key, value, origin)
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        raise UsageError(_explain(error, values)) from error
    origins = {
        ".".join(key): values[key][1] if key in values else "default"
        for key, _ in _leaves(config.model_dump())
    }
    return LoadedConfig(config, origins)


def url_from_environment() -> str | None:
    """The value of KVSTRATA_URL, if it is set and not empty."""
    return os.environ.get(URL_VARIABLE) or None


def runtime_folder() -> Path:
    """Where what lives as long as a process belongs: the service's, the session's, or our own."""
    if folder := os.environ.get("RUNTIME_DIRECTORY"):  # systemd; the first of several.
        return Path(folder.partition(":")[0])
    if folder := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(folder) / "kvstrata"
    user = os.geteuid()
    return Path("/run/kvstrata") if user == 0 else Path(tempfile.gettempdir(), f"kvstrata-{user}")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error


def _leaves(
    tree: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _from_environment(
    environment: Mapping[str, str],
) -> Iterator[tuple[tuple[str, ...], tuple[object, str]]]:
    if url := environment.get(URL_VARIABLE):
        yield ("client", "url"), (url, URL_VARIABLE)
    for name, value in sorted(environment.items()):
        path = name.removeprefix(_PREFIX)
        if path != name and "__" in path:
            yield tuple(path.lower().split("__")), (value, name)


def _plant(tree: dict[str, Any], key: tuple[str, ...], value: object, origin: str) -> None:
    branch = tree
    for name in key[:-1]:
        branch = branch.setdefault(name, {})
        if not isinstance(branch, dict):
            raise UsageError(
                f"{'.'.join(key)} (from {origin}): {name} has no settings below it: set it itself"
            )
    branch[key[-1]] = value


def _explain(error: ValidationError, values: Mapping[tuple[str, ...], tuple[object, str]]) -> str:
    """All problems in one line, each with its place, its source and the remedy."""
    problems = []
    for detail in error.errors(include_url=False, include_input=False):
        key = tuple(str(part) for part in detail["loc"])
        origin = next((f" (from {values[k][1]})" for k in values if k[: len(key)] == key), "")
        words = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            words = _unknown(key)
        elif key in values and detail["type"] != "value_error" and "pools" not in key:
            words = f"{words}, not {values[key][0]!r}"  # Below pools it may be a secret.
        problems.append(f"{'.'.join(key)}{origin}: {words}")
    return "the configuration is not valid: " + "; ".join(problems)


def _unknown(key: tuple[str, ...]) -> str:
    section: type[BaseModel] = Config
    for name in key[:-1]:
        if section is Config and name == "pools":
            return unknown_setting(key[-1], PoolConfig)
        annotation = section.model_fields[name].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        section = annotation
    return unknown_setting(key[-1], section)


def unknown_setting(name: str, section: type[BaseModel]) -> str:
    """What to say of a name that the section does not have."""
    near = difflib.get_close_matches(name, section.model_fields, n=1)
    known = ", ".join(section.model_fields)
    return f"unknown setting; {f'did you mean {near[0]}?' if near else f'known: {known}'}"
