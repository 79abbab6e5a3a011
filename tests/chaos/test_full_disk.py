"""A store without room: the caller hears of it, nothing acknowledged is lost, and tasks still end."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.chaos.observer import message, rpc, text_of
from tests.chaos.victim import Victim

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]


@pytest.mark.proves("S-3-5")
async def test_a_full_store_refuses_clearly_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    victim = Victim(tmp_path, "--set", "max_size=1MB")
    victim.start()
    kept: dict[str, str] = {}
    try:
        async with asyncio.timeout(60), httpx2.AsyncClient(base_url=victim.base, timeout=30) as client:
            refused = None
            for number in range(2000):
                said = message(f"{number} " + "x" * 4000, "echo")
                answer = await rpc(client, "SendMessage", {"message": said})
                if "error" in answer:
                    refused = answer["error"]
                    break
                task = answer["result"]["task"]
                if task["status"]["state"] == "TASK_STATE_COMPLETED":
                    kept[task["id"]] = text_of(task)
            assert refused is not None, "the store never filled up"
            assert len(kept) > 20
            assert "storage" in refused["message"].lower()
            assert str(tmp_path) not in str(refused) and "sqlite" not in str(refused).lower()
            await _all_there(client, kept)
            working = (await rpc(client, "ListTasks", {"status": "TASK_STATE_WORKING"}))["result"]
            assert working["totalSize"] == 0
            victim.kill()
            victim.audit()
            victim.start()
            await _all_there(client, kept)
    finally:
        victim.stop()


async def _all_there(client: httpx2.AsyncClient, kept: dict[str, str]) -> None:
    for id, text in kept.items():
        task = (await rpc(client, "GetTask", {"id": id}))["result"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert text_of(task) == text
