"""What the clients people really use do at the paths of the five systems, all on one server at once.

The systems' own clients were made with @a2a-js/sdk 0.3.13; official clients of 1.0 meet Cortex in `test_clients`. Each
mount answers in its system's way, which is to be seen through an official client as well: `MANNERS` has what differs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.interop.parties import Client, Party, connected
from tests.interop.severing import Severing
from tests.interop.test_clients import (
    CHUNKS,
    NOT_CANCELABLE,
    NOT_FOUND,
    UNSUPPORTED,
    artifact_text,
    chunks_in,
    last_state,
    refuses,
    text_of,
    words,
)
from tests.serving import serving

pytestmark = pytest.mark.interop


class Manner(NamedTuple):
    """`begins` is the kind of a stream's first event, `stays` whether it goes on over a question, `again` whether a
    finished task may be cancelled once more, `over` whether it takes another message (as a new task), `tail` what
    subscribing to it brings, `says` whether the answer stands in the status as well, `names` what it is called."""

    begins: str = "task"
    stays: bool = False
    again: bool = False
    over: bool = False
    tail: str = "task"
    says: bool = False
    names: str = ""


MANNERS = {
    "/a2a/jsonrpc": Manner(begins="status", stays=True, again=True, names="assistant-response"),
    "/api/a2a": Manner(begins="status", over=True, tail="status", says=True),
    "/a2a": Manner(again=True, over=True),
}
CLIENTS = (("js03", "JSONRPC"), ("py03", "JSONRPC"), ("py10", "JSONRPC@0.3"))
PARTIES = [Party(name, binding, mount=mount) for name, binding in CLIENTS for mount in MANNERS]


@pytest.fixture(scope="module", params=PARTIES, ids=lambda party: party.label)
def party(request: pytest.FixtureRequest) -> Party:
    return request.param


@pytest.fixture
def manner(party: Party) -> Manner:
    return MANNERS[party.mount]


def test_a_blocking_send_brings_the_finished_task(client: Client, manner: Manner) -> None:
    task = client("send", parts=words("echo hello"))
    assert (task["kind"], task["state"], artifact_text(task)) == ("task", "completed", "echo: hello")
    [artifact] = task["artifacts"]
    assert (artifact.get("name") or "") == manner.names
    assert text_of(task["said"]) == ("echo: hello" if manner.says else "")
    assert client("get", task=task["task"]) == task


def test_a_stream_brings_every_chunk_and_the_end(client: Client, manner: Manner) -> None:
    result = client("stream", parts=words("count 12"))
    events = result["events"]
    assert result["dropped"] is None
    assert events[0]["kind"] == manner.begins
    assert chunks_in(events) == CHUNKS
    said = "".join(text_of(event["said"]) for event in events if event["kind"] == "status")
    assert said == (CHUNKS if manner.says else "")
    end = events[-1]
    assert (end["kind"], end["state"], end.get("final", True)) == ("status", "completed", True)
    assert artifact_text(client("get", task=end["task"])) == CHUNKS


def test_a_question_is_answered_and_the_same_task_ends(client: Client) -> None:
    asked = client("send", parts=words("ask"))
    assert (asked["state"], asked["said"]) == ("input-required", words("Which city?"))
    done = client("send", parts=words("Paris"), task=asked["task"], context=asked["context"])
    assert (done["task"], done["state"], artifact_text(done)) == (asked["task"], "completed", "Sunny in Paris")


def test_a_streamed_question_stays_open_or_ends_as_its_system_does(client: Client, manner: Manner) -> None:
    asked = client("stream", parts=words("ask"), **({"answer": words("Rome")} if manner.stays else {}))
    assert asked["dropped"] is None
    question = next(event for event in asked["events"] if event.get("state") == "input-required")
    assert question["said"] == words("Which city?")
    if manner.stays:
        assert question.get("final", False) is False
        assert last_state(asked["events"]) == "completed" and asked["events"][-1].get("final", True)
        assert chunks_in(asked["events"]) == "Sunny in Rome"
    else:
        assert question is asked["events"][-1] and question.get("final", True)
        answered = client("stream", parts=words("Rome"), task=question["task"])
        assert last_state(answered["events"]) == "completed"
        assert {event["task"] for event in answered["events"]} == {question["task"]}
    assert artifact_text(client("get", task=question["task"])) == "Sunny in Rome"


def test_a_running_task_is_cancelled_and_once_more_as_its_system_does(client: Client, manner: Manner) -> None:
    running = client("send", parts=words("hold"), wait=False)
    assert running["state"] in ("submitted", "working")
    ended = client("cancel", task=running["task"])
    assert ended["state"] == "canceled"
    if manner.again:
        assert client("cancel", task=running["task"]) == ended
    else:
        refuses(client, NOT_CANCELABLE, "cancel", task=running["task"])
    done = client("send", parts=words("echo over"))
    if manner.again:
        assert client("cancel", task=done["task"]) == done
    else:
        refuses(client, NOT_CANCELABLE, "cancel", task=done["task"])


def test_cancelling_a_streamed_task_ends_its_stream(client: Client) -> None:
    result = client("stream", parts=words("hold"), cancel_it=True)
    assert (result["dropped"], last_state(result["events"])) == (None, "canceled")


def test_a_finished_task_takes_messages_and_subscribers_as_its_system_does(client: Client, manner: Manner) -> None:
    done = client("send", parts=words("echo over"))
    if manner.over:
        fresh = client("send", parts=words("echo more"), task=done["task"])
        assert fresh["task"] != done["task"] and artifact_text(fresh) == "echo: more"
    else:
        refuses(client, UNSUPPORTED, "send", parts=words("echo more"), task=done["task"])
    tail = client("resubscribe", task=done["task"])
    [last] = tail["events"]
    assert (tail["dropped"], last["kind"], last["state"]) == (None, manner.tail, "completed")
    assert (text_of(last["said"]) if manner.tail == "status" else artifact_text(last)) == "echo: over"


def test_a_task_nobody_made_is_not_found(client: Client) -> None:
    refuses(client, NOT_FOUND, "get", task="nobody-made-this")
    refuses(client, NOT_FOUND, "cancel", task="nobody-made-this")


def test_a_client_comes_back_after_its_socket_dropped_and_misses_nothing(
    party: Party, server: str, manner: Manner
) -> None:
    port = urlsplit(server).port
    assert port is not None
    with Severing(port, b"<5>") as wire, connected(party, wire.url) as client:
        begun = client("stream", parts=words("count 12"))
        assert wire.cut.is_set() and begun["dropped"], begun
        task = begun["events"][0]["task"]
        after = client("resubscribe", task=task)
        assert after["dropped"] is None
        first, *rest = after["events"]
        assert first["task"] == task
        assert last_state(after["events"]) == "completed"
        # What came before and what comes then meet without a gap and without a repeat.
        before = artifact_text(first) if first["kind"] == "task" else ""
        assert before + chunks_in(rest) == CHUNKS
        assert artifact_text(client("get", task=task)) == CHUNKS


# --- a client that is told nothing but the server's address ------------------------------------------------------

PROFILES = {"coding-agent": "/a2a/jsonrpc", "a2x": "/api/a2a", "proto": "/a2a"}


@pytest.fixture(scope="module", params=PROFILES)
def profile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, Path]]:
    """A server that looks like one of the systems: the path it is known by, its base URL, its log."""
    folder = tmp_path_factory.mktemp(request.param)
    log = folder / "server.log"
    options = (
        "--profile",
        request.param,
        "--store",
        "memory://",
        "--set",
        "log_requests=true",
        "--set",
        "log_format=json",
    )
    with serving("examples/interop.py", *options, logs=log) as base:
        yield PROFILES[request.param], base, log


@pytest.mark.parametrize("name", ["js03", "py03"])
def test_an_unchanged_client_finds_the_system_it_was_made_for(profile: tuple[str, str, Path], name: str) -> None:
    mount, base, log = profile
    with connected(Party(name, "JSONRPC"), base) as client:
        asked = client("send", parts=words("ask"))
        assert client("send", parts=words("Oslo"), task=asked["task"])["state"] == "completed"
        assert chunks_in(client("stream", parts=words("count 3"))["events"]) == "<0><1><2>"
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    posts = [line["message"] for line in lines if "a2a.method" in line]
    assert posts and set(posts) == {f"POST {mount}"}
