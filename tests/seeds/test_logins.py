"""What clients of simple_a2a, A2X and 0.1 see where callers log in: cards that say how, refusals each system's own way,
and ids that are their caller's alone."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seeds import test_a2x as a2x
from tests.seeds import test_simple as simple
from tests.seeds import test_t01 as t01
from tests.seeds.calling import JSON, ask, call, envelope, refusal, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/simple.py"
ANN = {"Authorization": "Bearer ann-s3cret"}
BOB = {"Authorization": "Bearer bob-s3cret"}


def served(folder: Path, *options: str) -> Iterator[str]:
    """A server that knows Ann and Bob."""
    hashes = {name: hashlib.sha256(f"{name}-s3cret".encode()).hexdigest() for name in ("ann", "bob")}
    callers = folder / "callers.toml"
    callers.write_text("".join(f'[{name}]\ntoken = "sha256:{hash}"\n' for name, hash in hashes.items()))
    callers.chmod(0o600)
    known = ("--store", "memory://", "--set", f"auth_callers={callers}")
    with serving(AGENT, *known, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from served(tmp_path_factory.mktemp("logins"))


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Refusals as the two systems have them."""
    own = ("--set", "auth_a2x_tasks=true", "--set", "auth_simple_errors=true")
    yield from served(tmp_path_factory.mktemp("own-logins"), *own)


@pytest.mark.proves("003-6b", "01-22")
def test_the_card_says_how_to_log_in_in_every_system_s_words(base: str) -> None:
    card = ask(base, "GET", a2x.CARD).json()
    ((name, scheme),) = card["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"].lower()) == ("http", "bearer")
    assert card["security"] == [{name: []}]
    assert [each.lower() for each in card["authentication"]["schemes"]] == ["bearer"]
    assert ask(base, "GET", simple.CARD).json() == card


@pytest.mark.proves("002-d22", "003-d17")
@pytest.mark.parametrize(
    ("path", "method", "params"),
    [
        ("/", "tasks/send", simple.said("hi")),
        ("/", "tasks/list", {}),
        ("/", "tasks/get", {"id": "task-uuid"}),
        ("/", "tasks/send", t01.said("hi")),
        ("/api/a2a", "message/send", a2x.said("hi")),
        ("/api/a2a", "message/stream", a2x.said("hi")),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
def test_who_has_not_logged_in_is_challenged(
    base: str, path: str, method: str, params: JSON, headers: dict[str, str]
) -> None:
    answer = ask(base, "POST", path, envelope(method, params), headers)
    assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")
    assert "result" not in answer.json()


@pytest.mark.proves("002-d22")
def test_by_setting_simple_a2a_s_own_names_are_refused_with_200_and_its_number(literal: str) -> None:
    for method, params in (
        ("tasks/send", simple.said("hi")),
        ("tasks/sendSubscribe", simple.said("hi")),
        ("tasks/list", {}),
    ):
        assert refusal(literal, "/", method, params)["code"] == -32000
        assert refusal(literal, "/", method, params, headers={"Authorization": "Bearer wrong"})["code"] == -32000
    task = call(literal, "/", "tasks/send", simple.said("hi"), headers=ANN)
    assert simple.state(task) == "completed"
    assert ask(literal, "POST", "/", envelope("tasks/get", {"id": task["id"]})).status == 401


@pytest.mark.proves("003-d17")
def test_by_setting_a2x_answers_with_a_task_that_waits_for_the_login_and_is_not_kept(literal: str) -> None:
    task = call(literal, a2x.RPC, "message/send", a2x.said("hi"))
    assert (task["kind"], a2x.state(task)) == ("task", "auth-required") and a2x.words(task["status"])
    with streaming(literal, a2x.RPC, "message/stream", a2x.said("hi")) as stream:
        (frame,) = stream.rest()
    assert frame.json()["result"]["status"]["state"] == "auth-required" and frame.json()["final"] is True
    assert refusal(literal, a2x.RPC, "tasks/get", {"id": task["id"]})["code"] == -32600
    assert refusal(literal, a2x.RPC, "tasks/get", {"id": task["id"]}, headers=ANN)["code"] == -32001
    assert a2x.state(call(literal, a2x.RPC, "message/send", a2x.said("hi"), headers=ANN)) == "completed"


@pytest.mark.proves("01-23")
def test_an_id_a_client_chose_is_that_caller_s_and_another_has_its_own(base: str) -> None:
    for name, headers in (("ann", ANN), ("bob", BOB)):
        asking = call(
            base, "/", "tasks/send", t01.said(f"write I am {name}. ", "ask Which?", id="mine"), headers=headers
        )
        assert (asking["id"], t01.text(asking)) == ("mine", f"I am {name}. ")
    done = call(base, "/", "tasks/send", t01.said("this", id="mine"), headers=BOB)
    assert t01.text(done) == "I am bob. Heard 'this'. "
    assert t01.state(call(base, "/", "tasks/get", {"id": "mine"}, headers=ANN)) == "input-required"
    assert refusal(base, "/", "tasks/get", {"id": done["sessionId"]}, headers=ANN)["code"] == -32001


@pytest.mark.proves("002-d22", "003-d17")
def test_nobody_else_s_tasks_are_listed_read_or_answered(base: str) -> None:
    own = call(base, "/", "tasks/send", simple.said("ask Which?"), headers=ANN)
    assert own["id"] not in [task["id"] for task in call(base, "/", "tasks/list", {}, headers=BOB)]
    assert own["id"] in [task["id"] for task in call(base, "/", "tasks/list", {}, headers=ANN)]
    answer = simple.said("this") | {"id": own["id"]}
    assert refusal(base, "/", "tasks/send", answer, headers=BOB)["code"] == -32001
    fresh = call(base, "/", "tasks/send", simple.said("hi", contextId=own["contextId"]), headers=BOB)
    assert fresh["id"] != own["id"]
    other = call(base, a2x.RPC, "message/send", a2x.said("hi", taskId=own["id"]), headers=BOB)
    assert other["id"] != own["id"]
    assert simple.state(call(base, "/", "tasks/get", {"id": own["id"]}, headers=ANN)) == "input_required"
