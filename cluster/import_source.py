"""A running Valkey as `import` reads it: its keys page by page, strings with their time to live.

One server is read; of a cluster of several, each by an import of its own.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

from kvstrata.store.errors import DeniedError, Error, UnavailableError, UsageError

SCHEMES: Final = ("valkey", "valkeys", "redis", "rediss", "unix")
STRING: Final = "string"
_TIMEOUT_S: Final = 60.0
_NO_EXPIRY_MS: Final = -1


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a key before its value is read.

    Attributes:
        kind: Valkey's name of its type; "none": it is gone.
        size: bytes of a string; 0 for everything else.
    """

    key: bytes
    kind: str
    size: int


@dataclass(frozen=True, slots=True)
class Found:
    """A string as it was.

    Attributes:
        expires_at: on `time.monotonic`'s clock; None: never.
    """

    key: bytes
    value: bytes
    expires_at: float | None


class ValkeySource:
    """One connection to one server and database; a context manager.

    Its methods raise UnavailableError if the server does not answer, DeniedError if it wants other
    credentials, and Error for what else it refuses.

    Args:
        address: valkey://user:password@host:6379/0, or another of the schemes that valkey-py knows.

    Raises:
        UsageError: it is no such address, or valkey-py is not installed.
    """

    def __init__(self, address: str) -> None:
        self._valkey = _library()
        self.name = _shown(address)
        try:
            self._client: Any = self._valkey.Valkey.from_url(
                address, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
            )
        except ValueError as error:
            raise UsageError(f"{self.name} is no address of a Valkey: {error}") from error
        with self._told():
            server = self._client.info("server")
            cluster = self._client.info("cluster")
        # Drawn anew with each start of the server, as the meaning of its cursors is.
        self.run_id = str(server["run_id"])
        self._in_cluster = bool(cluster.get("cluster_enabled"))

    def key_count(self) -> int:
        """How many keys of any type there are now."""
        with self._told():
            return int(self._client.dbsize())

    def page(self, cursor: int, pattern: str, count: int) -> tuple[int, list[bytes]]:
        """Some keys, and the cursor of the next page; 0 begins, and ends.

        Every key that is there from the first page to the last is met; some are met twice.
        """
        with self._told():
            after, keys = self._client.scan(cursor, match=pattern or None, count=count)
        return int(after), list(keys)

    def describe(self, keys: Sequence[bytes]) -> list[Described]:
        """What each key is, in order."""
        kinds = [bytes(each).decode() for each in self._ask("TYPE", keys)]
        strings = [key for key, kind in zip(keys, kinds, strict=True) if kind == STRING]
        lengths = dict(zip(strings, self._ask("STRLEN", strings), strict=True))
        return [
            Described(key, kind, lengths.get(key) or 0)
            for key, kind in zip(keys, kinds, strict=True)
        ]

    def read(self, keys: Sequence[bytes]) -> Iterator[Found | None]:
        """The strings, in order; None for what is no string any more.

        Value and expiry belong together, but for a server of a cluster: there a key that is set
        anew in between may get the expiry that it had.
        """
        with self._told():
            asked_at = time.monotonic()
            pipeline = self._client.pipeline(transaction=not self._in_cluster)
            for key in keys:
                pipeline.pttl(key)
                pipeline.get(key)
            answers = self._without_wrong_types(pipeline)
        for key, left_ms, value in zip(keys, answers[::2], answers[1::2], strict=True):
            if value is None:
                yield None
            elif left_ms == _NO_EXPIRY_MS:
                yield Found(key, value, None)
            else:
                yield Found(key, value, asked_at + left_ms / 1000)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str, keys: Iterable[bytes]) -> list[Any]:
        with self._told():
            pipeline = self._client.pipeline(transaction=False)
            for key in keys:
                pipeline.execute_command(command, key)
            return self._without_wrong_types(pipeline)

    def _without_wrong_types(self, pipeline: Any) -> list[Any]:  # noqa: ANN401
        """The answers, None in place of those for keys that became something else meanwhile."""
        answers = pipeline.execute(raise_on_error=False)
        for at, answer in enumerate(answers):
            if isinstance(answer, self._valkey.exceptions.ResponseError):
                if not str(answer).startswith("WRONGTYPE"):
                    raise answer
                answers[at] = None
        return list(answers)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """valkey-py's errors in our terms."""
        errors = self._valkey.exceptions
        try:
            yield
        except (errors.AuthenticationError, errors.NoPermissionError) as error:
            raise DeniedError(f"{self.name} refuses: {error}") from error
        except (errors.ConnectionError, errors.TimeoutError) as error:
            raise UnavailableError(f"{self.name} does not answer: {error}") from error
        except errors.ValkeyError as error:
            raise Error(f"{self.name} refuses: {error}") from error


def _library() -> Any:  # noqa: ANN401
    try:
        import valkey
    except ImportError as error:
        raise UsageError(
            "reading from a Valkey needs valkey-py: pip install 'kvstrata[valkey]'"
        ) from error
    return valkey


def _shown(address: str) -> str:
    """The address without credentials and query."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"the address of the Valkey makes no sense: {error}") from error
    if parts.scheme not in SCHEMES:
        raise UsageError(
            f"import reads from valkey://host:port, not from {parts.scheme or 'nothing'}://:"
            f" the schemes are {', '.join(SCHEMES)}"
        )
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"
