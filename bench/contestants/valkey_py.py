"""The valkey-py client with its compiled parser, libvalkey."""

import argparse

import valkey
from valkey.utils import LIBVALKEY_AVAILABLE

from bench.contestants.loop import Contestant, serve


class ValkeyPy(Contestant):
    def __init__(self, port: int) -> None:
        if not LIBVALKEY_AVAILABLE:
            raise RuntimeError("libvalkey is missing: the bar is against the fast parser")
        self._client = valkey.Valkey(host="127.0.0.1", port=port, socket_timeout=30.0)

    def put(self, key: str, value: memoryview) -> None:
        self._client.set(key, value)

    def get_into(self, key: str, buffer: memoryview) -> int:
        value = self._client.get(key)
        assert isinstance(value, bytes)
        buffer[: len(value)] = value
        return len(value)

    def delete_many(self, keys: list[str]) -> None:
        self._client.delete(*keys)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    serve(ValkeyPy(parser.parse_args().port))
