"""Reads the syntax of a command's arguments, as the table writes it, into a tree.

```
message  key          a string; the name `key` stands for a key
count:integer         a type of its own
addr=ip:port          another text for people
NX                    a token
EX seconds:integer    a token before an argument
condition(NX|XX)      one of several
data{key value}       several together
[GET]  key*  [PREFIX prefix**]    optional; repeated; repeated with its token
XX@2.6.12  old=ip:port!2.8.12     since a version; deprecated since
```
"""

import re
from dataclasses import dataclass
from typing import Final

WORD: Final = re.compile(
    r"(?P<name>[A-Za-z-]+)(?::(?P<type>string|integer|pattern|unix-time))?(?:=(?P<text>[a-z:]+))?"
)
ENDING: Final = re.compile(
    r"(?:@(?P<since>[\d.]+))?(?:!(?P<deprecated>[\d.]+))?(?P<repeated>\*{0,2})"
)
CLOSING: Final = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, or several of one kind; fields are empty where they do not apply."""

    name: str
    type: str
    text: str = ""
    token: str = ""
    since: str = ""
    deprecated_since: str = ""
    flags: tuple[str, ...] = ()
    inner: tuple["Argument", ...] = ()


def read_syntax(syntax: str) -> tuple[Argument, ...]:
    """Return the arguments that `syntax` describes.

    Raises:
        ValueError: it is not of the form above.
    """
    reader = _Reader(syntax)
    arguments = reader.arguments(" ") if syntax else ()
    if reader.at != len(syntax):
        raise reader.fault()
    return arguments


class _Reader:
    def __init__(self, syntax: str) -> None:
        self.at = 0
        self._syntax = syntax

    def fault(self) -> ValueError:
        return ValueError(f"the syntax {self._syntax!r} makes no sense at byte {self.at}")

    def arguments(self, between: str) -> tuple[Argument, ...]:
        found = [self._argument()]
        while self._take(between):
            found.append(self._argument())
        return tuple(found)

    def _argument(self) -> Argument:
        if not self._take("["):
            return self._plain(optional=False)
        argument = self._plain(optional=True)
        self._expect("]")
        return argument

    def _plain(self, *, optional: bool) -> Argument:
        word = self._match(WORD)
        token = ""
        if word["name"].isupper():
            token = word["name"]
            if not self._next_belongs_to_token():
                return self._ended(token.lower(), "pure-token", "", token, (), optional)
            self._expect(" ")
            word = self._match(WORD)
        name = word["name"]
        inner: tuple[Argument, ...] = ()
        kind = word["type"] or ("key" if name == "key" else "string")
        if self._take("("):
            inner, kind = self._inner("|", ")"), "oneof"
        elif self._take("{"):
            inner, kind = self._inner(" ", "}"), "block"
        text = "" if inner else word["text"] or name
        return self._ended(name, kind, text, token, inner, optional)

    def _next_belongs_to_token(self) -> bool:
        """Tell whether a name follows; an argument in brackets is one of its own."""
        return bool(re.match(r" [a-z]", self._syntax[self.at :]))

    def _inner(self, between: str, end: str) -> tuple[Argument, ...]:
        inner = self.arguments(between)
        self._expect(end)
        return inner

    def _ended(
        self,
        name: str,
        kind: str,
        text: str,
        token: str,
        inner: tuple[Argument, ...],
        optional: bool,
    ) -> Argument:
        ending = self._match(ENDING)
        flags = ["optional"] if optional else []
        flags += ["multiple"] if ending["repeated"] else []
        flags += ["multiple_token"] if ending["repeated"] == "**" else []
        return Argument(
            name=name,
            type=kind,
            text=text or (name if kind == "pure-token" else ""),
            token=token,
            since=ending["since"] or "",
            deprecated_since=ending["deprecated"] or "",
            flags=tuple(flags),
            inner=inner,
        )

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._syntax, self.at)
        if found is None:
            raise self.fault()
        self.at = found.end()
        return found

    def _take(self, mark: str) -> bool:
        if not self._syntax.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self.fault()
