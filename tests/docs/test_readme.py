"""What the README shows works when it is pasted."""

import asyncio
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.cli.process import dragoman

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str, before: str = "") -> list[str]:
    """The code blocks in that language; with `before`, those right under that comment."""
    mark = re.escape(f"<!-- {before} -->\n") if before else ""
    return re.findall(rf"{mark}```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the README's first agent in it."""
    [code] = blocks("python", "file: desk.py")
    (tmp_path / "desk.py").write_text(code)
    return tmp_path


def test_every_command_answers(tmp_path: Path) -> None:
    with dragoman(cwd=tmp_path) as running:
        base = running.up()
        said: list[str] = []
        for block in blocks("bash", "run"):
            script = block.replace("http://127.0.0.1:8000", base)
            ran = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, timeout=60)
            assert ran.returncode == 0, ran.stderr
            said.append(ran.stdout)
    send, stream, rpc, card = said
    assert json.loads(send)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert stream.count("data: ") >= 7
    assert "id: " in stream
    modern, legacy = rpc.replace('}{"jsonrpc"', '}\n{"jsonrpc"').splitlines()
    assert json.loads(modern)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert json.loads(legacy)["result"]["status"]["state"] == "completed"
    assert json.loads(card)["name"]


def test_a_key_makes_it_happen_once(tmp_path: Path) -> None:
    [command] = [block for block in blocks("bash") if "Idempotency-Key" in block]
    with dragoman(cwd=tmp_path) as running:
        script = command.replace("http://127.0.0.1:8000", running.up())
        once, again, other = (
            json.loads(subprocess.run(["sh", "-ec", text], capture_output=True, text=True, timeout=60).stdout)
            for text in (script, script, script.replace("hello", "goodbye"))
        )
    assert once["task"]["status"]["state"] == "TASK_STATE_COMPLETED" and again == once
    assert "used before" in other["error"]["message"]


def test_a_stream_goes_on_after_the_last_id(tmp_path: Path) -> None:
    [command] = [block for block in blocks("bash") if "Last-Event-ID" in block]
    with dragoman(cwd=tmp_path) as running:
        base = running.up()
        body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "stream 3"}]}}
        whole = httpx2.post(f"{base}/message:stream", json=body, timeout=30).text
        ids = re.findall(r"^id: (.*)$", whole, flags=re.MULTILINE)
        task = re.search(r'"taskId":"([^"]*)"', whole)
        assert task is not None
        for old, new in (("http://127.0.0.1:8000", base), ("TASK", task[1]), ("THE-LAST-ID", ids[2])):
            command = command.replace(old, new)
        rest = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.findall(r"^id: (.*)$", rest, flags=re.MULTILINE) == ids[3:]


def test_the_first_agent_asks_and_answers(desk: Path) -> None:
    [command] = [line for line in README.splitlines() if line.startswith("dragoman serve ")]
    with dragoman(*command.split()[1:], cwd=desk) as running:
        base = running.up()

        def send(text: str, **more: str) -> dict[str, object]:
            body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **more}}
            return httpx2.post(f"{base}/message:send", json=body, timeout=30).json()["task"]

        assert "110.00" in json.dumps(send("100 EUR in USD"))
        asked = send("100 EUR")
        assert "Into which currency?" in json.dumps(asked["status"])
        assert "EUR in USD" in json.dumps(send("USD", taskId=str(asked["id"]))["artifacts"])


def test_it_mounts_in_fastapi_as_shown(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = [block for block in blocks("python") if "FastAPI" in block]
    monkeypatch.chdir(desk)
    monkeypatch.syspath_prepend(desk)
    space: dict[str, object] = {}
    exec(code, space)
    assert [getattr(route, "path", "") for route in getattr(space["app"], "routes", [])][-1] == "/desk"
    sys.modules.pop("desk", None)


def test_an_agent_is_tested_as_shown(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = [block for block in blocks("python") if "dragoman.testing" in block]
    monkeypatch.syspath_prepend(desk)
    space = {"agent": importlib.import_module("desk").agent}
    sys.modules.pop("desk", None)
    exec(code, space)
    asyncio.run(space["test_it_asks_for_the_currency"]())


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_chore_the_readme_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for chore in re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE):
        assert f"\n{chore}:" in makefile
