"""Threads that work at the same time until one fails or all are done."""

import threading
import time
from collections.abc import Callable

Step = Callable[[int], object]


def crowd(seconds: float, *members: Step) -> list[int]:
    """Let every member take steps, numbered from 0, until the time is over.

    Returns:
        How many steps each took.

    Raises:
        BaseException: what the first member that failed raised.
    """
    ends = time.monotonic() + seconds
    failures: list[BaseException] = []
    counts = [0] * len(members)

    def work(index: int, step: Step) -> None:
        try:
            while time.monotonic() < ends and not failures:
                step(counts[index])
                counts[index] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=each) for each in enumerate(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert all(counts), f"a member never took a step: {counts}"
    return counts
