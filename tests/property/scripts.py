"""Little programs an agent can be sent, and what a caller should see of them: the simple model.

A program is a word of letters, one act each. `Shadow` carries a task through the same acts without log, store,
checkpoint or concurrency: only what clients may see.

    c  a chunk of the message's artifact        s  say something       u  use one token
    a  ask, and stream the answer               w  wait at the gate    .  end as completed
    p  require authorization, and stream what came with it
    f  end as failed, with a reason             r  end as rejected, with a reason     x  raise
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from dragoman.core.lifecycle import INTERRUPTED_BY_RESTART, RERUNS
from dragoman.engine.run import FAILED
from dragoman.model.cards import Profile
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.tasks import INTERRUPTED, TERMINAL, Task, TaskState, Usage
from dragoman.ports import Route, TurnHandle


class Program(NamedTuple):
    """What one message makes the agent do. `number` is unique, so its artifact and words are too."""

    number: int
    acts: str
    rerun: bool = False

    @property
    def text(self) -> str:
        return f"{self.number} {'rerun' if self.rerun else 'fail'} {self.acts}"


def written(text: str) -> Program:
    number, on_restart, acts = text.split(" ", 2)
    return Program(int(number), acts, on_restart == "rerun")


def text_of(message: Message) -> str:
    return "".join(str(part.text) for part in message.parts)


class ScriptedAgent:
    """Runs what it is sent. Gates are opened by the test."""

    def __init__(self) -> None:
        self._gates: dict[int, asyncio.Event] = {}

    @property
    def profile(self) -> Profile:
        return Profile(name="scripted", description="does as it is told", version="1")

    def route(self, message: Message, metadata: dict[str, Any] | None) -> Route:
        return Route(skill="only", on_restart="rerun" if written(text_of(message)).rerun else "fail")

    def gate(self, number: int) -> asyncio.Event:
        return self._gates.setdefault(number, asyncio.Event())

    async def run(self, route: Route, turn: TurnHandle) -> None:
        program = written(text_of(turn.message))
        id, begun = f"artifact {program.number}", False
        for at, act in enumerate(program.acts):
            word = f"{program.number}.{at} "
            if act in "cap":
                if act == "a":
                    word = f"[{text_of(await turn.ask([Part(text=word)]))}]"
                elif act == "p":
                    reply = await turn.require_auth([Part(text=word)])
                    word = f"[{text_of(reply) if reply else ''}]"
                await turn.artifact(Artifact(artifact_id=id, parts=(Part(text=word),)), append=begun)
                begun = True
            elif act == "s":
                await turn.say([Part(text=word)])
            elif act == "u":
                turn.usage(Usage(input_tokens=1))
            elif act == "w":
                await self.gate(program.number).wait()
            elif act == "x":
                raise RuntimeError("scripted")
            elif act in "fr":
                turn.finish(TaskState.FAILED if act == "f" else TaskState.REJECTED, [Part(text=word)])
                return

    async def reply(self, route: Route, turn: TurnHandle) -> Message:
        return Message(role=Role.AGENT, parts=(Part(text="direct"),))

    async def close(self) -> None:
        pass


class Shadow:
    """A task as a caller should see it."""

    def __init__(self, id: str, uid: str, context_id: str, program: Program) -> None:
        self.id, self.uid, self.context_id = id, uid, context_id
        self.state = TaskState.SUBMITTED
        self.words = ""  # of the status message
        self.history = [program.text]
        self.artifacts: dict[str, str] = {}
        self.usage = 0
        self.inbox: list[Program] = []
        self.program = program
        self.at = 0
        self.kept = 0  # acts a rerun does not repeat: those up to the last answer
        self.reruns = 0
        self.open_gates: Callable[[int], bool] = lambda number: False

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def waiting(self) -> bool:
        return self.state in INTERRUPTED

    def _status(self, state: TaskState, words: str = "") -> None:
        if self.words:
            self.history.append(self.words)
        self.state, self.words = state, words

    def _takes(self, text: str) -> None:
        if self.words:
            self.history.append(self.words)
            self.words = ""
        self.history.append(text)

    # --- what happens to it

    def start(self) -> None:
        self._status(TaskState.WORKING)
        self.go_on()

    def go_on(self) -> None:
        """Act until something outside has to happen."""
        while self.state is TaskState.WORKING:
            if self.at >= len(self.program.acts):
                self._end(TaskState.COMPLETED)
                continue
            act = self.program.acts[self.at]
            word = f"{self.program.number}.{self.at} "
            if act == "c":
                self._chunk(word)
            elif act == "s":
                self._status(TaskState.WORKING, word)
            elif act == "u":
                self.usage += 1
            elif act == "w":
                if not self.open_gates(self.program.number):
                    return
            elif act in "ap":
                self._status(TaskState.INPUT_REQUIRED if act == "a" else TaskState.AUTH_REQUIRED, word)
                return
            elif act == "x":
                self._end(TaskState.FAILED, FAILED)
                return
            elif act in "fr":
                self._end(TaskState.FAILED if act == "f" else TaskState.REJECTED, word)
                return
            self.at += 1

    def _chunk(self, text: str) -> None:
        id = f"artifact {self.program.number}"
        self.artifacts[id] = self.artifacts.get(id, "") + text

    def _end(self, state: TaskState, words: str = "") -> None:
        if state is TaskState.COMPLETED and self.inbox:
            self.program, self.at, self.kept, self.reruns = self.inbox.pop(0), 0, 0, 0
            self._status(TaskState.WORKING)
        else:
            self.inbox.clear()
            self._status(state, words)

    def receive(self, program: Program) -> None:
        self._takes(program.text)
        if self.waiting:
            self._answered(program.text)
        else:
            self.inbox.append(program)

    def resume(self) -> None:
        """The authorization came by another way, if it waited for one."""
        if self.state is TaskState.AUTH_REQUIRED:
            self._answered("")

    def _answered(self, text: str) -> None:
        self._status(TaskState.WORKING)
        self._chunk(f"[{text}]")
        self.at += 1
        self.kept = self.at
        self.go_on()

    def cancel(self) -> None:
        if not self.terminal:
            self._end(TaskState.CANCELED)

    def crash(self) -> None:
        """The process is gone and another one started: a working turn is run again or failed."""
        if self.state is not TaskState.WORKING:
            return
        if not self.program.rerun or self.reruns >= RERUNS:
            self._end(TaskState.FAILED, INTERRUPTED_BY_RESTART)
            return
        self.reruns += 1
        self._status(TaskState.WORKING)
        for at in range(self.kept, self.at):
            if self.program.acts[at] == "s":
                self._status(TaskState.WORKING, f"{self.program.number}.{at} ")
        self.go_on()

    # --- comparing

    def differs(self, task: Task, usage: Usage | None) -> str:
        """What is not as it should be; empty when all is well."""
        status = task.status
        assert status is not None
        seen = {
            "id": (task.id, self.id),
            "context": (task.context_id, self.context_id),
            "state": (status.state, self.state),
            "words": (text_of(status.message) if status.message else "", self.words),
            "history": ([text_of(message) for message in task.history], self.history),
            "artifacts": (
                {a.artifact_id: "".join(str(part.text) for part in a.parts) for a in task.artifacts},
                self.artifacts,
            ),
            "usage": (usage.input_tokens if usage else 0, self.usage),
        }
        return "; ".join(f"{what}: {is_!r}, not {should!r}" for what, (is_, should) in seen.items() if is_ != should)
