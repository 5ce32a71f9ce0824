"""Valkey's patterns: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before what is meant as it is.

No pattern takes more than its own length times the text's steps, so that none can be made to hold
up the thread that answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Place:
    """What may stand at one place of the text: letters between pairs, or anything but them."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def takes(self, letter: str) -> bool:
        return any(first <= letter <= last for first, last in self.ranges) is not self.negated


_ANY = _Place((), negated=True)


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is of the pattern; an open bracket goes to the pattern's end."""
    places = list(_places(pattern))
    at, place = 0, 0
    star, retried_from = -1, 0  # The last star met, and where the text goes on behind it.
    while at < len(text):
        here = places[place] if place < len(places) else None
        if place < len(places) and here is None:
            star, retried_from = place, at
            place += 1
        elif here is not None and here.takes(text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            retried_from += 1
            at, place = retried_from, star + 1
        else:
            return False
    return all(each is None for each in places[place:])


def _places(pattern: str) -> Iterator[_Place | None]:
    """The pattern's places in order; None is a star."""
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            yield None
        elif letter == "?":
            yield _ANY
        elif letter == "[":
            place, at = _bracket(pattern, at)
            yield place
        else:
            if letter == "\\" and at < len(pattern):
                letter = pattern[at]
                at += 1
            yield _Place(((letter, letter),))


def _bracket(pattern: str, at: int) -> tuple[_Place, int]:
    """What a bracket that was opened before `at` stands for, and where the pattern goes on."""
    negated = pattern.startswith("^", at)
    at += negated
    ranges: list[tuple[str, str]] = []
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "\\" and at + 1 < len(pattern):
            ranges.append((pattern[at + 1], pattern[at + 1]))
            at += 2
        elif pattern[at + 1 : at + 2] == "-" and at + 2 < len(pattern):
            first, last = sorted((pattern[at], pattern[at + 2]))
            ranges.append((first, last))
            at += 3
        else:
            ranges.append((pattern[at], pattern[at]))
            at += 1
    return _Place(tuple(ranges), negated), at + 1
