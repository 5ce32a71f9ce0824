"""The door of kvstrata: the names a user needs, each imported when first asked for.

Installed as `kvstrata/__init__.py`. Inside the package nobody imports from here.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # For checkers and editors, which do not run `__getattr__`.
    __version__: str

    from kvstrata._kernel import (
        Region as Region,
    )
    from kvstrata.store.async_client import (
        AsyncStore as AsyncStore,
    )
    from kvstrata.store.async_client import (
        connect_async as connect_async,
    )
    from kvstrata.store.client import (
        Store as Store,
    )
    from kvstrata.store.client import (
        connect as connect,
    )
    from kvstrata.store.config import (
        PoolConfig as PoolConfig,
    )
    from kvstrata.store.errors import (
        BatchError as BatchError,
    )
    from kvstrata.store.errors import (
        BusyError as BusyError,
    )
    from kvstrata.store.errors import (
        ChangedError as ChangedError,
    )
    from kvstrata.store.errors import (
        CorruptError as CorruptError,
    )
    from kvstrata.store.errors import (
        DeniedError as DeniedError,
    )
    from kvstrata.store.errors import (
        Error as Error,
    )
    from kvstrata.store.errors import (
        ImmutableError as ImmutableError,
    )
    from kvstrata.store.errors import (
        InternalError as InternalError,
    )
    from kvstrata.store.errors import (
        MismatchError as MismatchError,
    )
    from kvstrata.store.errors import (
        NoSpaceError as NoSpaceError,
    )
    from kvstrata.store.errors import (
        TimeoutError as TimeoutError,
    )
    from kvstrata.store.errors import (
        TooLargeError as TooLargeError,
    )
    from kvstrata.store.errors import (
        TooSmallError as TooSmallError,
    )
    from kvstrata.store.errors import (
        UnavailableError as UnavailableError,
    )
    from kvstrata.store.errors import (
        UnsupportedError as UnsupportedError,
    )
    from kvstrata.store.errors import (
        UsageError as UsageError,
    )
    from kvstrata.store.local import (
        LocalStore as LocalStore,
    )
    from kvstrata.store.local import (
        local as local,
    )
    from kvstrata.store.results import (
        KeyInfo as KeyInfo,
    )
    from kvstrata.store.results import (
        ObjectStat as ObjectStat,
    )
    from kvstrata.store.results import (
        Outcome as Outcome,
    )
    from kvstrata.store.results import (
        PutResult as PutResult,
    )
    from kvstrata.store.results import (
        RangeResult as RangeResult,
    )
    from kvstrata.store.results import (
        Retained as Retained,
    )
    from kvstrata.store.results import (
        Transport as Transport,
    )
    from kvstrata.store.retention import (
        AsyncRetention as AsyncRetention,
    )
    from kvstrata.store.retention import (
        Retention as Retention,
    )

_NAMES = {
    "kvstrata._kernel": ("Region",),
    "kvstrata.store.async_client": (
        "AsyncStore",
        "connect_async",
    ),
    "kvstrata.store.client": (
        "Store",
        "connect",
    ),
    "kvstrata.store.config": ("PoolConfig",),
    "kvstrata.store.errors": (
        "BatchError",
        "BusyError",
        "ChangedError",
        "CorruptError",
        "DeniedError",
        "Error",
        "ImmutableError",
        "InternalError",
        "MismatchError",
        "NoSpaceError",
        "TimeoutError",
        "TooLargeError",
        "TooSmallError",
        "UnavailableError",
        "UnsupportedError",
        "UsageError",
    ),
    "kvstrata.store.local": (
        "LocalStore",
        "local",
    ),
    "kvstrata.store.results": (
        "KeyInfo",
        "ObjectStat",
        "Outcome",
        "PutResult",
        "RangeResult",
        "Retained",
        "Transport",
    ),
    "kvstrata.store.retention": (
        "AsyncRetention",
        "Retention",
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # To which a misspelt name would then look right.

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
    return sorted([*_HOMES, "__version__"])
