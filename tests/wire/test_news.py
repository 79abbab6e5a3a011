"""What webhooks are told: each dialect's own words for each kind of news, and never more than a receiver takes."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.model.facts import AnyFact, Asked, Chunk, Resumed, Said, Settled, Started, StatusFact
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import PushConfig
from dragoman.model.tasks import Scope, Task, TaskState, TaskStatus, Usage, View
from dragoman.ports import Hook
from dragoman.wire.news import newsroom
from dragoman.wire.settings import WireSettings
from dragoman.wire.told import OMITTED
from tests.wire.wording import AT

ASKED = Message(message_id="u-1", context_id="c-5", task_id="t-77", role=Role.USER, parts=(Part(text="Crop it"),))
MADE = Artifact(artifact_id="a-3", name="picture", parts=(Part(text="square"), Part(data=[1, 2])))
ORIGINS = ("1.0", "cortex", "0.3", "0.1", "coding-agent", "simple", "a2x", "proto")


def status(state: TaskState, text: str = "") -> TaskStatus:
    said = Message(message_id="m-2", context_id="c-5", task_id="t-77", role=Role.AGENT, parts=(Part(text=text),))
    return TaskStatus(state=state, message=said if text else None, timestamp=AT)


def view(shown: TaskStatus, *artifacts: Artifact, **more: Any) -> View:
    task = Task(id="t-77", context_id="c-5", status=shown, artifacts=artifacts, history=(ASKED,))
    return View(uid="0199-uid", seq=9, task=task, **more)


def hook(origin: str, *event_types: str) -> Hook:
    config = PushConfig(task_id="t-77", id="h-1", url="https://cb.example", event_types=event_types)
    return Hook(uid="0199-uid", scope=Scope("agent"), config=config, origin=origin)


def told(origin: str, fact: AnyFact, seen: View, *event_types: str, wire: WireSettings | None = None) -> Any:
    body, _ = newsroom(wire or WireSettings())(hook(origin, *event_types), fact, seen)
    return json.loads(body) if body else None


WORKING = Said(at=5, status=status(TaskState.WORKING, "Cropping"), metadata={"p": 50})
QUESTION = Asked(at=6, n=0, status=status(TaskState.INPUT_REQUIRED, "How large?"))
DONE = Settled(at=9, status=status(TaskState.COMPLETED), usage=Usage(input_tokens=3, output_tokens=4))
FAILED = Settled(at=9, status=status(TaskState.FAILED, "No picture"))
REJECTED = Settled(at=9, status=status(TaskState.REJECTED))

USER_10 = {
    "messageId": "u-1",
    "contextId": "c-5",
    "taskId": "t-77",
    "role": "ROLE_USER",
    "parts": [{"text": "Crop it"}],
}
USER_03 = {
    "kind": "message",
    "messageId": "u-1",
    "role": "user",
    "parts": [{"kind": "text", "text": "Crop it"}],
    "contextId": "c-5",
    "taskId": "t-77",
}
USER_01 = {"role": "user", "parts": [{"type": "text", "text": "Crop it"}]}
MADE_10 = {"artifactId": "a-3", "name": "picture", "parts": [{"text": "square"}, {"data": [1, 2]}]}
MADE_03 = {
    "artifactId": "a-3",
    "parts": [
        {"kind": "text", "text": "square"},
        {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}},
    ],
    "name": "picture",
}
MADE_01 = {
    "index": 0,
    "parts": [{"type": "text", "text": "square"}, {"type": "data", "data": [1, 2]}],
    "name": "picture",
    "metadata": {"artifactId": "a-3"},
}


def says_10(text: str) -> dict[str, Any]:
    return {"messageId": "m-2", "contextId": "c-5", "taskId": "t-77", "role": "ROLE_AGENT", "parts": [{"text": text}]}


def says_03(text: str) -> dict[str, Any]:
    parts = [{"kind": "text", "text": text}]
    return {
        "kind": "message",
        "messageId": "m-2",
        "role": "agent",
        "parts": parts,
        "contextId": "c-5",
        "taskId": "t-77",
    }


@pytest.mark.parametrize("origin", ["1.0", "cortex", "from a later version"])
class TestOfOneZero:
    def test_what_happens_in_between_is_an_update(self, origin: str) -> None:
        assert told(origin, WORKING, view(WORKING.status)) == {
            "statusUpdate": {
                "taskId": "t-77",
                "contextId": "c-5",
                "status": {"state": "TASK_STATE_WORKING", "message": says_10("Cropping"), "timestamp": AT},
                "metadata": {"p": 50},
            }
        }
        assert told(origin, QUESTION, view(QUESTION.status)) == {
            "statusUpdate": {
                "taskId": "t-77",
                "contextId": "c-5",
                "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": says_10("How large?"), "timestamp": AT},
            }
        }

    def test_the_end_is_the_task_with_its_result(self, origin: str) -> None:
        assert told(origin, DONE, view(DONE.status, MADE)) == {
            "task": {
                "id": "t-77",
                "contextId": "c-5",
                "status": {"state": "TASK_STATE_COMPLETED", "timestamp": AT},
                "artifacts": [MADE_10],
                "history": [USER_10],
            }
        }
        assert told(origin, FAILED, view(FAILED.status))["task"]["status"] == {
            "state": "TASK_STATE_FAILED",
            "message": says_10("No picture"),
            "timestamp": AT,
        }


class TestOfZeroThree:
    def test_everything_is_the_whole_task(self) -> None:
        assert told("0.3", WORKING, view(WORKING.status)) == {
            "kind": "task",
            "id": "t-77",
            "contextId": "c-5",
            "status": {"state": "working", "message": says_03("Cropping"), "timestamp": AT},
            "history": [USER_03],
        }
        assert told("0.3", QUESTION, view(QUESTION.status, MADE)) == {
            "kind": "task",
            "id": "t-77",
            "contextId": "c-5",
            "status": {"state": "input-required", "message": says_03("How large?"), "timestamp": AT},
            "artifacts": [MADE_03],
            "history": [USER_03],
        }
        assert told("0.3", DONE, view(DONE.status, MADE)) == {
            "kind": "task",
            "id": "t-77",
            "contextId": "c-5",
            "status": {"state": "completed", "timestamp": AT},
            "artifacts": [MADE_03],
            "history": [USER_03],
        }

    def test_coding_agent_names_the_answer_and_what_it_took(self) -> None:
        answer = replace(MADE, name="", parts=(Part(text="square"),))
        found = told("coding-agent", DONE, view(DONE.status, answer, usage=DONE.usage))
        assert found["artifacts"] == [
            {"artifactId": "a-3", "parts": [{"kind": "text", "text": "square"}], "name": "assistant-response"},
            {
                "artifactId": "stats",
                "parts": [{"kind": "data", "data": {"stats": {"inputTokens": 3, "outputTokens": 4}}}],
                "name": "result",
            },
        ]


class TestOfZeroOne:
    def test_everything_is_the_whole_task_in_a_session(self) -> None:
        said = {"role": "agent", "parts": [{"type": "text", "text": "Cropping"}]}
        assert told("0.1", WORKING, view(WORKING.status)) == {
            "id": "t-77",
            "sessionId": "c-5",
            "status": {"state": "working", "timestamp": AT, "message": said},
            "artifacts": [],
            "history": [USER_01],
        }
        assert told("0.1", DONE, view(DONE.status, MADE)) == {
            "id": "t-77",
            "sessionId": "c-5",
            "status": {"state": "completed", "timestamp": AT},
            "artifacts": [MADE_01],
            "history": [USER_01],
        }

    def test_later_states_have_the_words_of_then(self) -> None:
        assert told("0.1", REJECTED, view(REJECTED.status))["status"] == {
            "state": "failed",
            "timestamp": AT,
            "message": {"role": "agent", "parts": [], "metadata": {"state": "rejected"}},
        }


class TestOfSimple:
    def test_an_update_is_the_bare_event(self) -> None:
        assert told("simple", WORKING, view(WORKING.status)) == {
            "type": "TaskStatusUpdateEvent",
            "taskId": "t-77",
            "contextId": "c-5",
            "status": {"state": "working", "timestamp": AT, "message": {**says_10("Cropping"), "role": "agent"}},
            "final": False,
            "metadata": {"p": 50},
        }
        assert told("simple", QUESTION, view(QUESTION.status)) == {
            "type": "TaskStatusUpdateEvent",
            "taskId": "t-77",
            "contextId": "c-5",
            "status": {
                "state": "input_required",
                "timestamp": AT,
                "message": {**says_10("How large?"), "role": "agent"},
            },
            "final": True,
        }

    def test_completion_brings_what_was_made(self) -> None:
        assert told("simple", DONE, view(DONE.status, MADE)) == {
            "type": "TaskStatusUpdateEvent",
            "taskId": "t-77",
            "contextId": "c-5",
            "status": {"state": "completed", "timestamp": AT},
            "final": True,
            "artifacts": [MADE_10],
        }

    @pytest.mark.parametrize(
        "types",
        [
            ("TaskStatusUpdateEvent",),
            ("TaskArtifactUpdateEvent", "status-update"),
            ("working", "completed"),
            ("TASK_STATE_WORKING", "task.completed"),
            ("something new",),
        ],
    )
    def test_event_types_that_cover_it_or_mean_nothing_change_nothing(self, types: tuple[str, ...]) -> None:
        for fact, seen in ((WORKING, view(WORKING.status)), (DONE, view(DONE.status, MADE))):
            assert told("simple", fact, seen, *types) == told("simple", fact, seen) is not None

    @pytest.mark.parametrize("types", [("completed",), ("input_required", "input-required"), ("canceled",)])
    def test_a_hook_is_told_of_the_states_it_names_only(self, types: tuple[str, ...]) -> None:
        assert told("simple", WORKING, view(WORKING.status), *types) is None
        assert told("simple", FAILED, view(FAILED.status), *types) is None
        assert (told("simple", DONE, view(DONE.status), *types) is None) == ("completed" not in types)
        assert (told("simple", QUESTION, view(QUESTION.status), *types) is None) == ("input_required" not in types)

    def test_a_hook_for_artifacts_alone_gets_them_at_the_end(self) -> None:
        types = ("TaskArtifactUpdateEvent",)
        assert told("simple", WORKING, view(WORKING.status, MADE), *types) is None
        assert told("simple", DONE, view(DONE.status), *types) is None
        assert told("simple", DONE, view(DONE.status, MADE), *types) == {
            "type": "TaskArtifactUpdateEvent",
            "taskId": "t-77",
            "contextId": "c-5",
            "artifact": MADE_10,
            "append": False,
            "lastChunk": True,
        }

    def test_only_this_dialect_has_event_types(self) -> None:
        assert told("0.3", WORKING, view(WORKING.status), "completed") is not None


class TestOfA2X:
    def test_it_tells_ends_and_questions_as_the_whole_task(self) -> None:
        found = told("a2x", DONE, view(DONE.status, MADE))
        answer = found["status"]["message"]
        assert (found["kind"], found["id"], found["status"]["state"]) == ("task", "t-77", "completed")
        assert (answer["role"], answer["parts"]) == ("agent", [{"kind": "text", "text": "square"}])
        assert found["artifacts"] == [MADE_03]
        assert told("a2x", QUESTION, view(QUESTION.status))["status"]["state"] == "input-required"

    def test_it_does_not_tell_of_work(self) -> None:
        assert told("a2x", WORKING, view(WORKING.status)) is None


class TestOfProto:
    def test_an_update_is_the_frame_its_streams_have(self) -> None:
        assert told("proto", WORKING, view(WORKING.status)) == {
            "kind": "status-update",
            "taskId": "t-77",
            "contextId": "c-5",
            "status": {"state": "working", "message": says_03("Cropping"), "timestamp": AT},
            "metadata": {"p": 50},
            "final": False,
        }
        assert told("proto", QUESTION, view(QUESTION.status))["final"] is True

    def test_completion_brings_the_artifact(self) -> None:
        assert told("proto", DONE, view(DONE.status, MADE)) == {
            "kind": "status-update",
            "taskId": "t-77",
            "contextId": "c-5",
            "status": {"state": "completed", "timestamp": AT},
            "final": True,
            "artifact": {**MADE_03, "append": False, "lastChunk": True},
        }
        assert "artifact" not in told("proto", DONE, view(DONE.status))
        assert "artifact" not in told("proto", FAILED, view(FAILED.status, MADE))

    def test_several_artifacts_arrive_as_one_with_all_their_parts(self) -> None:
        first = replace(MADE, parts=(Part(text="a"),), metadata={"x": 1, "y": 1}, extensions=("urn:e",))
        second = Artifact(artifact_id="a-4", parts=(Part(text="b"),), metadata={"y": 2}, extensions=("urn:e", "urn:f"))
        assert told("proto", DONE, view(DONE.status, first, second))["artifact"] == {
            "artifactId": "t-77",
            "parts": [{"kind": "text", "text": "a"}, {"kind": "text", "text": "b"}],
            "metadata": {"x": 1, "y": 2},
            "extensions": ["urn:e", "urn:f"],
            "append": False,
            "lastChunk": True,
        }


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_media_type_is_the_dialects(origin: str) -> None:
    _, media = newsroom(WireSettings())(hook(origin), DONE, view(DONE.status))
    assert media == ("application/a2a+json" if origin in ("1.0", "cortex") else "application/json")


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize(
    "fact",
    [
        Started(at=1, turn="x", epoch=1, status=status(TaskState.WORKING)),
        Said(at=2, status=status(TaskState.WORKING, "Cropping")),
        Asked(at=3, n=0, status=status(TaskState.INPUT_REQUIRED, "How large?")),
        Asked(at=3, n=0, status=status(TaskState.AUTH_REQUIRED, "Sign in")),
        Resumed(at=4, status=status(TaskState.WORKING)),
        *(Settled(at=9, status=status(state)) for state in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED)),
        Chunk(at=5, artifact=MADE),
    ],
)
def test_whatever_is_told_names_the_task_and_how_it_stands(origin: str, fact: AnyFact) -> None:
    stands = fact.status if isinstance(fact, StatusFact) else status(TaskState.WORKING)
    assert stands.state is not None
    found = told(origin, fact, view(stands, MADE))
    if found is None:
        assert origin == "a2x" and stands.state is TaskState.WORKING
        return
    inner = found.get("task") or found.get("statusUpdate") or found
    assert inner.get("taskId", inner.get("id")) == "t-77"
    spelled = inner["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    assert spelled in (stands.state.value.removeprefix("TASK_STATE_").lower().replace("_", "-"), "input-required")


def test_news_told_late_still_say_what_they_are_about() -> None:
    """The task has gone on when the first attempt is made. A question is one nevertheless, and is asked only once."""
    asked = QUESTION.status.message
    assert asked is not None
    answer = Message(message_id="u-2", role=Role.USER, parts=(Part(text="Large"),))
    later = view(DONE.status, MADE)
    later = replace(later, task=replace(later.task, history=(ASKED, asked, answer)))
    found = told("0.3", QUESTION, later)
    assert found["status"] == {"state": "input-required", "message": says_03("How large?"), "timestamp": AT}
    assert [each["messageId"] for each in found["history"]] == ["u-1"]
    assert [each["messageId"] for each in told("0.3", DONE, later)["history"]] == ["u-1", "m-2", "u-2"]


class TestSize:
    """A megabyte is what common receivers take; what does not fit is left out and named."""

    @staticmethod
    def of(origin: str, fact: AnyFact, seen: View) -> Any:
        body, _ = newsroom(WireSettings(max_news=2_000))(hook(origin), fact, seen)
        assert len(body) <= 2_000
        return json.loads(body)

    def test_a_long_conversation_goes_first(self) -> None:
        seen = view(DONE.status, MADE)
        seen = replace(seen, task=replace(seen.task, history=(ASKED,) * 50, metadata={"k": 1}))
        found = self.of("0.3", DONE, seen)
        assert found["metadata"] == {"k": 1, OMITTED: ["history"]}
        assert found["artifacts"] == [MADE_03] and "history" not in found
        assert self.of("1.0", DONE, seen)["task"]["metadata"] == {"k": 1, OMITTED: ["history"]}

    @pytest.mark.parametrize("origin", ORIGINS)
    def test_then_a_large_result(self, origin: str) -> None:
        found = self.of(origin, DONE, view(DONE.status, replace(MADE, parts=(Part(text="x" * 5_000),))))
        inner = found.get("task", found)
        assert not inner.get("artifacts") and "artifact" not in inner
        assert inner["metadata"][OMITTED][-1] == "artifacts"
        assert inner["status"]["state"].lower().endswith("completed")

    @pytest.mark.parametrize("origin", ORIGINS)
    def test_then_long_words_and_metadata(self, origin: str) -> None:
        fact = Asked(at=6, n=0, status=status(TaskState.INPUT_REQUIRED, "?" * 5_000), metadata={"m": "x" * 5_000})
        found = self.of(origin, fact, view(fact.status, MADE))
        inner = found.get("statusUpdate", found)
        assert {"message", "metadata"} <= set(inner["metadata"][OMITTED])
        assert "message" not in inner["status"]

    def test_what_the_store_left_out_is_named_where_it_is_missed(self) -> None:
        seen = view(DONE.status, partial=True)
        assert told("0.3", DONE, seen)["metadata"] == {OMITTED: ["artifacts"]}
        assert told("proto", DONE, seen)["metadata"] == {OMITTED: ["artifacts"]}
        assert "metadata" not in told("1.0", QUESTION, view(QUESTION.status, partial=True))["statusUpdate"]
