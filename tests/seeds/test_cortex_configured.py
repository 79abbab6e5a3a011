"""A server started from Cortex's own configuration."""

import json
from pathlib import Path

import pytest

from tests.app.test_cortex import PAGE
from tests.cli.process import dragoman
from tests.seeds.calling import ask, call
from tests.serving import ROOT, free_port

AGENT = str(ROOT / "tests/seeds/agents/cortex.py")
CARD = "/.well-known/agent-card.json"


def said(here: Path) -> str:
    return (here / "stderr.txt").read_text()


@pytest.mark.proves("001-48", "001-20", "001-d16", "S-12-14")
def test_the_page_s_file_serves_every_address_and_warns_of_it(tmp_path: Path) -> None:
    (tmp_path / "cortex.json").write_text(PAGE)
    arguments = ("serve", AGENT, "--config", "cortex.json", "--store", "memory://")
    with dragoman(*arguments, cwd=tmp_path) as running:  # on a free port: 3000 may be somebody's
        port = running.up().rpartition(":")[2]
        elsewhere = ask(f"http://127.0.0.1:{port}", "GET", CARD, headers={"Host": f"192.168.1.5:{port}"})
        rebound = ask(f"http://127.0.0.1:{port}", "GET", CARD, headers={"Host": f"evil.example:{port}"})
        running.end()
    assert elsewhere.status == 200 and elsewhere.json()["interfaces"][0]["url"] == f"http://192.168.1.5:{port}/a2a"
    assert rebound.status == 403
    (warning, *_) = map(json.loads, said(tmp_path).splitlines())
    assert warning["level"] == "warning"
    assert "a2a.server.bindAddress in cortex.json" in warning["message"]
    assert "anybody who can reach it" in warning["message"]
    assert "sk-" not in said(tmp_path)


@pytest.mark.proves("001-18")
def test_a_file_that_does_not_switch_it_on_serves_nothing_and_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "cortex.json").write_text('{"a2a": {"server": {"port": 3000}}}')
    with dragoman("serve", AGENT, "--config", "cortex.json", cwd=tmp_path) as running:
        assert running.process.wait(30) == 2
    assert said(tmp_path) == (
        'Error: A2A is off: a2a.enabled is not set in cortex.json. To serve, write "a2a": {"enabled": true} there.\n'
    )
    assert not (tmp_path / "dragoman.db").exists()


@pytest.mark.proves("001-19", "001-21")
def test_port_and_origins_are_those_of_the_file(tmp_path: Path) -> None:
    port = free_port()
    server = {"port": port, "allowedOrigins": ["https://desk.example"]}
    (tmp_path / "cortex.json").write_text(json.dumps({"a2a": {"enabled": True, "server": server}}))
    env = {"DRAGOMAN_CONFIG": "cortex.json", "DRAGOMAN_STORE": "memory://"}
    with dragoman("serve", AGENT, cwd=tmp_path, env=env, port=None) as running:
        base = running.up()
        assert base == f"http://127.0.0.1:{port}"
        shared = ask(base, "GET", CARD, headers={"Origin": "https://desk.example"})
        assert shared.headers["access-control-allow-origin"] == "https://desk.example"
        assert ask(base, "GET", CARD, headers={"Origin": "https://evil.example"}).status == 403
        assert call(base, "/a2a", "GetAgentCard", {}) == ask(base, "GET", CARD).json()
