"""A client over a plain socket, built on the reference decoder: what a stranger would write.

It checks every checksum and every count that it is told, and waits for nothing without a bound.
"""

import dataclasses
import itertools
import socket
from types import TracebackType
from typing import Final, Self

from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import Completion, Entry, Hello, Outcome, Request

WAIT_S: Final = 10.0


@dataclasses.dataclass
class Reply:
    """All of a command's completions, joined."""

    completions: list[Completion]
    outcomes: list[Outcome]
    values: list[bytes | None]  # Of reads: one an outcome.

    @property
    def status(self) -> int:
        """Of the whole command."""
        return self.completions[-1].status

    @property
    def message(self) -> str:
        return self.completions[-1].message

    @property
    def statuses(self) -> list[int]:
        return [outcome.status for outcome in self.outcomes]


class RefusedError(Exception):
    def __init__(self, hello: Hello) -> None:
        super().__init__(f"status {hello.second}: {hello.message}")
        self.hello = hello


class RawConnection:
    """One connection, whose hello is exchanged unless `hello` is None."""

    def __init__(self, port: int, hello: Hello | None = None, *, greet: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ids = itertools.count(1)
        self._open: dict[int, Reply] = {}  # Commands with completions still to come.
        self.chunk_bytes = 0
        self.credits = 0
        if greet:
            try:
                self.hello = self.greet(hello or client_hello())
            except BaseException:
                self.socket.close()
                raise

    def greet(self, hello: Hello) -> Hello:
        """Raises RefusedError, once the node has closed its side too."""
        self.send(hello.encode())
        answer = self.read_hello()
        if answer.second != 0:
            assert self.at_end()
            raise RefusedError(answer)
        self.chunk_bytes, self.credits = answer.number(17), answer.number(4)
        return answer

    def read_hello(self) -> Hello:
        prefix = self.receive(wire.HELLO_PREFIX_BYTES)
        return wire.decode_hello(prefix + self.receive(wire.hello_body_length(prefix)))

    # ---- commands ----

    def begin(
        self, opcode: int, entries: list[Entry], data: bytes = b"", deadline_ms: int = 0
    ) -> int:
        """Send a command with all its data; returns its id."""
        command_id = next(self._ids)
        request = Request(opcode, command_id, entries, len(data), deadline_ms)
        self.send(request.encode() + data)
        return command_id

    def call(
        self, opcode: int, entries: list[Entry], data: bytes = b"", deadline_ms: int = 0
    ) -> Reply:
        """Send a command and read all of its completions."""
        command_id = self.begin(opcode, entries, data, deadline_ms)
        found: dict[int, Reply] = {}
        while command_id not in found:
            found |= self.finish_one()
        return found[command_id]

    def finish_one(self) -> dict[int, Reply]:
        """Read completions until a command ends; those of several commands may alternate."""
        while True:
            completion, values = self.read_completion()
            reply = self._open.setdefault(completion.command_id, Reply([], [], []))
            assert completion.status != 0 or completion.first_outcome == len(reply.outcomes)
            reply.completions.append(completion)
            reply.outcomes += completion.outcomes
            reply.values += values
            if not completion.more:
                return {completion.command_id: self._open.pop(completion.command_id)}

    def read_completion(self) -> tuple[Completion, list[bytes | None]]:
        header = self.receive(wire.HEADER_BYTES)
        completion = wire.decode_completion(header + self.receive(wire.body_length(header)))
        assert completion.credits >= 1
        self.credits = completion.credits
        if completion.opcode not in (wire.GET, wire.GET_RANGE):
            assert completion.data_length == 0
            return completion, [None] * len(completion.outcomes)
        values = [self._receive_value(outcome) for outcome in completion.outcomes]
        assert completion.data_length == sum(len(value or b"") for value in values)
        return completion, values

    def _receive_value(self, outcome: Outcome) -> bytes | None:
        if outcome.status != 0:
            assert outcome.fields["length"] == 0
            return None
        value = self.receive(outcome.fields["length"])
        offset = outcome.fields["offset"]
        assert wire.checksums(value, self.chunk_bytes, offset) == outcome.checksums
        return value

    def put(self, key: bytes, value: bytes, **fields: int) -> Outcome:
        entry = wire.put_entry(key, value, self.chunk_bytes, **fields)
        reply = self.call(wire.PUT, [entry], value)
        assert reply.status == 0, reply.message
        return reply.outcomes[0]

    def get(self, key: bytes, room: int = 1 << 40) -> bytes | None:
        reply = self.call(wire.GET, [wire.get_entry(key, room)])
        assert reply.status == 0, reply.message
        assert reply.statuses[0] in (0, 1), reply.statuses
        return reply.values[0]

    # ---- bytes ----

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, count: int) -> bytes:
        """Raises EOFError when the node closes before."""
        data = bytearray(count)
        view = memoryview(data)
        while view:
            received = self.socket.recv_into(view)
            if received == 0:
                raise EOFError(f"closed with {len(view)} of {count} bytes missing")
            view = view[received:]
        return bytes(data)

    def at_end(self) -> bool:
        """True once the node has closed; False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def failure(self) -> Completion:
        """The completion that says why the node closes the connection, which it then does."""
        completion, _ = self.read_completion()
        assert completion.status != 0
        assert self.at_end()
        return completion

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def client_hello(
    pool: str = "default",
    secret: str = "",
    *,
    shard: int | None = None,
    credits_: int | None = None,
    extra: bytes = b"",
) -> Hello:
    body = wire.attribute(1, pool.encode())
    if secret:
        body += wire.attribute(2, secret.encode())
    if credits_ is not None:
        body += wire.attribute(4, credits_)
    if shard is not None:
        body += wire.attribute(6, shard)
    return Hello(1, 1, body + extra)
