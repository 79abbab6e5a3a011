"""One turn: the agent's code running for one message, in a task of the engine's own.

What the handler emits enters a buffer; one append of this turn is under way at a time, and whatever was
emitted meanwhile goes with the next. So a fast handler costs few commits, a failed append is never overtaken
by a later one, and nothing is shown before it is committed. The facts of an append are frozen when it is
built: nothing decided after that moment is read into it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec

from dragoman.core import lifecycle
from dragoman.core.journal import Journal, digest
from dragoman.core.weights import weigh
from dragoman.engine.background import Background
from dragoman.engine.limits import Limits
from dragoman.engine.live import Live, Lives
from dragoman.engine.pace import Pace
from dragoman.model.errors import (
    AgentError,
    Conflict,
    HandlerChanged,
    InvalidParams,
    OutcomeUnknown,
    StoreError,
    StoreFull,
)
from dragoman.model.facts import AnyFact, Asked, Chunk, Created, Received, Resumed, Said, Stepped, Used
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import Principal
from dragoman.model.tasks import Head, Scope, TaskState, TaskStatus, Usage
from dragoman.ports import Agent, Appended, Clock, Ids, Parked, Route, Store, Turn

log = logging.getLogger("dragoman.turn")

FAILED = "The agent failed while working on this task."
TIMED_OUT = "The agent did not finish in time."
TOO_MANY_HELD = "Too many questions wait for an answer here; send this again once some are answered."
BACKOFF = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


def patiently() -> Iterator[float]:
    """How many seconds to wait before each further attempt at what must be written."""
    return chain(BACKOFF, repeat(BACKOFF[-1]))


class TooManyHeld(AgentError):
    """No further question may keep a handler waiting in memory."""


class Means:
    """What all turns of a process work with."""

    __slots__ = ("background", "clock", "draining", "held", "ids", "limits", "lives", "pace", "replica", "store")

    def __init__(
        self,
        store: Store,
        lives: Lives,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        replica: str,
        background: Background,
    ) -> None:
        self.store = store
        self.lives = lives
        self.clock = clock
        self.ids = ids
        self.limits = limits
        self.replica = replica
        self.background = background
        self.pace = Pace(limits.block_ms / 1000)
        self.held = 0  # questions that wait in memory
        self.draining = False  # nothing may wait in memory any more


class Run:
    """Implements `ports.TurnHandle`."""

    def __init__(
        self,
        means: Means,
        live: Live,
        agent: Agent,
        route: Route,
        source: Created | Received,
        *,
        principal: Principal,
        journal: Journal | None = None,
    ) -> None:
        head = live.head
        self._means = means
        self._live = live
        self._agent = agent
        self.route = route
        self._guard = Turn(head.turn, head.epoch)
        self._journal = journal or Journal()
        self.scope: Scope = head.scope
        self.uid = head.uid
        self.turn = head.turn
        self.task_id = head.id
        self.context_id = head.context_id
        self.message: Message = source.message
        self.metadata: dict[str, Any] = {**(source.metadata or {}), **(source.message.metadata or {})}
        self.modes = source.modes
        self.extensions = source.extensions
        self.principal = principal
        self.attempt = head.attempt
        self.deadline = means.clock.now() + route.timeout_ms if route.timeout_ms else 0
        self._n = -1
        self._steps: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._asking = False
        self._answer: asyncio.Future[Message | None] | None = None
        self._buffer: list[AnyFact] = []
        self._weight = 0
        self._flight: asyncio.Future[Appended] | None = None
        self._flight_facts = 0
        self._scheduled = False
        self._room: asyncio.Future[None] | None = None
        self._end: tuple[TaskState, Sequence[Part], dict[str, Any] | None] = (TaskState.COMPLETED, (), None)
        self._following: Received | None = None
        self._begun = False
        self._ending = False
        self._stop = ""  # why the turn was asked to stop: "cancel", "timeout", "abandon", "full", "lost"
        self.task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- life

    def start(self, task: asyncio.Task[None]) -> None:
        """The turn begins: `task` is going to do its work."""
        self._live.run = self
        self._live.pins += 1
        self.task = task
        if self.route.timeout_ms:
            self._timer = asyncio.get_running_loop().call_later(self.route.timeout_ms / 1000, self.stop, "timeout")

    def stop(self, why: str) -> None:
        """Reach the handler at once. The first reason counts; a turn that is already ending ends as it is."""
        if not self._stop and not self._ending and self.task is not None and not self.task.done():
            self._stop = why
            if self._begun:  # a task cancelled before its first step would never get to settle anything
                self.task.cancel()

    async def work(self) -> Received | None:
        """The turn, to its end in the log. Answers the message of the turn that began there, if one waited."""
        try:
            outcome = await self._outcome()
            self._ending = True
            await self._settle(*outcome)
        except asyncio.CancelledError:
            if not self._stop:
                raise
        except Exception:
            log.exception("a turn could not be ended", extra={"a2a.task.id": self.task_id})
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._live.run is self:
                self._live.run = None
        return self._following

    async def _outcome(self) -> tuple[TaskState | None, Sequence[Part], dict[str, Any] | None]:
        """Run the handler. A state of None means there is nothing to settle."""
        task = self.task
        assert task is not None
        self._begun = True
        if self._stop:
            return self._stopped()
        pace = self._means.pace
        pace.begin(task, self.route.skill)
        try:
            await self._agent.run(self.route, self)
        except Parked:
            return None, (), None
        except asyncio.CancelledError:
            task.uncancel()
            return self._stopped()
        except HandlerChanged as error:
            return TaskState.FAILED, _text(str(error)), None
        except InvalidParams as error:
            return TaskState.REJECTED, _text(str(error)), None
        except (StoreFull, OutcomeUnknown):
            return TaskState.FAILED, _text("The task's results could not be stored."), None
        except TooManyHeld:
            return TaskState.FAILED, _text(TOO_MANY_HELD), None
        except Conflict:
            return None, (), None
        except BaseException as error:
            # An agent that exits ends its turn and not everybody's. Ctrl-C does, and so does a loop that lets go of us.
            if isinstance(error, KeyboardInterrupt) or (isinstance(error, GeneratorExit) and not _at_work(task)):
                raise
            log.exception("the agent raised", extra=self._facts())
            return TaskState.FAILED, _text(FAILED), None
        finally:
            pace.end(task)
        return self._end

    def _stopped(self) -> tuple[TaskState | None, Sequence[Part], dict[str, Any] | None]:
        if self._stop == "cancel":
            return TaskState.CANCELED, (), None
        if self._stop == "timeout":
            return TaskState.FAILED, _text(TIMED_OUT), None
        if self._stop == "full":
            return TaskState.FAILED, _text("The task's results could not be stored."), None
        if self._stop:  # abandoned or lost: whoever holds the task now decides
            return None, (), None
        log.error("the agent cancelled itself", extra=self._facts())
        return TaskState.FAILED, _text(FAILED), None

    def _facts(self) -> dict[str, str]:
        return {"a2a.task.id": self.task_id, "a2a.context.id": self.context_id, "dragoman.skill": self.route.skill}

    # --- ending

    async def _settle(self, state: TaskState | None, parts: Sequence[Part], metadata: dict[str, Any] | None) -> None:
        """Append the end, together with what is still buffered. Retries what can be retried."""
        if state is None:
            if self._stop == "abandon":
                await self._flushed()
            return
        waits = patiently()
        while True:
            await self._landed()
            if self._stop == "lost":
                return
            try:
                await self._last(state, parts, metadata)
                return
            except Conflict:
                head = self._live.head
                if head.terminal or (head.turn, head.epoch) != (self._guard.turn, self._guard.epoch):
                    return
                await self._means.lives.folded(self._live)  # a message waits that nobody here knew of
            except OutcomeUnknown:
                if await self._ended_after_all():
                    return
                await asyncio.sleep(next(waits))
            except StoreFull:
                self._take()
                state, parts = TaskState.FAILED, _text("The task's results could not be stored.")
                await asyncio.sleep(next(waits))

    async def _last(self, state: TaskState, parts: Sequence[Part], metadata: dict[str, Any] | None) -> None:
        now = self._means.clock.now()
        live = self._live
        message = self._says(parts, metadata) if parts else None
        facts, weight = self._take()
        try:
            if state is TaskState.COMPLETED and live.inbox:
                ahead = facts
                if message is not None:
                    said = Said(at=now, status=lifecycle.status(TaskState.WORKING, now, message), n=self._next())
                    ahead = (*facts, said)
                await self._hand_on(ahead, weight, now)
            else:
                end = lifecycle.ended(state, now, message, self._used(facts))
                await self._means.lives.append(live, (*facts, end), self._guard, weight + weigh(parts))
        except StoreError:
            self._buffer[:0] = facts
            self._weight += weight
            raise

    async def _hand_on(self, ahead: tuple[AnyFact, ...], weight: int, now: int) -> None:
        """A message waits: its turn begins in the same append."""
        means, live = self._means, self._live
        entry = live.inbox[0]
        source = entry.fact
        assert isinstance(source, Received), "the inbox holds messages"
        fact = lifecycle.started(now, means.ids.uid(), live.head.epoch + 1, of=entry.seq, took=1, replica=means.replica)
        try:
            await means.lives.append(live, (*ahead, fact), self._guard, weight + 60)
        except OutcomeUnknown:
            head = await means.store.head(self.scope, self.uid)
            if head is None or head.turn != fact.turn:
                raise
            means.lives.overtake(live, head)
            await means.lives.folded(live)
        if live.inbox and live.inbox[0] is entry:  # else it was read again meanwhile, without this one
            live.inbox.pop(0)
        self._following = source

    def _used(self, facts: Sequence[AnyFact]) -> Usage | None:
        """What all turns used, counting what is about to be written."""
        fold = self._live.fold
        return fold.usage_after(facts) if fold is not None else None

    def _take(self) -> tuple[tuple[AnyFact, ...], int]:
        """What is buffered, for the append that is being built."""
        facts, weight = tuple(self._buffer), self._weight
        self._buffer.clear()
        self._weight = 0
        return facts, weight

    async def _ended_after_all(self) -> bool:
        head = await self._means.store.head(self.scope, self.uid)
        if head is None:
            return True
        self._means.lives.overtake(self._live, head)
        return head.terminal or head.epoch != self._guard.epoch

    # --- the buffer

    def _emit(self, fact: AnyFact, weight: int) -> None:
        self._buffer.append(fact)
        self._weight += weight
        if not self._scheduled and self._flight is None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if not self._buffer or self._flight is not None or self._stop == "lost":
            return
        facts, weight = self._take()
        self._flight_facts = len(facts)
        self._flight = self._means.lives.append(self._live, facts, self._guard, weight)
        self._flight.add_done_callback(self._down)

    def _arrived(self, flight: "asyncio.Future[Appended]") -> None:
        """An append the handler itself awaits: it gets the error, if any."""
        self._flight = None
        self._flight_facts = 0
        if not flight.cancelled() and flight.exception() is None:
            self._flush()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _down(self, flight: "asyncio.Future[Appended]") -> None:
        self._flight = None
        self._flight_facts = 0
        error = None if flight.cancelled() else flight.exception()
        if error is not None:
            self._take()
            self.stop("lost" if isinstance(error, Conflict) else "full")
        else:
            self._flush()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def _admit(self) -> None:
        """Wait while too much is on its way to the store."""
        limits = self._means.limits
        while len(self._buffer) + self._flight_facts >= limits.buffer_facts or self._weight >= limits.buffer_bytes:
            self._flush()
            if self._flight is None:  # the turn was lost, and its handler goes on regardless
                self._take()
                await asyncio.sleep(0)
                return
            await self._landing()

    async def _landing(self) -> None:
        if self._flight is None:
            return
        if self._room is None or self._room.done():
            self._room = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._room)  # several may wait for it, and one of them be cancelled

    async def _landed(self) -> None:
        while self._flight is not None:
            await self._landing()

    async def _flushed(self) -> None:
        await self._landed()
        self._flush()
        await self._landed()

    async def _commit(self, fact: AnyFact, weight: int) -> None:
        """Append what is buffered and this fact, and wait until it is committed."""
        await self._landed()
        before, buffered = self._take()
        facts = (*before, fact)
        weight += buffered
        flight = self._flight = self._means.lives.append(self._live, facts, self._guard, weight)
        self._flight_facts = len(facts)
        flight.add_done_callback(self._arrived)
        await asyncio.shield(flight)

    def _next(self) -> int:
        self._n += 1
        return self._n

    def _says(self, parts: Sequence[Part], metadata: dict[str, Any] | None) -> Message:
        return Message(
            message_id=self._means.ids.uid(),
            context_id=self.context_id,
            task_id=self.task_id,
            role=Role.AGENT,
            parts=tuple(parts),
            metadata=metadata,
        )

    # --- what the handler calls

    @property
    def holding(self) -> bool:
        """Whether the handler does nothing but wait for the answer to its question."""
        return self._answer is not None

    @property
    def cancelled(self) -> bool:
        return self._stop in ("cancel", "timeout", "lost")

    @property
    def history(self) -> tuple[Message, ...]:
        fold = self._live.fold
        return tuple(fold.history) if fold is not None else (self.message,)

    async def conversation(self, limit: int = 20) -> tuple[Message, ...]:
        return await self._means.lives.conversation(self.scope, self.context_id, self.uid, limit)

    async def say(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> None:
        n = self._next()
        if self._journal.swallows(n):
            return
        now = self._means.clock.now()
        status = TaskStatus(
            state=TaskState.WORKING, message=self._says(parts, metadata), timestamp=lifecycle.stamp(now)
        )
        self._emit(Said(at=now, status=status, n=n), weigh(parts) + 300)
        await self._admit()

    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        n = self._n = self._n + 1
        chunk = Chunk(
            at=self._means.clock.now(),
            artifact=artifact,
            append=append,
            last_chunk=last_chunk,
            metadata=metadata,
            n=n,
            index=self._place(artifact.artifact_id),
        )
        journal = self._journal
        if journal.swallows(n):
            journal.pile(chunk)
            return
        chunk = journal.restart(chunk)
        self._emit(chunk, weigh(chunk.artifact.parts) + 100)
        if len(self._buffer) >= 64 or self._weight > 65_536:
            await self._admit()

    def _place(self, id: str) -> int:
        """Which artifact of the task it is. Counted from what is folded, once for each."""
        places = self._places
        if id not in places:
            fold = self._live.fold
            for each in (*(fold.piles if fold is not None else ()), id):
                places.setdefault(each, len(places))
        return places[id]

    def usage(self, usage: Usage) -> None:
        n = self._next()
        if not self._journal.swallows(n):
            self._emit(Used(at=self._means.clock.now(), usage=usage, n=n), 60)

    def finish(self, state: TaskState, parts: Sequence[Part] = (), metadata: dict[str, Any] | None = None) -> None:
        self._end = (state, parts, metadata)

    async def step(self, name: str, arguments: Any, run: Callable[[str], Awaitable[Any]]) -> Any:
        nth = self._steps.get(name, 0)
        self._steps[name] = nth + 1
        fingerprint = digest(arguments)
        known = self._journal.step(name, nth, fingerprint)
        if known is not None:
            return known.result
        result = await run(f"{self.uid}.{self._guard.turn}.{name}.{nth}")
        encoded = msgspec.json.encode(result)
        result = msgspec.json.decode(encoded)
        fact = Stepped(
            at=self._means.clock.now(),
            turn=self._guard.turn,
            name=name,
            nth=nth,
            digest=fingerprint,
            result=result,
        )
        await self._commit(fact, len(encoded) + 100)
        return result

    async def ask(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> Message:
        answer = await self._park(TaskState.INPUT_REQUIRED, parts, metadata, hold=self.route.parking == "hold")
        if answer is None:
            raise Parked
        return answer

    async def require_auth(self, parts: Sequence[Part], until: Awaitable[Any] | None = None) -> Message | None:
        if until is None:
            return await self._park(TaskState.AUTH_REQUIRED, parts, None, hold=self.route.parking == "hold")
        waiting = asyncio.ensure_future(until)
        try:
            waiting.add_done_callback(self._authorized)
            return await self._park(TaskState.AUTH_REQUIRED, parts, None, hold=True)
        finally:
            if waiting.done() and not waiting.cancelled():
                waiting.result()
            waiting.cancel()

    async def _park(
        self, state: TaskState, parts: Sequence[Part], metadata: dict[str, Any] | None, *, hold: bool
    ) -> Message | None:
        if self._asking:
            raise RuntimeError("one question at a time: await the first ask before the next")
        n = self._next()
        asked = digest([state.value, msgspec.to_builtins(list(parts)), metadata])
        known = self._journal.question(n, asked)
        if known is not None:
            return known.answer
        now = self._means.clock.now()
        fact = Asked(
            at=now,
            status=lifecycle.status(state, now, self._says(parts, metadata)),
            n=n,
            digest=asked,
            hold=hold,
            expires=now + self._means.limits.parked_ms,
        )
        if hold and self._means.held >= self._means.limits.held:
            raise TooManyHeld
        self._asking = True
        if not hold:
            try:
                await self._commit(fact, weigh(parts) + 300)
            finally:
                self._asking = False
            raise Parked
        self._answer = asyncio.get_running_loop().create_future()
        self._means.held += 1
        try:
            await self._commit(fact, weigh(parts) + 300)
            if self._means.draining:
                self.stop("abandon")
            return await self._answer
        finally:
            self._answer = None
            self._asking = False
            self._means.held -= 1

    def answer(self, message: Message | None) -> None:
        """The held question's answer was committed."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(message)

    def _authorized(self, waiting: "asyncio.Future[Any]") -> None:
        if not waiting.cancelled() and self._answer is not None and not self._answer.done():
            self._means.background.spawn(self._resume())

    async def _resume(self) -> None:
        await self._landed()
        head: Head = self._live.head
        if head.interrupted and head.epoch == self._guard.epoch:
            now = self._means.clock.now()
            try:
                fact = Resumed(at=now, status=lifecycle.status(TaskState.WORKING, now))
                await self._means.lives.append(self._live, (fact,), self._guard, 60)
            except Conflict:
                return
        self.answer(None)


def _at_work(task: "asyncio.Task[None]") -> bool:
    """Whether the task is being run, and not thrown away unfinished."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # there is no loop any more
        return False


def _text(text: str) -> tuple[Part, ...]:
    return (Part(text=text),)
