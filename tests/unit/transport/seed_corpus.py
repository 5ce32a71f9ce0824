"""Seeds of the fuzz targets: `python -m tests.unit.transport.seed_corpus` writes them.

Those of the capsule protocol are the golden vectors; those of RESP stand here. What the fuzzer
itself found worth keeping lies beside them under other names.
"""

import struct
from pathlib import Path
from typing import Final

from tests.unit.transport import golden_vectors

FOLDER: Final = Path(__file__).parents[2] / "native/fuzz/corpus"

RESP_STREAMS: Final = {
    "get": b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n",
    "set_large": b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nlarge\r\nvalue\r\n$2\r\nEX\r\n$1\r\n9\r\n",
    "empty": b"\r\n*0\r\n*-1\r\n \n*1\r\n$0\r\n\r\n",
    "inline": b'PING\r\nset \'a b\' "\\x41\\n\\""c\nGET "open\r\n',
    "count_invalid": b"*1048577\r\n",
    "length_invalid": b"*1\r\n$1001\r\n",
    "length_missing": b"*2\r\n$4\r\nPING\r\n4\r\n",
    "line_end": b"*1\r\n$4\r\nPING\n\r",
}


def seeds() -> dict[str, dict[str, bytes]]:
    """Inputs by target and name; streams have their target's choices in front."""
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
        "resp": {
            **{name: b"\x01\x05" + stream for name, stream in RESP_STREAMS.items()},
            "pipeline": b"\x00\x20" + b"".join(RESP_STREAMS.values()),
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
