"""`python -m bench setup | bars | readme`: sets peers up, measures the bars, writes the figures."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence

from bench.bars import (
    cpu_growth,
    existence,
    large_values,
    memory_per_key,
    mooncake_transfers,
    quiet_neighbour,
    resp_idle,
    resp_large,
    resp_pipelined,
    resp_shards,
    resp_small,
    small_values,
)
from bench.peers import setup
from bench.picture import draw
from bench.readme import rewrite
from bench.record import FULL, RESULTS, SHORT, Comparison, Plan, table, write

BARS: dict[str, Callable[[Plan], Iterator[Comparison]]] = {
    "small-values": small_values.compare,
    "large-values": large_values.compare,
    "mooncake-transfers": mooncake_transfers.compare,
    "existence": existence.compare,
    "memory-per-key": memory_per_key.compare,
    "cpu-growth": cpu_growth.compare,
    "quiet-neighbour": quiet_neighbour.compare,
    "resp-small": resp_small.compare,
    "resp-pipelined": resp_pipelined.compare,
    "resp-large": resp_large.compare,
    "resp-shards": resp_shards.compare,
    "resp-idle": resp_idle.compare,
}


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status: 0 when every bar was measured and kept its limit."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="install the peers into build/peers")
    bars = commands.add_parser("bars", help="measure, print a table, write bench/results/")
    bars.add_argument("names", nargs="*", metavar="BAR", help=f"of {', '.join(BARS)}; else all")
    bars.add_argument("--full", action="store_true", help="more rounds, 10 million keys")
    commands.add_parser("readme", help="put the last figures into the README")
    chosen = parser.parse_args(arguments)
    if chosen.command == "readme":
        print(rewrite())
        return 0
    try:
        setup.set_up()
    except RuntimeError as error:  # A package is missing that only root may install.
        parser.exit(1, f"{error}\n")
    if chosen.command == "setup":
        return 0
    if unknown := set(chosen.names) - set(BARS):
        parser.error(f"no such bar: {', '.join(sorted(unknown))}; there are {', '.join(BARS)}")
    return _measure(chosen.names or list(BARS), FULL if chosen.full else SHORT)


def _measure(names: Sequence[str], plan: Plan) -> int:
    load_average = os.getloadavg()[0]
    comparisons: list[Comparison] = []
    broken: dict[str, Exception] = {}
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        try:
            comparisons += BARS[name](plan)
        except Exception as error:  # One broken bar must not hide what the others came to.
            traceback.print_exc()
            broken[name] = error
    path = write(comparisons, plan, load_average)
    print(table(comparisons))
    if comparisons:
        draw(comparisons, RESULTS / "bars.png")
    failed = sum(not comparison.passed for comparison in comparisons)
    print(f"{len(comparisons) - failed} passed, {failed} failed; {path} and bars.png beside it")
    for name, reason in broken.items():
        print(f"{name} could not be measured: {reason}")
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
