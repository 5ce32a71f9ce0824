"""A node in a process of its own: options come as a line of JSON, then questions, one a line."""

import json
import os
import signal
import sys
import threading

from kvstrata import _kernel


def stop_when_told(node: _kernel.Node) -> None:
    signal.sigwait([signal.SIGTERM])
    os._exit(0 if node.stop(2_000) else 3)


def main() -> None:
    options = json.loads(sys.stdin.readline())
    pool = _kernel.PoolOptions(
        "default",
        immutable=False,
        eviction="lru",
        quota_bytes=0,
        ttl_ms_default=0,
        retained_bytes_max=0,
        secrets=[],
        open_rights=3,
    )
    # A handler could come in between the interpreter's last look and the read it then sleeps in.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    node = _kernel.Node(_kernel.NodeOptions(**options), [pool])
    node.start()
    threading.Thread(target=stop_when_told, args=(node,), daemon=True).start()
    print(node.port, flush=True)
    for _ in sys.stdin:
        print(json.dumps(node.statistics()), flush=True)


if __name__ == "__main__":
    main()
