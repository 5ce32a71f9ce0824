"""Pools of one node: from settings to what the native node holds, and those made at run time.

Who holds the admin right on `default` administers the node. Secrets are read from their files
when a pool is set, so changing a file and setting the pool again rotates them. Secrets that are set
take the place of the role's file.
"""

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr, ValidationError

from kvstrata import _kernel
from kvstrata.store import limits
from kvstrata.store.config import PoolConfig, unknown_setting
from kvstrata.store.errors import UsageError
from kvstrata.store.secret_files import read_secrets

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEFAULT: Final = "default"

READ: Final = 1
WRITE: Final = 2
ADMIN: Final = 4
_ROLES: Final = {"read": READ, "write": READ | WRITE, "admin": READ | WRITE | ADMIN}
_EVERYTHING: Final = _ROLES["admin"]
# The two ways to give a role its secrets, each with the other.
_ALTERNATIVES: Final = {role: f"{role}_file" for role in _ROLES} | {
    f"{role}_file": role for role in _ROLES
}

_NAME: Final = re.compile(f"[a-z0-9_.-]{{1,{limits.POOL_NAME_BYTES_MAX}}}")


def check_name(name: str) -> str:
    """The name itself, if a pool can be called so.

    Raises:
        UsageError: it is too long or has characters other than a-z, 0-9, '_', '.' and '-'.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a pool: use 1 to {limits.POOL_NAME_BYTES_MAX} of a-z 0-9 _ . -"
        )
    return name


def pool_options(name: str, config: PoolConfig) -> _kernel.PoolOptions:
    """The pool as the native node takes it, with its secrets in the clear.

    Raises:
        UsageError: the name is not allowed, or a file of secrets cannot be read.
    """
    secrets = [
        (secret, rights) for role, rights in _ROLES.items() for secret in _secrets_of(config, role)
    ]
    return _kernel.PoolOptions(
        check_name(name),
        immutable=config.kind == "immutable",
        eviction=config.eviction,
        quota_bytes=config.quota,
        ttl_ms_default=round(config.ttl * 1000),
        retained_bytes_max=config.retained_max,
        secrets=secrets,
        open_rights=0 if config.has_secrets else _EVERYTHING,
    )


class PoolRegistry:
    """The pools of a running node; thread-safe. Changes reach the native node at once.

    Pools from the configuration belong to it: their changes last until the node stops. Pools made
    at run time are written to `pools_file`, if there is one, before they take effect.

    Raises:
        UsageError: the file holds something else, or could not be written.
    """

    def __init__(self, configured: Mapping[str, PoolConfig], pools_file: Path | None) -> None:
        self._configured = dict(configured)
        self._pools_file = pools_file
        self._pools = {**_load(pools_file), **configured}
        if pools_file is not None:
            _check_writable(pools_file)
        self._node: _kernel.Node | None = None
        self._lock = threading.Lock()

    def options(self) -> list[_kernel.PoolOptions]:
        """All pools, for the start of the node."""
        return [pool_options(name, config) for name, config in self._pools.items()]

    def attach(self, node: _kernel.Node) -> None:
        """Pass further changes on to this node."""
        self._node = node

    def describe(self) -> dict[str, dict[str, Any]]:
        """Settings of every pool by name, without secrets but with how many each role has."""
        return {name: _describe(config) for name, config in sorted(self._pools.items())}

    def admin_secrets(self, name: str) -> list[str]:
        """The secrets that may do everything in the pool, as they are now."""
        return _secrets_of(self._find(name), "admin")

    def create(self, name: str, settings: Mapping[str, Any]) -> None:
        """Make a pool.

        Raises:
            UsageError: it exists, a setting is not allowed, or it would be open to everybody
                although the node's `default` pool asks for a secret.
        """
        with self._lock:
            if name in self._pools:
                raise UsageError(f"the pool {name!r} exists already: change it, or choose a name")
            if len(self._pools) >= limits.POOL_COUNT_MAX:
                raise UsageError(
                    f"the node has {limits.POOL_COUNT_MAX} pools, which is the most: drop one first"
                )
            self._set(check_name(name), _validated(settings))

    def change(self, name: str, settings: Mapping[str, Any]) -> None:
        """Change the settings given, and keep the others. A pool's kind never changes.

        Raises:
            UsageError: there is no such pool, or a setting is not allowed.
        """
        with self._lock:
            before = self._find(name)
            replaced = {other for key, other in _ALTERNATIVES.items() if settings.get(key)}
            kept = {key: getattr(before, key) for key in before.model_fields_set - replaced}
            if settings.get("kind", before.kind) != before.kind:
                raise UsageError(
                    f"the pool {name!r} is {before.kind}, and a pool's kind never changes:"
                    " create another pool"
                )
            self._set(name, _validated({**kept, **settings}))

    def drop(self, name: str) -> None:
        """Remove the pool with all its objects.

        Raises:
            UsageError: there is no such pool, or the configuration asks for it.
        """
        with self._lock:
            self._find(name)
            if name in self._configured:
                raise UsageError(
                    f"the pool {name!r} stands in the configuration: remove it there and restart"
                )
            assert self._node is not None
            node = self._node
            kept = {other: config for other, config in self._pools.items() if other != name}
            self._adopt(kept, lambda: node.drop_pool(name), f"drop the pool {name!r}")

    def saved(self, name: str) -> dict[str, Any]:
        """Whether a change of the pool lasts: `saved`, `where`, and the `reason` if it does not."""
        if name in self._configured:
            files = filter(None, (getattr(self._configured[name], f"{r}_file") for r in _ROLES))
            places = ", ".join(["the node's configuration", *map(str, files)])
            reason = f"a restart brings back what stands in {places}: change it there as well"
        elif self._pools_file is None:
            reason = "the node has no --pools-file, so pools made at run time end with it"
        else:
            return {"saved": True, "where": str(self._pools_file.absolute()), "reason": None}
        return {"saved": False, "where": None, "reason": reason}

    def _find(self, name: str) -> PoolConfig:
        if name not in self._pools:
            raise UsageError(f"there is no pool {name!r}; there are: {', '.join(self._pools)}")
        return self._pools[name]

    def _set(self, name: str, config: PoolConfig) -> None:
        if name != DEFAULT and self._pools[DEFAULT].has_secrets and not config.has_secrets:
            raise UsageError(
                f"the pool {name!r} would be open to everybody while {DEFAULT!r} is not:"
                " give it a secret"
            )
        assert self._node is not None
        node, options = self._node, pool_options(name, config)
        pools = {**self._pools, name: config}
        self._adopt(pools, lambda: node.set_pool(options), f"set the pool {name!r}")

    def _adopt(self, pools: dict[str, PoolConfig], change: Callable[[], str], what: str) -> None:
        """Save first: a node must not hold what a restart would not bring back, or the reverse."""
        self._save(pools)
        if reason := change():
            self._save(self._pools)
            raise UsageError(f"cannot {what}: {reason}")
        self._pools = pools

    def _save(self, pools: Mapping[str, PoolConfig]) -> None:
        """Replace the file whole; it holds secrets, so nobody else may read it."""
        if self._pools_file is None:
            return
        made = {
            name: _plain(config) for name, config in pools.items() if name not in self._configured
        }
        draft = _draft_of(self._pools_file)
        try:
            with open(_open_draft(draft), "w") as file:
                json.dump({"pools": made}, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._pools_file)
        except OSError as error:
            with contextlib.suppress(OSError):  # Where the folder allows that.
                draft.unlink(missing_ok=True)
            raise UsageError(
                f"nothing was changed, as {self._pools_file} cannot be written: {error.strerror};"
                " see to its folder on the node's machine"
            ) from error


def _validated(settings: Mapping[str, Any]) -> PoolConfig:
    try:
        return PoolConfig.model_validate(dict(settings))
    except ValidationError as error:
        problems = [_problem(each) for each in error.errors(include_url=False, include_input=False)]
        raise UsageError("the pool's settings are not valid: " + "; ".join(problems)) from error


def _problem(detail: "ErrorDetails") -> str:
    place = [str(part) for part in detail["loc"]]
    if detail["type"] == "extra_forbidden":
        words = unknown_setting(place[-1], PoolConfig)
    else:  # Without the value, which may be a secret.
        words = detail["msg"].removeprefix("Value error, ")
    return f"{'.'.join(place)}: {words}" if place else words


def _draft_of(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _open_draft(draft: Path) -> int:
    return os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


def _check_writable(path: Path) -> None:
    """Find out at the start, not when the first pool is made."""
    try:
        draft = _draft_of(path)
        os.close(_open_draft(draft))
        draft.unlink()
    except (OSError, ValueError) as error:  # A NUL in the path is a ValueError.
        raise UsageError(
            f"pools cannot be kept in {str(path)!r} (node.pools_file): {error}; choose a file in a"
            " folder that the node may write to"
        ) from error


def _load(path: Path | None) -> dict[str, PoolConfig]:
    if path is None or not path.exists():
        return {}
    try:
        pools = json.loads(path.read_text())["pools"]
        return {check_name(name): _validated(settings) for name, settings in pools.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UsageError(f"{path} does not hold pools: {error}; repair or remove it") from error


def _secrets_of(config: PoolConfig, role: str) -> list[str]:
    given: tuple[SecretStr, ...] = getattr(config, role)
    path: Path | None = getattr(config, f"{role}_file")
    if path is None:
        return [secret.get_secret_value() for secret in given]
    return read_secrets(path)


def _plain(config: PoolConfig) -> dict[str, Any]:
    settings = config.model_dump(mode="json", exclude_unset=True)
    for role in _ROLES:
        if role in settings:
            settings[role] = [secret.get_secret_value() for secret in getattr(config, role)]
    return settings


def _describe(config: PoolConfig) -> dict[str, Any]:
    settings = config.model_dump(mode="json", exclude={f"{role}_file" for role in _ROLES})
    for role in _ROLES:
        settings[role] = len(_secrets_of(config, role))
    return settings
