"""How each dialect asks, and how its answers must look: written down from what the systems promise, not from the code.

A `Tongue` asks in its own words and reads only answers in its own shape; whatever else an answer holds or lacks is an
AssertionError. What it reads comes back as `Seen`, in the official words, so that dialects can be compared.
"""

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from tests.seeds.calling import JSON, Frame, Stream, ask, envelope, opened

_numbers = itertools.count(1)

KEBAB = {
    name: name.replace("_", "-")
    for name in (
        "submitted",
        "working",
        "completed",
        "failed",
        "canceled",
        "rejected",
        "input_required",
        "auth_required",
    )
}
SNAKE = {name: name for name in KEBAB}
SHOUT = {name: f"TASK_STATE_{name.upper()}" for name in KEBAB}
OLDEST = {name: word for name, word in KEBAB.items() if name not in ("rejected", "auth_required")}
OVER = ("completed", "failed", "canceled", "rejected")
SETTLED = (*OVER, "input_required")


class Seen(NamedTuple):
    """A task, or what an event of its stream tells. `state`, `said` and `text` are empty where nothing is told."""

    kind: str
    id: str
    context: str = ""
    state: str = ""
    said: str = ""
    text: str = ""
    final: bool = False


class Refused(Exception):
    """The error's number, in this dialect."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Tongue:
    """A dialect. `own` is what its answers look like whoever made the task; `/` lets others answer for their tasks."""

    name: ClassVar[str]
    path: ClassVar[str] = "/"
    send: ClassVar[str]
    stream: ClassVar[str]
    get: ClassVar[str] = "tasks/get"
    cancel: ClassVar[str] = "tasks/cancel"
    subscribe: ClassVar[str] = "tasks/resubscribe"
    states: ClassVar[dict[str, str]] = KEBAB
    headers: ClassVar[dict[str, str]] = {}
    # With what its streams begin, and those it takes up again.
    begins: ClassVar[str] = "task"
    resumes: ClassVar[str] = "task"
    # Whether a stream ends at a question.
    ends_at_question: ClassVar[bool] = True
    # What canceling answers once more, for a completed task and for a canceled one; 0 is the task itself.
    cancel_completed: ClassVar[int] = -32002
    cancel_canceled: ClassVar[int] = -32002
    # What stands behind the last frame.
    behind: ClassVar[tuple[str, ...]] = ()

    # --- asking

    def message(self, text: str, **members: str) -> JSON:
        return {"role": "user", "parts": [{"kind": "text", "text": text}], **members}

    def saying(self, text: str) -> JSON:
        return {"message": self.message(text)}

    def answering(self, text: str, task: Seen) -> JSON:
        """The answer to a task's question, as far as this system needs to be told which."""
        return {"message": self.message(text, taskId=task.id, contextId=task.context)}

    def naming(self, task: Seen) -> JSON:
        return {"id": task.id}

    def ask(self, base: str, method: str, params: JSON) -> Any:
        """The result. Raises Refused."""
        number = next(_numbers)
        answer = ask(base, "POST", self.path, envelope(method, params, number), self.headers)
        body = answer.json()
        assert answer.status == 200, f"{answer.status}: {body}"
        assert body.keys() == {"jsonrpc", "id", "result"} or body.keys() == {"jsonrpc", "id", "error"}, body
        assert (body["jsonrpc"], body["id"]) == ("2.0", number)
        if "error" in body:
            assert isinstance(body["error"]["message"], str) and body["error"]["message"]
            raise Refused(body["error"]["code"])
        return body["result"]

    @contextmanager
    def streaming(self, base: str, method: str, params: JSON) -> Generator["Events"]:
        number = next(_numbers)
        with opened(base, "POST", self.path, envelope(method, params, number), self.headers) as stream:
            assert stream.status == 200 and stream.headers["content-type"].startswith("text/event-stream")
            yield Events(self, stream, number)

    # --- the four things that are done with a task

    def sends(self, base: str, text: str) -> Seen:
        return self.sent(self.ask(base, self.send, self.saying(text)))

    def answers(self, base: str, text: str, task: Seen) -> Seen:
        return self.sent(self.ask(base, self.send, self.answering(text, task)))

    def reads(self, base: str, task: Seen, whose: "Tongue") -> Seen:
        return whose.task(self.ask(base, self.get, self.naming(task)))

    def cancels(self, base: str, task: Seen, whose: "Tongue") -> Seen:
        return whose.task(self.ask(base, self.cancel, self.naming(task)))

    @contextmanager
    def streams(self, base: str, text: str) -> Generator["Events"]:
        with self.streaming(base, self.stream, self.saying(text)) as events:
            yield events

    @contextmanager
    def subscribes(self, base: str, task: Seen, whose: "Tongue") -> Generator["Events"]:
        with self.streaming(base, self.subscribe, self.naming(task)) as events:
            events.whose = whose
            yield events

    # --- reading

    def sent(self, result: JSON) -> Seen:
        """What a send answers."""
        return self.task(result)

    def task(self, found: JSON) -> Seen:
        assert found["kind"] == "task"
        return self.seen_task(found)

    def event(self, frame: Frame, number: int) -> Seen:
        """What a frame tells."""
        body = frame.json()
        assert body.pop("jsonrpc") == "2.0" and body.pop("id") == number
        result = body.pop("result")
        self.beside(result, body)
        return self.update(result)

    def beside(self, result: JSON, others: JSON) -> None:
        """What stands beside a frame's result: nothing in official frames."""
        assert not others

    def update(self, found: JSON) -> Seen:
        kind = found["kind"]
        if kind == "task":
            return self.task(found)
        return self.seen_status(found) if kind == "status-update" else self.seen_piece(found)

    def seen_task(self, found: JSON) -> Seen:
        state, said = self.status(found["status"])
        text = "".join(self.text(artifact["parts"]) for artifact in found.get("artifacts", []))
        return Seen("task", found["id"], found["contextId"], state, said, text)

    def seen_status(self, found: JSON) -> Seen:
        state, said = self.status(found["status"])
        return Seen("status", found["taskId"], found["contextId"], state, said, final=self.is_final(found, state))

    def is_final(self, found: JSON, state: str) -> bool:
        final = found["final"]
        assert isinstance(final, bool)
        return final

    def seen_piece(self, found: JSON) -> Seen:
        assert found["artifact"]["artifactId"]
        return Seen("piece", found["taskId"], found["contextId"], text=self.text(found["artifact"]["parts"]))

    def status(self, status: JSON) -> tuple[str, str]:
        [state] = [name for name, word in self.states.items() if word == status["state"]]
        assert status["timestamp"].endswith("Z") and len(status["timestamp"]) == 24
        message = status.get("message")
        return state, "" if message is None else self.spoken(message)

    def spoken(self, message: JSON) -> str:
        assert (message["kind"], message["role"]) == ("message", "agent") and message["messageId"]
        return self.text(message["parts"])

    def text(self, parts: list[JSON]) -> str:
        assert all(part["kind"] == "text" for part in parts)
        return "".join(part["text"] for part in parts)


class Events:
    """An open stream, read in the words of `whose` task it is of."""

    def __init__(self, tongue: Tongue, stream: Stream, number: int) -> None:
        self.whose = tongue
        self._stream = stream
        self._number = number
        self.behind: tuple[str, ...] = ()
        self.seen: list[Seen] = []

    def next(self) -> Seen | None:
        frame = self._stream.next()
        while frame is not None and not frame.data:
            self.behind += frame.lines
            frame = self._stream.next()
        if frame is None:
            return None
        assert not self.behind, "something stands before the last frame that is no event"
        event = self.whose.event(frame, self._number)
        self.seen.append(event)
        return event

    def until(self, text: str = "", state: str = "") -> Seen:
        """The first event from here that tells this text or state."""
        while (event := self.next()) is not None:
            if (text and text in (event.text, event.said)) or (state and event.state == state):
                return event
        raise AssertionError(f"the stream ended without {text or state}: {self.seen}")

    def rest(self) -> list[Seen]:
        found: list[Seen] = []
        while (event := self.next()) is not None:
            found.append(event)
        return found
