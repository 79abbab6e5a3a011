"""Taking a message in: a new task, a further message to one, an answer, a repeat, or a direct reply."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from dragoman.core import cursors, lifecycle, modes, permits
from dragoman.core.journal import digest
from dragoman.core.weights import weigh_message
from dragoman.engine.direct import DirectTurn
from dragoman.engine.hooking import Hooking
from dragoman.engine.live import Live
from dragoman.engine.turns import Turns
from dragoman.model.errors import (
    Busy,
    CallerError,
    Conflict,
    InvalidAgentResponse,
    InvalidParams,
    KeyTaken,
    OutcomeUnknown,
    OverBudget,
    TaskNotFound,
    TaskOver,
)
from dragoman.model.facts import AnyFact
from dragoman.model.messages import Message
from dragoman.model.operations import Call, Principal, SendMessage
from dragoman.model.security import Terms
from dragoman.model.tasks import INTERRUPTED, Head, Scope, TaskState
from dragoman.ports import KeyRecord, Lifecycle, New, Query, Route

log = logging.getLogger("dragoman.turn")

_CANDIDATES = 5  # how many tasks an error names when several could be meant


class Accepted(NamedTuple):
    """The task a message went to, pinned, and the number of the first fact a stream of it starts at."""

    live: Live
    seq: int


class Reply(NamedTuple):
    """A direct reply in the making, under its key: who repeats the request meanwhile gets the same one."""

    digest: str
    task: "asyncio.Task[Message]"


class Sending:
    def __init__(self, turns: Turns, hooking: Hooking) -> None:
        self._turns = turns
        self._hooking = hooking
        self._store = turns.store
        self._lives = turns.lives
        self._most = turns.limits.most
        self._replies: dict[tuple[Scope, str], Reply] = {}

    async def accept(self, call: Call, op: SendMessage, settles: bool = False) -> Accepted | Message:
        """Commit the message. Only then does anybody learn of it. A repeat gets what the first one got.

        With `settles` a task that begins is waited for: what comes back has usually settled.
        """
        key = _key(call, op, self._turns.clock.now())
        if key is not None and (known := await self._store.key(call.scope, key.key)) is not None:
            return await self._repeat(call, known, key)
        self._turns.admit()
        if (config := op.configuration.task_push_notification_config) is not None:
            await self._hooking.admit(config)
            self._turns.admit()  # asking where its address leads took a while
        message = op.message
        if not message.message_id:
            op = replace(op, message=replace(message, message_id=self._turns.ids.uid()))
        if message.task_id:
            live = await self._lives.open(call.scope, message.task_id)
            if live is None:
                return await self._unknown(call, op, key)
        elif call.policy.resume_by_context and message.context_id:
            live = await self._asking(call, message.context_id)
        else:
            live = None
        if live is None:
            return await self._begin(call, op, key, settles=settles)
        # Who named no task but answers what waits in a context is not told that somebody else was quicker.
        refuses = call.policy.terminal == "refuse" and bool(message.task_id)
        head = live.head
        if not head.terminal and (head.interrupted or call.policy.working == "queue"):
            try:
                return await self._further(live, call, op, key)
            except KeyTaken as taken:
                self._lives.unpin(live)
                return await self._repeat(call, taken.record, key)
            except TaskOver:  # it is finished by now
                self._lives.unpin(live)
                if refuses:
                    raise
            except BaseException:
                self._lives.unpin(live)
                raise
        else:
            self._lives.unpin(live)
            lifecycle.fits(head, message)
            if head.terminal and refuses:
                raise lifecycle.over(head)
        return await self._begin(call, op, key, context_id=head.context_id)

    async def _unknown(self, call: Call, op: SendMessage, key: KeyRecord | None) -> Accepted | Message:
        """The message names a task nobody of its owner has."""
        match call.policy.unknown:
            case "refuse":
                raise TaskNotFound(op.message.task_id)
            case "adopt":
                return await self._begin(call, op, key, id=op.message.task_id)
            case "fresh":
                return await self._begin(call, op, key)

    async def _asking(self, call: Call, context_id: str) -> Live | None:
        """The only task of that context that waits for an answer. Raises when it is not the only one."""
        found: list[Head] = []
        for state in INTERRUPTED:
            page = await self._store.list(call.scope, Query(context_id=context_id, state=state, limit=_CANDIDATES))
            found += [item.head for item in page.items]
        if len(found) > 1:
            named = ", ".join(sorted(head.id for head in found[:_CANDIDATES]))
            raise InvalidParams(
                f"several tasks of this context wait for an answer ({named}); name one", "message.taskId"
            )
        return await self._lives.open(call.scope, found[0].id) if found else None

    # --- a new task

    async def _begin(
        self,
        call: Call,
        op: SendMessage,
        key: KeyRecord | None,
        *,
        id: str = "",
        context_id: str = "",
        settles: bool = False,
    ) -> Accepted | Message:
        """What the message begins: a task, or a direct reply. `context_id` is for messages that name none."""
        message = op.message
        if message.task_id or (context_id and not message.context_id):
            op = replace(op, message=replace(message, task_id="", context_id=message.context_id or context_id))
        agent = self._turns.agent(call.scope.agent)
        route = agent.route(op.message, op.metadata)
        if call.terms is not None:
            permits.admit(call.principal, call.terms, route.skill)
        if route.direct:
            modes.admit(op.message.parts, agent.profile.accepts)
            return await self._direct(call, op, route, key)
        return await self._create(call, op, route, key, id, settles)

    async def _create(
        self, call: Call, op: SendMessage, route: Route, key: KeyRecord | None, id: str, settles: bool
    ) -> Accepted | Message:
        turns, scope = self._turns, call.scope
        modes.admit(op.message.parts, turns.agent(scope.agent).profile.accepts)
        if op.configuration.task_push_notification_config is not None:
            await self._hooking.afford(scope)
        uid = turns.ids.uid()
        now = turns.clock.now()
        context_id = op.message.context_id or turns.ids.uid()
        guard = New(id=id or uid, context_id=context_id, origin=call.origin, key=key, most=self._most)
        message = _addressed(op.message, guard.id, context_id)
        created = lifecycle.created(op, message, call.extensions, now)
        waits = turns.must_wait(scope, context_id, route)
        facts: tuple[AnyFact, ...] = (created,)
        if not waits:
            facts = (created, lifecycle.started(now, turns.ids.uid(), 1, replica=turns.replica))
        hooks = self._hooking.new(call, op.configuration.task_push_notification_config, uid, guard.id)
        live = self._lives.begin(uid, scope, guard)

        begin = partial(turns.queue if waits else turns.begin, live, route, created, call.principal)
        refused = partial(self._refused, scope, guard, None if waits else route)
        try:
            await self._lives.append(
                live, facts, guard, weigh_message(message) + 120, begin, hooks, refused, settles=settles
            )
        except BaseException as error:
            self._lives.unpin(live)
            return await self._uncreated(call, guard, error)
        return Accepted(live, 1)

    def _refused(self, scope: Scope, guard: New, route: Route | None, error: BaseException) -> None:
        """The task did not come to be, as far as anybody knows. With a route, its turn had its context already."""
        if route is not None:
            self._turns.free(scope, guard.context_id, route)
        if isinstance(error, OutcomeUnknown):
            self._turns.background.spawn(self._end_orphan(scope, guard.id))

    async def _uncreated(self, call: Call, guard: New, error: BaseException) -> Accepted | Message:
        if isinstance(error, KeyTaken):
            return await self._repeat(call, error.record, guard.key)
        if isinstance(error, Conflict):
            raise InvalidParams(f"the id {guard.id} is taken; choose another", "message.taskId") from error
        if isinstance(error, OverBudget):
            raise _spent(error) from error
        raise error

    async def _end_orphan(self, scope: Scope, id: str) -> None:
        """Nobody knows whether the task came to be. If it did, its caller was told otherwise: end it."""
        await self._turns.settle(scope, id, TaskState.FAILED, "The message could not be stored.")

    # --- a message to a task

    async def _further(self, live: Live, call: Call, op: SendMessage, key: KeyRecord | None) -> Accepted:
        turns = self._turns
        while True:
            head = live.head
            lifecycle.fits(head, op.message)
            placement = lifecycle.place(head, turns.limits.inbox)
            if call.terms is not None:
                await self._permit(call, call.terms, head, op)
            modes.admit(op.message.parts, turns.agent(call.scope.agent).profile.accepts)
            hooks = await self._hooking.further(call, op.configuration.task_push_notification_config, head)
            now = turns.clock.now()
            message = _addressed(op.message, head.id, head.context_id)
            if placement == "answer":
                await self._lives.folded(live)
                fact = lifecycle.received(op, message, call.extensions, now, answers=head.asked)
                facts = lifecycle.answered(head, fact, now, turns.replica)
            else:
                facts = (lifecycle.received(op, message, call.extensions, now),)
            go_on = unsure = None
            if placement == "answer":
                go_on = partial(self._go_on, live, head, call.principal, message)
                unsure = partial(self._unsure, live, head, facts[0], go_on)
            try:
                guard = Lifecycle(head.version, key, self._most)
                size = weigh_message(message) + 120
                done = await self._lives.append(live, facts, guard, size, go_on, hooks, unsure)
                return Accepted(live, done.first)
            except Conflict:
                if key is not None and (known := await self._store.key(call.scope, key.key)) is not None:
                    raise KeyTaken(known) from None  # what moved the task was the same request
                if live.head.version == head.version:
                    await turns.catch_up(live)
            except OverBudget as error:
                raise _spent(error) from error

    async def authorized(self, live: Live) -> None:
        """What the task waits for in auth-required came by another way than a message. Does nothing to a task that
        waits for no authorization."""
        turns = self._turns
        while (head := live.head).state is TaskState.AUTH_REQUIRED:
            turns.admit()
            await self._lives.folded(live)
            fact = lifecycle.authorized(head, turns.clock.now(), turns.replica)
            go_on = partial(self._go_on, live, head, Principal(id=head.scope.owner), None)
            unsure = partial(self._unsure, live, head, fact, go_on)
            try:
                await self._lives.append(live, (fact,), Lifecycle(head.version), 60, go_on, failed=unsure)
                return
            except Conflict:
                if live.head.version == head.version:
                    await turns.catch_up(live)

    async def _permit(self, call: Call, terms: Terms, head: Head, op: SendMessage) -> None:
        """What let the caller begin a task does not let them go on with it: every message is on its own. That goes for
        the skill that works on the task, and for the one that will work on this message."""
        agent = self._turns.agent(call.scope.agent)
        source = await self._turns.source(head)
        permits.admit(call.principal, terms, agent.route(source.message, source.metadata).skill)
        try:
            route = agent.route(op.message, op.metadata)
        except CallerError:
            return  # such a message stays with the skill that works on the task
        permits.admit(call.principal, terms, route.skill)

    def _go_on(self, live: Live, head: Head, principal: Principal, answer: Message | None) -> None:
        """The answer is committed: hand it to the handler that waits, or run the handler again."""
        if not head.held:
            self._turns.go_on(live, principal)
        elif live.run is not None:
            live.run.answer(answer)

    def _unsure(self, live: Live, head: Head, first: AnyFact, go_on: Callable[[], None], error: BaseException) -> None:
        """An answer may have been committed or not, and whoever brought it heard that. If it was, the turn goes on."""
        if isinstance(error, OutcomeUnknown):
            live.pins += 1
            self._turns.background.spawn(self._look_again(live, head, first, go_on))

    async def _look_again(self, live: Live, head: Head, first: AnyFact, go_on: Callable[[], None]) -> None:
        try:
            await self._turns.catch_up(live)
            found = await self._store.since(head.scope, head.uid, head.seq, 1)
            if found and found[0].fact == first:
                go_on()
        finally:
            self._lives.unpin(live)

    # --- repeats

    async def _repeat(self, call: Call, record: object, asked: KeyRecord | None) -> Accepted | Message:
        """The key was used before: the same request gets the same task (or message) again."""
        assert isinstance(record, KeyRecord), "the store says for what the key was used"
        _alike(record.digest, asked)
        if record.message is not None:
            return record.message
        head = await self._store.head(call.scope, record.uid)
        live = await self._lives.open(call.scope, head.id) if head is not None else None
        if live is None:
            raise TaskNotFound(record.uid)
        await self._lives.landed(live)
        return Accepted(live, 1)

    async def resume(self, call: Call, op: SendMessage) -> tuple[Live, int]:
        """A send with a cursor never starts a turn: it continues reading, if it is the same message."""
        uid, seq = cursors.position(call.cursor)
        head = await self._store.head(call.scope, uid)
        live = await self._lives.open(call.scope, head.id) if head is not None else None
        if live is None:
            raise InvalidParams("is a cursor of no task of yours", "Last-Event-ID")
        try:
            fold = await self._lives.folded(live)
            wanted = _addressed(op.message, live.head.id, op.message.context_id or live.head.context_id)
            if not any(wanted == _named_alike(kept, wanted) for kept in fold.history):
                raise InvalidParams("belongs to another message; leave it out to send a new one", "Last-Event-ID")
            if seq > live.head.seq:
                raise InvalidParams("is ahead of the task", "Last-Event-ID")
        except BaseException:
            self._lives.unpin(live)
            raise
        return live, seq

    # --- direct replies

    async def _direct(self, call: Call, op: SendMessage, route: Route, key: KeyRecord | None) -> Message:
        work = self._reply(call, op, route, key)
        if key is None:
            return await asyncio.shield(self._turns.reply(work))
        place = (call.scope, key.key)
        pending = self._replies.get(place)
        if pending is None:
            pending = self._replies[place] = Reply(key.digest, self._turns.reply(work))
            pending.task.add_done_callback(lambda _: self._replies.pop(place))
        else:
            work.close()
            _alike(pending.digest, key)
        return await asyncio.shield(pending.task)

    async def _reply(self, call: Call, op: SendMessage, route: Route, key: KeyRecord | None) -> Message:
        turns = self._turns
        context_id = op.message.context_id or turns.ids.uid()
        message = _addressed(op.message, "", context_id)
        handle = DirectTurn(call, op, message, route, turns.clock)
        task = asyncio.current_task()
        assert task is not None, "replies are made in tasks of their own"
        turns.pace.begin(task, route.skill)
        try:
            async with asyncio.timeout(route.timeout_ms / 1000 if route.timeout_ms else None):
                reply = await turns.agent(call.scope.agent).reply(route, handle)
        except CallerError:
            raise
        except BaseException as error:
            # As with turns: an agent that exits, or cancels itself, fails this reply and nothing else.
            if isinstance(error, KeyboardInterrupt | GeneratorExit) or _cancelled(error):
                raise
            log.exception("the agent raised", extra={"dragoman.skill": route.skill})
            raise InvalidAgentResponse("The agent failed while answering.") from error
        finally:
            turns.pace.end(task)
        reply = replace(
            reply, context_id=reply.context_id or context_id, message_id=reply.message_id or turns.ids.uid()
        )
        if key is None:
            return reply
        try:
            await self._store.keep_key(call.scope, replace(key, message=reply))
        except KeyTaken as taken:  # somewhere else, while we asked the agent
            again = await self._repeat(call, taken.record, key)
            if isinstance(again, Message):
                return again
            self._lives.unpin(again.live)
            raise InvalidParams("was used before for a task; use a new key", "idempotencyKey") from None
        return reply


def _cancelled(error: BaseException) -> bool:
    """Whether somebody cancels the task at work. An agent's own CancelledError is just an error."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _addressed(message: Message, task_id: str, context_id: str) -> Message:
    if message.task_id == task_id and message.context_id == context_id:
        return message
    return Message(
        message_id=message.message_id,
        context_id=context_id,
        task_id=task_id,
        role=message.role,
        parts=message.parts,
        metadata=message.metadata,
        extensions=message.extensions,
        reference_task_ids=message.reference_task_ids,
    )


