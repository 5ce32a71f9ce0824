import pytest

from kvstrata.store.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GiB", 2 << 30), ("2 GB", 2 * 10**9), ("1.5KiB", 1536), ("17", 17), (17, 17), ("0b", 0)],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GiB",
        "-1",
        -1,
        "1XB",
        "0.3B",
        None,
        True,
        float("nan"),
        1e300,
        2**64,
        "16777216TiB",
        "9" * 400,
        "9" * 400 + ".5",
    ],
)
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("5s", 5), (1.5, 1.5), ("2min", 120), ("1d", 86400)]
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "5 weeks", -1, None, float("inf"), 10**400, "9" * 400])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize("size", [0, 17, 1024, 1536, 256 << 20, 5 << 40])
def test_formatted_sizes_can_be_parsed(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (100e-6, "100 us"),
        (1.5, "1500 ms"),
        (90, "90 s"),
        (3600, "1 h"),
        (1e-7, "1e-07 s"),
    ],
)
def test_formatted_durations_have_a_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
