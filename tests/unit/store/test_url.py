"""URLs: what they say, what they leave to defaults, and what is refused in words."""

import pytest

from kvstrata.store import url
from kvstrata.store.errors import UsageError


def test_defaults() -> None:
    target = url.parse("kvstrata://")
    assert (target.host, target.port, target.pool, target.secret) == (
        "127.0.0.1",
        18400,
        "default",
        "",
    )
    assert target.timeout == 10
    assert target.verify


def test_everything_said() -> None:
    target = url.parse(
        "kvstrata://kv%2Dpool:s%40c%3Aret@[::1]:7000?transport=tcp&verify=0&spin=25&timeout=500ms"
        "&client_name=a%20b"
    )
    assert target == url.Target(
        host="::1",
        port=7000,
        pool="kv-pool",
        secret="s@c:ret",
        timeout=0.5,
        verify=False,
        spin_us=25,
        transport="tcp",
        client_name="a b",
    )


@pytest.mark.parametrize(("text", "spin_us"), [("0", 0), ("false", 0), ("7", 7)])
def test_spin(text: str, spin_us: int) -> None:
    assert url.parse(f"kvstrata://h?spin={text}").spin_us == spin_us


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://h", "does not begin with kvstrata://"),
        ("kvstratas://h", "TLS"),
        ("kvstrata://a,b:1", "several hosts"),
        ("kvstrata://h/pool", "a pool stands before the host"),
        ("kvstrata://h:99999", "not a URL"),
        ("kvstrata://h:0", "a port is 1 to 65535"),
        ("kvstrata://[::1", "not a URL"),
        ("kvstrata://h?transport=rdma", "transport=rdma is not in this version"),
        ("kvstrata://h?transport=rdma", "which has auto, tcp, unix, shm"),
        ("kvstrata://h?transport=pigeon", "unknown transport"),
        ("kvstrata://h?verify=maybe", "use 1 or 0"),
        ("kvstrata://h?spin=999999", "spin is 0 to 10000"),
        ("kvstrata://h?timeout=soon", "timeout=soon"),
        ("kvstrata://h?timeout=0", "above 0"),
        ("kvstrata://h?tiemout=2", "unknown 'tiemout'"),
        (f"kvstrata://{'p' * 65}@h", "use 1 to 64 of a-z"),
        ("kvstrata://Pool@h", "'Pool' cannot name a pool"),
        (f"kvstrata://p:{'s' * 257}@h", "at most 256 bytes; the one given has 257"),
    ],
)
def test_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        url.parse(text)


def test_the_secret_is_never_shown() -> None:
    target = url.parse("kvstrata://pool:hunter2@host")
    assert "hunter2" not in str(target) + repr(target)
    with pytest.raises(UsageError) as caught:
        url.parse("kvstrata://pool:hunter2@host/path")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("secret", ["hun/ter2", "hun#ter2", "hun?ter2", "hun[ter2", "1/hunter2"])
def test_what_is_reserved_in_a_secret_is_to_be_encoded(secret: str) -> None:
    with pytest.raises(UsageError, match="percent-encoded") as caught:
        url.parse(f"kvstrata://pool:{secret}@host")
    assert str(caught.value).startswith("'kvstrata://***@host' ")
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_an_at_sign_in_the_query_is_no_secret() -> None:
    assert url.parse("kvstrata://h?client_name=a@b").client_name == "a@b"


def test_str_can_be_parsed_again() -> None:
    target = url.parse("kvstrata://a.b:s@[fe80::1]:1")
    again = url.parse(str(target))
    assert (again.host, again.port, again.pool) == (target.host, target.port, target.pool)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("kvstrata://\ud800", "host"),
        ("kvstrata://\ud800@h", "pool"),
        ("kvstrata://p:\ud800@h", "secret"),
        ("kvstrata://h?client_name=\ud800", "client_name"),
    ],
)
def test_text_without_an_utf8_form_is_told(address: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"the {name} has no UTF-8 form"):
        url.parse(address)
