"""Seeds of the fuzz targets, from the golden vectors: `python -m tests.unit.transport.seed_corpus`.

What the fuzzer itself found worth keeping lies beside them under other names.
"""

import struct
from pathlib import Path
from typing import Final

from tests.unit.transport import golden_vectors

FOLDER: Final = Path(__file__).parents[2] / "native/fuzz/corpus"


def seeds() -> dict[str, dict[str, bytes]]:
    """Inputs by target and name; session and initiator take choices in front of the stream."""
    hellos, requests, completions = (
        {key: data for key, (data, _) in golden_vectors.read(name).items()}
        for name in ("hellos.txt", "requests.txt", "completions.txt")
    )
    with_data = {name: data + bytes(data_length(data)) for name, data in requests.items()}
    small = {name: data for name, data in with_data.items() if len(data) < 4_096}
    answers = {name: data + bytes(data_length(data)) for name, data in completions.items()}
    return {
        "hello": hellos,
        "request": requests,
        "completion": completions,
        "session": {
            **{name: b"\x00" + data for name, data in small.items()},
            "all": b"\x02" + b"".join(small.values()),
        },
        "initiator": {
            **{name: b"\x00\x00" + data for name, data in answers.items()},
            "all_in_parts": b"\x03\x07" + b"".join(answers.values()),
        },
    }


def data_length(capsule: bytes) -> int:
    length: int = struct.unpack_from("<Q", capsule, 16)[0]
    return length


def main() -> None:
    for target, inputs in seeds().items():
        (FOLDER / target).mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (FOLDER / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
