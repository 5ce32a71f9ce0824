"""A prefix cache: how much of a prompt has been computed before, by whomever.

Tokens are cut into chunks. A chunk's key is a digest of its tokens and of the key before it, so
that equal keys mean equal prefixes, and one request counts how far the chain is there.
"""

import hashlib
from collections.abc import Iterator

import kvstrata
from kvstrata import PoolConfig

CHUNK_TOKENS = 16
# Whatever changes the content belongs into the first digest, so that two models never mix.
FINGERPRINT = b"Llama-3.1-8B, revision 1, bfloat16, 16 tokens a chunk"


def chunk_keys(tokens: list[int]) -> Iterator[bytes]:
    """The key of each whole chunk."""
    digest = hashlib.sha256(FINGERPRINT).digest()
    for start in range(0, len(tokens) - CHUNK_TOKENS + 1, CHUNK_TOKENS):
        chunk = tokens[start : start + CHUNK_TOKENS]
        digest = hashlib.sha256(digest + b"".join(t.to_bytes(4, "little") for t in chunk)).digest()
        yield digest


def compute(chunk_index: int) -> bytes:
    """What a model would do: here, bytes of some size."""
    return bytes([chunk_index % 256]) * 65_536


def serve(store: kvstrata.Store, name: str, tokens: list[int]) -> None:
    """Read what is cached, compute and put the rest."""
    keys = list(chunk_keys(tokens))
    cached = store.prefix_length(keys)
    values = store.get_many(keys[:cached])
    assert values == [compute(index) for index in range(cached)]
    # Whoever else computes the same chunk meanwhile puts the same bytes: the first one stays.
    store.put_many(
        {keys[index]: compute(index) for index in range(cached, len(keys))}, if_absent=True
    )
    print(f"{name}: {cached} of {len(keys)} chunks were cached")


# Content under a digest never changes, so the pool refuses to overwrite.
pools = {"kv-cache": PoolConfig(kind="immutable", eviction="s3fifo")}
with kvstrata.local(pools=pools, pool="kv-cache") as store:
    system_prompt = list(range(1000, 1800))
    serve(store, "first question", system_prompt + list(range(200)))
    serve(store, "same question", system_prompt + list(range(200)))
    serve(store, "other question", system_prompt + list(range(500, 900)))
