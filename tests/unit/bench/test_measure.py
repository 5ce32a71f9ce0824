"""The order in which entrants take their turns."""

from bench.measure import turns
from bench.record import Plan


def test_each_entrant_has_one_turn_a_round_and_the_first_moves_on() -> None:
    order = list(turns(3, Plan(round_count=2, seconds=1.0, key_count=1)))
    assert order == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0), (2, 2), (2, 0), (2, 1)]
