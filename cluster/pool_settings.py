"""The commands on pools: settings as people write them, sent to a node."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvstrata.cluster.access import open_store
from kvstrata.cluster.banner import ROLES
from kvstrata.cluster.exit_codes import NotFoundError
from kvstrata.cluster.output import console, facts, print_json, table
from kvstrata.store.errors import UsageError
from kvstrata.store.units import format_size


def list_pools(address: str | None, *, as_json: bool) -> None:
    """Show all pools."""
    pools = _pools(address)
    if as_json:
        print_json(pools)
        return
    rows = [(name, *(words for _, words in _words(pool))) for name, pool in pools.items()]
    columns = ("pool", "kind", "eviction", ">quota", ">default ttl", "secrets")
    console().print(table(*columns, rows=rows))


def show(address: str | None, name: str, *, as_json: bool) -> None:
    """Show one pool.

    Raises:
        NotFoundError: it is not there.
    """
    pool = _find(address, name)
    if as_json:
        print_json({"name": name, **pool})
    else:
        console().print(facts([("pool", name), *_words(pool)]))


def apply(
    address: str | None, command: str, name: str, given: Mapping[str, Any], *, as_json: bool
) -> None:
    """Create or change a pool by the settings that are given, and show what it is then."""
    settings = {key: value for key, value in given.items() if value is not None}
    if not settings:
        raise UsageError(f"nothing to change in the pool {name!r}: give --quota, --ttl or another")
    with open_store(address) as store:
        store.admin(command, {"name": name, "settings": settings})
    show(address, name, as_json=as_json)


def drop(address: str | None, name: str, *, as_json: bool) -> None:
    """Remove a pool.

    Raises:
        NotFoundError: it is not there.
    """
    _find(address, name)
    with open_store(address) as store:
        store.admin("pool_drop", {"name": name})
    if as_json:
        print_json({"dropped": name})
    else:
        console().print(f"dropped {name}", markup=False)


def secrets(given: Sequence[str], files: Sequence[str]) -> dict[str, list[str]]:
    """Secrets by role, of "role:secret" and "role:file" texts.

    Raises:
        UsageError: one has no known role, or a file cannot be read.
    """
    found: dict[str, list[str]] = {}
    for option, texts in (("--secret", given), ("--secret-file", files)):
        for text in texts:
            role, colon, rest = text.partition(":")
            if role not in ROLES or not colon or not rest:
                raise UsageError(
                    f"{option} begins with a role and a colon: read:, write: or admin:"
                )
            found.setdefault(role, []).extend(_read(rest) if option != "--secret" else [rest])
    return found


def _read(path: str) -> list[str]:
    try:
        return Path(path).read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the secrets in {path}: {error}") from error


def _pools(address: str | None) -> dict[str, dict[str, Any]]:
    with open_store(address) as store:
        return store.admin("pools")


def _find(address: str | None, name: str) -> dict[str, Any]:
    pools = _pools(address)
    if name not in pools:
        raise NotFoundError(f"there is no pool {name!r}; there are: {', '.join(pools)}")
    return pools[name]


def _words(pool: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = [f"{pool[role]} {role}" for role in ROLES if pool[role]]
    return [
        ("kind", pool["kind"]),
        ("eviction", pool["eviction"]),
        ("quota", format_size(pool["quota"]) if pool["quota"] else "all memory"),
        ("default ttl", f"{pool['ttl']:g} s" if pool["ttl"] else "forever"),
        ("secrets", ", ".join(counts) or "none: open to whoever reaches the node"),
    ]
