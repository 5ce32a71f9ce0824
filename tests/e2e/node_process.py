"""A node in a process of its own: options come as a line of JSON, then questions, one a line."""

import json
import signal
import sys

from kvstrata import _kernel


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
    node = _kernel.Node(_kernel.NodeOptions(**options), [pool])
    node.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0 if node.stop(2_000) else 3))
    print(node.port, flush=True)
    for _ in sys.stdin:
        print(json.dumps(node.statistics()), flush=True)


if __name__ == "__main__":
    main()
