"""The reference decoder reads the golden vectors, and the reference encoder still writes them."""

import pytest
import xxhash

from tests.unit.transport import golden_vectors
from tests.unit.transport import reference_decoder as wire
from tests.unit.transport.reference_decoder import MalformedError

HELLOS = golden_vectors.read("hellos.txt")
REQUESTS = golden_vectors.read("requests.txt")
COMPLETIONS = golden_vectors.read("completions.txt")


@pytest.mark.parametrize("name", golden_vectors.RENDERED)
def test_encoder_writes_the_kept_bytes(name: str) -> None:
    kept = (golden_vectors.FOLDER / name).read_text(encoding="utf-8")
    assert golden_vectors.RENDERED[name]() == kept


@pytest.mark.parametrize("name", HELLOS)
def test_hello_reads_as_described(name: str) -> None:
    data, lines = HELLOS[name]
    assert golden_vectors.describe_hello(wire.decode_hello(data)) == lines


@pytest.mark.parametrize("name", REQUESTS)
def test_request_reads_as_described(name: str) -> None:
    data, lines = REQUESTS[name]
    assert golden_vectors.describe_request(wire.decode_request(data)) == lines


@pytest.mark.parametrize("name", COMPLETIONS)
def test_completion_reads_as_described(name: str) -> None:
    data, lines = COMPLETIONS[name]
    assert golden_vectors.describe_completion(wire.decode_completion(data)) == lines


def test_every_opcode_has_a_request_and_a_completion() -> None:
    known = {wire.NOOP, *wire.OUTCOME_FIELDS}
    assert {wire.decode_request(data).opcode for data, _ in REQUESTS.values()} == known
    assert {wire.decode_completion(data).opcode for data, _ in COMPLETIONS.values()} == known


@pytest.mark.parametrize("name", REQUESTS)
def test_any_flipped_bit_of_a_capsule_is_noticed(name: str) -> None:
    data, _ = REQUESTS[name]
    for bit in range(0, 8 * len(data), 5):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MalformedError):
            wire.decode_request(bytes(flipped))


def test_check_values_of_the_document() -> None:
    assert wire.crc32c(b"123456789") == 0xE3069283
    assert wire.slot(b"123456789") == 0x31C3
    assert wire.slot(b"{user}a") == wire.slot(b"user") == wire.slot(b"x{user}{b}")
    assert wire.slot(b"{}a") != wire.slot(b"")
    assert xxhash.xxh3_64_intdigest(b"") == 0x2D06800538D394C2
    assert len(wire.checksums(bytes(10), 4, offset=3)) == 4
