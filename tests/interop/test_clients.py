"""What the clients people really use do with us: each operation, in each version, over each binding."""

import base64
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.interop.parties import PARTIES, Client, Party, Refused, connected
from tests.interop.severing import Severing
from tests.serving import free_port

pytestmark = pytest.mark.interop

BYTES = {"raw": base64.b64encode(b"\x00bytes\xff").decode(), "media_type": "application/octet-stream"}
LINK = {"url": "https://example.com/cat.png", "media_type": "image/png"}
DATA = {"data": {"key": "value", "count": 42, "deep": [1, None, {"x": True}]}}
EVERY_KIND = [{"text": "plain"}, BYTES | {"filename": "blob.bin"}, LINK | {"filename": "cat.png"}, DATA]
LISTERS = [party for party in PARTIES if party.version == "1.0"]  # 0.3 has no such operation
CHUNKS = "".join(f"<{number}>" for number in range(12))


def words(text: str) -> list[dict[str, Any]]:
    return [{"text": text}]


def text_of(parts: list[dict[str, Any]]) -> str:
    return "".join(part["text"] for part in parts if "text" in part)


def artifact_text(task: dict[str, Any]) -> str:
    return "".join(text_of(artifact["parts"]) for artifact in task["artifacts"])


def chunks_in(events: list[dict[str, Any]]) -> str:
    return "".join(text_of(event["parts"]) for event in events if event["kind"] == "artifact")


def last_state(events: list[dict[str, Any]]) -> str:
    return [event["state"] for event in events if "state" in event][-1]


def shown(parts: list[dict[str, Any]], party: Party) -> list[dict[str, Any]]:
    """These parts as that client can show them: the 0.3 JavaScript client has no file names over REST."""
    if party.label != "js03-rest":
        return parts
    return [{key: value for key, value in part.items() if key != "filename"} for part in parts]


NOT_FOUND = ("TaskNotFound", -32001, 404)
NOT_CANCELABLE = ("TaskNotCancelable", -32002, 400)
UNSUPPORTED = ("UnsupportedOperation", -32004, 400)


def refuses(client: Client, meaning: tuple[str, int, int], operation: str, **arguments: Any) -> None:
    """The client raises its own word for this error; the 0.3 Python client has a number only, over REST the status."""
    with pytest.raises(Refused) as caught:
        client(operation, **arguments)
    word, code, status = meaning
    if client.party.name == "py03":
        assert caught.value.code == (code if client.party.binding == "JSONRPC" else status), str(caught.value)
    else:
        assert caught.value.error == f"{word}Error", str(caught.value)


def test_the_card_is_found_and_understood(client: Client, party: Party) -> None:
    card = client("card")
    assert (card["name"], card["version"], card["streaming"]) == ("Interop", "1.0.0", True)
    assert card["skills"] == ["message", "work"]
    bindings = {binding for binding, version in card["interfaces"] if version and version.startswith(party.version)}
    assert {"JSONRPC", "HTTP+JSON"} <= bindings


@pytest.mark.proves("001-d1")
def test_a_blocking_send_brings_the_finished_task(client: Client) -> None:
    task = client("send", parts=words("echo hello"))
    assert (task["kind"], task["state"]) == ("task", "completed")
    assert artifact_text(task) == "echo: hello"
    assert task["task"] and task["context"]


def test_a_direct_answer_is_a_message_and_no_task(client: Client) -> None:
    message = client("send", parts=words("message hello"))
    assert (message["kind"], message["parts"]) == ("message", words("message hello"))
    streamed = client("stream", parts=words("message hello"))["events"]
    assert [(event["kind"], event["parts"]) for event in streamed] == [("message", words("message hello"))]


