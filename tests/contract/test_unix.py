"""The contract over a UNIX socket."""

from tests.contract.store_contract import StoreContract


class TestUnix(StoreContract):
    transport = "unix"
