"""Sleep and doorbells of transport/native/ring.h, in every order that a processor may choose.

Two ends as small programs over a memory with store buffers (as x86 has them: a store is seen by
others later than by its own end, and a fence waits until it is). The search visits every state that
can be reached; where nothing can go on, everything must have arrived.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

BYTES: Final = 4  # To be carried through a ring
CAPACITY: Final = 2  # of so many; half of it is much room.

# The memory: what each end has counted, and whether it sleeps.
WRITTEN, READ, WRITER_SLEEPS, READER_SLEEPS = range(4)


class End(NamedTuple):
    """Where a program is, and what it remembers."""

    step: str
    moved: int  # Bytes written, or read.
    stores: tuple[tuple[int, int], ...] = ()  # On their way to the memory, oldest first.
    rung: bool = False  # A doorbell lies in its socket.


class State(NamedTuple):
    memory: tuple[int, ...]
    writer: End
    reader: End


START: Final = State((0, 0, 0, 0), End("look", 0), End("look", 0))


class Role(NamedTuple):
    """What makes the two ends differ."""

    place: int
    peer_place: int
    sleeps: int
    peer_sleeps: int

    def can_move(self, own: int, peer: int) -> bool:
        """A byte to be read, or room for one."""
        return peer > own if self.place == READ else own - peer < CAPACITY and own < BYTES

    def worth_waking(self, own: int, peer: int) -> bool:
        """Something to be read, or much room."""
        return peer > own if self.place == READ else CAPACITY - (own - peer) >= CAPACITY // 2


ROLES: Final = {
    "writer": Role(WRITTEN, READ, WRITER_SLEEPS, READER_SLEEPS),
    "reader": Role(READ, WRITTEN, READER_SLEEPS, WRITER_SLEEPS),
}
PEERS: Final = {"writer": "reader", "reader": "writer"}


def load(state: State, end: End, place: int) -> int:
    """Its own stores first, then the memory."""
    return next((value for at, value in reversed(end.stores) if at == place), state.memory[place])


def changed(state: State, name: str, end: End) -> State:
    return state._replace(writer=end) if name == "writer" else state._replace(reader=end)


def store(end: End, place: int, value: int, step: str) -> End:
    return end._replace(stores=(*end.stores, (place, value)), step=step)


def moves(state: State, name: str, fences: frozenset[str]) -> Iterator[State]:
    """What an end may do next."""
    end: End = getattr(state, name)
    role, peer_name = ROLES[name], PEERS[name]
    peer: End = getattr(state, peer_name)
    if end.stores:  # The oldest store arrives.
        (place, value), *rest = end.stores
        memory = list(state.memory)
        memory[place] = value
        arrived = state._replace(memory=tuple(memory))
        yield changed(arrived, name, end._replace(stores=tuple(rest)))
    match end.step:
        case "look":
            if role.can_move(end.moved, load(state, end, role.peer_place)):
                after_move = end._replace(moved=end.moved + 1)
                yield changed(state, name, store(after_move, role.place, after_move.moved, "fence"))
            elif end.moved == BYTES:
                yield changed(state, name, end._replace(step="done"))
            else:
                yield changed(state, name, store(end, role.sleeps, 1, "sleep fence"))
        case "fence" | "sleep fence":
            if not end.stores or end.step not in fences:
                after = {"fence": "does it sleep", "sleep fence": "look again"}[end.step]
                yield changed(state, name, end._replace(step=after))
        case "does it sleep":
            sleeps = load(state, end, role.peer_sleeps)
            own, other = end.moved, load(state, end, role.peer_place)
            wakes = sleeps and ROLES[peer_name].worth_waking(other, own)
            yield changed(state, name, end._replace(step="claim" if wakes else "look"))
        case "claim":  # A locked exchange: its own stores arrive first.
            if not end.stores:
                claimed = state.memory[role.peer_sleeps]
                memory = list(state.memory)
                memory[role.peer_sleeps] = 0
                after_claim = state._replace(memory=tuple(memory))
                if claimed:
                    after_claim = changed(after_claim, peer_name, peer._replace(rung=True))
                yield changed(after_claim, name, end._replace(step="look"))
        case "look again":
            if role.worth_waking(end.moved, load(state, end, role.peer_place)):
                yield changed(state, name, store(end, role.sleeps, 0, "look"))
            else:
                yield changed(state, name, end._replace(step="asleep"))
        case "asleep":
            if end.rung:
                awake = store(end._replace(rung=False), role.sleeps, 0, "look")
                yield changed(state, name, awake)


def stuck_states(fences: frozenset[str]) -> list[State]:
    """Those in which nothing can go on although not everything has arrived."""
    seen = {START}
    frontier = [START]
    stuck = []
    while frontier:
        state = frontier.pop()
        following = [*moves(state, "writer", fences), *moves(state, "reader", fences)]
        if not following and state.reader.moved != BYTES:
            stuck.append(state)
        for each in following:
            if each not in seen:
                seen.add(each)
                frontier.append(each)
    assert len(seen) > 1_000  # The search has gone somewhere.
    return stuck


def test_nobody_sleeps_for_ever() -> None:
    assert stuck_states(frozenset({"fence", "sleep fence"})) == []


@pytest.mark.parametrize("kept", ["fence", "sleep fence"])
def test_without_either_fence_somebody_does(kept: str) -> None:
    assert stuck_states(frozenset({kept})) != []
