"""Fills stores with the keys that redis-benchmark will ask for, many a second.

The keys are what `redis-benchmark ... __rand_int__` makes: a prefix and 12 digits. Those of growing
stores have 32 bytes and values of 16, and may be millions.
"""

import random
import socket
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import kvstrata
from bench.redis_benchmark import key_name

KEY_PREFIX = b"bench:growing-store:"
KEY_BYTES = len(KEY_PREFIX) + 12
VALUE_BYTES = 16
_BATCH_LENGTH = 4096
_BATCH_BYTES = 1 << 20

Bytes2D = npt.NDArray[np.uint8]


def fill_valkey(port: int, key_count: int) -> None:
    """SET all keys through one connection, a batch of commands at a time."""
    head = b"*3\r\n$3\r\nSET\r\n$%d\r\n" % KEY_BYTES
    middle = b"\r\n$%d\r\n" % VALUE_BYTES
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as connection:
        for keys in _key_batches(key_count):
            parts = (head, keys, middle, keys[:, -VALUE_BYTES:], b"\r\n")
            connection.sendall(_columns(parts, len(keys)).tobytes())
            _expect(connection, b"+OK\r\n" * len(keys))


def fill_store(url: str, key_count: int) -> None:
    """Put all keys with `put_many`, a batch at a time.

    Raises:
        RuntimeError: the store has evicted keys: it would be measured with fewer than asked for.
    """
    with kvstrata.connect(url) as store:
        for keys in _key_batches(key_count):
            names = _names(keys)
            store.put_many({name: name[-VALUE_BYTES:] for name in names})
        if not all(store.exists_many(_names(next(_key_batches(key_count))))):
            raise RuntimeError(f"{url} has evicted some of {key_count} keys: give it more memory")


def fill_resp(port: int, key_count: int, value_bytes: int) -> None:
    """SET the keys of redis-benchmark's own tests, then see by their lengths that all are there.

    Raises:
        RuntimeError: a key was refused, or has been evicted.
    """
    value = random.Random(1).randbytes(value_bytes)
    length = max(1, min(_BATCH_LENGTH, _BATCH_BYTES // value_bytes))
    keys = [key_name(index) for index in range(key_count)]
    batches = [keys[start : start + length] for start in range(0, key_count, length)]
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as connection:
        for batch in batches:
            connection.sendall(b"".join(_command(b"SET", key, value) for key in batch))
            _expect(connection, b"+OK\r\n" * len(batch))
        for batch in batches:
            connection.sendall(b"".join(_command(b"STRLEN", key) for key in batch))
            _expect(connection, b":%d\r\n" % value_bytes * len(batch))


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def _names(keys: Bytes2D) -> list[bytes]:
    names: list[bytes] = keys.view(f"S{KEY_BYTES}").ravel().tolist()
    return names


def _key_batches(key_count: int) -> Iterator[Bytes2D]:
    for start in range(0, key_count, _BATCH_LENGTH):
        indices = np.arange(start, min(start + _BATCH_LENGTH, key_count), dtype=np.int64)
        digits = indices[:, None] // 10 ** np.arange(11, -1, -1, dtype=np.int64) % 10
        yield _columns((KEY_PREFIX, (digits + ord("0")).astype(np.uint8)), len(indices))


def _columns(parts: tuple[bytes | Bytes2D, ...], row_count: int) -> Bytes2D:
    """Rows of bytes side by side; `bytes` parts are the same in every row."""
    blocks = [
        np.broadcast_to(np.frombuffer(part, np.uint8), (row_count, len(part)))
        if isinstance(part, bytes)
        else part
        for part in parts
    ]
    return np.concatenate(blocks, axis=1)


def _expect(connection: socket.socket, replies: bytes) -> None:
    received = bytearray()
    while len(received) < len(replies):
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionError("the server closed the connection while it was filled")
        received += part
    if received != replies:
        raise RuntimeError(f"not the replies of a filled server: {bytes(received[:200])!r}")
