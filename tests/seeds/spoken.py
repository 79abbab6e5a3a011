"""The dialects one by one, as reference texts and the systems' pages have them."""

import itertools
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar

from tests.seeds.calling import JSON, Frame, ask, opened
from tests.seeds.tongues import OLDEST, SETTLED, SHOUT, SNAKE, Events, Refused, Seen, Tongue

_numbers = itertools.count(1)


class V03(Tongue):
    name = "0.3"
    send, stream = "message/send", "message/stream"
    members = frozenset({"kind", "id", "contextId", "status", "artifacts", "history", "metadata"})

    def task(self, found: JSON) -> Seen:
        assert found.keys() <= self.members
        return super().task(found)

    def message(self, text: str, **members: str) -> JSON:
        return {"kind": "message", "messageId": f"m-{next(_numbers)}", **super().message(text, **members)}


class V10(Tongue):
    name = "1.0"
    send, stream, get, cancel, subscribe = (
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "CancelTask",
        "SubscribeToTask",
    )
    states = SHOUT
    headers: ClassVar[dict[str, str]] = {"A2A-Version": "1.0"}
    cancel_canceled = 0
    role = "ROLE_AGENT"

    def message(self, text: str, **members: str) -> JSON:
        return {"messageId": f"m-{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": text}], **members}

    def sent(self, result: JSON) -> Seen:
        assert result.keys() == {"task"}
        return self.task(result["task"])

    def task(self, found: JSON) -> Seen:
        assert found.keys() <= {"id", "contextId", "status", "artifacts", "history", "metadata"}
        return self.seen_task(found)

    def update(self, found: JSON) -> Seen:
        [(kind, value)] = found.items()
        if kind == "task":
            return self.task(value)
        return self.seen_status(value) if kind == "statusUpdate" else self.seen_piece(value)

    def is_final(self, found: JSON, state: str) -> bool:
        assert "final" not in found  # the end of the stream says it
        return state in SETTLED

    def spoken(self, message: JSON) -> str:
        assert message["role"] == self.role and "kind" not in message and message["messageId"]
        return self.text(message["parts"])

    def text(self, parts: list[JSON]) -> str:
        assert all(part.keys() == {"text"} for part in parts)
        return "".join(part["text"] for part in parts)


class OverHttp(Tongue):
    """Verbs and paths instead of methods, bare objects instead of responses."""

    root: ClassVar[str] = ""
    codes: ClassVar[dict[str, int]] = {"TASK_NOT_CANCELABLE": -32002, "TASK_NOT_FOUND": -32001}

    def code(self, status: int, error: JSON) -> int:
        raise NotImplementedError

    def request(self, method: str, params: JSON) -> tuple[str, str, bytes | None]:
        verb, _, path = method.partition(" ")
        body = None if verb == "GET" else json.dumps({k: v for k, v in params.items() if k != "id"}).encode()
        return verb, self.root + path.replace("{id}", params.get("id", "")), body

    def ask(self, base: str, method: str, params: JSON) -> Any:
        answer = ask(base, *self.request(method, params), self.headers)
        if answer.status != 200:
            raise Refused(self.code(answer.status, answer.json()))
        return answer.json()

    @contextmanager
    def streaming(self, base: str, method: str, params: JSON) -> Generator[Events]:
        with opened(base, *self.request(method, params), self.headers) as stream:
            assert stream.status == 200 and stream.headers["content-type"].startswith("text/event-stream")
            yield Events(self, stream, 0)

    def event(self, frame: Frame, number: int) -> Seen:
        return self.update(frame.json())


class Http10(OverHttp, V10):
    name = "1.0 over HTTP"
    send, stream = "POST /message:send", "POST /message:stream"
    get, cancel, subscribe = "GET /tasks/{id}", "POST /tasks/{id}:cancel", "GET /tasks/{id}:subscribe"

    def code(self, status: int, error: JSON) -> int:
        [reason] = [each["reason"] for each in error["error"]["details"] if "reason" in each]
        assert error["error"]["code"] == status == {"TASK_NOT_CANCELABLE": 400, "TASK_NOT_FOUND": 404}[reason]
        return self.codes[reason]


