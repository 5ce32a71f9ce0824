"""The door of kvstrata: the names a user needs, each imported when first asked for.

Installed as `kvstrata/__init__.py`. Inside the package nobody imports from here.
"""

from importlib import import_module, metadata

_HOMES = {
    "AsyncStore": "kvstrata.store.client",
    "PutResult": "kvstrata.store.client",
    "Store": "kvstrata.store.client",
    "connect": "kvstrata.store.client",
    "connect_async": "kvstrata.store.client",
    "local": "kvstrata.store.client",
    "BusyError": "kvstrata.store.errors",
    "CorruptError": "kvstrata.store.errors",
    "DeniedError": "kvstrata.store.errors",
    "Error": "kvstrata.store.errors",
    "InternalError": "kvstrata.store.errors",
    "TimeoutError": "kvstrata.store.errors",
    "UnavailableError": "kvstrata.store.errors",
    "UsageError": "kvstrata.store.errors",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = metadata.version("kvstrata")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "__version__"})
