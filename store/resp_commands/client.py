"""Commands about connections, one's own and others'."""

from typing import Final

from kvstrata.store.resp_commands.command import Command

CLIENT: Final = (
    Command(
        "client",
        -2,
        (),
        group="connection",
        since="2.4.0",
        complexity="As the subcommand",
        summary="Commands about connections.",
    ),
    Command(
        "client|id",
        2,
        ("noscript", "loading", "stale", "allow_busy"),
        group="connection",
        since="5.0.0",
        complexity="O(1)",
        summary="Tells the connection's number.",
        categories=("connection",),
    ),
    Command(
        "client|info",
        2,
        ("noscript", "loading", "stale"),
        group="connection",
        since="6.2.0",
        complexity="O(1)",
        summary="Describes this connection.",
        categories=("connection",),
        tips=("nondeterministic_output",),
    ),
    Command(
        "client|list",
        -2,
        ("admin", "noscript", "loading", "stale"),
        group="connection",
        since="2.4.0",
        complexity="O(N) for N connections",
        summary="Describes open connections, one a line.",
        categories=("connection",),
        tips=("nondeterministic_output",),
        syntax=(
            "[TYPE client-type(NORMAL|MASTER|REPLICA|PUBSUB)@5.0.0] [ID "
            "client-id:integer@6.2.0*] [USER username@8.1.0] [ADDR addr=ip:port@8.1.0] "
            "[LADDR laddr=ip:port@8.1.0] [SKIPME skipme(YES|NO)@8.1.0] [MAXAGE "
            "maxage:integer@8.1.0] [NAME name@9.0.0] [IDLE idle:integer@9.0.0] [FLAGS "
            "flags@9.0.0] [LIB-NAME lib-name@9.0.0] [LIB-VER lib-ver@9.0.0] [DB "
            "db:integer@9.0.0] [CAPA capa@9.0.0] [IP ip@9.0.0] [NOT-TYPE "
            "not-client-type(NORMAL|MASTER|REPLICA|PUBSUB)@9.0.0] [NOT-ID "
            "not-client-id:integer@9.0.0*] [NOT-USER not-username@9.0.0] [NOT-ADDR "
            "not-addr=ip:port@9.0.0] [NOT-LADDR not-laddr=ip:port@9.0.0] [NOT-NAME "
            "not-name@9.0.0] [NOT-FLAGS not-flags@9.0.0] [NOT-LIB-NAME not-lib-name@9.0.0] "
            "[NOT-LIB-VER not-lib-ver@9.0.0] [NOT-DB not-db:integer@9.0.0] [NOT-CAPA "
            "not-capa@9.0.0] [NOT-IP not-ip@9.0.0]"
        ),
    ),
    Command(
        "client|kill",
        -3,
        ("admin", "noscript", "loading", "stale"),
        group="connection",
        since="2.4.0",
        complexity="O(N) for N connections",
        summary="Closes connections.",
        categories=("connection",),
        syntax=(
            "filter(old-format=ip:port!2.8.12|new-format([ID "
            "client-id:integer@2.8.12*]|[TYPE "
            "client-type(NORMAL|MASTER@3.2.0|PRIMARY@8.0.0|SLAVE|REPLICA@5.0.0|PUBSUB)@2.8.12]|"
            "[USER username]|[ADDR addr=ip:port]|[LADDR laddr=ip:port@6.2.0]|[SKIPME "
            "skipme(YES|NO)]|[MAXAGE maxage:integer@8.0.0]|[NAME name@9.0.0]|[IDLE "
            "idle:integer@9.0.0]|[FLAGS flags@9.0.0]|[LIB-NAME lib-name@9.0.0]|[LIB-VER "
            "lib-ver@9.0.0]|[DB db:integer@9.0.0]|[CAPA capa@9.0.0]|[IP ip@9.0.0]|[NOT-TYPE "
            "not-client-type(NORMAL|MASTER|PRIMARY|SLAVE|REPLICA|PUBSUB)@9.0.0]|[NOT-ID "
            "not-client-id:integer@9.0.0*]|[NOT-USER not-username@9.0.0]|[NOT-ADDR "
            "not-addr=ip:port@9.0.0]|[NOT-LADDR not-laddr=ip:port@9.0.0]|[NOT-NAME "
            "not-name@9.0.0]|[NOT-FLAGS not-flags@9.0.0]|[NOT-LIB-NAME "
            "not-lib-name@9.0.0]|[NOT-LIB-VER not-lib-ver@9.0.0]|[NOT-DB "
            "not-db:integer@9.0.0]|[NOT-CAPA not-capa@9.0.0]|[NOT-IP not-ip@9.0.0])*)"
        ),
    ),
    Command(
        "client|setname",
        3,
        ("noscript", "loading", "stale", "allow_busy"),
        group="connection",
        since="2.6.9",
        complexity="O(1)",
        summary="Names the connection.",
        categories=("connection",),
        tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
        syntax="connection-name",
    ),
    Command(
        "client|getname",
        2,
        ("noscript", "loading", "stale", "allow_busy"),
        group="connection",
        since="2.6.9",
        complexity="O(1)",
        summary="Tells the connection's name.",
        categories=("connection",),
    ),
    Command(
        "client|setinfo",
        4,
        ("noscript", "loading", "stale", "allow_busy"),
        group="connection",
        since="7.2.0",
        complexity="O(1)",
        summary="Notes the client's library and its version.",
        categories=("connection",),
        tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
        syntax="attr(LIB-NAME libname|LIB-VER libver)",
    ),
    Command(
        "client|no-evict",
        3,
        ("admin", "noscript", "loading", "stale", "allow_busy"),
        group="connection",
        since="7.0.0",
        complexity="O(1)",
        summary="Asks to be spared when connections are closed for want of memory.",
        categories=("connection",),
        syntax="enabled(ON|OFF)",
    ),
    Command(
        "client|no-touch",
        3,
        ("noscript", "loading", "stale", "allow_busy"),
        group="connection",
        since="7.2.0",
        complexity="O(1)",
        summary="Reads keys without counting that as a use of them.",
        categories=("connection",),
        syntax="enabled(ON|OFF)",
    ),
    Command(
        "client|reply",
        3,
        ("noscript", "loading", "stale", "no_multi", "allow_busy"),
        group="connection",
        since="3.2.0",
        complexity="O(1)",
        summary="Turns replies on or off, or leaves out the next.",
        categories=("connection",),
        syntax="action(ON|OFF|SKIP)",
    ),
    Command(
        "client|tracking",
        -3,
        ("noscript", "loading", "stale"),
        group="connection",
        since="6.0.0",
        complexity="O(1)",
        summary="Tells changes of keys that the client caches.",
        categories=("connection",),
        syntax=(
            "status(ON|OFF) [REDIRECT client-id:integer] [PREFIX prefix**] [BCAST] [OPTIN] "
            "[OPTOUT] [NOLOOP]"
        ),
    ),
)
