"""Each command of the table with a maker of its arguments, and how often it is chosen.

What follows from the time of a server's clock is left out: times to live are so long that they
do not pass, or in the past already, or pass in a pause that stands in the sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.differential.words import Words

PAST_S: Final = 1_000_000_000
FUTURE_S: Final = 4_000_000_000
SHORT_MS: Final = 15
PAUSE_S: Final = 0.04

Make = Callable[[Words], list[bytes]]


@dataclass(frozen=True, slots=True)
class Step:
    """One command on one connection, and how long nobody sends anything behind it."""

    arguments: tuple[bytes, ...]
    client: int = 0
    pause_s: float = 0.0

    def __str__(self) -> str:
        words = b" ".join(a if len(a) < 60 else a[:20] + b"..." for a in self.arguments)
        pause = f", then {self.pause_s} s" if self.pause_s else ""
        return f"{self.client}: {words!r}{pause}"


def seconds(words: Words) -> bytes:
    """Hardly ever twice the same, so that GT and LT do not turn on a millisecond."""
    usual = b"%d" % words.random.randrange(1_000, 1_000_000)
    return words.wrong_lifetime() if words.chance(0.15) else usual


def milliseconds(words: Words) -> bytes:
    usual = b"%d" % words.random.randrange(1_000_000, 1_000_000_000)
    return words.wrong_lifetime() if words.chance(0.15) else usual


def unix_s(words: Words) -> bytes:
    near = words.random.choice([PAST_S, FUTURE_S, FUTURE_S + words.random.randrange(1000)])
    return words.number() if words.chance(0.15) else b"%d" % near


def unix_ms(words: Words) -> bytes:
    near = words.random.choice([PAST_S, FUTURE_S, FUTURE_S + words.random.randrange(1000)])
    return words.number() if words.chance(0.15) else b"%d" % (near * 1000 + 7)


def lifetime(words: Words) -> list[bytes]:
    name, make = words.random.choice(
        [(b"EX", seconds), (b"PX", milliseconds), (b"EXAT", unix_s), (b"PXAT", unix_ms)]
    )
    return [words.spelled(name), make(words)]


def set_options(words: Words) -> list[bytes]:
    options: list[list[bytes]] = [
        words.maybe(0.3, words.one(b"NX", b"XX", b"nx")),
        words.maybe(0.1, b"IFEQ", words.value()),
        words.maybe(0.25, words.one(b"GET", b"get")),
        words.maybe(0.15, b"KEEPTTL"),
        lifetime(words) if words.chance(0.3) else [],
    ]
    words.random.shuffle(options)
    return [argument for option in options for argument in option]


def pairs(words: Words) -> list[bytes]:
    return [part for key in words.some_keys() for part in (key, words.value())]


def pairs_of_one_slot(words: Words) -> list[bytes]:
    return [part for key in words.keys_of_one_slot() for part in (key, words.value())]


def msetex(words: Words) -> list[bytes]:
    data = pairs_of_one_slot(words)
    count = words.number() if words.chance(0.15) else b"%d" % (len(data) // 2)
    options = words.maybe(0.3, words.one(b"NX", b"XX"))
    options += lifetime(words) if words.chance(0.5) else words.maybe(0.3, b"KEEPTTL")
    return [count, *data, *options]


def getex(words: Words) -> list[bytes]:
    option = lifetime(words) if words.chance(0.6) else words.maybe(0.5, b"PERSIST")
    return [words.key(), *option]


def expire(make: Callable[[Words], bytes]) -> Make:
    def arguments(words: Words) -> list[bytes]:
        conditions = [words.one(b"NX", b"XX", b"GT", b"LT", b"gt") for _ in range(2)]
        return [words.key(), make(words), *conditions[: words.random.choice([0, 0, 1, 1, 2])]]

    return arguments


def scan(words: Words) -> list[bytes]:
    cursor = words.number() if words.chance(0.15) else b"0"
    options: list[list[bytes]] = [
        words.maybe(0.5, b"MATCH", words.pattern()),
        # So much that one step goes through all keys.
        [b"COUNT", words.number() if words.chance(0.1) else b"100000"],
        words.maybe(0.2, b"TYPE", words.one(b"string", b"STRING", b"list", b"nonsense")),
    ]
    words.random.shuffle(options)
    return [cursor, *(argument for option in options for argument in option)]


def one_key(words: Words) -> list[bytes]:
    return [words.key()]


def many_keys(words: Words) -> list[bytes]:
    return words.some_keys()


def nothing(_: Words) -> list[bytes]:
    return []


def flush(words: Words) -> list[bytes]:
    return words.maybe(0.4, words.one(b"ASYNC", b"SYNC", b"LATER"))


DATA: Final[dict[str, tuple[int, Make]]] = {
    "SET": (30, lambda w: [w.key(), w.value(), *set_options(w)]),
    "GET": (25, one_key),
    "GETEX": (6, getex),
    "GETDEL": (4, one_key),
    "GETSET": (4, lambda w: [w.key(), w.value()]),
    "SETNX": (4, lambda w: [w.key(), w.value()]),
    "SETEX": (4, lambda w: [w.key(), seconds(w), w.value()]),
    "PSETEX": (4, lambda w: [w.key(), milliseconds(w), w.value()]),
    "MGET": (8, many_keys),
    "MSET": (6, pairs),
    "MSETNX": (5, pairs_of_one_slot),
    "MSETEX": (5, msetex),
    "APPEND": (8, lambda w: [w.key(), w.value()]),
    "STRLEN": (6, one_key),
    "GETRANGE": (8, lambda w: [w.key(), w.number(), w.number()]),
    "INCR": (8, one_key),
    "DECR": (6, one_key),
    "INCRBY": (6, lambda w: [w.key(), w.number()]),
    "DECRBY": (6, lambda w: [w.key(), w.number()]),
    "DEL": (6, many_keys),
    "UNLINK": (4, many_keys),
    "DELIFEQ": (5, lambda w: [w.key(), w.value()]),
    "EXISTS": (6, many_keys),
    "TYPE": (4, one_key),
    "TTL": (6, one_key),
    "PTTL": (6, one_key),
    "EXPIRE": (8, expire(seconds)),
    "PEXPIRE": (6, expire(milliseconds)),
    "EXPIREAT": (6, expire(unix_s)),
    "PEXPIREAT": (6, expire(unix_ms)),
    "EXPIRETIME": (5, one_key),
    "PEXPIRETIME": (5, one_key),
    "PERSIST": (6, one_key),
    "TOUCH": (4, many_keys),
    "SCAN": (6, scan),
    "KEYS": (5, lambda w: [w.pattern()]),
    "DBSIZE": (4, nothing),
    "RANDOMKEY": (3, nothing),
    "FLUSHDB": (1, flush),
    "FLUSHALL": (1, flush),
    "MEMORY USAGE": (3, lambda w: [w.key(), *w.maybe(0.3, b"SAMPLES", w.number())]),
    "OBJECT ENCODING": (5, one_key),
    "OBJECT IDLETIME": (3, one_key),
    "OBJECT FREQ": (3, one_key),
    "OBJECT REFCOUNT": (3, one_key),
}
TRANSACTIONS: Final[dict[str, tuple[int, Make]]] = {
    "MULTI": (20, nothing),
    "EXEC": (20, nothing),
    "DISCARD": (3, nothing),
    "WATCH": (12, many_keys),
    "UNWATCH": (3, nothing),
}
NAMES: Final = [
    *(b"get", b"SET", b"mset", b"MSETEX", b"watch", b"memory|usage", b"object|freq", b"ping"),
    *(b"nonsense", b"get|set", b""),
]
TALK: Final[dict[str, tuple[int, Make]]] = {
    "PING": (4, lambda w: w.maybe(0.5, w.value())),
    "ECHO": (4, lambda w: [w.value()]),
    "SELECT": (3, lambda w: [w.one(b"0", b"0", b"1", b"-1", b"abc", b"99999999999")]),
    "AUTH": (
        2,
        lambda w: [*w.maybe(0.5, w.one(b"default", b"nobody")), w.one(b"x", b"")],
    ),
    "RESET": (1, nothing),
    "QUIT": (1, lambda w: w.maybe(0.2, b"x")),
    "TIME": (2, nothing),
    "WAIT": (2, lambda w: [w.one(b"0", b"-1", b"x", b"1"), w.one(b"1", b"1", b"-1", b"x")]),
    "CLIENT ID": (2, nothing),
    "CLIENT INFO": (2, nothing),
    "CLIENT SETNAME": (3, lambda w: [w.one(b"me", b"you", b"", b"a b", b"a\nb", b"\xff")]),
    "CLIENT GETNAME": (3, nothing),
    "CLIENT SETINFO": (
        3,
        lambda w: [w.one(b"lib-name", b"LIB-VER", b"lib"), w.one(b"x", b"", b"a b", b"1.2")],
    ),
    "CLIENT NO-EVICT": (2, lambda w: [w.one(b"on", b"OFF", b"maybe")]),
    "CLIENT NO-TOUCH": (2, lambda w: [w.one(b"ON", b"off", b"maybe")]),
    "CLIENT TRACKING": (2, lambda w: [w.one(b"off", b"OFF", b"maybe")]),
    "CLIENT KILL": (
        3,
        lambda w: w.random.choice(
            [
                [b"1.2.3.4:5"],
                [b"ID", b"999999999"],
                [b"ID", b"x"],
                [b"TYPE", b"pubsub"],
                [b"TYPE", b"nonsense"],
                [b"ADDR", b"1.2.3.4:5", b"SKIPME", b"yes"],
                [b"USER", b"nobody"],
                [b"SKIPME", b"perhaps"],
                [b"MAXAGE", b"1000000"],
                [b"MAXAGE", b"-1"],
                [b"LADDR", b"1.2.3.4:5"],
                [b"ID"],
            ]
        ),
    ),
    "CLIENT LIST": (
        2,
        lambda w: w.random.choice(
            [[], [b"TYPE", b"replica"], [b"TYPE", b"x"], [b"ID", b"0"], [b"ID"], [b"x", b"y"]]
        ),
    ),
    "COMMAND COUNT": (1, nothing),
    "COMMAND INFO": (2, lambda w: [w.one(*NAMES) for _ in range(w.random.randint(1, 3))]),
    "COMMAND DOCS": (2, lambda w: [w.one(*NAMES) for _ in range(w.random.randint(1, 2))]),
    "COMMAND GETKEYS": (4, lambda w: [w.one(*NAMES), *w.some_keys(5)]),
    "COMMAND LIST": (
        2,
        lambda w: w.random.choice(
            [
                [],
                [b"FILTERBY", b"PATTERN", b"get*"],
                [b"filterby", b"aclcat", b"string"],
                [b"FILTERBY", b"ACLCAT", b"nonsense"],
                [b"FILTERBY", b"MODULE", b"nonsense"],
                [b"FILTERBY", b"COLOUR", b"red"],
                [b"FILTERBY"],
            ]
        ),
    ),
    "INFO": (2, lambda w: w.maybe(0.7, w.one(b"server", b"MEMORY", b"clients", b"nonsense"))),
    "CONFIG GET": (
        3,
        lambda w: [w.one(b"maxmemory", b"MAXMEMORY-policy", b"maxmemor[y]", b"nonsense")],
    ),
    "CONFIG SET": (
        3,
        lambda w: w.random.choice(
            [
                [b"maxmemory", w.one(b"0", b"100mb", b"1gb", b"1.5gb", b"-1", b"much")],
                [b"maxmemory-policy", w.one(b"noeviction", b"allkeys-lru", b"allkeys-lfu", b"x")],
                [b"nonsense", b"1"],
                [b"maxmemory"],
                [b"maxmemory", b"0", b"maxmemory", b"1gb"],
            ]
        ),
    ),
    "ACL WHOAMI": (2, nothing),
    "ACL LIST": (1, nothing),
    "ACL CAT": (2, lambda w: w.maybe(0.6, w.one(b"string", b"READ", b"nonsense"))),
    "ACL GETUSER": (2, lambda w: [w.one(b"default", b"nobody")]),
    "SLOWLOG GET": (2, lambda w: w.maybe(0.5, w.number())),
    "SLOWLOG LEN": (1, nothing),
    "SLOWLOG RESET": (1, nothing),
    "LATENCY LATEST": (1, nothing),
    "LATENCY HISTORY": (1, lambda w: [w.one(b"command", b"nonsense")]),
    "LATENCY HISTOGRAM": (1, lambda w: w.maybe(0.7, w.one(b"get", b"set", b"nonsense"))),
    "LATENCY RESET": (1, lambda w: w.maybe(0.5, w.one(b"command", b"nonsense"))),
    "HELLO": (
        2,
        lambda w: w.random.choice(
            [
                [],
                [b"2"],
                [b"3"],
                [b"3", b"SETNAME", b"me"],
                [b"4"],
                [b"1"],
                [b"x"],
                [b"3", b"AUTH", b"default", b"wrong"],
                [b"3", b"AUTH", b"nobody", b"x"],
                [b"3", b"SETNAME", b"a b"],
                [b"3", b"SETNAME"],
                [b"2", b"NONSENSE"],
            ]
        ),
    ),
    "NONSENSE": (3, lambda w: w.some_keys()),
    "CLIENT NONSENSE": (1, lambda w: w.some_keys()),
    "OBJECT": (1, lambda w: w.maybe(0.7, w.one(b"NONSENSE", b"freq"))),
}
CLUSTER: Final[dict[str, tuple[int, Make]]] = {
    "CLUSTER KEYSLOT": (10, one_key),
    "CLUSTER COUNTKEYSINSLOT": (
        10,
        lambda w: [w.one(b"0", b"15891", b"16383", b"16384", b"-1", b"x")],
    ),
    "CLUSTER GETKEYSINSLOT": (
        10,
        lambda w: [w.one(b"15891", b"3300", b"8579", b"16384", b"x"), w.one(b"10", b"0", b"-1")],
    ),
    "CLUSTER INFO": (4, nothing),
    "CLUSTER SLOTS": (4, nothing),
    "CLUSTER SHARDS": (4, nothing),
    "CLUSTER NODES": (4, nothing),
    "CLUSTER MYID": (4, nothing),
    "CLUSTER LINKS": (4, nothing),
    "CLUSTER NONSENSE": (1, lambda w: w.some_keys()),
    "READONLY": (2, nothing),
    "READWRITE": (2, nothing),
    "ASKING": (2, nothing),
}

# They see keys whose time is over until somebody looks at these, or Valkey removes them by itself.
SEEING_EXPIRED: Final = {
    *("DBSIZE", "MEMORY USAGE"),
    *("CLUSTER COUNTKEYSINSLOT", "CLUSTER GETKEYSINSLOT"),
}

# A node's transactions are without them.
WITHOUT: Final = {
    *("KEYS", "SCAN", "DBSIZE", "RANDOMKEY", "FLUSHDB", "FLUSHALL", "HELLO", "AUTH"),
    *("CLUSTER COUNTKEYSINSLOT", "CLUSTER GETKEYSINSLOT", "CLUSTER INFO", "CLUSTER LINKS"),
    *("CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "CLUSTER MYID"),
    *("CLIENT INFO", "CLIENT LIST", "CLIENT KILL", "COMMAND LIST", "INFO", "WAIT"),
    *("CONFIG GET", "CONFIG SET", "ACL WHOAMI", "ACL LIST", "ACL CAT", "ACL GETUSER"),
    *("SLOWLOG GET", "SLOWLOG LEN", "SLOWLOG RESET"),
    *("LATENCY LATEST", "LATENCY HISTORY", "LATENCY HISTOGRAM", "LATENCY RESET"),
}
# Where one server refuses keys of several slots, or of several shards, and the other does not, they
# would hold different keys afterwards. So these get no words by chance for keys.
OF_MANY_KEYS: Final = {"DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "MSET"}
OF_ONE_SHARD: Final = {"MSETNX", "MSETEX"}
# Valkey takes what follows a zero byte unseen.
OF_NAMES: Final = {"CLIENT SETNAME", "CLIENT SETINFO", "HELLO"}
ENDING: Final = {"EXEC", "DISCARD", "RESET", "QUIT"}


def in_turn(name: str, within: bool) -> str:
    """The command that stands for one which fails there, and which spoils a transaction."""
    if within:
        return "GET" if name in WITHOUT else {"MULTI": "EXEC", "WATCH": "GET"}.get(name, name)
    return {"EXEC": "MULTI", "DISCARD": "MULTI"}.get(name, name)


def sequence(
    seed: int,
    length: int,
    *tables: dict[str, tuple[int, Make]],
    clients: int = 1,
    tagged: bool = False,
) -> list[Step]:
    """A sequence of commands from `tables`, the same for the same arguments.

    With `tagged`, all keys are of one slot.
    """
    words = Words(seed, tagged=tagged)
    commands = {name: made for table in tables for name, made in table.items()}
    weights = [weight for weight, _ in commands.values()]
    within = [False] * clients
    steps: list[Step] = []
    for chosen in words.random.choices(list(commands), weights, k=length):
        client = words.random.randrange(clients)
        is_out_of_turn = words.chance(0.1) and chosen not in WITHOUT
        name = chosen if is_out_of_turn else in_turn(chosen, within[client])
        within[client] = name == "MULTI" or (within[client] and name not in ENDING)
        _, make = commands[name]
        arguments = [words.spelled(word) for word in name.encode().split()] + make(words)
        if words.chance(0.06):
            is_safe = name in OF_ONE_SHARD | OF_NAMES or (tagged and name in OF_MANY_KEYS)
            arguments = (arguments[:-1] or arguments) if is_safe else words.damaged(arguments)
        if name in SEEING_EXPIRED:
            steps.append(Step((b"EXISTS", *words.all_keys), client))
        steps.append(Step(tuple(arguments), client))
        # Within a transaction nobody knows when it begins to live.
        if TRANSACTIONS not in tables and words.chance(0.01):
            steps.append(short_lived(words, client))
    return steps


def short_lived(words: Words, client: int) -> Step:
    """A command that lets a key live for milliseconds, with a pause until it is surely gone."""
    short = b"%d" % SHORT_MS
    arguments = words.random.choice(
        [
            (b"SET", words.key(), words.value(), b"PX", short),
            (b"PEXPIRE", words.key(), short),
            (b"PSETEX", words.key(), short, words.value()),
            (b"GETEX", words.key(), b"PX", short),
        ]
    )
    return Step(arguments, client, PAUSE_S)
