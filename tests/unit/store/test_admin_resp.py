"""The desk's way for commands of Valkey clients: one answerer, and a fault is a reply."""

import logging
import os
import threading
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kvstrata import _kernel
from kvstrata.store.admin import AdminDesk


@dataclass
class Call:
    """One call as the native half hands it over."""

    arguments: list[bytes]
    resp_version: int = 2
    client_id: int = 1
    name: str = ""
    payload: bytes = b""
    pool: str = "default"
    rights: int = 7
    peer: str = "127.0.0.1:1"


@dataclass
class Queue:
    """The node's queue with some calls in it; `completed` is set after the last."""

    calls: list[Call]
    replies: list[tuple[int, bytes]] = field(default_factory=list)
    completed: threading.Event = field(default_factory=threading.Event)
    ends: tuple[int, int] = field(default_factory=os.pipe)

    def admin_fileno(self) -> int:
        return self.ends[0]

    def next_admin_call(self) -> Call | None:
        if self.calls:
            return self.calls.pop(0)
        os.read(self.ends[0], 1)
        return None

    def complete(self, _call: Call, status: int, payload: bytes) -> None:
        self.replies.append((status, payload))
        if not self.calls:
            self.completed.set()


def replies(desk_answer: Any, *calls: Call) -> list[tuple[int, bytes]]:  # noqa: ANN401
    queue = Queue(list(calls))
    desk = AdminDesk(cast("_kernel.Node", queue))
    if desk_answer is not None:
        desk.register_resp(desk_answer)
    os.write(queue.ends[1], b"x")
    desk.start()
    assert queue.completed.wait(10)
    desk.stop()
    for end in queue.ends:
        os.close(end)
    return queue.replies


def test_the_reply_travels_as_it_was_made() -> None:
    found = replies(lambda call: b"+" + call.arguments[0] + b"\r\n", Call([b"a"]), Call([b"b"]))
    assert found == [(0, b"+a\r\n"), (0, b"+b\r\n")]


def test_a_fault_is_a_reply_and_does_not_end_the_desk(caplog: pytest.LogCaptureFixture) -> None:
    def answer(call: _kernel.AdminCall) -> bytes:
        return {b"a": b"+OK\r\n"}[call.arguments[0]]

    with caplog.at_level(logging.ERROR):
        found = replies(answer, Call([b"nope"]), Call([b"a"]))
    assert found == [
        (0, b"-ERR internal fault, please report: KeyError: b'nope'\r\n"),
        (0, b"+OK\r\n"),
    ]
    assert "nope" in caplog.text


def test_without_an_answerer_it_is_refused() -> None:
    (status, reply), *_ = replies(None, Call([b"INFO"]))
    assert status == 0
    assert reply.startswith(b"-ERR ")
