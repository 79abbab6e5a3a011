"""Which store a URL means."""

from pathlib import Path

import pytest

from dragoman import Agent, Turn
from dragoman.app.settings import SettingsError
from dragoman.app.stores import MemoryChoice, SqliteChoice, choose
from dragoman.testing import Client


@pytest.mark.proves("S-12-4")
@pytest.mark.parametrize(
    ("url", "choice"),
    [
        ("memory://", MemoryChoice()),
        ("sqlite:///tasks.db", SqliteChoice(Path("tasks.db"))),
        ("sqlite:///data/tasks.db", SqliteChoice(Path("data/tasks.db"))),
        ("sqlite:////var/lib/tasks.db", SqliteChoice(Path("/var/lib/tasks.db"))),
        ("sqlite:///my%20tasks.db", SqliteChoice(Path("my tasks.db"))),
        ("sqlite:///tasks.db?synchronous=FULL", SqliteChoice(Path("tasks.db"), "FULL")),
        ("sqlite:///tasks.db?synchronous=normal", SqliteChoice(Path("tasks.db"), "NORMAL")),
        ("tasks.db", SqliteChoice(Path("tasks.db"))),
        ("./a/tasks.db", SqliteChoice(Path("a/tasks.db"))),
        ("/var/lib/tasks.db", SqliteChoice(Path("/var/lib/tasks.db"))),
    ],
)
def test_a_url_names_its_store(url: str, choice: object) -> None:
    assert choose(url) == choice


@pytest.mark.proves("S-12-4")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "empty"),
        ("sqlite://tasks.db", "three slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///folder/", "names no file"),
        ("sqlite:///tasks.db?mode=ro", "mode is not an option"),
        ("sqlite:///tasks.db?synchronous=OFF", "NORMAL, FULL"),
        ("memory://x", "nothing behind it"),
        ("mysql://host/db", "no store called mysql"),
    ],
)
def test_what_names_no_store_is_refused_with_the_forms_that_would(url: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as caught:
        choose(url)
    assert "sqlite:///relative.db" in str(caught.value)


def test_a_refusal_never_repeats_a_password() -> None:
    with pytest.raises(SettingsError) as caught:
        choose("mysql://ann:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_a_home_folder_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert choose("~/tasks.db") == SqliteChoice(Path("/home/ann/tasks.db"))


@pytest.mark.proves("S-12-5")
@pytest.mark.anyio
async def test_all_that_is_kept_is_in_one_file(tmp_path: Path) -> None:
    agent = Agent("Keeps")

    @agent.skill
    async def ask(turn: Turn) -> None:
        await turn.ask("?")

    async with Client(agent, store=tmp_path / "kept.db", headers={"Idempotency-Key": "k"}) as client:
        await client.send("x")
        # A socket, through which the commands reach the server, keeps nothing.
        beside = {path.name for path in tmp_path.iterdir() if not path.is_socket()} - {"kept.db"}
        assert beside <= {"kept.db-wal", "kept.db-shm", "kept.db-lock"}, (
            "what SQLite and its owner need while it is open"
        )
    assert {path.name for path in tmp_path.iterdir()} <= {"kept.db", "kept.db-lock"}
