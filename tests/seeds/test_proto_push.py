"""protoAgent's guard: which addresses a webhook may have, by default and where the environment says more."""

from pathlib import Path

import pytest

from dragoman.push.settings import PushSettings
from dragoman.store.memory import MemoryStore
from tests.seeds.calling import JSON, ask, call, refusal
from tests.seeds.test_proto import AGENT, RPC, send
from tests.serving import serving

SET = "tasks/pushNotificationConfig/set"
PRIVATE = (
    "http://127.0.0.1:9000/hook",
    "http://localhost:9000/hook",
    "http://[::1]:9000/hook",
    "http://10.0.0.1/hook",
    "http://172.16.0.1/hook",
    "http://192.168.1.1/hook",
    "http://169.254.169.254/latest/meta-data/",
)


def hooked(task: str, url: str) -> JSON:
    return {"taskId": task, "pushNotificationConfig": {"url": url, "token": "shared-secret"}}


@pytest.mark.proves("004-54", "004-55", "004-56", "004-57", "004-58", "004-c11", "W-199")
def test_addresses_inside_are_refused_until_the_environment_allows_them(tmp_path: Path) -> None:
    """Neither `workstacean` nor any other name here leads anywhere: an allowed host is not looked up."""
    options = ("--profile", "proto", "--store", "memory://")
    with serving(AGENT, *options, logs=tmp_path / "closed.log") as base:
        task = send(base, "hello")["id"]
        for url in (*PRIVATE, "http://workstacean:3000/hook"):
            error = refusal(base, RPC, SET, hooked(task, url))
            assert error["code"] == -32602
            assert "169.254" not in error["message"] and "127.0.0.1" not in error["message"]
            over_http = ask(base, "POST", f"/a2a/tasks/{task}/pushNotificationConfig", b'{"url":"%s"}' % url.encode())
            assert over_http.status == 400
        assert call(base, RPC, "tasks/pushNotificationConfig/list", {"taskId": task}) == []
    allowed = {
        "PUSH_NOTIFICATION_ALLOWED_HOSTS": "workstacean,automaker-server",
        "PUSH_NOTIFICATION_ALLOWED_CIDRS": "10.0.0.0/8,172.16.0.0/12",
    }
    with serving(AGENT, *options, logs=tmp_path / "open.log", env=allowed) as base:
        task = send(base, "hello")["id"]
        for url in ("http://workstacean:3000/hook", "http://10.0.0.1/hook", "http://172.16.0.1/hook"):
            assert call(base, RPC, SET, hooked(task, url))["pushNotificationConfig"]["url"] == url
        for url in ("http://127.0.0.1:9000/hook", "http://192.168.1.1/hook", "http://somewhere-else/hook"):
            assert refusal(base, RPC, SET, hooked(task, url))["code"] == -32602


@pytest.mark.parametrize(
    "wrong",
    [
        {"PUSH_NOTIFICATION_ALLOWED_CIDRS": "10.0.0.0/8,ten"},
        {"PUSH_NOTIFICATION_ALLOWED_HOSTS": "http://workstacean"},
    ],
)
def test_a_malformed_exception_ends_the_start(tmp_path: Path, wrong: dict[str, str]) -> None:
    with (
        pytest.raises(RuntimeError, match=next(iter(wrong))),
        serving(AGENT, "--store", "memory://", logs=tmp_path / "server.log", env=wrong),
    ):
        pass


@pytest.mark.proves("004-40", "004-48")
def test_the_times_are_the_page_s() -> None:
    """tests/push shows that they are kept, at times that do not take so long."""
    assert PushSettings().retries == (1_000, 3_000, 9_000)
    assert MemoryStore()._holding._interval == 1_500
