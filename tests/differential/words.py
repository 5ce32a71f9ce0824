"""Arguments by chance: few keys and values, so that commands meet, and hostile ones among them."""

import random
from typing import Final

KEYS: Final = [b"a", b"b", b"{t}1", b"{t}2", b"key:\x00\xff\r\n", b"k" * 300]
RARE_KEYS: Final = [b"", b"{}", b"{t", b"*", b"a*[b", b"\xc3\xa9", b"nobody"]
# All of one slot, as a transaction needs them.
TAGGED_KEYS: Final = [
    *(b"{t}1", b"{t}2", b"{t}", b"{t}:\x00\xff\r\n", b"{t}" + b"k" * 300),
    *(b"x{t}", b"{t}{u}", b"{t}a*[b"),
]
NUMBERS: Final = [b"0", b"1", b"-1", b"7", b"10", b"100", b"9223372036854775807"]
RARE_NUMBERS: Final = [
    *(b"", b"abc", b"1.5", b" 1", b"1 ", b"+1", b"0x1", b"1e3", b"00", b"-0", b"-", b"1\x00"),
    *(b"-9223372036854775808", b"9223372036854775808", b"-9223372036854775809", b"9" * 40),
]
VALUES: Final = [
    *(b"", b"v", b"other", b"5", b"-12", b"9223372036854775807", b"-9223372036854775808"),
    *(b"3.5", b"007", b" 1", b"\x00\xff\r\n$3\r\n", b"x" * 45, b"y" * 20_000),
]
PATTERNS: Final = [
    *(b"*", b"a", b"?", b"[ab]", b"[^a]", b"[a-b]", b"\\a", b"{t}*", b"k*k", b"*\xff*", b"**"),
    *(b"", b"[", b"[]", b"a*[b", b"nothing"),
]
KEY_BYTES_MAX: Final = 4096
HOSTILE: Final = [b"", b"\x00", b"nx", b"EX", b"-1", b"\r\n", b"z" * 1_000]


class Words:
    """Chooses by the numbers of one seed; with `tagged`, only keys of one slot."""

    def __init__(self, seed: int, *, tagged: bool = False) -> None:
        self.random = random.Random(seed)
        self._keys = TAGGED_KEYS if tagged else KEYS
        self._rare_keys = TAGGED_KEYS if tagged else RARE_KEYS

    @property
    def all_keys(self) -> list[bytes]:
        return sorted({*self._keys, *self._rare_keys})

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one(self, *choices: bytes) -> bytes:
        return self.random.choice(choices)

    def key(self) -> bytes:
        return self.random.choice(self._rare_keys if self.chance(0.06) else self._keys)

    def some_keys(self, count_max: int = 4) -> list[bytes]:
        return [self.key() for _ in range(self.random.randint(1, count_max))]

    def keys_of_one_slot(self) -> list[bytes]:
        if self.chance(0.5):
            return [self.key()]
        return [self.one(b"{t}1", b"{t}2") for _ in range(self.random.randint(1, 3))]

    def value(self) -> bytes:
        return self.random.choice(VALUES)

    def number(self) -> bytes:
        return self.random.choice(RARE_NUMBERS if self.chance(0.2) else NUMBERS)

    def pattern(self) -> bytes:
        return self.random.choice(PATTERNS)

    def wrong_lifetime(self) -> bytes:
        """None that would pass while a test runs."""
        return self.random.choice([b"0", b"-1", b"9223372036854775807", *RARE_NUMBERS])

    def maybe(self, probability: float, *arguments: bytes) -> list[bytes]:
        return list(arguments) if self.chance(probability) else []

    def spelled(self, name: bytes) -> bytes:
        """The name in some case."""
        return self.random.choice([name, name, name.lower(), name.title()])

    def damaged(self, arguments: list[bytes]) -> list[bytes]:
        """The command with an argument too many, too few, or of the wrong kind.

        Not where that could make a key of a value that is longer than a node lets keys be.
        """
        if any(len(argument) > KEY_BYTES_MAX for argument in arguments):
            return arguments
        damaged = list(arguments)
        at = self.random.randrange(1, len(damaged) + 1)
        match self.random.randrange(3):
            case 0:
                damaged.insert(at, self.random.choice(HOSTILE))
            case 1 if len(damaged) > 1:
                del damaged[min(at, len(damaged) - 1)]
            case _:
                damaged[min(at, len(damaged) - 1)] = self.random.choice(HOSTILE)
        return damaged
