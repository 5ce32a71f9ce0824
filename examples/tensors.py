"""Tensors keep their dtype and shape, and go straight from and to their memory.

Needs numpy: pip install 'kvstrata[torch]'. Tensors of torch work the same way, with
`get_tensor(key, "torch")`.
"""

import numpy as np

import kvstrata

# One chunk of Llama-3.1-8B's KV cache: 32 layers, keys and values, 256 tokens, 8 heads of 128.
SHAPE = (32, 2, 256, 8, 128)
chunk = np.random.default_rng(1).integers(0, 1 << 16, SHAPE, dtype=np.uint16)

with kvstrata.local("256MiB") as store:
    store.put_tensor("chunk", chunk)
    print(f"put {chunk.nbytes / 2**20:.0f} MiB")

    read = store.get_tensor("chunk")
    assert isinstance(read, np.ndarray)
    print("got", read.dtype, read.shape, "equal:", np.array_equal(read, chunk))

    # Into memory that is there already: a slot of a larger cache.
    cache = np.zeros((4, *SHAPE), dtype=np.uint16)
    store.get_into("chunk", cache[2])
    print("in its slot:", np.array_equal(cache[2], chunk))

    # A part of it: the first layer only.
    layer = np.empty(SHAPE[1:], dtype=np.uint16)
    store.get_range_into("chunk", 0, layer)
    print("first layer:", np.array_equal(layer, chunk[0]))
