"""Bytes that are no commands, or commands in unusual forms: the same replies, the same ends."""

import pytest

from tests.differential.client import Client
from tests.differential.resp import encode_command

PING = b"*1\r\n$4\r\nPING\r\n"
STREAMS = [
    b"PING\r\n",
    b"ping\n",
    b"\r\n\r\nPING\r\n",
    b"  PING   hello  \r\n",
    b"SET inline 'a b'\r\nGET inline\r\n",
    b'SET inline "\\x41\\n\\"q"\r\nGET inline\r\n',
    b'SET inline "open\r\nPING\r\n',
    b"SET inline 'a'b\r\n",
    b"GET\r\n",
    b"nonsense 'a' b\r\n",
    b"*0\r\n" + PING,
    b"*-1\r\n" + PING,
    b"*-2147483648\r\n" + PING,
    b"*abc\r\n",
    b"*\r\n",
    b"*1 \r\n",
    b"*99999999999\r\n",
    b"*1\r\n$abc\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n:4\r\nPING\r\n",
    b"*1\r\nPING\r\n",
    b"*2\r\n$4\r\nECHO\r\n+x\r\n",
    b"*1\r\n$4\r\nPINGxx" + PING,
    b"*1\r\n$0\r\n\r\n" + PING,
    b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n" + encode_command([b"GET", b""]),
    b"\x00\r\n",
    b"$4\r\nPING\r\n",
    b"+OK\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST / HTTP/1.1\r\n\r\n",
    b"Host: x\r\n\r\n",
    b"x" * 70_000,
    b"*1\r\n$" + b"1" * 70_000,
    PING * 1_000,
    encode_command([b"QUIT"]) + PING,
    encode_command([b"QUIT", b"now"]) + PING,
    encode_command([b"x" * 300, b"y" * 300]),
    encode_command([b"CLIENT", b"x" * 300]),
    encode_command([b"new\r\nline\x00", b"a\r\nb"]),
    encode_command([b"CLIENT", b"REPLY", b"OFF"]) + PING,
    encode_command([b"CLIENT", b"REPLY", b"SKIP"]) + PING + PING,
    encode_command([b"CLIENT", b"REPLY", b"OFF"])
    + PING
    + encode_command([b"CLIENT", b"REPLY", b"ON"])
    + PING,
    encode_command([b"CLIENT", b"REPLY", b"SOMETIMES"]) + PING,
    encode_command([b"MULTI"]) + encode_command([b"CLIENT", b"REPLY", b"OFF"]) + PING,
    encode_command([b"HELLO", b"3"])[:9],
]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: repr(stream[:24]))
def test_stream(valkey_port: int, node_port: int, stream: bytes) -> None:
    replies = []
    for port in (valkey_port, node_port):
        with Client(port) as client:
            client.send(stream)
            replies.append(client.receive_rest())
    theirs, ours = replies
    assert ours == theirs


CUT = encode_command([b"SET", b"cut", b"value\r\n"]) + encode_command([b"GET", b"cut"])


@pytest.mark.parametrize("at", range(1, len(CUT), 5))
def test_a_command_may_come_in_parts(valkey_port: int, node_port: int, at: int) -> None:
    replies = []
    for port in (valkey_port, node_port):
        with Client(port) as client:
            client.send(CUT[:at])
            early, _ = client.receive_rest(0.01)
            client.send(CUT[at:])
            replies.append(early + client.receive_rest(0.05)[0])
    assert replies[0] == replies[1] == b"+OK\r\n$7\r\nvalue\r\n\r\n"
