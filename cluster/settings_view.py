"""The commands on settings: what applies here, and where it came from."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from kvstrata.cluster.access import settings
from kvstrata.cluster.banner import secret_count
from kvstrata.cluster.listening import check_exposure
from kvstrata.cluster.output import console, print_json, table
from kvstrata.store.config import Shown
from kvstrata.store.pools import PoolRegistry


def check(path: Path, *, insecure: bool, as_json: bool) -> None:
    """Tell that a node would start with a file, as far as settings alone decide it.

    Args:
        insecure: judge it as `serve --insecure` does.

    Raises:
        UsageError: it would not, and why.
    """
    loaded = settings(path)
    config = loaded.config
    pools = PoolRegistry(config.pools, config.node.pools_file)
    pools.options()
    secret_counts = {name: secret_count(pool) for name, pool in pools.describe().items()}
    check_exposure(config, secret_counts, insecure=insecure)
    given = [origin for origin in loaded.origins.values() if origin == str(path)]
    if as_json:
        print_json({"file": path, "valid": True, "settings": len(given)})
    else:
        console().print(f"{path} is right; it sets {len(given)} values", markup=False)


def show(path: Path | None, *, origin: bool, as_json: bool) -> None:
    """Print all settings, by their dotted names: with units for people, as they are in JSON."""
    loaded = settings(path)
    values = dict(_leaves(loaded.config.model_dump(mode="json")))
    if as_json and origin:
        print_json(
            {name: {"value": v, "origin": loaded.origins[name]} for name, v in values.items()}
        )
        return
    if as_json:
        print_json(values)
        return
    values.update(_with_units(loaded.config))
    for name, pool in loaded.config.pools.items():
        values.update(_with_units(pool, f"pools.{name}."))
    if origin:
        rows = [(name, value, loaded.origins[name]) for name, value in values.items()]
        console().print(table("setting", "value", "origin", rows=rows))
    else:
        console().print(table("setting", "value", rows=values.items()))


def _with_units(section: BaseModel, above: str = "") -> Iterator[tuple[str, str]]:
    """The settings that have a unit, in words."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        for shown in field.metadata:
            if isinstance(shown, Shown):
                yield above + name, shown.words(value)
        if isinstance(value, BaseModel):
            yield from _with_units(value, f"{above}{name}.")


def _leaves(tree: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield above + name, value
