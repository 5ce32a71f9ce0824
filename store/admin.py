"""Answers administrative commands: a thread that waits for the native node's parked calls.

It knows calls and rights, not what the commands do: those are registered by name. Payloads are
msgpack maps, both ways. A command that administers the node needs the admin right on the pool
`default`; one that concerns the caller's own pool needs it there. Commands of Valkey clients go to
one answerer, which makes the whole reply.
"""

import logging
import os
import select
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from kvstrata import _kernel
from kvstrata.store import pools
from kvstrata.store.errors import DeniedError, Error, UsageError
from kvstrata.store.payloads import Payload, pack, unpack
from kvstrata.store.resp_encoding import encode_error

log = logging.getLogger(__name__)

T = TypeVar("T")
RespAnswer = Callable[[_kernel.AdminCall], bytes]

_STOP_S_MAX: Final = 2.0

# PROTOCOL.md, section 5.
_OK: Final = 0
_DENIED: Final = 9
_INVALID: Final = 12
_UNSUPPORTED: Final = 13
_INTERNAL: Final = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the pool of the connection, its rights there, and its address."""

    pool: str
    rights: int
    peer: str


@dataclass(frozen=True, slots=True)
class Command:
    """One administrative command.

    Attributes:
        name: as it travels.
        answer: takes the caller and the payload; returns the payload of the answer.
        needs: "read" or "admin" in the caller's pool, or "node": admin on the pool `default`.
        summary: one line for `help`.
    """

    name: str
    answer: Callable[[Caller, Payload], Payload]
    needs: Literal["read", "admin", "node"]
    summary: str


class AdminDesk:
    """Serves a node's administrative calls, one after another, in a thread of its own."""

    def __init__(self, node: _kernel.Node) -> None:
        self._node = node
        self._commands: dict[str, Command] = {}
        self._answer_resp: RespAnswer = _refuse_resp
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="kvstrata-admin", daemon=True)
        self.register(Command("help", self._help, "read", "list the commands"))

    def register(self, command: Command) -> None:
        """Add a command; two of one name are a fault of the program."""
        assert command.name not in self._commands, command.name
        self._commands[command.name] = command

    def register_resp(self, answer: RespAnswer) -> None:
        """Let `answer` make the replies to commands of Valkey clients."""
        self._answer_resp = answer

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what is under way and end; calls still parked meet their deadline.

        A command that does not end within two seconds, as one that waits for a file on a lost
        mount, is left behind in its thread: no process waits for that.
        """
        os.write(self._wake_write, b"x")
        self._thread.join(_STOP_S_MAX)
        if self._thread.is_alive():
            log.warning("an administrative command is still under way, and is given up")
            return
        # They refer back to us and the node, whose memory is to go with its last user.
        self._commands.clear()
        self._answer_resp = _refuse_resp
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        poll.register(self._node.admin_fileno(), select.POLLIN)
        while all(descriptor != self._wake_read for descriptor, _ in poll.poll()):
            while (call := self._node.next_admin_call()) is not None:
                self._node.complete(call, *self._answer(call))

    def _answer(self, call: _kernel.AdminCall) -> tuple[int, bytes]:
        """Status and payload. Nothing a command raises may end the thread."""
        if call.resp_version:
            return _OK, self._resp_reply(call)
        caller = Caller(call.pool, call.rights, call.peer)
        try:
            command = self._commands.get(call.name)
            if command is None:
                return _UNSUPPORTED, _failed(f"there is no command {call.name!r}; try help")
            _check_rights(command, caller)
            answer = command.answer(caller, _unpack(call.payload))
            return _OK, pack(answer)
        except DeniedError as error:
            return _DENIED, _failed(str(error))
        except Error as error:
            return _INVALID, _failed(str(error))
        except Exception as error:
            log.exception("the command %s of %s failed", call.name, call.peer)
            return _INTERNAL, _failed(f"{type(error).__name__}: {error}")

    def _resp_reply(self, call: _kernel.AdminCall) -> bytes:
        try:
            return self._answer_resp(call)
        except Exception as error:
            log.exception("the command %r of %s failed", call.arguments[:2], call.peer)
            return encode_error(
                f"ERR internal fault, please report: {type(error).__name__}: {error}"
            )

    def _help(self, _caller: Caller, _payload: Payload) -> Payload:
        return {
            name: {"needs": command.needs, "summary": command.summary}
            for name, command in sorted(self._commands.items())
        }


def take(payload: Mapping[str, object], name: str, kind: type[T]) -> T:
    """The field of a payload.

    Raises:
        UsageError: it is missing or of another type.
    """
    if name not in payload:
        raise UsageError(f"the payload has no field {name!r}: give it, as a {kind.__name__}")
    value = payload[name]
    if not isinstance(value, kind):
        raise UsageError(f"the field {name!r} must be a {kind.__name__}, not {value!r}")
    return value


def _check_rights(command: Command, caller: Caller) -> None:
    needed = pools.READ if command.needs == "read" else pools.ADMIN
    if command.needs == "node" and caller.pool != pools.DEFAULT:
        raise DeniedError(
            f"{command.name} administers the node: connect to the pool {pools.DEFAULT!r}, not"
            f" {caller.pool!r}, with an admin secret"
        )
    if not caller.rights & needed:
        right = "read" if needed == pools.READ else "admin"
        raise DeniedError(
            f"{command.name} needs the {right} right in the pool {caller.pool!r}: connect with a"
            " secret that has it"
        )


def _refuse_resp(_call: _kernel.AdminCall) -> bytes:
    return encode_error("ERR this node does not answer administrative commands")


def _unpack(data: bytes) -> Payload:
    try:
        return unpack(data)
    except ValueError as error:
        raise UsageError(f"the payload is not a map in msgpack: {error}") from error


def _failed(text: str) -> bytes:
    return pack({"error": text})
