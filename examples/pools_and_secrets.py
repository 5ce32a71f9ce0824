"""Two tenants on one node: pools, and secrets that read, write or administer.

Runs `kvstrata serve` with the settings that stand beside this file, as an operator would.
"""

import subprocess
import sys
from pathlib import Path

import kvstrata

SETTINGS = Path(__file__).with_suffix(".toml")
SERVE = [sys.executable, "-m", "kvstrata", "serve", "--config", str(SETTINGS)]


def use(url: str) -> None:
    """Be each of the tenants in turn, at a node on this URL."""
    with (
        kvstrata.connect(url, pool="team-a", secret="team-a-writer") as writer,
        kvstrata.connect(url, pool="team-a", secret="team-a-reader") as reader,
        kvstrata.connect(url, pool="team-b", secret="team-b-writer") as other,
    ):
        writer.put("plan", b"of team a")
        print("its reader sees:", reader.get("plan"))
        print("another team sees:", other.get("plan"))
        for attempt in (
            lambda: reader.put("plan", b"changed by a reader"),
            lambda: writer.put("plan", b"changed in an immutable pool"),
            lambda: kvstrata.connect(url, pool="team-b", secret="guessed").get("plan"),
        ):
            try:
                attempt()
            except kvstrata.Error as error:
                print("refused:", error)

    with kvstrata.connect(url, secret="operator-secret") as operator:
        settings = {"kind": "immutable", "write": "team-c-writer"}
        operator.admin("pool_create", {"name": "team-c", "settings": settings})
        print("pools:", ", ".join(operator.admin("pools")))


# It says so in one line when it is ready: the word, and where it listens.
with subprocess.Popen(SERVE, stdout=subprocess.PIPE, text=True) as node:
    try:
        assert node.stdout is not None
        ready, address = node.stdout.readline().split()
        assert ready == "ready"
        use(address)
    finally:
        node.terminate()
        print("the node ended with", node.wait(timeout=30))
