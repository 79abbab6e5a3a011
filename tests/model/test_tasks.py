"""What a task delivered, as a message."""

import pytest

from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.tasks import Task, TaskState, TaskStatus, View


def view(*parts: Part, state: TaskState | None = TaskState.COMPLETED) -> View:
    artifacts = tuple(Artifact(artifact_id=f"a{n}", parts=(part,)) for n, part in enumerate(parts))
    status = None if state is None else TaskStatus(state=state)
    return View(uid="u", seq=1, task=Task(id="t", context_id="c", status=status, artifacts=artifacts))


def test_words_and_data_of_all_artifacts_are_the_answer_and_files_are_not() -> None:
    text, data = Part(text="Done."), Part(data=None)
    assert view(text, Part(raw=b"x"), Part(text=""), data, Part(url="https://f.example")).answer() == Message(
        message_id="u.answer", context_id="c", task_id="t", role=Role.AGENT, parts=(text, data)
    )


def test_who_delivered_nothing_to_read_answered_nothing() -> None:
    assert view().answer() is None
    assert view(Part(raw=b"x"), Part(text="")).answer() is None


@pytest.mark.parametrize("state", [None, TaskState.WORKING, TaskState.FAILED, TaskState.INPUT_REQUIRED])
def test_only_a_completed_task_has_answered(state: TaskState | None) -> None:
    assert view(Part(text="half"), state=state).answer() is None
