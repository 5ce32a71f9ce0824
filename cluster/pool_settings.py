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
    columns = ("pool", "kind", "eviction", ">quota", ">default ttl", ">retained max", "secrets")
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


def create(address: str | None, name: str, given: Mapping[str, Any], *, as_json: bool) -> None:
    """Make a pool with the settings that are given, and show what it is then."""
    _apply(address, "pool_create", name, _given(given), as_json=as_json)


def change(address: str | None, name: str, given: Mapping[str, Any], *, as_json: bool) -> None:
    """Change a pool by the settings that are given, and show what it is then.

    Raises:
        NotFoundError: it is not there.
        UsageError: nothing is given.
    """
    settings = _given(given)
    if not settings:
        raise UsageError(f"nothing to change in the pool {name!r}: give --quota, --ttl or another")
    _find(address, name)
    _apply(address, "pool_change", name, settings, as_json=as_json)


def drop(address: str | None, name: str, *, as_json: bool) -> None:
    """Remove a pool.

    Raises:
        NotFoundError: it is not there.
    """
    _find(address, name)
    with open_store(address) as store:
        saved = store.admin("pool_drop", {"name": name})
    if as_json:
        print_json({"dropped": name, **saved})
    else:
        console().print(f"dropped {name}, {_saved_words(saved)}", markup=False)


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


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _apply(
    address: str | None, command: str, name: str, settings: dict[str, Any], *, as_json: bool
) -> None:
    with open_store(address) as store:
        saved = store.admin(command, {"name": name, "settings": settings})
    pool = _find(address, name)
    if as_json:
        print_json({"name": name, **pool, **saved})
    else:
        rows = [("pool", name), *_words(pool), ("change", _saved_words(saved))]
        console().print(facts(rows))


def _saved_words(saved: Mapping[str, Any]) -> str:
    if saved["saved"]:
        return f"saved in {saved['where']}"
    return f"not saved: {saved['reason']}"


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
        (
            "retained max",
            format_size(pool["retained_max"]) if pool["retained_max"] else "a quarter of the quota",
        ),
        ("secrets", ", ".join(counts) or "none: open to whoever reaches the node"),
    ]
