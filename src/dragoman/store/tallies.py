"""Whether an owner may have what an append would give them."""

from dragoman.model.errors import OverBudget
from dragoman.ports import Append, New, Turn


def admit(append: Append, tasks: int, size: int) -> None:
    """Raises OverBudget when the append would give its owner, who has so much, more than its guard says. A task beyond
    the most counts, however small; so does every byte."""
    guard = append.guard
    if isinstance(guard, Turn):
        return
    most = guard.most
    if most.tasks and isinstance(guard, New) and tasks >= most.tasks:
        raise OverBudget("tasks", most.tasks)
    if most.bytes and size + append.size > most.bytes:
        raise OverBudget("bytes", most.bytes)
