"""What every store does, whatever carries the bytes. A transport's tests subclass it unchanged."""

from typing import ClassVar

from tests.contract.batch_contract import BatchContract
from tests.contract.pool_contract import PoolContract
from tests.contract.retention_contract import RetentionContract
from tests.contract.tensor_contract import TensorContract
from tests.contract.value_contract import ValueContract
from tests.contract.write_contract import WriteContract


class StoreContract(
    ValueContract, WriteContract, BatchContract, TensorContract, PoolContract, RetentionContract
):
    """Runs with both clients, on one shard and on four.

    Attributes:
        transport: that the stores are to use.
    """

    transport: ClassVar[str]
