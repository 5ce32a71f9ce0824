"""Commands about the connection itself."""

from typing import Final

from kvstrata.store.resp_commands.command import Command

CONNECTION: Final = (
    Command(
        "ping",
        -1,
        ("fast",),
        group="connection",
        since="1.0.0",
        complexity="O(1)",
        summary="Answers PONG, or the message given.",
        categories=("connection",),
        tips=("request_policy:all_shards", "response_policy:all_succeeded"),
        syntax="[message]",
    ),
    Command(
        "echo",
        2,
        ("loading", "stale", "fast"),
        group="connection",
        since="1.0.0",
        complexity="O(1)",
        summary="Answers with its argument.",
        categories=("connection",),
        syntax="message",
    ),
    Command(
        "hello",
        -1,
        ("noscript", "loading", "stale", "fast", "no_auth", "allow_busy"),
        group="connection",
        since="6.0.0",
        complexity="O(1)",
        summary="Chooses the version of the protocol and says who serves it.",
        categories=("connection",),
        syntax=(
            "[arguments{protover:integer [AUTH auth{username password}] [SETNAME clientname]}]"
        ),
    ),
    Command(
        "auth",
        -2,
        ("noscript", "loading", "stale", "fast", "no_auth", "allow_busy"),
        group="connection",
        since="1.0.0",
        complexity="O(N) for N pools",
        summary="Proves the right to use a pool.",
        categories=("connection",),
        syntax="[username@6.0.0] password",
    ),
    Command(
        "select",
        2,
        ("loading", "stale", "fast", "allow_busy"),
        group="connection",
        since="1.0.0",
        complexity="O(1)",
        summary="Chooses the database; there is only number 0.",
        categories=("connection",),
        syntax="index:integer",
    ),
    Command(
        "quit",
        -1,
        ("noscript", "loading", "stale", "fast", "no_auth", "allow_busy"),
        group="connection",
        since="1.0.0",
        complexity="O(1)",
        summary="Ends the connection.",
        categories=("connection",),
    ),
    Command(
        "reset",
        1,
        ("noscript", "loading", "stale", "fast", "no_auth", "allow_busy"),
        group="connection",
        since="6.2.0",
        complexity="O(1)",
        summary="Takes a connection back to how it began.",
        categories=("connection",),
    ),
)
