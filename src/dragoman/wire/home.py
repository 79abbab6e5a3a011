"""An agent's message names its context and task on the wire, also where the agent did not."""

from msgspec.structs import replace

from dragoman.model.operations import TaskRef
from dragoman.model.tasks import Task, TaskStatus


def home_status(status: TaskStatus, ref: TaskRef | Task) -> TaskStatus:
    said = status.message
    if said is None or said.context_id:
        return status
    return replace(status, message=replace(said, context_id=ref.context_id, task_id=said.task_id or ref.id))


def home_task(task: Task) -> Task:
    """The task with its status message at home."""
    status = task.status
    if status is None or status.message is None or status.message.context_id:
        return task
    return replace(task, status=home_status(status, task))
