"""The operations, as the gateway calls them. Each loads, decides, appends and answers; turns run on their own."""

from collections.abc import Mapping

from msgspec.structs import replace

from dragoman.core import cursors
from dragoman.core.fold import folded, trimmed, view
from dragoman.engine.follow import Batch, Follow
from dragoman.engine.hooking import Hooking
from dragoman.engine.keeper import Keeper
from dragoman.engine.limits import Limits
from dragoman.engine.live import Live, Lives
from dragoman.engine.sending import Accepted, Sending
from dragoman.engine.turns import Turns
from dragoman.model.errors import InvalidParams, Overloaded, TaskNotFound, TaskOver
from dragoman.model.facts import Entry
from dragoman.model.messages import Message
from dragoman.model.operations import Call, CancelTask, GetTask, ListTasks, SendMessage, SubscribeToTask, TaskPage
from dragoman.model.stamps import moment
from dragoman.model.tasks import TERMINAL, Head, Scope, TaskState, View
from dragoman.ports import Agent, Bus, Clock, Hooks, Ids, Query, Screen, Store

__all__ = ["Batch", "Engine", "Follow", "Limits"]

_AT_ONCE = 100  # tasks of a list that are read in one go


class Engine:
    """Start it before the port opens; drain it before connections close; close it last.

    With `hooks` and a `screen` for their addresses, tasks may have webhooks; somebody else sends what they are told.
    """

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        agents: Mapping[str, Agent],
        clock: Clock,
        ids: Ids,
        limits: Limits | None = None,
        replica: str = "",
        hooks: Hooks | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._store = store
        self._bus = bus
        self._limits = limits or Limits()
        self._lives = Lives(store, bus, self._limits)
        self.turns = Turns(
            store=store,
            lives=self._lives,
            agents=agents,
            clock=clock,
            ids=ids,
            limits=self._limits,
            replica=replica or ids.uid(),
        )
        hooking = Hooking(store, hooks, screen, ids, self._limits)
        self.create_push = hooking.create
        self.get_push = hooking.get
        self.list_push = hooking.list
        self.delete_push = hooking.delete
        self._sending = Sending(self.turns, hooking)
        self.keeper = Keeper(self.turns, self._limits)
        self._follows: set[Follow] = set()
        self._drained = False

    # --- life

    async def start(self) -> None:
        """Open the store and recover what the last process left behind."""
        await self._store.open()
        await self._bus.open()
        self.turns.pace.start()
        await self.keeper.start()

    async def drain(self, seconds: float) -> None:
        """Refuse new messages, let turns end, then end every stream without a final marker."""
        await self.turns.drain(seconds)
        self._drained = True
        self._lives.wake()
        for follow in list(self._follows):
            follow.drain()

    async def close(self) -> None:
        await self.keeper.close()
        await self.turns.close()
        self.turns.pace.stop()
        for follow in list(self._follows):
            follow.close()
        await self._bus.close()
        await self._store.close()

    async def sweep(self) -> None:
        """Apply retention now."""
        await self.keeper.sweep()

    # --- messages

    async def send(self, call: Call, op: SendMessage) -> View | Message:
        """Take a message in and wait until its task settles, unless it asks to return at once. With a cursor, the
        message was taken in before: only wait."""
        waits = not op.configuration.return_immediately
        if call.cursor:
            live, _ = await self._sending.resume(call, op)
        else:
            accepted = await self._sending.accept(call, op, settles=waits and not self._limits.hold_ms)
            if isinstance(accepted, Message):
                return accepted
            live = accepted.live
        try:
            if waits:
                await self._wait(live)
            return trimmed(await self._lives.view_of(live), op.configuration.history_length)
        finally:
            self._lives.unpin(live)

    async def _wait(self, live: Live) -> None:
        if live.head.settled:
            return
        if not self._drained:
            await self.turns.settled(live, self._limits.hold_ms / 1000)
        if not live.head.settled and self._drained:
            raise Overloaded("The server is shutting down; ask for the task again in a moment", 5, taskId=live.head.id)

    async def stream(self, call: Call, op: SendMessage) -> Follow | Message:
        """Take a message in and follow its task. With a cursor, only follow."""
        if call.cursor:
            live, after = await self._sending.resume(call, op)
            try:
                return await self._after(live, call, after, call.policy.closes, op.configuration.history_length)
            except BaseException:
                self._lives.unpin(live)
                raise
        accepted = await self._sending.accept(call, op)
        if isinstance(accepted, Message):
            return accepted
        try:
            return await self._from(accepted, call, op.configuration.history_length)
        except BaseException:
            self._lives.unpin(accepted.live)
            raise

    async def _from(self, accepted: Accepted, call: Call, history_length: int | None) -> Follow:
        """A stream that begins at the message it was opened with."""
        live, seq = accepted
        if not call.policy.first:
            return self._follow(live, call, seq - 1)
        if seq > 1:
            return await self._fresh(live, call, call.policy.closes, history_length)
        opening = live.recent(0, 1) or await self._store.since(live.head.scope, live.head.uid, 0, 1)
        seen = folded(live.head, [(1, opening[0].fact)])
        return self._follow(live, call, seen.seq, trimmed(seen, history_length))

    async def _snapshot(self, live: Live) -> View:
        """The task for a first frame. A large one comes without artifact bodies; the stream replays them behind it."""
        if live.head.size <= self._limits.snapshot_bytes:
            return await self._lives.view_of(live)
        loaded = await self._store.load(live.head.scope, live.head.uid)
        if loaded is None:
            raise TaskNotFound(live.head.id)
        return view(loaded, partial=True)

    # --- tasks

    async def get(self, call: Call, op: GetTask) -> View:
        seen = await self._lives.view(call.scope, op.id)
        if seen is None:
            raise TaskNotFound(op.id)
        return trimmed(seen, op.history_length)

    async def look(self, scope: Scope, id: str) -> View | None:
        """A task as it stands, for who tells others of it; None when it is gone. A very large one comes without what
        it made: nothing that is told has room for it."""
        head = await self._store.find(scope, id)
        if head is None or head.size <= 4 * self._limits.snapshot_bytes:
            return await self._lives.view(scope, id)
        loaded = await self._store.load(scope, head.uid)
        return view(loaded, partial=True) if loaded is not None else None

    async def list(self, call: Call, op: ListTasks) -> TaskPage:
        size = 50 if op.page_size is None else op.page_size
        try:
            since = moment(op.status_timestamp_after) if op.status_timestamp_after else 0
        except ValueError as error:
            raise InvalidParams(f"{error}; write it like 2026-01-31T12:00:00Z", "statusTimestampAfter") from error
        query = Query(
            context_id=op.context_id,
            state=op.status,
            since=since,
            before=cursors.page_position(op.page_token) if op.page_token else None,
            limit=size,
            artifacts=op.include_artifacts,
        )
        views: list[View] = []
        token = ""
        room = self._limits.page_bytes
        # Some tasks at a time, until there are as many as were asked for or they weigh as much as a page may.
        while True:
            some = replace(query, limit=min(_AT_ONCE, size - len(views)), max_bytes=room)
            page = await self._store.list(call.scope, some)
            views += [trimmed(view(item, partial=not op.include_artifacts), op.history_length) for item in page.items]
            if not page.more:
                break
            last = page.items[-1].head
            room -= sum(item.head.size for item in page.items)
            if len(views) >= size or room <= 0:
                token = cursors.page_token(last.status_at, last.uid)
                break
            query = replace(query, before=(last.status_at, last.uid))
        return TaskPage(
            views=tuple(views),
            next_page_token=token,
            page_size=size,
            total=page.total,
            artifacts=op.include_artifacts,
        )

    async def whose(self, scope: Scope, id: str) -> Scope | None:
        """The scope of a task that is named without its owner, for who may see everybody's."""
        head = await self._store.find(scope, id)
        return None if head is None else head.scope

    async def cancel(self, call: Call, op: CancelTask) -> View:
        live = await self._lives.open(call.scope, op.id)
        if live is None:
            raise TaskNotFound(op.id)
        try:
            await self.turns.cancel(live, call.policy)
            return await self._lives.view_of(live)
        finally:
            self._lives.unpin(live)

    async def resume(self, scope: Scope, id: str) -> View:
        """The authorization a task waits for was given elsewhere: its turn goes on as if `until` were done.

        For callback routes, once they know who calls; saying it twice changes nothing. Raises TaskNotFound.
        """
        live = await self._lives.open(scope, id)
        if live is None:
            raise TaskNotFound(id)
        try:
            await self._sending.authorized(live)
            return await self._lives.view_of(live)
        finally:
            self._lives.unpin(live)

    async def subscribe(self, call: Call, op: SubscribeToTask) -> Follow:
        """Follow a task: after the cursor if there is one, from a snapshot otherwise."""
        live = await self._lives.open(call.scope, op.id)
        if live is None:
            raise TaskNotFound(op.id)
        try:
            return await self._subscribed(live, call, op)
        except BaseException:
            self._lives.unpin(live)
            raise

    async def _subscribed(self, live: Live, call: Call, op: SubscribeToTask) -> Follow:
        policy = call.policy.of(live.head.origin)
        closes = policy.follows | TERMINAL
        after = self._cursor(live, call)
        if after is not None:
            return await self._after(live, call, after, closes, op.history_length)
        if live.head.terminal and not policy.subscribe_terminal:
            raise _finished(live.head)
        return await self._fresh(live, call, closes, op.history_length)

    async def _after(
        self, live: Live, call: Call, after: int, closes: frozenset[TaskState], history_length: int | None
    ) -> Follow:
        """Go on behind a cursor. One that is older than what the log still has gets the task as it is instead."""
        if await self._lost(live, after):
            return await self._fresh(live, call, closes, history_length)
        if live.head.state not in closes or await self._more(live, after):
            return self._follow(live, call, after, closes=closes)
        if not live.head.terminal:  # its stream ended with this question, and that was seen
            return self._follow(live, call, after, closes=closes, over=True)
        if not call.policy.of(live.head.origin).subscribe_terminal:
            raise _finished(live.head)
        return await self._fresh(live, call, closes, history_length)

    async def _fresh(self, live: Live, call: Call, closes: frozenset[TaskState], history_length: int | None) -> Follow:
        """Begin with the task as it is. Where a stream would close over that, it is all there is to see."""
        seen = await self._snapshot(live)
        if seen.partial and _rests(seen, closes):
            seen = await self._lives.view_of(live)  # nothing may follow the last frame, so it leaves nothing out
        over = _rests(seen, closes)
        return self._follow(live, call, seen.seq, trimmed(seen, history_length), closes=closes, over=over)

    def _cursor(self, live: Live, call: Call) -> int | None:
        if not call.cursor:
            return None
        uid, seq = cursors.position(call.cursor)
        if uid != live.head.uid:
            raise InvalidParams("is a cursor of another task", "Last-Event-ID")
        if seq > live.head.seq:
            raise InvalidParams("is ahead of the task", "Last-Event-ID")
        return seq

    async def _more(self, live: Live, after: int) -> bool:
        """Whether a public fact follows that number."""
        while entries := await self._since(live, after):
            if any(entry.fact.public for entry in entries):
                return True
            after = entries[-1].seq
        return False

    async def _lost(self, live: Live, after: int) -> bool:
        """Whether facts after that number are gone from the log already."""
        if after >= live.head.seq:
            return False
        entries = await self._since(live, after)
        return not entries or entries[0].seq != after + 1

    async def _since(self, live: Live, after: int) -> "list[Entry]":
        recent = live.recent(after, 16)
        if recent is None:
            recent = await self._store.since(live.head.scope, live.head.uid, after, 16)
        return list(recent)

    # --- following

    def _follow(
        self,
        live: Live,
        call: Call,
        cursor: int,
        first: View | None = None,
        *,
        closes: frozenset[TaskState] | None = None,
        over: bool = False,
    ) -> Follow:
        follow = Follow(
            live,
            self._lives,
            self._store,
            self._bus,
            self._limits,
            cursor=cursor,
            closes=call.policy.closes if closes is None else closes,
            first=first,
            over=over,
            patience=call.policy.of(live.head.origin).patience_ms / 1000,
            left=self._follows.discard,
        )
        self._follows.add(follow)
        if self._drained:
            follow.drain()
        return follow


def _rests(seen: View, states: frozenset[TaskState]) -> bool:
    return seen.task.status is not None and seen.task.status.state in states


def _finished(head: Head) -> TaskOver:
    over = TaskOver("The task is finished; get it instead of subscribing", taskId=head.id)
    return over.about(head.origin)
