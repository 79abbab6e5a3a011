"""What happens without anybody asking: recovery at start, deadlines, heartbeats, retention."""

import asyncio
import logging

from dragoman.core import lifecycle
from dragoman.engine.limits import Limits
from dragoman.engine.live import Live
from dragoman.engine.turns import Turns
from dragoman.model.errors import CallerError, Conflict, DragomanError, StoreError
from dragoman.model.operations import Principal
from dragoman.model.tasks import Head, TaskState
from dragoman.ports import Lifecycle

log = logging.getLogger("dragoman.keeper")

TICK = 1.0
EXPIRED = "Nobody answered in time."


class Keeper:
    def __init__(self, turns: Turns, limits: Limits) -> None:
        self._turns = turns
        self._store = turns.store
        self._lives = turns.lives
        self._limits = limits
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Recover what the last process left, then keep watch."""
        await self._store.recover()
        await self.recover()
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # --- recovery

    async def recover(self) -> None:
        """Resume or end every turn whose process is gone."""
        seen: set[str] = set()
        while heads := [h for h in await self._store.claimable(200) if h.uid not in seen]:
            for head in heads:
                seen.add(head.uid)
                try:
                    await self._adopt(head)
                except DragomanError:
                    log.exception("a task could not be recovered", extra={"a2a.task.id": head.id})

    async def _adopt(self, head: Head) -> None:
        known = self._lives.get(head.scope, head.id)
        if known is not None and known.run is not None:
            return
        live = await self._lives.open(head.scope, head.id)
        if live is None:
            return
        try:
            await self._decide(live.head)
        finally:
            self._lives.unpin(live)

    async def _decide(self, head: Head) -> None:
        turns = self._turns
        live = self._lives.get(head.scope, head.id)
        assert live is not None, "pinned by the caller"
        if head.cancel_by:
            await self._settle(head, TaskState.CANCELED)
            return
        source = await turns.source(head)
        try:
            route = turns.agent(head.scope.agent).route(source.message, source.metadata)
        except Exception as error:
            # The agent is gone or takes no such message any more, or its author's code fails: nobody will run this.
            if not isinstance(error, (KeyError, CallerError)):
                log.exception("the agent could not choose a skill", extra={"a2a.task.id": head.id})
            await self._settle(head, TaskState.FAILED, lifecycle.INTERRUPTED_BY_RESTART)
            return
        fresh = not head.turn
        if not fresh and (route.on_restart != "rerun" or head.reruns >= lifecycle.RERUNS):
            await self._settle(head, TaskState.FAILED, lifecycle.INTERRUPTED_BY_RESTART)
            return
        if fresh and turns.taken(head.scope, head.context_id, route):
            turns.queue(live, route, source, Principal(id=head.scope.owner))
            return
        epoch = await self._store.claim(head.scope, head.uid, turns.replica, self._limits.lease_ms)
        if epoch is None:
            return
        await turns.catch_up(live)
        now = turns.clock.now()
        fact = lifecycle.started(
            now,
            head.turn or turns.ids.uid(),
            epoch,
            attempt=head.attempt + 1,
            replica=turns.replica,
            reruns=head.reruns if fresh else head.reruns + 1,
        )
        await self._lives.append(live, (fact,), Lifecycle(live.head.version), 60)
        await turns.replay(live, Principal(id=head.scope.owner))

    async def _settle(self, head: Head, state: TaskState, text: str = "") -> None:
        """End what nobody goes on with: now, or as soon as the store can take it. The port does not wait for that."""
        if not await self._turns.settle(head.scope, head.id, state, text, once=True):
            self._turns.background.spawn(self._later(head, state, text))

    async def _later(self, head: Head, state: TaskState, text: str) -> None:
        await self._turns.settle(head.scope, head.id, state, text)

    # --- the watch

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        next_sweep = loop.time() + self._limits.sweep_ms / 1000
        next_beat = loop.time() + self._limits.lease_ms / 3000
        while True:
            await asyncio.sleep(TICK)
            try:
                await self.expire()
                if loop.time() >= next_beat:
                    next_beat = loop.time() + self._limits.lease_ms / 3000
                    await self._beat()
                if loop.time() >= next_sweep:
                    next_sweep = loop.time() + self._limits.sweep_ms / 1000
                    await self.sweep()
            except Exception:
                log.exception("the keeper stumbled and goes on")

    async def expire(self) -> None:
        """End what is past its cancel deadline, or has waited too long for an answer."""
        for head in await self._store.due(100):
            live = await self._lives.open(head.scope, head.id)
            if live is None:
                continue
            try:
                # What moved since it was read may have been answered in time: the next look will tell.
                if live.head.version == head.version:
                    await self._expired(live)
            finally:
                self._lives.unpin(live)

    async def _expired(self, live: Live) -> None:
        state, text = (TaskState.CANCELED, "") if live.head.cancel_by else (TaskState.FAILED, EXPIRED)
        try:
            await self._turns.end(live, state, text)
        except (Conflict, StoreError):
            return
        if live.run is not None:
            live.run.stop("lost")

    async def _beat(self) -> None:
        runs = {run.uid: run for run in self._turns.runs}
        if runs:
            for uid in await self._store.heartbeat(self._turns.replica, list(runs), self._limits.lease_ms):
                runs[uid].stop("lost")

    async def sweep(self) -> None:
        """Delete finished tasks past their retention, and let the cache forget."""
        now = self._store.now()
        self._lives.expire(now - self._limits.cache_ms)
        while gone := await self._store.sweep(terminal_before=now - self._limits.retention_ms):
            self._lives.forget_uids(gone)
