"""`dragoman serve` as people run it: a real process, a real port, real signals."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.process import Running, dragoman
from tests.serving import free_port

AGENT = """
from dragoman import Agent
desk = Agent("{name}")

@desk.skill(tags=["text"])
async def say(turn):
    \"\"\"Says it back.\"\"\"
    if turn.text == "ask":
        answer = await turn.ask("What?")
        return "You said " + answer.text
    if turn.text == "fall":
        raise RuntimeError("the parrot is dead")
    return "{name}: " + turn.text
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(AGENT.format(name="Desk"))
    return tmp_path


def send(base: str, text: str, **message: str) -> dict[str, Any]:
    body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **message}}
    answer = httpx2.post(f"{base}/message:send", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    return answer.json()["task"]


def text(task: dict[str, Any]) -> str:
    return task["artifacts"][0]["parts"][0]["text"]


def name(base: str, path: str = "") -> str:
    return httpx2.get(f"{base}{path}/.well-known/agent-card.json", timeout=20).json()["name"]


def errors(here: Path) -> str:
    return (here / "stderr.txt").read_text()


def test_an_agent_is_served_from_a_file_and_stops_cleanly_when_told(here: Path) -> None:
    with dragoman("serve", "desk.py", cwd=here) as running:
        assert text(send(running.up(), "hi")) == "Desk: hi"
        assert running.end() == 0
    assert "Traceback" not in errors(here)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_either_signal_stops_it(here: Path, how: signal.Signals) -> None:
    with dragoman("serve", "desk.py:desk", "--store", "memory://", cwd=here) as running:
        running.up()
        assert running.end(how) == 0
    assert not (here / "dragoman.db").exists()


def test_a_question_is_answered_by_the_next_process(here: Path) -> None:
    with dragoman("serve", "desk", cwd=here) as running:
        task = send(running.up(), "ask")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        running.end()
    with dragoman("serve", "desk", cwd=here) as running:
        assert text(send(running.up(), "that", taskId=task["id"])) == "You said that"


def test_alone_it_is_the_demo_agent_and_its_commands_work_when_pasted(here: Path) -> None:
    with dragoman(cwd=here) as running:
        base = running.up()
        running.until("Be asked")
        running.until("blue")
        assert name(base) == "Dragoman demo"
        running.end()
    shown = "\n".join(running.said)
    with dragoman(cwd=here, port=int(base.rpartition(":")[2])) as running:
        running.up()
        script = "\n".join(line for line in shown.splitlines() if line.startswith("  "))
        ran = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert '"text":"hello"' in ran.stdout
    assert "chunk 5 of 5" in ran.stdout
    assert "TASK_STATE_INPUT_REQUIRED" in ran.stderr
    assert "You like blue." in ran.stdout


def test_the_file_names_several_agents(here: Path) -> None:
    (here / "other.py").write_text(AGENT.format(name="Other"))
    (here / "dragoman.toml").write_text(
        "[[agents]]\ntarget = 'desk.py'\n[[agents]]\ntarget = 'other.py'\nslug = 'second'\n[store]\nurl = 'memory://'\n"
    )
    with dragoman("serve", cwd=here) as running:
        base = running.up()
        assert running.until("/agents/").split() == [f"{base}/agents/second/.well-known/agent-card.json"]
        assert (name(base), name(base, "/agents/second")) == ("Desk", "Other")


def test_a_target_on_the_command_line_replaces_the_files(here: Path) -> None:
    (here / "dragoman.toml").write_text("[[agents]]\ntarget = 'none.py'\n")
    with dragoman("serve", "desk.py", "--store", "memory://", cwd=here) as running:
        assert name(running.up()) == "Desk"


def test_host_and_port_of_the_platform_are_taken(here: Path) -> None:
    port = free_port()
    env = {"PORT": str(port), "HOST": "127.0.0.1", "DRAGOMAN_AGENT": "desk.py", "DRAGOMAN_STORE": "memory://"}
    with dragoman("serve", cwd=here, env=env, port=None) as running:
        assert running.up() == f"http://127.0.0.1:{port}"


def test_the_public_url_is_what_the_banner_and_the_card_say(here: Path) -> None:
    arguments = ("serve", "desk.py", "--public-url", "https://desk.example/a/", "--store", "memory://")
    port = free_port()
    with dragoman(*arguments, cwd=here, port=port) as running:
        assert running.up() == "https://desk.example/a"
        card = httpx2.get(f"http://127.0.0.1:{port}/.well-known/agent-card.json", timeout=20).json()
        assert card["supportedInterfaces"][0]["url"] == "https://desk.example/a/"


def test_a_public_address_needs_no_leave_where_callers_log_in(here: Path) -> None:
    env = {"A2A_AUTH_TOKEN": "s3same", "OPENAI_API_KEY": "of somebody else"}
    with dragoman("serve", "desk.py", "--host", "0.0.0.0", "--store", "memory://", cwd=here, env=env) as running:
        port = running.up().rpartition(":")[2]
        assert "need credentials" in running.until("Calls ")
        command = running.until("curl") + " " + running.until("-d ")
        assert "s3same" not in command
        send = command.replace("\\", "").replace("0.0.0.0", "127.0.0.1")
        for token, expected in (("s3same", "TASK_STATE_COMPLETED"), ("other", "The credentials are not valid")):
            ran = subprocess.run(["sh", "-c", send], env={**os.environ, "TOKEN": token}, capture_output=True, text=True)
            assert expected in ran.stdout
        answer = httpx2.get(f"http://127.0.0.1:{port}/.well-known/agent-card.json", headers={"Host": "any.example"})
        assert answer.json()["securityRequirements"] == [{"schemes": {"bearer": {}}}]


def test_a_public_address_is_served_when_that_is_meant_and_said_loudly(here: Path) -> None:
    arguments = ("serve", "desk.py", "--host", "0.0.0.0", "--allow-public", "--store", "memory://")
    with dragoman(*arguments, cwd=here) as running:
        port = running.up().rpartition(":")[2]
        assert name(f"http://127.0.0.1:{port}") == "Desk"
        running.end()
    warning = json.loads(errors(here).splitlines()[0])
    assert warning["level"] == "warning"
    assert "anybody who can reach it" in warning["message"]


def test_a_taken_port_is_said_in_a_sentence(here: Path) -> None:
    with dragoman("serve", "desk.py", "--store", "memory://", cwd=here) as running:
        port = int(running.up().rpartition(":")[2])
        other = here / "other"
        other.mkdir()
        with dragoman("serve", "../desk.py", "--store", "memory://", cwd=other, port=port) as second:
            assert second.process.wait(30) == 1
        assert errors(other).startswith("Error: Cannot listen on 127.0.0.1")
        assert "Traceback" not in errors(other)


@pytest.mark.proves("S-4-6")
def test_a_database_somebody_else_serves_is_left_alone(here: Path) -> None:
    with dragoman("serve", "desk.py", cwd=here) as running:
        base = running.up()
        other = here / "other"
        other.mkdir()
        with dragoman("serve", "../desk.py", "--store", "../dragoman.db", cwd=other) as second:
            assert second.process.wait(30) == 1
        assert errors(other).startswith("Error: ")
        assert "Traceback" not in errors(other)
        assert text(send(base, "hi")) == "Desk: hi"


def test_logs_are_json_on_a_pipe_and_name_the_task_but_never_reach_the_client(here: Path) -> None:
    arguments = ("serve", "desk.py", "--store", "memory://", "--set", "log_requests=true", "--log-level", "debug")
    with dragoman(*arguments, cwd=here) as running:
        base = running.up()
        ended = send(base, "fall")
        assert ended["status"]["state"] == "TASK_STATE_FAILED"
        assert "parrot" not in json.dumps(ended)
        running.end()
    lines = [json.loads(line) for line in errors(here).splitlines()]
    [request] = [line for line in lines if line.get("a2a.method") == "SendMessage"]
    assert request["a2a.task.id"] == ended["id"]
    assert request["a2a.context.id"] == ended["contextId"]
    assert request["a2a.task.state"] == "TASK_STATE_FAILED"
    assert request["a2a.dialect"]
    assert request["duration_ms"] > 0
    [fall] = [line for line in lines if "RuntimeError" in line.get("exception", "")]
    assert fall["a2a.task.id"] == ended["id"]


def test_reload_serves_the_new_code_at_the_same_address(here: Path) -> None:
    port = free_port()
    with dragoman("serve", "desk.py", "--reload", "--store", "memory://", cwd=here, port=port) as running:
        base = running.up()
        assert name(base) == "Desk"
        (here / "desk.py").write_text(AGENT.format(name="Desk, rewritten"))
        assert running.up() == base
        assert name(base) == "Desk, rewritten"
        assert running.end() == 0
    with pytest.raises(httpx2.ConnectError):
        name(base)


def test_reload_outlives_a_mistake(here: Path) -> None:
    with dragoman("serve", "desk.py", "--reload", "--store", "memory://", cwd=here, port=free_port()) as running:
        running.up()
        (here / "desk.py").write_text("this is no python")
        wait_for_words(running, here, "SyntaxError")
        (here / "desk.py").write_text(AGENT.format(name="Mended"))
        assert name(running.up()) == "Mended"


def wait_for_words(running: Running, here: Path, words: str) -> None:
    """Another process writes them: there is nothing to wait on but the file."""
    for _ in range(1_000):
        if words in errors(here):
            return
        try:
            running.process.wait(0.03)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(errors(here))
