"""What a webhook was told, in whatever dialect it was told."""

from msgspec import Struct

from dragoman.model.messages import Message
from dragoman.model.tasks import TERMINAL, Task, TaskState


class News(Struct, frozen=True, kw_only=True):
    """`task` is as much of the task as the body says: all of it when `whole`; otherwise its ids, its status if that is
    the news, and an artifact if one came along, which goes on where an earlier one stopped when `append` is set.

    `delivery` is the same whenever the same news come again, and empty when the sender gave them no id. `omitted` names
    what a sender left out because the body would have been too large; getting the task answers it.
    """

    task: Task
    whole: bool = False
    append: bool = False
    omitted: tuple[str, ...] = ()
    delivery: str = ""

    @property
    def state(self) -> TaskState | None:
        return self.task.status.state if self.task.status else None

    @property
    def over(self) -> bool:
        """Whether the task has ended."""
        return self.state in TERMINAL

    @property
    def message(self) -> Message | None:
        """What the agent said with it: progress, a question, a reason."""
        return self.task.status.message if self.task.status else None
