"""Cortex's streams, byte for byte, and its own client from the card to the cancel."""

import threading
from collections.abc import Iterator

import pytest

from tests.seeds import cortex_client as client
from tests.seeds.calling import JSON, Frame, shown, streaming
from tests.seeds.test_cortex import AGENT, RPC, UNKNOWN, said, text
from tests.serving import serving


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Every mount, superset frames."""
    folder = tmp_path_factory.mktemp("cortex-streams")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cortex-literal-streams")
    options = ("--profile", "cortex", "--store", "memory://", "--set", f"frames={RPC}=literal")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture(params=["base", "literal"])
def either(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture
def card(either: str) -> JSON:
    return client.fetch_agent_card(either)


def frames_of(base: str, *steps: str) -> list[Frame]:
    with streaming(base, RPC, "SendStreamingMessage", said(*steps), id="q") as stream:
        return stream.rest()


def known_of(frames: list[Frame]) -> dict[str, str]:
    task = frames[0].json()["result"]["task"]
    artifact = next(frame.json()["artifact"]["artifactId"] for frame in frames if '"artifact":' in frame.data)
    return {"task": task["id"], "context": task["contextId"], "artifact": artifact}


# --- what a stream says ---------------------------------------------------------------------------------------


@pytest.mark.proves("001-5", "001-9", "001-10", "001-13", "001-14", "001-15", "001-16", "001-17", "001-c4")
def test_literal_frames_are_those_of_the_page_to_the_byte(literal: str) -> None:
    *frames, done = frames_of(literal, "whole Hello.")
    known = known_of(frames)
    asked = (
        '{"messageId":"m","contextId":"<context>","taskId":"<task>","role":"user","parts":[{"text":"whole Hello."}]}'
    )
    working = '{"state":"TASK_STATE_WORKING","timestamp":"<time>"}'
    assert [shown("\n".join(frame.lines), **known) for frame in frames] == [
        'id: <task>.1\ndata: {"jsonrpc":"2.0","id":"q","result":{"task":{"id":"<task>","contextId":"<context>",'
        f'"status":{working},"artifacts":[],"history":[{asked}]}}}}}}',
        f'id: <task>.2\ndata: {{"type":"TaskStatusUpdateEvent","taskId":"<task>","status":{working},"final":false}}',
        'id: <task>.3\ndata: {"type":"TaskArtifactUpdateEvent","taskId":"<task>",'
        '"artifact":{"artifactId":"<artifact>","name":"answer","parts":[{"text":"Hello."}]},"lastChunk":true}',
        'id: <task>.4\ndata: {"type":"TaskStatusUpdateEvent","taskId":"<task>",'
        '"status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"},"final":true}',
    ]
    assert done.lines == ("[DONE]",)


@pytest.mark.proves("001-13", "001-14", "001-15", "001-16", "001-17", "001-d2", "001-c4")
def test_superset_frames_are_official_responses_with_the_members_of_the_page(base: str) -> None:
    *frames, done = frames_of(base, "whole Hello.")
    known = known_of(frames)
    status = '{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"}'
    artifact = '{"artifactId":"<artifact>","name":"answer","parts":[{"text":"Hello."}]}'
    home = '"taskId":"<task>","contextId":"<context>"'
    assert [shown(frame.data, **known) for frame in frames[2:]] == [
        f'{{"jsonrpc":"2.0","id":"q","result":{{"artifactUpdate":{{{home},"artifact":{artifact},"lastChunk":true}}}},'
        f'"type":"TaskArtifactUpdateEvent","taskId":"<task>","artifact":{artifact},"lastChunk":true}}',
        f'{{"jsonrpc":"2.0","id":"q","result":{{"statusUpdate":{{{home},"status":{status}}}}},'
        f'"type":"TaskStatusUpdateEvent","taskId":"<task>","status":{status},"final":true}}',
    ]
    for frame in frames:
        whole = frame.json()
        assert (whole["jsonrpc"], whole["id"]) == ("2.0", "q") and len(whole["result"]) == 1
    assert done.lines == ("[DONE]",)


@pytest.mark.proves("001-15")
def test_chunks_build_up_one_artifact_and_the_last_says_so(either: str) -> None:
    frames = frames_of(either, "write One ", "write two.")
    chunks = [frame.json() for frame in frames if '"artifact":' in frame.data]
    assert [chunk["artifact"]["parts"][0]["text"] for chunk in chunks] == ["One ", "two.", ""]
    assert [chunk.get("append", False) for chunk in chunks] == [False, True, True]
    assert [chunk.get("lastChunk", False) for chunk in chunks] == [False, False, True]
    assert len({chunk["artifact"]["artifactId"] for chunk in chunks}) == 1


@pytest.mark.proves("001-11", "001-16", "001-17", "001-d6", "S-2-7")
@pytest.mark.parametrize(
    ("step", "ends"),
    [
        ("fail It broke.", "TASK_STATE_FAILED"),
        ("reject Not today.", "TASK_STATE_REJECTED"),
        ("ask Which one?", "TASK_STATE_INPUT_REQUIRED"),
    ],
)
def test_every_stream_ends_with_its_state_and_done(either: str, step: str, ends: str) -> None:
    *_, last, done = frames_of(either, step)
    event = last.json()
    assert (event["type"], event["status"]["state"], event["final"]) == ("TaskStatusUpdateEvent", ends, True)
    assert event["status"]["message"]["parts"] == [{"text": step.partition(" ")[2]}]
    assert done.lines == ("[DONE]",)


@pytest.mark.proves("001-d6")
def test_the_answer_to_a_question_may_be_streamed(either: str) -> None:
    *_, asked, _ = frames_of(either, "ask Which one?")
    answer = said("the blue one", taskId=asked.json()["taskId"])
    with streaming(either, RPC, "SendStreamingMessage", answer) as stream:
        first, *_, last, done = stream.rest()
    assert first.json()["result"]["task"]["id"] == asked.json()["taskId"]
    assert last.json()["status"]["state"] == "TASK_STATE_COMPLETED" and done.lines == ("[DONE]",)


# --- its own client -------------------------------------------------------------------------------------------


@pytest.mark.proves("001-33", "001-d1", "001-d2")
def test_its_client_sends_reads_and_lists(card: JSON) -> None:
    assert client.interface(card)["url"].endswith("/a2a")
    task = client.send_message(card, said("write Hello.", context="client"))
    assert (task["status"]["state"], text(task)) == ("TASK_STATE_COMPLETED", "Hello.")
    assert client.get_task(card, task["id"])["artifacts"] == task["artifacts"]
    again = client.send_message(card, said("recall", context="client"))
    assert text(again) == "[user]: write Hello.\n[agent]: Hello."
    listed: list[JSON] = []
    request: JSON = {"contextId": "client", "pageSize": 1}
    while True:
        page = client.list_tasks(card, request)
        listed += page["tasks"]
        if not page.get("nextPageToken"):
            break
        request["pageToken"] = page["nextPageToken"]
    assert [text(each) for each in listed] == [text(again), "Hello."]


@pytest.mark.proves("001-33", "001-d2")
def test_its_client_streams_text_and_states(card: JSON) -> None:
    chunks: list[str] = []
    states: list[tuple[str, str, bool]] = []
    request = said("write One ", "say Thinking", "write two.")
    task = client.send_streaming_message(card, request, chunks.append, lambda *seen: states.append(seen))
    assert chunks == ["One ", "two."]
    assert task["status"]["state"] == "TASK_STATE_WORKING"
    assert states == [
        (task["id"], "TASK_STATE_WORKING", False),
        (task["id"], "TASK_STATE_WORKING", False),
        (task["id"], "TASK_STATE_COMPLETED", True),
    ]
    assert text(client.get_task(card, task["id"])) == "One two."


@pytest.mark.proves("001-33")
def test_its_client_cancels_what_it_streams(card: JSON) -> None:
    states: list[str] = []
    request = said("work streamed", context="cancelled")

    def follow() -> None:
        client.send_streaming_message(card, request, lambda _: None, lambda _, state, final: states.append(state))

    following = threading.Thread(target=follow)
    following.start()
    while not (running := client.list_tasks(card, {"contextId": "cancelled"})["tasks"]):
        assert following.is_alive()
    cancelled = client.cancel_task(card, running[0]["id"])
    following.join(20)
    assert (cancelled["id"], cancelled["status"]["state"]) == (running[0]["id"], "TASK_STATE_CANCELED")
    assert not following.is_alive() and states[-1] == "TASK_STATE_CANCELED"


@pytest.mark.proves("001-33", "001-d8")
def test_its_client_sees_errors(card: JSON) -> None:
    for call_it in (client.get_task, client.cancel_task):
        with pytest.raises(client.CortexError, match="A2A RPC error -32001"):
            call_it(card, UNKNOWN)
    task = client.send_message(card, said("fail Out of paper"))
    assert task["status"]["message"]["parts"] == [{"text": "Out of paper"}]
    with pytest.raises(client.CortexError, match="A2A RPC error -32002"):
        client.cancel_task(card, task["id"])
