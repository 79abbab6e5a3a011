"""All turns of this process: starting them, the next one, and ending what does not end by itself."""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from dragoman.core import lifecycle
from dragoman.core.journal import Journal
from dragoman.engine.background import Background
from dragoman.engine.limits import Limits
from dragoman.engine.live import Live, Lives
from dragoman.engine.run import Means, Run, patiently
from dragoman.model.errors import CallerError, Conflict, OutcomeUnknown, Overloaded, StoreFull
from dragoman.model.facts import Created, Received, Started
from dragoman.model.messages import Message
from dragoman.model.operations import Policy, Principal
from dragoman.model.tasks import Head, Scope, TaskState
from dragoman.ports import Agent, Clock, Ids, Lifecycle, Route, Store

log = logging.getLogger("dragoman.turn")

Context = tuple[Scope, str]


class Waiting:
    """A turn that waits until its context is free: a task's first one, or (with a journal) one that runs again."""

    __slots__ = ("journal", "live", "principal", "route", "source")

    def __init__(
        self,
        live: Live,
        route: Route,
        source: Created | Received,
        principal: Principal,
        journal: Journal | None = None,
    ) -> None:
        self.live = live
        self.route = route
        self.source = source
        self.principal = principal
        self.journal = journal


class Turns:
    def __init__(
        self,
        *,
        store: Store,
        lives: Lives,
        agents: Mapping[str, Agent],
        clock: Clock,
        ids: Ids,
        limits: Limits,
        replica: str,
    ) -> None:
        self.store = store
        self.lives = lives
        self.clock = clock
        self.ids = ids
        self.limits = limits
        self.replica = replica
        self.background = Background()
        self._means = Means(store, lives, clock, ids, limits, replica, self.background)
        self.pace = self._means.pace
        self._agents = agents
        self.runs: set[Run] = set()
        self.replies: set[asyncio.Task[Message]] = set()  # direct ones in the making
        self.waiting = 0  # turns whose context is taken
        self._queues: dict[Context, deque[Waiting]] = {}
        self._idle: asyncio.Event | None = None
        self.stopping = False

    def agent(self, name: str) -> Agent:
        return self._agents[name]

    def admit(self) -> None:
        """Raises Overloaded when no further turn may start in this process."""
        if self.stopping:
            raise Overloaded("The server is shutting down; send again in a moment", retry_after=5)
        most = self.limits.running
        if len(self.runs) + len(self.replies) + self.waiting >= most:
            raise Overloaded(f"{most} turns are running already; try again later", limit="limits.running", most=most)

    # --- starting

    def begin(
        self,
        live: Live,
        route: Route,
        source: Created | Received,
        principal: Principal,
        journal: Journal | None = None,
    ) -> None:
        """Run the turn whose `Started` was just committed."""
        agent = self.agent(live.head.scope.agent)
        run = Run(self._means, live, agent, route, source, principal=principal, journal=journal)
        self.runs.add(run)
        driving = asyncio.get_running_loop().create_task(self._drive(run, live), context=contextvars.Context())
        run.start(driving)

    async def _drive(self, run: Run, live: Live) -> None:
        """A turn from its start to its end, and on to the next when a message waited."""
        try:
            waiting = await run.work()
            if waiting is not None:
                self._go_on(run, live, waiting)
        except Exception:
            log.exception("the next turn could not be started", extra={"a2a.task.id": live.head.id})
        finally:
            self._ended(run, live)

    def reply(self, work: Coroutine[Any, Any, Message]) -> "asyncio.Task[Message]":
        """Make a direct reply, whoever waits for it. It counts as a turn does."""
        task = self.background.own(work)
        self.replies.add(task)
        task.add_done_callback(self._replied)
        return task

    def _replied(self, task: "asyncio.Task[Message]") -> None:
        self.replies.discard(task)
        self._rested()

    def taken(self, scope: Scope, context_id: str, route: Route) -> bool:
        """Whether another turn of the context runs, and this one minds."""
        return bool(route.serialize) and (scope, context_id) in self._queues

    def must_wait(self, scope: Scope, context_id: str, route: Route) -> bool:
        """Whether the context is taken. If it is free it is taken now: begin a turn in it, or `free` it."""
        if self.taken(scope, context_id, route):
            return True
        if route.serialize:
            self._queues[scope, context_id] = deque()
        return False

    def free(self, scope: Scope, context_id: str, route: Route) -> None:
        """The context's turn is over, or did not come to be: the next one may start."""
        if route.serialize:
            self._start_waiting((scope, context_id))

    def queue(
        self,
        live: Live,
        route: Route,
        source: Created | Received,
        principal: Principal,
        journal: Journal | None = None,
    ) -> None:
        """`begin` the turn when its context is free, which it may have become while the task was committed.
        Keeps the task pinned."""
        live.pins += 1
        context = (live.head.scope, live.head.context_id)
        free = context not in self._queues
        self.waiting += 1
        self._queues.setdefault(context, deque()).append(Waiting(live, route, source, principal, journal))
        if free:
            self._start_waiting(context)

    def go_on(self, live: Live, principal: Principal) -> None:
        """What the task waited for is committed: run its turn again, whether or not somebody waits for that. From here
        on it is pinned; if nobody were busy with it for a moment, the turn would run on a task nobody else sees."""
        live.pins += 1
        self.background.spawn(self._again(live, principal))

    async def _again(self, live: Live, principal: Principal) -> None:
        try:
            await self.replay(live, principal)
        finally:
            self.lives.unpin(live)

    async def replay(self, live: Live, principal: Principal) -> None:
        """Run the pinned task's current turn again, with what its log remembers. A turn that cannot be run is
        failed."""
        try:
            await self._replay(live, principal)
        except Exception:
            log.exception("a turn could not be run again", extra={"a2a.task.id": live.head.id})
            await self.settle(live.head.scope, live.head.id, TaskState.FAILED, "The turn could not be continued.")

    async def _replay(self, live: Live, principal: Principal) -> None:
        await self.lives.folded(live)
        head = live.head
        journal = Journal()
        after = max(head.turn_seq - 1, 0)
        while entries := await self.store.since(head.scope, head.uid, after):
            journal.remember(entry.fact for entry in entries)
            after = entries[-1].seq
        source = await self._message(head, journal.of)
        route = self.agent(head.scope.agent).route(source.message, source.metadata)
        if not _current(live, head):
            return
        if self.must_wait(head.scope, head.context_id, route):
            self.queue(live, route, source, principal, journal)
        else:
            self.begin(live, route, source, principal, journal)

    async def source(self, head: Head) -> Created | Received:
        """The message the task's current turn answers, or will when it starts."""
        if not head.turn_seq:
            return await self._message(head, 1)
        found = await self.store.since(head.scope, head.uid, head.turn_seq - 1, 1)
        fact = found[0].fact
        assert isinstance(fact, Started), "a turn begins where its head says"
        return await self._message(head, fact.of)

    async def _message(self, head: Head, seq: int) -> Created | Received:
        found = await self.store.since(head.scope, head.uid, seq - 1, 1)
        fact = found[0].fact
        assert isinstance(fact, (Created, Received)), "a turn answers a message"
        return fact

    def _go_on(self, run: Run, live: Live, source: Received) -> None:
        """The turn is over, and its last append began the next one."""
        try:
            route = self.agent(live.head.scope.agent).route(source.message, source.metadata)
        except Exception as error:  # the message is in the task's log: some skill has to take it
            if not isinstance(error, CallerError):
                log.exception("the agent could not choose a skill", extra={"a2a.task.id": live.head.id})
            route = run.route
        self.begin(live, route, source, run.principal)

    # --- ending

    def _ended(self, run: Run, live: Live) -> None:
        """A run is over, however it ended."""
        self.runs.discard(run)
        if live.head.cancel_by and not live.head.terminal and live.run is None and not self.stopping:
            self.background.spawn(self._cancel_now(live))
        self.lives.unpin(live)
        if live.run is None:
            self.free(live.head.scope, live.head.context_id, run.route)
        self._rested()

    def _rested(self) -> None:
        if self._idle is not None and not self.runs and not self.replies:
            self._idle.set()

    def _start_waiting(self, context: Context) -> None:
        queue = self._queues.get(context)
        if queue:
            self.waiting -= 1
            self.background.spawn(self._start(context, queue.popleft()))
        else:
            self._queues.pop(context, None)

    async def _start(self, context: Context, waiting: Waiting) -> None:
        live = waiting.live
        began = False
        try:
            if waiting.journal is not None:
                if not live.head.terminal and not self.stopping:
                    self.begin(live, waiting.route, waiting.source, waiting.principal, waiting.journal)
                    began = True
                return
            began = await self._start_first(live, waiting)
        finally:
            self.lives.unpin(live)
            if not began:
                self._start_waiting(context)

    async def _start_first(self, live: Live, waiting: Waiting) -> bool:
        """Whether the task's first turn was started. What the store cannot take now is tried again later."""
        waits = patiently()
        while not live.head.terminal and not self.stopping:
            head = live.head
            fact = lifecycle.started(self.clock.now(), self.ids.uid(), head.epoch + 1, replica=self.replica)
            try:
                await self.lives.append(live, (fact,), Lifecycle(head.version), 60)
            except Conflict:
                if live.head.version == head.version:
                    await self.catch_up(live)
            except (StoreFull, OutcomeUnknown):
                await asyncio.sleep(next(waits))
                await self.catch_up(live)
                if live.head.turn:  # it was written after all
                    await self.replay(live, waiting.principal)
                    return live.run is not None
            else:
                await self.lives.folded(live)  # with the messages that came while it waited, before a restart too
                self.begin(live, waiting.route, waiting.source, waiting.principal)
                return True
        return False

    async def cancel(self, live: Live, policy: Policy) -> None:
        """End the task if it can be ended; returns once it is terminal. Raises TaskNotCancelable."""
        while True:
            head = live.head
            how = lifecycle.cancelling(head, policy, running=live.run is not None)
            if how == "done":
                return
            now = self.clock.now()
            try:
                if how == "at once":
                    end = lifecycle.ended(TaskState.CANCELED, now)
                    await self.lives.append(live, (end,), Lifecycle(head.version), 60)
                elif how == "by the turn":
                    run = live.run
                    patience = run.route.cancel_ms if run is not None else 0
                    fact = lifecycle.cancel_requested(now, patience)
                    reach = partial(self._reach, live, patience)
                    await self.lives.append(live, (fact,), Lifecycle(head.version), 60, reach)
            except Conflict:
                continue
            while not live.head.terminal and live.run is not None:
                await self.settled(live)
            if live.head.terminal:
                # Whoever asked while it still ran gets the task, also where asking again would be an error.
                rules = policy.of(live.head.origin)
                policy = Policy(cancel_again=rules.cancel_again | {TaskState.CANCELED})

    def _reach(self, live: Live, patience: int) -> None:
        """The request is committed: tell the code, and stop waiting for it at the deadline."""
        asyncio.get_running_loop().call_later(patience / 1000, self._force, live)
        if live.run is not None:
            live.run.stop("cancel")

    def _force(self, live: Live) -> None:
        if not live.head.terminal:
            self.background.spawn(self._cancel_now(live))

    async def _cancel_now(self, live: Live) -> None:
        """The deadline passed: the task is canceled whether its code returned or not."""
        await self.settle(live.head.scope, live.head.id, TaskState.CANCELED)
        if live.run is not None:
            live.run.stop("lost")

    async def settle(self, scope: Scope, id: str, state: TaskState, text: str = "", *, once: bool = False) -> bool:
        """End the task from outside its turn; whether it is over (or not there at all). A store that cannot take the
        end is asked until it can, unless that is to be tried `once`."""
        live = await self.lives.open(scope, id)
        if live is None:
            return True
        waits = patiently()
        try:
            while not (head := live.head).terminal:
                try:
                    await self.end(live, state, text)
                except Conflict:
                    if live.head.version == head.version:
                        await self.catch_up(live)
                except (StoreFull, OutcomeUnknown):
                    if once:
                        return False
                    await asyncio.sleep(next(waits))
                    await self.catch_up(live)
            return True
        finally:
            self.lives.unpin(live)

    async def end(self, live: Live, state: TaskState, text: str = "") -> None:
        """End the task as it stands, from outside its turn. Raises Conflict when it moves on, and StoreError."""
        head = live.head
        message = lifecycle.told(head, self.ids.uid(), text) if text else None
        end = lifecycle.ended(state, self.clock.now(), message)
        await self.lives.append(live, (end,), Lifecycle(head.version), 200)

    async def catch_up(self, live: Live) -> None:
        """The store knows more than this process does: take over its head."""
        await self.lives.landed(live)
        head = await self.store.head(live.head.scope, live.head.uid)
        if head is not None:
            self.lives.overtake(live, head)

    async def settled(self, live: Live, seconds: float = 0) -> bool:
        """Wait until the task ends or is interrupted. False when `seconds` (if any) went by first."""
        settler: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        live.settlers.append(settler)
        try:
            if seconds:
                await asyncio.wait_for(settler, seconds)
            else:
                await settler
            return True
        except TimeoutError:
            return False
        finally:
            if settler in live.settlers:
                live.settlers.remove(settler)

    # --- shutting down

    async def drain(self, seconds: float) -> None:
        """Start nothing more and let running turns end. What still runs then is abandoned, and so is at once what only
        waits for somebody: their claims are released, the next start decides."""
        self.stopping = self._means.draining = True
        mine = {run.uid: run for run in self.runs}
        for run in mine.values():
            if run.holding:
                run.stop("abandon")
        if (self.runs or self.replies) and seconds > 0:
            self._idle = asyncio.Event()
            try:
                await asyncio.wait_for(self._idle.wait(), seconds)
            except TimeoutError:
                left = len(self.runs) + len(self.replies)
                log.warning("%d turns did not end in %g s and are left to the next start", left, seconds)
        await self._abandon(1)
        still = {run.uid for run in self.runs}
        if gone := [uid for uid in mine if uid not in still]:
            await self.store.release(self.replica, gone)

    async def _abandon(self, seconds: float) -> None:
        """Stop what runs, after what it emitted is written; whoever ignores that is not waited for any longer."""
        for run in list(self.runs):
            run.stop("abandon")
        tasks = [run.task for run in self.runs if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        self.stopping = True
        await self._abandon(5)
        await self.background.close(5)
        await self._abandon(5)  # what was just being started


def _current(live: Live, head: Head) -> bool:
    """Whether the turn a head was read of is still the one to run."""
    return (live.head.turn, live.head.epoch) == (head.turn, head.epoch) and not live.head.terminal
