"""A sync handler: it runs in a thread, waits where async code awaits, and may block as long as it likes."""

import time
from collections.abc import Iterator

from dragoman import Agent
from dragoman.agents import SyncTurn

agent = Agent("Counter", description="Counts slowly, the old-fashioned way.", threads=8)


@agent.skill(timeout=60)
def count(turn: SyncTurn, to: int = 3) -> Iterator[str]:
    """Counts up to a number."""
    turn.say("Counting")
    for number in range(1, to + 1):
        if turn.cancelled:  # a thread cannot be interrupted: it has to look
            return
        yield f"{number} "
        time.sleep(0.01)