class Http03(OverHttp, V10):
    """What 0.3's own clients send and read there: the JSON of its gRPC file."""

    name = "0.3 over HTTP"
    root = "/v1"
    headers: ClassVar[dict[str, str]] = {}
    send, stream = "POST /message:send", "POST /message:stream"
    get, cancel, subscribe = "GET /tasks/{id}", "POST /tasks/{id}:cancel", "GET /tasks/{id}:subscribe"
    states = SHOUT | {"canceled": "TASK_STATE_CANCELLED"}
    cancel_canceled = -32002

    def message(self, text: str, **members: str) -> JSON:
        found = super().message(text, **members)
        return {"content": found.pop("parts"), **found}

    def code(self, status: int, error: JSON) -> int:
        assert status == {-32002: 400, -32001: 404}[error["code"]]
        return error["code"]

    def is_final(self, found: JSON, state: str) -> bool:
        assert found.get("final", True) is True  # what is false is left out
        return "final" in found

    def spoken(self, message: JSON) -> str:
        assert message["role"] == self.role and "kind" not in message and "parts" not in message
        return self.text(message["content"])


class V01(Tongue):
    """Nothing is called a context here, no stream holds a task, and clients name their tasks."""

    name = "0.1"
    send, stream = "tasks/send", "tasks/sendSubscribe"
    states = OLDEST
    begins = resumes = "status"

    def message(self, text: str, **members: str) -> JSON:
        return {"role": "user", "parts": [{"type": "text", "text": text}]}

    def saying(self, text: str) -> JSON:
        number = next(_numbers)
        return {"id": f"task-{number}", "sessionId": f"session-{number}", "message": self.message(text)}

    def answering(self, text: str, task: Seen) -> JSON:
        return {"id": task.id, "sessionId": task.context, "message": self.message(text)}

    def task(self, found: JSON) -> Seen:
        assert found.keys() <= {"id", "sessionId", "status", "artifacts", "history", "metadata"}
        return self.seen_task({**found, "contextId": found["sessionId"]})

    def update(self, found: JSON) -> Seen:
        if "status" in found:
            assert found.keys() <= {"id", "status", "final", "metadata"}
            state, said = self.status(found["status"])
            assert found["final"] is (state in SETTLED)
            return Seen("status", found["id"], "", state, said, final=found["final"])
        assert found.keys() <= {"id", "artifact", "metadata"} and found["artifact"]["index"] == 0
        return Seen("piece", found["id"], text=self.text(found["artifact"]["parts"]))

    def spoken(self, message: JSON) -> str:
        assert message.keys() <= {"role", "parts", "metadata"} and message["role"] == "agent"
        return self.text(message["parts"])

    def text(self, parts: list[JSON]) -> str:
        assert all(part.keys() == {"type", "text"} and part["type"] == "text" for part in parts)
        return "".join(part["text"] for part in parts)


class Simple(Tongue):
    name = "simple_a2a"
    send, stream = "tasks/send", "tasks/sendSubscribe"
    states = SNAKE
    begins = "status"

    def answering(self, text: str, task: Seen) -> JSON:
        return {"id": task.id, "message": {"messageId": f"m-{next(_numbers)}", **self.message(text)}}

    def task(self, found: JSON) -> Seen:
        assert found.keys() <= {"id", "contextId", "status", "artifacts", "history", "metadata"}
        return self.seen_task(found)

    def event(self, frame: Frame, number: int) -> Seen:
        body = frame.json()
        assert body.keys() == {"jsonrpc", "result"}  # responses without an id
        found = body["result"]
        kind = found.get("type")
        if kind is None:
            return self.task(found)
        if kind == "TaskStatusUpdateEvent":
            return self.seen_status(found)
        assert kind == "TaskArtifactUpdateEvent" and found["final"] is False
        return self.seen_piece(found)

    def spoken(self, message: JSON) -> str:
        assert message["role"] == "agent" and "kind" not in message
        return self.text(message["parts"])

    def text(self, parts: list[JSON]) -> str:
        assert all(part.keys() == {"text"} for part in parts)
        return "".join(part["text"] for part in parts)


