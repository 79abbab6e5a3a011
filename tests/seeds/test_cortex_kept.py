"""How much is kept and for how long: Cortex's limits, which hold for memory, and what a file keeps beyond them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.app.settings import DAY, HOUR, Settings
from tests.seeds.calling import JSON, call, refusal
from tests.seeds.test_cortex import AGENT, RPC, ended, send, state, text
from tests.serving import serving


@contextmanager
def keeping(folder: Path, store: str, *settings: str) -> Generator[str]:
    options = [option for each in settings for option in ("--set", each)]
    with serving(AGENT, "--profile", "cortex", "--store", store, *options, logs=folder / "server.log") as base:
        yield base


def known(base: str, id: str) -> bool:
    answer = call(base, RPC, "ListTasks", {})
    listed = id in {task["id"] for task in answer["tasks"]}
    if listed:
        assert call(base, RPC, "GetTask", {"id": id})["id"] == id
    else:
        assert refusal(base, RPC, "GetTask", {"id": id})["code"] == -32001
    return listed


def until_only(base: str, *ids: str) -> None:
    """Wait until nothing else is left. The server looks every second at most; its process gives nothing to wait on."""
    for _ in range(10_000):
        if {task["id"] for task in call(base, RPC, "ListTasks", {})["tasks"]} == set(ids):
            return
    raise AssertionError("more is still there")


def brief(base: str, n: int) -> JSON:
    return send(base, f"write {n}", context="brief")


# --- how many -------------------------------------------------------------------------------------------------


@pytest.mark.proves("001-22", "001-c7", "001-d13", "S-12-16")
def test_one_task_too_many_evicts_the_oldest_finished_one_and_none_that_goes_on(tmp_path: Path) -> None:
    with keeping(tmp_path, "memory://") as base:
        parked = send(base, "ask Still there?", context="brief")
        running = send(base, "wait kept", context="brief", configuration={"blocking": False})
        first, second = brief(base, 0), brief(base, 1)
        assert state(call(base, RPC, "GetTask", {"id": first["id"]})) == "TASK_STATE_COMPLETED"
        for n in range(2, 998):
            brief(base, n)
        assert len(call(base, RPC, "ListTasks", {})["tasks"]) == 1_000 and known(base, first["id"])
        last = brief(base, 998)
        assert len(call(base, RPC, "ListTasks", {})["tasks"]) == 1_000
        assert [known(base, task["id"]) for task in (first, second, last)] == [False, True, True]
        assert state(call(base, RPC, "GetTask", {"id": parked["id"]})) == "TASK_STATE_INPUT_REQUIRED"
        assert state(call(base, RPC, "GetTask", {"id": running["id"]})) == "TASK_STATE_WORKING"
        assert text(send(base, "yes", taskId=parked["id"])) == "Heard 'yes'. "
        send(base, "open kept")
        assert ended(base, running["id"]) == "TASK_STATE_COMPLETED"


@pytest.mark.proves("001-d13", "S-5-17")
def test_a_memory_full_of_unfinished_tasks_refuses_new_ones_until_one_ends(tmp_path: Path) -> None:
    with keeping(tmp_path, "memory://", "cached_tasks=2") as base:
        first, second = send(base, "ask One?"), send(base, "ask Two?")
        error = refusal(base, RPC, "SendMessage", {"message": {"parts": [{"text": "hi"}]}})
        assert error["code"] == -32603 and "full" in error["message"]
        send(base, "one", taskId=first["id"])
        third = send(base, "hi")
        assert not known(base, first["id"]) and known(base, second["id"]) and known(base, third["id"])


@pytest.mark.proves("001-23", "001-d15", "D-5-7")
def test_one_conversation_too_many_forgets_the_oldest_but_none_of_its_tasks(tmp_path: Path) -> None:
    with keeping(tmp_path, "memory://") as base:
        first = send(base, "write First.", context="c0")
        for n in range(1, 500):
            send(base, f"write {n}", context=f"c{n}")
        assert text(send(base, "recall", context="c0")) == "[user]: write First.\n[agent]: First."
        send(base, "write One more.", context="c500")
        assert text(send(base, "recall", context="c1")) == "[user]: write 1\n[agent]: 1"
        assert text(send(base, "recall", context="c0")) == ""
        send(base, "write Anew.", context="c0")
        assert "[agent]: Anew." in text(send(base, "recall", context="c0"))
        assert known(base, first["id"])
        assert len(call(base, RPC, "ListTasks", {"contextId": "c0"})["tasks"]) == 5


@pytest.mark.proves("001-22", "001-23")
def test_tasks_that_name_no_conversation_are_not_fewer_for_it(tmp_path: Path) -> None:
    with keeping(tmp_path, "memory://", "cached_tasks=20", "cached_contexts=3") as base:
        waiting = [send(base, "ask Well?") for _ in range(10)]
        done = [send(base, "write x") for _ in range(10)]
        assert all(known(base, task["id"]) for task in (*waiting, *done))


@pytest.mark.proves("001-d14", "S-5-18", "S-12-16")
def test_a_file_keeps_what_memory_would_forget(tmp_path: Path) -> None:
    limits = ("cached_tasks=10", "cached_contexts=5", "cached_for=0.1s", "sweep=0.1s")
    with keeping(tmp_path, f"{tmp_path}/tasks.db", *limits) as base:
        sent = [send(base, f"write {n}", context=f"c{n}") for n in range(40)]
        assert all(known(base, task["id"]) for task in sent)
        assert text(send(base, "recall", context="c0")) == "[user]: write 0\n[agent]: 0"


# --- how long -------------------------------------------------------------------------------------------------


@pytest.mark.proves("001-22", "001-23", "001-24", "001-25", "001-d14", "D-5-7")
def test_the_limits_are_cortex_s_unless_told() -> None:
    store = Settings().store
    assert (store.cached_tasks, store.cached_contexts, store.cached_for, store.sweep) == (1_000, 500, HOUR, 300)
    assert store.retention == DAY


@pytest.mark.proves("001-24", "001-25", "001-c7", "001-d13")
def test_what_is_over_is_forgotten_without_anybody_asking_and_what_goes_on_is_not(tmp_path: Path) -> None:
    with keeping(tmp_path, "memory://", "cached_for=0.1s", "sweep=0.1s") as base:
        parked = send(base, "ask Still there?", context="c")
        running = send(base, "wait long", context="c", configuration={"blocking": False})
        over = brief(base, 0)
        until_only(base, parked["id"], running["id"])
        assert [known(base, task["id"]) for task in (over, parked, running)] == [False, True, True]
        assert text(send(base, "yes", taskId=parked["id"])) == "Heard 'yes'. "
        send(base, "open long")