def _named_alike(kept: Message, wanted: Message) -> Message:
    """A kept message without the id it was given here, for comparison with one that came without."""
    return kept if wanted.message_id else replace(kept, message_id="")


def _key(call: Call, op: SendMessage, now: int) -> KeyRecord | None:
    """The request's idempotency key, if it has one. The digest is of the request as it came."""
    key = call.idempotency_key or op.configuration.idempotency_key
    return KeyRecord(key=key, digest=_fingerprint(op), at=now) if key else None


def _spent(error: OverBudget) -> Busy:
    """The store refused to give this caller more."""
    if error.what == "tasks":
        return Busy(
            f"{error.most} of your tasks are unfinished; answer, cancel or wait for one of them",
            retry_after=5,
            limit="limits.tasks_per_caller",
            most=error.most,
        )
    return Busy(
        f"Your tasks may take {error.most} bytes and this would not fit; finished ones are deleted after a while",
        retry_after=60,
        limit="limits.bytes_per_caller",
        most=error.most,
    )


def _alike(digest: str, asked: KeyRecord | None) -> None:
    if asked is None or digest != asked.digest:
        raise InvalidParams("was used before with a different message; use a new key", "idempotencyKey")


def _fingerprint(op: SendMessage) -> str:
    """Covers message and configuration, not the envelope nor the key itself."""
    configuration = replace(op.configuration, idempotency_key="")
    return digest(msgspec.to_builtins([op.message, configuration, op.metadata]))
