"""The process that lends Mooncake its memory; runs until it is terminated."""

import argparse
import signal
from pathlib import Path

from mooncake.store import MooncakeDistributedStore


def hold(port: int, master_port: int, segment_bytes: int, ready_file: Path) -> None:
    """Mount a segment, create `ready_file` to say so, and wait for SIGTERM.

    Raises:
        RuntimeError: Mooncake's setup failed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    store = MooncakeDistributedStore()
    address, master = f"127.0.0.1:{port}", f"127.0.0.1:{master_port}"
    status = store.setup(address, "P2PHANDSHAKE", segment_bytes, 64 << 20, "tcp", "", master)
    if status != 0:
        raise RuntimeError(f"Mooncake's setup answered {status}")
    ready_file.touch()
    signal.sigwait([signal.SIGTERM])
    ready_file.unlink()
    store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--master-port", type=int, required=True)
    parser.add_argument("--segment-bytes", type=int, required=True)
    parser.add_argument("--ready-file", type=Path, required=True)
    arguments = parser.parse_args()
    hold(arguments.port, arguments.master_port, arguments.segment_bytes, arguments.ready_file)
