"""KVStrata's own client, as a user would call it."""

import argparse

import kvstrata
from bench.contestants.loop import BatchContestant, serve


class KvstrataClient(BatchContestant):
    def __init__(self, url: str) -> None:
        self._store = kvstrata.connect(url)

    def put(self, key: str, value: memoryview) -> None:
        self._store.put(key, value)

    def get_into(self, key: str, buffer: memoryview) -> int:
        length = self._store.get_into(key, buffer)
        if length is None:
            raise RuntimeError(f"{key} is not there")
        return length

    def delete_many(self, keys: list[str]) -> None:
        self._store.delete_many(keys)

    def exists_many(self, keys: list[str]) -> int:
        return sum(self._store.exists_many(keys))

    def prefix_length(self, keys: list[str]) -> int:
        return self._store.prefix_length(keys)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    serve(KvstrataClient(parser.parse_args().url))
