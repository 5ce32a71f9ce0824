"""The contract over shared memory."""

from tests.contract.store_contract import StoreContract


class TestShm(StoreContract):
    transport = "shm"
