import pytest

from kvstrata.cluster.listening import check_exposure, exposed_endpoints, is_loopback
from kvstrata.store.config import Config
from kvstrata.store.errors import UsageError


def config(node_host: str = "127.0.0.1", http_host: str = "127.0.0.1", http: bool = True) -> Config:
    return Config.model_validate(
        {
            "node": {"host": node_host, "memory": "32MiB"},
            "http": {"host": http_host, "enabled": http},
        }
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.0.2.1", "10.0.0.1"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_a_name_that_cannot_be_resolved_is_told() -> None:
    with pytest.raises(UsageError, match=r"cannot resolve 'no\.such\.host\.invalid'"):
        is_loopback("no.such.host.invalid")
    with pytest.raises(UsageError, match="cannot resolve 'ééé"):
        is_loopback("é" * 100)


def test_http_counts_only_where_it_is_served() -> None:
    assert exposed_endpoints(config(http_host="0.0.0.0")) == ["http.host 0.0.0.0"]
    assert exposed_endpoints(config(http_host="0.0.0.0", http=False)) == []
    assert exposed_endpoints(config(node_host="::")) == ["node.host ::"]


def test_loopback_needs_no_secret() -> None:
    check_exposure(config(), {"default": 0}, insecure=False)


def test_beyond_it_every_pool_needs_one() -> None:
    exposed = config(node_host="0.0.0.0")
    check_exposure(exposed, {"default": 1, "a": 2}, insecure=False)
    with pytest.raises(UsageError, match=r"node\.host 0\.0\.0\.0 .* the pool 'a', 'b'"):
        check_exposure(exposed, {"default": 1, "a": 0, "b": 0}, insecure=False)


def test_or_the_operators_word() -> None:
    check_exposure(config(node_host="0.0.0.0"), {"default": 0}, insecure=True)
