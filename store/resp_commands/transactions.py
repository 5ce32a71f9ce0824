"""Commands that run others together."""

from typing import Final

from kvstrata.store.resp_commands.command import Command, Keys

TRANSACTIONS: Final = (
    Command(
        "multi",
        1,
        ("noscript", "loading", "stale", "fast", "no_multi", "allow_busy"),
        group="transactions",
        since="1.2.0",
        complexity="O(1)",
        summary="Begins a transaction.",
        categories=("transaction",),
    ),
    Command(
        "exec",
        1,
        ("noscript", "loading", "stale", "skip_commandlog"),
        group="transactions",
        since="1.2.0",
        complexity="As its commands",
        summary="Runs a transaction's commands.",
        categories=("transaction",),
    ),
    Command(
        "discard",
        1,
        ("noscript", "loading", "stale", "fast", "allow_busy"),
        group="transactions",
        since="2.0.0",
        complexity="O(N) for N queued commands",
        summary="Drops a transaction.",
        categories=("transaction",),
    ),
    Command(
        "watch",
        -2,
        ("noscript", "loading", "stale", "fast", "no_multi", "allow_busy"),
        group="transactions",
        since="2.2.0",
        complexity="O(N) for N keys",
        summary="Makes the next transaction depend on keys staying as they are.",
        categories=("transaction",),
        keys=Keys(last=-1, access=("RO",)),
        syntax="key*",
    ),
    Command(
        "unwatch",
        1,
        ("noscript", "loading", "stale", "fast", "allow_busy"),
        group="transactions",
        since="2.2.0",
        complexity="O(1)",
        summary="Forgets the keys that were watched.",
        categories=("transaction",),
    ),
)
