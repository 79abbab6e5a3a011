"""Conversations one turn at a time: whatever is sent, answered, canceled and restarted, two of their turns never meet,
and none waits for ever."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.errors import CallerError, TaskNotCancelable
from dragoman.model.messages import Part
from dragoman.model.tasks import TERMINAL, TaskState
from dragoman.ports import TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import Rig, chunk, rig, state_of, text_of

CONTEXTS = ("c", "d")
moves = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["quick", "ask", "gate", "fail"]), st.sampled_from(CONTEXTS)),
        st.tuples(st.sampled_from(["answer", "more", "cancel", "open"]), st.integers(0, 20)),
        st.tuples(st.sampled_from(["restart", "breathe"]), st.just(0)),
    ),
    min_size=2,
    max_size=14,
)


class Watch:
    """Counts who is at work in each conversation."""

    def __init__(self) -> None:
        self.now = Counter[str]()
        self.met = False
        self.gate = asyncio.Event()

    async def __call__(self, turn: TurnHandle) -> None:
        self.now[turn.context_id] += 1
        self.met |= self.now[turn.context_id] > 1
        try:
            await self._work(turn, text_of(turn.message))
        finally:
            self.now[turn.context_id] -= 1

    async def _work(self, turn: TurnHandle, what: str) -> None:
        await asyncio.sleep(0)
        await chunk(turn, what, append=False)
        if what == "gate":
            await self.gate.wait()
        elif what == "ask":
            await turn.ask([Part(text="?")])
            await asyncio.sleep(0)
        elif what == "fail":
            turn.finish(TaskState.FAILED)


async def play(moves: list[tuple[str, str | int]], parking: str) -> None:
    store, watch, ids = MemoryStore(), Watch(), list[str]()
    went = 0
    while True:
        async with rig(watch, store=store, serialize="context", parking=parking, on_restart="rerun") as r:
            r.engine.turns.ids = r.engine.turns._means.ids = Numbered(
                len(ids) * 1_000 + went
            )  # unlike the last process's
            while went < len(moves) and moves[went][0] != "restart":
                await move(r, watch, ids, *moves[went])
                went += 1
            if went == len(moves):
                await finish(r, watch, ids)
                return
            went += 1


class Numbered:
    def __init__(self, start: int) -> None:
        self._number = start

    def uid(self) -> str:
        self._number += 1
        return f"n{self._number:09}"


async def move(r: Rig, watch: Watch, ids: list[str], what: str, where: str | int) -> None:
    if isinstance(where, str):
        ids.append((await r.begin(what, context_id=where)).task.id)
    elif what == "open":
        watch.gate.set()
    elif what == "breathe":
        await asyncio.sleep(0.001)
    elif ids:
        id = ids[where % len(ids)]
        try:
            if what == "cancel":
                await r.cancel(id)
            else:
                await r.begin("yes" if what == "answer" else "quick", task_id=id)
        except (CallerError, TaskNotCancelable):
            pass  # it is over, or too many wait
    assert not watch.met


async def finish(r: Rig, watch: Watch, ids: list[str]) -> None:
    """Open every gate, answer every question: then all must end."""
    watch.gate.set()
    async with asyncio.timeout(5):
        while waiting := [view for view in [await r.get(id) for id in ids] if state_of(view) not in TERMINAL]:
            for view in waiting:
                if state_of(view) is TaskState.INPUT_REQUIRED:
                    await r.begin("yes", task_id=view.task.id)
            await asyncio.sleep(0)
    assert not watch.met
    async with asyncio.timeout(5):
        while r.engine.turns.runs or r.engine.turns._queues:  # nobody holds a conversation any more
            await asyncio.sleep(0)


@pytest.mark.proves("S-4-11")
@pytest.mark.parametrize("parking", ["replay", "hold"])
@settings(max_examples=60, deadline=None)
@given(moves=moves)
def test_two_turns_of_one_conversation_never_meet_and_none_waits_for_ever(
    parking: str, moves: list[tuple[str, str | int]]
) -> None:
    asyncio.run(play(moves, parking))
