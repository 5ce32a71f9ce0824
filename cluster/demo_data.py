"""Real data for the demo: files of this machine, and the shapes of real models' KV caches."""

import math
import random
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FILE_COUNT_MAX: Final = 400
_TOTAL_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class KvShape:
    """One chunk of a model's KV cache: 16-bit elements.

    Attributes:
        model: whose it is.
        tokens: in the chunk.
        shape: of the tensor, tokens included.
    """

    model: str
    tokens: int
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Of the whole tensor."""
        return 2 * math.prod(self.shape)


def kv_shapes() -> list[KvShape]:
    """Chunks of 16 and 256 tokens, all layers in one, as the models' published settings have it."""
    found = []
    for tokens in (16, 256):
        # 32 layers, keys and values, 8 KV heads of 128.
        found.append(KvShape("Llama-3.1-8B", tokens, (32, 2, tokens, 8, 128)))
        # 28 layers, keys and values, 4 KV heads of 128.
        found.append(KvShape("Qwen2.5-7B", tokens, (28, 2, tokens, 4, 128)))
        # 61 layers of one latent vector: 512 compressed and 64 of the rotary position.
        found.append(KvShape("DeepSeek-V3 (MLA)", tokens, (61, tokens, 576)))
    return found


def library_files() -> list[Path]:
    """Files of Python's standard library, of all sizes, at most some hundred and 64 MiB."""
    folder = Path(sysconfig.get_path("stdlib"))
    found = [
        path
        for path in sorted(folder.rglob("*.py"))
        if "site-packages" not in path.parts and "dist-packages" not in path.parts
    ]
    random.Random(1).shuffle(found)
    chosen, total = [], 0
    for path in found[:_FILE_COUNT_MAX]:
        size = path.stat().st_size
        if total + size <= _TOTAL_BYTES_MAX:
            chosen.append(path)
            total += size
    return chosen
