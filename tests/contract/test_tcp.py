"""The contract over TCP."""

from tests.contract.store_contract import StoreContract


class TestTcp(StoreContract):
    transport = "tcp"
