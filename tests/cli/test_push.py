"""`dragoman push` over the store's file, and over the socket of a server that has it."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import httpx2
import pytest

from dragoman.ports import Outcome
from dragoman.store.sqlite import SqliteStore
from tests.cli.test_command import run
from tests.push.rig import end, hook
from tests.serving import serving

BODY = b'{"task":{"id":"t0"}}'


async def _given_up(path: Path, count: int) -> list[str]:
    store = SqliteStore(path)
    await store.open()
    try:
        for number in range(count):
            url = f"https://desk.example/hook?key=s3cr3t{number}"
            await end(store, f"t{number}", hook(f"t{number}", url, token="s3cr3t"))
        found = await store.due_deliveries(100)
        await store.record(
            [
                Outcome(
                    id=each.id, dead=True, error="answered with status 404", body=BODY, media_type="application/json"
                )
                for each in found
            ]
        )
        return sorted(each.id for each in found)
    finally:
        await store.close()


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """Three deliveries that were given up, in dragoman.db."""
    return asyncio.run(_given_up(tmp_path / "dragoman.db", 3))


def test_what_was_given_up_is_listed_the_newest_first(tmp_path: Path, ids: list[str]) -> None:
    shown = run("push", "list", cwd=tmp_path)
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ids[::-1]
    assert lines[0].endswith("  https://desk.example/hook  1×  answered with status 404")
    assert "s3cr3t" not in shown.stdout
    found = [json.loads(line) for line in run("push", "list", "--json", cwd=tmp_path).stdout.splitlines()]
    assert [each["id"] for each in found] == ids[::-1]
    assert {each["task"] for each in found} == {"t0", "t1", "t2"}
    further = run("push", "list", "--limit", "1", "--before", ids[2], cwd=tmp_path).stdout
    assert further.split()[0] == ids[1] and len(further.splitlines()) == 1


def test_one_is_shown_with_what_it_says_and_without_secrets(tmp_path: Path, ids: list[str]) -> None:
    shown = run("push", "show", ids[0], cwd=tmp_path).stdout
    for words in (ids[0], "https://desk.example/hook\n", "answered with status 404", '"id": "t0"', "given up"):
        assert words in shown
    assert "s3cr3t" not in shown
    (found,) = run("push", "show", "--json", ids[0], cwd=tmp_path).stdout.splitlines()
    assert json.loads(found)["body"] == BODY.decode()


def test_what_is_sent_again_is_given_up_no_more(tmp_path: Path, ids: list[str]) -> None:
    again = run("push", "resend", ids[1], cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "1 to be sent again when the server starts.\n")
    assert "waits for its next attempt" in run("push", "show", ids[1], cwd=tmp_path).stdout
    assert run("push", "resend", "--all", cwd=tmp_path).stdout.startswith("2 to be sent again")
    nothing = run("push", "list", cwd=tmp_path)
    assert (nothing.stdout, nothing.stderr) == ("", "Nothing was given up.\n")


@pytest.mark.parametrize("verb", ["show", "resend"])
def test_an_id_nobody_knows_is_said(tmp_path: Path, ids: list[str], verb: str) -> None:
    said = run("push", verb, "nonsense", cwd=tmp_path)
    assert said.returncode == 1
    assert "There is no delivery nonsense (any more)." in said.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list"], "There is no store dragoman.db"),
        (["list", "--store", "memory://"], "ends with it"),
        (["list", "--store", "redis://x"], "there is no store called redis"),
        (["resend"], "Name deliveries, or say --all."),
        (["resend", "--all", "x"], "Name deliveries, or say --all."),
        (["show"], "Missing argument"),
    ],
)
def test_what_cannot_be_done_is_said_and_makes_no_file(tmp_path: Path, arguments: list[str], words: str) -> None:
    said = run("push", *arguments, cwd=tmp_path)
    assert said.returncode == 2 and words in said.stderr and "Traceback" not in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_in_use_without_a_socket_is_left_alone(tmp_path: Path, ids: list[str]) -> None:
    async def held() -> str:
        store = SqliteStore(tmp_path / "dragoman.db")
        await store.open()
        try:
            return (await asyncio.to_thread(run, "push", "list", cwd=tmp_path)).stderr
        finally:
            await store.close()

    assert "The store is in use by process" in asyncio.run(held())


class Hook(BaseHTTPRequestHandler):
    """Answers what the test says, and remembers what came."""

    status = 404
    came: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.came.append((self.headers["Idempotency-Key"], body))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Generator[str]:
    Hook.status = 404
    Hook.came.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def until(done: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_running_server_is_asked_and_sends_again(tmp_path: Path, receiver: str) -> None:
    options = ("--store", str(tmp_path / "dragoman.db"), "--set", "push_allow_loopback=true")
    with serving("examples/hello.py", *options, logs=tmp_path / "server.log") as base:
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Ada"}]}
        sent = {"message": message, "configuration": {"taskPushNotificationConfig": {"url": receiver}}}
        task = httpx2.post(f"{base}/message:send", json=sent, timeout=20).json()["task"]["id"]
        until(lambda: b"COMPLETED" in b"".join(body for _, body in Hook.came))
        until(lambda: "404" in run("push", "list", cwd=tmp_path).stdout)
        listed = run("push", "list", cwd=tmp_path).stdout.splitlines()
        assert all(task in line and "answered with status 404" in line for line in listed)
        id = listed[0].split()[0]
        assert task in run("push", "show", id, cwd=tmp_path).stdout
        Hook.status = 204
        before = len(Hook.came)
        again = run("push", "resend", "--all", cwd=tmp_path)
        assert again.stdout == f"{len(listed)} to be sent again now.\n"
        until(lambda: len(Hook.came) == before + len(listed))
        until(lambda: run("push", "list", cwd=tmp_path).stdout == "")
    assert Hook.came[-1][0] == id and Hook.came[-1][1] in [body for _, body in Hook.came[:before]]
    assert not (tmp_path / "dragoman.db-control").exists()
