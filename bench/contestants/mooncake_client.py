"""A Mooncake Store client over TCP that holds no segment, so each value crosses a socket."""

import argparse
import ctypes
import mmap

from mooncake.store import MooncakeDistributedStore

from bench.contestants.loop import BatchContestant, serve

LOCAL_BUFFER_BYTES = 128 << 20


class MooncakeClient(BatchContestant):
    def __init__(self, port: int, master_port: int) -> None:
        self._store = MooncakeDistributedStore()
        self._check(
            self._store.setup(
                f"127.0.0.1:{port}",
                "P2PHANDSHAKE",
                0,
                LOCAL_BUFFER_BYTES,
                "tcp",
                "",
                f"127.0.0.1:{master_port}",
            ),
            "setup",
        )

    def adopt(self, memory: mmap.mmap) -> None:
        self._check(self._store.register_buffer(_address(memory), len(memory)), "register_buffer")

    def put(self, key: str, value: memoryview) -> None:
        self._check(self._store.put_from(key, _address(value), len(value)), "put_from")

    def get_into(self, key: str, buffer: memoryview) -> int:
        length: int = self._store.get_into(key, _address(buffer), len(buffer))
        return length

    def delete_many(self, keys: list[str]) -> None:
        for key in keys:
            self._check(self._store.remove(key, force=True), "remove")

    def exists_many(self, keys: list[str]) -> int:
        return sum(self._store.batch_is_exist(keys))

    def prefix_length(self, keys: list[str]) -> int:
        found = self._store.batch_is_exist(keys)
        return found.index(0) if 0 in found else len(found)

    @staticmethod
    def _check(status: int, call: str) -> None:
        if status != 0:
            raise RuntimeError(f"Mooncake's {call} answered {status}")


def _address(memory: mmap.mmap | memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--master-port", type=int, required=True)
    arguments = parser.parse_args()
    serve(MooncakeClient(arguments.port, arguments.master_port))
