"""Takes deliveries that are due out of the store and makes them, beside everything else that goes on.

One task asks the store whenever there may be something, another writes down how attempts ended while there is anything
to write, and every attempt is a task of its own. Nothing is kept here alone: what was not written down as delivered is
due again when the process comes back, so a receiver hears of everything at least once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dragoman.client.exchange import Unanswered
from dragoman.client.poster import Poster
from dragoman.core.addresses import lane as lane_of
from dragoman.model.errors import AddressRefused, StoreError
from dragoman.ports import Delivery, Hooks, Outcome
from dragoman.push.lanes import Begun, Lanes
from dragoman.push.letters import Letters
from dragoman.push.settings import PushSettings
from dragoman.push.verdict import Verdict, of_failure, of_reply

log = logging.getLogger("dragoman.push")

Tell = Callable[[Delivery], Awaitable[tuple[bytes, str] | None]]

AT_ONCE = 256  # deliveries asked for in one question
BYTES = 64 * 1024 * 1024  # of bodies that come with deliveries tried before; with more, no others are asked for
PAUSE = 0.005  # between two questions
LOOK_SECONDS = 30.0  # at most until what is due later is looked at again: the clock it is due by may jump
TROUBLE_SECONDS = 1.0  # before asking again a store that failed
DRAIN_SECONDS = 2.0


class Sender:
    """`tell` renders what a delivery says: its body and media type, None when its task is gone, an empty body when this
    hook does not hear of it. `now` is the store's time."""

    def __init__(
        self,
        hooks: Hooks,
        *,
        tell: Tell,
        poster: Poster,
        letters: Letters,
        now: Callable[[], int],
        settings: PushSettings | None = None,
    ) -> None:
        self._hooks = hooks
        self._tell = tell
        self._poster = poster
        self._letters = letters
        self._now = now
        self._settings = settings = settings or PushSettings()
        self._lanes = Lanes(settings.total, settings.per_receiver)
        self._most = settings.total * 2
        self._under_way: dict[str, Delivery] = {}  # taken, and neither ended nor put back
        self._bytes = 0
        self._attempts: set[asyncio.Task[None]] = set()
        self._ended: list[Outcome] = []  # and not written down
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()  # nothing is due and nothing under way
        self._troubled = 0.0  # until then the store is left alone
        self._taking: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] | None = None

    async def start(self) -> None:
        self._unlisten = self._hooks.listen_deliveries(self._wake.set)
        self._taking = asyncio.create_task(self._take())

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Give what is due now this long to leave; who hangs gets no longer."""
        if self._taking is not None:
            self._quiet.clear()
            self._wake.set()
            await _within(seconds, self._quiet.wait())

    async def close(self) -> None:
        """Stop. What is under way is put back, and made when the process comes back."""
        if self._taking is not None:
            await self._stop(self._taking)
            self._taking = None
        await self._poster.close()

    async def _stop(self, taking: asyncio.Task[None]) -> None:
        if self._unlisten is not None:
            self._unlisten()
        await _cancelled(taking, *self._attempts)
        if (writing := self._writing) is not None:
            await _within(TROUBLE_SECONDS, asyncio.shield(writing))
            await _cancelled(writing)
        self._hooks.put_back([*self._under_way, *(outcome.id for outcome in self._ended)])
        self._under_way.clear()

    # --- taking

    async def _take(self) -> None:
        while True:
            self._wake.clear()
            try:
                until = await self._fill()
            except StoreError as error:
                until = self._trouble(error)
            except Exception:
                log.exception("The sender of webhooks stumbled and goes on")
                until = TROUBLE_SECONDS
            await asyncio.sleep(PAUSE)
            await _within(until, self._wake.wait())

    async def _fill(self) -> float | None:
        """Begin whatever can begin, and say how many seconds to wait for more."""
        while (room := self._room()) > 0:
            found = await self._hooks.due_deliveries(room, busy=self._lanes.busy(), share=self._lanes.share)
            if not found:
                due = await self._hooks.next_delivery_at(busy=self._lanes.busy())
                if not (self._under_way or self._ended) and (not due or due > self._now()):
                    self._quiet.set()
                return min(max(0, due - self._now()) / 1000, LOOK_SECONDS) if due else None
            self._hooks.put_back([each.id for each in found if not self._accept(each)])
            self._begin()
        wait = self._troubled - asyncio.get_running_loop().time()
        return wait if wait > 0 else None

    def _room(self) -> int:
        if not self._lanes.open or self._bytes >= BYTES or self._troubled > asyncio.get_running_loop().time():
            return 0
        return min(AT_ONCE, self._most - len(self._under_way) - len(self._ended))

    def _accept(self, delivery: Delivery) -> bool:
        if not self._lanes.take(lane_of(delivery.hook.config.url), delivery):
            return False
        self._under_way[delivery.id] = delivery
        self._bytes += len(delivery.body)
        return True

    def _begin(self) -> None:
        for begun in self._lanes.begin():
            attempt = asyncio.create_task(self._attempt(begun))
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempts.discard)

    def _trouble(self, error: StoreError) -> float:
        """Leave the store alone for a moment: so many seconds."""
        log.warning("Webhooks wait, because the store cannot be asked: %s", error)
        self._troubled = asyncio.get_running_loop().time() + TROUBLE_SECONDS
        return TROUBLE_SECONDS

    # --- attempting

    async def _attempt(self, begun: Begun) -> None:
        loop, delivery = asyncio.get_running_loop(), begun.delivery
        started, answered, outcome = loop.time(), False, None
        try:
            answered, outcome = await self._made(delivery)
        finally:
            back = self._lanes.end(begun, answered=answered, seconds=loop.time() - started)
            self._put_back(back if outcome is not None else [delivery, *back])
        if outcome is not None:
            self._forget(delivery)
            self._ended.append(outcome)
            if self._writing is None:
                self._writing = asyncio.create_task(self._write_down())
        self._begin()

    async def _made(self, delivery: Delivery) -> tuple[bool, Outcome | None]:
        """Whether the receiver answered at all, and what that means; None when it was not even tried."""
        body, media_type = delivery.body, delivery.media_type
        try:
            hook = await self._hooks.hook(delivery.hook.scope, delivery.hook.uid, delivery.hook.config.id)
            if hook is None:
                return True, Outcome(id=delivery.id, delivered=True)  # deleted since it was taken: nobody wants it
            if hook != delivery.hook:
                return True, None  # replaced since then: it may belong to another lane, and be told otherwise
            if not body:
                told = await self._tell(delivery)
                if told is None:
                    return True, Outcome(id=delivery.id, dead=True, error="was not told: its task is gone")
                body, media_type = told
                if not body:
                    return True, Outcome(id=delivery.id, delivered=True)
            answered, verdict = await self._posted(delivery, body, media_type)
        except StoreError as error:
            self._trouble(error)
            return True, None
        except Exception:
            log.exception("A webhook could not be made", extra=_about(delivery))
            answered, verdict = True, self._failed(delivery, "was not called: its message could not be made")
        self._say(delivery, verdict)
        if verdict.delivered:
            return answered, Outcome(id=delivery.id, delivered=True)
        return answered, Outcome(
            id=delivery.id,
            dead=verdict.dead,
            due=0 if verdict.dead else self._now() + verdict.wait,
            error=verdict.why,
            body=b"" if delivery.body else body,
            media_type="" if delivery.body else media_type,
        )

    async def _posted(self, delivery: Delivery, body: bytes, media_type: str) -> tuple[bool, Verdict]:
        try:
            headers = self._letters.headers(delivery, body, media_type, self._now())
            target = self._poster.dialler.guard.target(delivery.hook.config.url)
            reply = await self._poster.post(target, headers, body, seconds=self._settings.seconds)
        except Unanswered as error:
            return False, self._failed(delivery, str(error))
        except AddressRefused as error:
            return False, Verdict(dead=True, why=f"may not be called: its address {error}")
        except ValueError:
            return True, Verdict(dead=True, why="cannot be called: no header can carry its credentials")
        return True, of_reply(reply, delivery.attempts, self._settings, self._now())

    def _failed(self, delivery: Delivery, why: str) -> Verdict:
        return of_failure(why, delivery.attempts, self._settings)

    def _say(self, delivery: Delivery, verdict: Verdict) -> None:
        """URLs and headers may hold secrets; whom it was for is enough to find it."""
        if verdict.delivered:
            log.debug("A webhook was delivered", extra=_about(delivery))
        elif verdict.dead:
            log.warning("A webhook is given up: its receiver %s", verdict.why, extra=_about(delivery))
        else:
            pause = verdict.wait / 1000
            log.info("A webhook waits %g s: its receiver %s", pause, verdict.why, extra=_about(delivery))

    # --- writing down

    async def _write_down(self) -> None:
        """All that ended meanwhile in one go, so that a busy sender shares its commits."""
        while self._ended:
            outcomes = self._ended.copy()
            try:
                await self._hooks.record(outcomes)
            except StoreError as error:
                log.warning("How webhooks ended cannot be written down: %s", error)
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            del self._ended[: len(outcomes)]
            self._wake.set()  # the next of each hook may be due now
        self._writing = None

    def _put_back(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self._forget(delivery)
        if deliveries:
            self._hooks.put_back([delivery.id for delivery in deliveries])
            self._wake.set()

    def _forget(self, delivery: Delivery) -> None:
        del self._under_way[delivery.id]
        self._bytes -= len(delivery.body)


def _about(delivery: Delivery) -> dict[str, object]:
    return {
        "a2a.task.id": delivery.task_id,
        "a2a.context.id": delivery.context_id,
        "a2a.push.config": delivery.hook.config.id,
        "a2a.push.delivery": delivery.id,
        "a2a.push.receiver": lane_of(delivery.hook.config.url),
        "a2a.push.attempt": delivery.attempts + 1,
    }


async def _within(seconds: float | None, waiting: Awaitable[object]) -> None:
    """Wait, but no longer than this."""
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        pass


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