class Seed03(V03):
    """0.3 with the same members once more beside a frame's result, where the system's own clients look for them."""

    message = Tongue.message  # no kind and no messageId: their pages do without

    def beside(self, result: JSON, others: JSON) -> None:
        if result["kind"] == "task":
            assert others == {"kind": "task"}
        else:
            assert {"kind", "taskId", "contextId"} <= others.keys()
            assert others == {name: result[name] for name in others}
            assert ("status" in others) == (result["kind"] == "status-update") == ("final" in others)
            assert ("artifact" in others) == (result["kind"] == "artifact-update")


class Coding(Seed03):
    """An answer is called assistant-response, tasks are named taskId, and a question leaves the stream open."""

    name = "coding-agent"
    path = "/a2a/jsonrpc"
    begins = "status"
    ends_at_question = False
    cancel_completed = cancel_canceled = 0

    def naming(self, task: Seen) -> JSON:
        return {"taskId": task.id}

    def answering(self, text: str, task: Seen) -> JSON:
        return {"message": self.message(text, contextId=task.context)}

    def task(self, found: JSON) -> Seen:
        assert all(artifact["name"] == "assistant-response" for artifact in found.get("artifacts", []))
        return super().task(found)

    def seen_piece(self, found: JSON) -> Seen:
        assert found["artifact"]["name"] == "assistant-response"
        return super().seen_piece(found)

    def beside(self, result: JSON, others: JSON) -> None:
        if result["kind"] == "artifact-update" and any(part["text"] for part in result["artifact"]["parts"]):
            assert others.pop("append") is True  # chunks build up one answer
        if others:
            super().beside(result, others)


class Proto(Seed03):
    """Every task says what it cost."""

    name = "protoAgent"
    path = "/a2a"
    members = V03.members | {"data"}
    cancel_completed = cancel_canceled = 0

    def task(self, found: JSON) -> Seen:
        cost = found["data"]
        assert cost["usage"].keys() == {"input_tokens", "output_tokens", "total_tokens"} and cost["durationMs"] > 0
        return super().task(found)


class A2X(Seed03):
    """The answer stands in the status message; while it comes, each piece is said as well."""

    name = "A2X"
    path = "/api/a2a"
    begins = resumes = "status"

    def task(self, found: JSON) -> Seen:
        seen = super().task(found)
        if seen.state == "completed":
            assert seen.said == seen.text
        return seen


class Cortex(V10):
    """Tasks bare and wrapped in one object, flat members beside a frame's result, and [DONE] behind the last."""

    name = "Cortex"
    path = "/a2a"
    behind = ("[DONE]",)

    def message(self, text: str, **members: str) -> JSON:
        return {**super().message(text, **members), "role": "user"}

    def sent(self, result: JSON) -> Seen:
        wrapped = result.pop("task")
        assert result == wrapped
        return self.task(wrapped)

    def update(self, found: JSON) -> Seen:
        if "task" not in found:
            return super().update(found)
        assert all(found["task"][name] == value for name, value in found.items() if name != "task")
        return self.task(found["task"])

    def beside(self, result: JSON, others: JSON) -> None:
        if "task" in result:
            assert not others
            return
        if "statusUpdate" in result:
            status = result["statusUpdate"]["status"]
            assert others.pop("type") == "TaskStatusUpdateEvent"
            assert others.pop("final") is any(status["state"] == SHOUT[state] for state in SETTLED)
            assert others["status"]["state"] == status["state"]
        else:
            assert others.pop("type") == "TaskArtifactUpdateEvent"
            assert others["artifact"] == result["artifactUpdate"]["artifact"]
        assert others["taskId"] == next(iter(result.values()))["taskId"]


TONGUES: tuple[Tongue, ...] = (
    V10(),
    Http10(),
    V03(),
    Http03(),
    V01(),
    Coding(),
    Cortex(),
    Simple(),
    A2X(),
    Proto(),
)
BY_NAME = {tongue.name: tongue for tongue in TONGUES}
_SHARING = (V03, V01, Simple)  # have the same names for reading, canceling and subscribing at `/`


def words(asking: Tongue, made_by: Tongue) -> Tongue:
    """In whose words one dialect is told of a task another has made, where they share the method's name."""
    if type(asking) not in _SHARING:
        return asking
    return made_by if isinstance(made_by, V01 | Simple) else BY_NAME["0.3"]
