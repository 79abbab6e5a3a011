"""kill -9 in mid-stream, under load, again and again: what was acknowledged stays, and nothing comes twice."""

import asyncio
import os
import random
from pathlib import Path

import httpx2
import pytest

from tests.chaos.observer import ENDED, PARKED, Ledger, Witness, message, rpc, text_of
from tests.chaos.victim import Victim

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "3"))


@pytest.mark.proves("D-2-2", "D-2-3")
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_killed_server_contradicts_nothing_it_has_said(tmp_path: Path, seed: int) -> None:
    victim = Victim(tmp_path)
    ledger = Ledger()
    victim.start()
    try:
        async with asyncio.timeout(90):
            await _suffer(victim, ledger, random.Random(seed).uniform(0.2, 1.2))
            victim.audit()
            victim.start()
            async with httpx2.AsyncClient(base_url=victim.base, timeout=30, limits=httpx2.Limits()) as client:
                await _verify(client, ledger)
    finally:
        victim.stop()
    victim.audit()


async def _suffer(victim: Victim, ledger: Ledger, seconds: float) -> None:
    limits = httpx2.Limits(max_connections=100)
    async with httpx2.AsyncClient(base_url=victim.base, timeout=30, limits=limits) as client:
        load = asyncio.ensure_future(ledger.load(client))
        while not (ledger.echoed and any(len(w.seen) > 5 for w in ledger.witnesses)):
            assert not load.done(), f"nobody got through: {victim.log()[-2000:]}"
            await asyncio.sleep(0.01)
        done, _ = await asyncio.wait([load], timeout=seconds)
        assert not done, f"the load ended by itself: {load.exception() if load.done() else ''}"
        victim.kill()
        await load


async def _verify(client: httpx2.AsyncClient, ledger: Ledger) -> None:
    for witness in ledger.witnesses:
        if witness.task:
            await _reconnect(client, witness)
    for id, text in ledger.echoed.items():
        task = (await rpc(client, "GetTask", {"id": id}))["result"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert text_of(task) == text
    for id in ledger.accepted:
        assert await _settled(client, id) in ENDED
    for id, answered in ledger.asked.items():
        state = await _settled(client, id)
        assert state in ENDED | PARKED
        if answered:
            assert state == "TASK_STATE_COMPLETED"
        elif state in PARKED:
            answer = await rpc(client, "SendMessage", {"message": message("late", "ask", taskId=id)})
            assert text_of(answer["result"]["task"]) == "late"
    await _nothing_is_left_working(client)


async def _reconnect(client: httpx2.AsyncClient, witness: Witness) -> None:
    """Continue from the cursor; the artifact rebuilt from what was delivered is the one the server has."""
    if not witness.done:
        await witness.watch(client)
    task = (await rpc(client, "GetTask", {"id": witness.task}))["result"]
    assert witness.done, f"{witness} ended as {task['status']}"
    assert task["status"]["state"] == witness.state
    assert text_of(task) == witness.text
    if witness.skill == "again":
        assert witness.state == "TASK_STATE_COMPLETED"


async def _settled(client: httpx2.AsyncClient, id: str) -> str:
    while True:
        task = (await rpc(client, "GetTask", {"id": id}))["result"]
        if task["status"]["state"] in ENDED | PARKED:
            return task["status"]["state"]
        await asyncio.sleep(0.02)


async def _nothing_is_left_working(client: httpx2.AsyncClient) -> None:
    for state in ("TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"):
        while (await rpc(client, "ListTasks", {"status": state}))["result"]["totalSize"]:
            await asyncio.sleep(0.02)  # bounded by the test's own time