@pytest.mark.proves("001-d2")
def test_a_stream_brings_the_task_every_chunk_and_the_end(client: Client, party: Party) -> None:
    result = client("stream", parts=words("count 12"))
    events = result["events"]
    assert result["dropped"] is None
    assert events[0]["kind"] == "task"
    assert chunks_in(events) == CHUNKS
    pieces = [event for event in events if event["kind"] == "artifact"]
    assert len({piece["artifact"] for piece in pieces}) == 1
    if party.label != "js03-rest":  # that client drops the flag
        assert [piece["append"] for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    assert [piece["last"] for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert events[-1]["kind"] == "status" and events[-1]["state"] == "completed"
    assert events[-1].get("final", True)
    assert artifact_text(client("get", task=events[0]["task"])) == CHUNKS


def test_a_question_is_asked_and_its_answer_finishes_the_same_task(client: Client) -> None:
    asked = client("send", parts=words("ask"))
    assert (asked["state"], asked["said"]) == ("input-required", words("Which city?"))
    done = client("send", parts=words("Paris"), task=asked["task"], context=asked["context"])
    assert (done["task"], done["context"], done["state"]) == (asked["task"], asked["context"], "completed")
    assert artifact_text(done) == "Sunny in Paris"


def test_a_streamed_question_ends_its_stream_and_the_answer_streams_on(client: Client) -> None:
    asked = client("stream", parts=words("ask"))
    assert asked["dropped"] is None
    assert last_state(asked["events"]) == "input-required"
    question = asked["events"][-1]
    assert question["said"] == words("Which city?") and question.get("final", True)
    answered = client("stream", parts=words("Rome"), task=question["task"])
    assert last_state(answered["events"]) == "completed"
    assert answered["events"][0]["task"] == question["task"]
    assert artifact_text(client("get", task=question["task"])) == "Sunny in Rome"


def test_a_running_task_is_cancelled_and_stays_cancelled(client: Client, party: Party) -> None:
    running = client("send", parts=words("hold"), wait=False)
    assert running["state"] in ("submitted", "working")
    assert client("cancel", task=running["task"])["state"] == "canceled"
    if party.version == "1.0":  # asking again changes nothing there; in 0.3 it is an error
        assert client("cancel", task=running["task"])["state"] == "canceled"
    else:
        refuses(client, NOT_CANCELABLE, "cancel", task=running["task"])
    assert client("get", task=running["task"])["state"] == "canceled"


def test_a_finished_task_takes_neither_cancel_nor_messages(client: Client) -> None:
    done = client("send", parts=words("echo over"))
    refuses(client, NOT_CANCELABLE, "cancel", task=done["task"])
    refuses(client, UNSUPPORTED, "send", parts=words("more"), task=done["task"])
    assert client("get", task=done["task"]) == done


def test_subscribing_to_a_finished_task_gets_what_the_version_says(client: Client, party: Party) -> None:
    done = client("send", parts=words("echo over"))
    if party.version == "1.0":
        refuses(client, UNSUPPORTED, "resubscribe", task=done["task"])
    else:
        assert client("resubscribe", task=done["task"]) == {"events": [done], "dropped": None}


def test_cancelling_a_streamed_task_ends_its_stream_honestly(client: Client) -> None:
    result = client("stream", parts=words("hold"), cancel_it=True)
    assert result["dropped"] is None
    assert last_state(result["events"]) == "canceled"


def test_rejected_and_failed_tasks_say_why(client: Client) -> None:
    for word, state, reason in (("reject", "rejected", "Not today"), ("fail", "failed", "It broke")):
        task = client("send", parts=words(word))
        assert (task["state"], task["said"]) == (state, words(reason))


def test_a_client_comes_back_after_its_socket_dropped_and_misses_nothing(party: Party, server: str) -> None:
    port = urlsplit(server).port
    assert port is not None
    with Severing(port, b"<5>") as wire, connected(party, wire.url) as client:
        before = client("stream", parts=words("count 12"))
        assert wire.cut.is_set() and before["dropped"], before
        task = before["events"][0]["task"]
        after = client("resubscribe", task=task)
        assert after["dropped"] is None
        snapshot, *rest = after["events"]
        assert (snapshot["kind"], snapshot["task"]) == ("task", task)
        # Snapshot and tail meet without a gap and without a repeat.
        assert artifact_text(snapshot) + chunks_in(rest) == CHUNKS
        assert artifact_text(snapshot).startswith(chunks_in(before["events"]))
        assert last_state(after["events"]) == "completed"
        assert artifact_text(client("get", task=task)) == CHUNKS


def test_getting_a_task_limits_its_history(client: Client) -> None:
    asked = client("send", parts=words("ask"))
    client("send", parts=words("Oslo"), task=asked["task"])
    whole = client("get", task=asked["task"], history=10)
    assert [text_of(message["parts"]) for message in whole["history"] if message["role"] == "user"] == ["ask", "Oslo"]
    assert client("get", task=asked["task"], history=1)["history"] == whole["history"][-1:]


def test_a_task_nobody_made_is_not_found(client: Client) -> None:
    for operation in ("get", "cancel"):
        refuses(client, NOT_FOUND, operation, task="nobody-made-this")
    with pytest.raises(Refused):  # three of the clients have no word of their own for an error before a stream
        client("resubscribe", task="nobody-made-this")
    refuses(client, NOT_FOUND, "send", parts=words("hello"), task="nobody-made-this")


def test_every_part_kind_is_read_from_the_agent(client: Client, party: Party) -> None:
    [artifact] = client("send", parts=words("parts"))["artifacts"]
    assert artifact["name"] == "parts"
    assert artifact["parts"] == shown(EVERY_KIND, party)


def test_every_part_kind_reaches_the_agent(client: Client, party: Party) -> None:
    [artifact] = client("send", parts=[{"text": "mirror"}, *EVERY_KIND])["artifacts"]
    assert artifact["parts"] == shown(EVERY_KIND, party)


@pytest.mark.parametrize("party", LISTERS, ids=lambda party: party.label, indirect=True, scope="module")
def test_tasks_are_listed_by_context_page_by_page(client: Client) -> None:
    first = client("send", parts=words("echo one"))
    context = first["context"]
    ids = [first["task"], *(client("send", parts=words(f"echo {n}"), context=context)["task"] for n in (2, 3))]
    page = client("list", context=context, size=2)
    rest = client("list", context=context, size=2, token=page["next"])
    assert [task["task"] for task in page["tasks"] + rest["tasks"]] == ids[::-1]
    assert (page["total"], rest["next"]) == (3, "")
    assert all(not task["artifacts"] for task in page["tasks"])
    whole = client("list", context=context, artifacts=True)
    assert [artifact_text(task) for task in whole["tasks"]] == ["echo: 3", "echo: 2", "echo: one"]


def test_webhooks_are_set_shown_listed_and_deleted(client: Client, party: Party) -> None:
    task = client("send", parts=words("echo hello"))["task"]
    url = f"http://127.0.0.1:{free_port()}/hook"  # nobody is there, and nobody needs to be
    mine = {"task": task, "id": "mine", "url": url, "secret": ""}
    assert client("hook", task=task, url=url, id="mine", token="s3cr3t") == mine
    assert client("hooked", task=task, id="mine") == mine
    refuses(client, NOT_FOUND, "hook", task="nobody-made-this", url=url, id="mine", token="")
    if party.name == "py03" or party.label == "py10-rest@0.3":
        return  # these clients have no words for the rest
    other = client("hook", task=task, url=f"{url}/2", id="", token="")
    assert other["id"] not in ("", "mine")
    assert client("hooks", task=task) == [mine, other]
    for _ in range(2):
        client("unhook", task=task, id="mine")
        assert client("hooks", task=task) == [other]
    refuses(client, NOT_FOUND, "hooked", task=task, id="mine")
