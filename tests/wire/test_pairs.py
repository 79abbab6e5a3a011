"""The same fact in two versions: what one says, the other understands, number for number."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.facts import Chunk, Entry, Settled
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import Operation, SendMessage, TaskRef
from dragoman.model.tasks import Task, TaskState, TaskStatus, View
from dragoman.wire import k03, shapes03
from dragoman.wire.exchange import Exchange, Inbound, Reply
from dragoman.wire.k03 import K03
from dragoman.wire.p03 import P03, P03_ONCE
from dragoman.wire.p10 import P10, READERS
from dragoman.wire.settings import WireSettings
from tests.wire.wording import asked, call, receive, visit

WIRE = WireSettings()
SEND_10 = {
    "message": {
        "messageId": "u-3",
        "role": "ROLE_USER",
        "parts": [{"text": "Trim the edges"}, {"raw": "R0lGOA==", "filename": "fox.gif", "mediaType": "image/gif"}],
    },
    "configuration": {"acceptedOutputModes": ["image/gif"], "historyLength": 4},
}
SEND_K03 = {
    "message": {
        "kind": "message",
        "messageId": "u-3",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "Trim the edges"},
            {"kind": "file", "file": {"bytes": "R0lGOA==", "name": "fox.gif", "mimeType": "image/gif"}},
        ],
    },
    "configuration": {"acceptedOutputModes": ["image/gif"], "historyLength": 4, "blocking": True},
}
SEND_P03 = {
    "message": {
        "messageId": "u-3",
        "role": "ROLE_USER",
        "content": [
            {"text": "Trim the edges"},
            {"file": {"fileWithBytes": "R0lGOA==", "name": "fox.gif", "mimeType": "image/gif"}},
        ],
    },
    "configuration": {"acceptedOutputModes": ["image/gif"], "historyLength": 4, "blocking": True},
}


def test_a_send_means_the_same_in_every_version() -> None:
    new = asked(call("SendMessage", SEND_10), SendMessage)
    assert asked(call("message/send", SEND_K03), SendMessage) == new
    assert asked(visit("POST", "/v1/message:send", SEND_P03), SendMessage) == new
    assert asked(visit("POST", "/message:send", SEND_10), SendMessage) == new


REF = TaskRef("u", "t-3", "c-2")
DONE = Task(
    id="t-3",
    context_id="c-2",
    status=TaskStatus(state=TaskState.CANCELED, timestamp="2026-03-04T05:06:07.800Z"),
    artifacts=(Artifact(artifact_id="a-1", name="fox.gif", parts=(Part(url="https://f.example/x", filename="x"),)),),
    history=(Message(message_id="u-3", context_id="c-2", task_id="t-3", role=Role.USER, parts=(Part(text="Trim"),)),),
)
HISTORY_10 = {
    "messageId": "u-3",
    "contextId": "c-2",
    "taskId": "t-3",
    "role": "ROLE_USER",
    "parts": [{"text": "Trim"}],
}
STAMP = {"timestamp": "2026-03-04T05:06:07.800Z"}
TASKS: list[tuple[Any, dict[str, Any]]] = [
    (
        P10,
        {
            "id": "t-3",
            "contextId": "c-2",
            "status": {"state": "TASK_STATE_CANCELED", **STAMP},
            "artifacts": [
                {"artifactId": "a-1", "name": "fox.gif", "parts": [{"url": "https://f.example/x", "filename": "x"}]}
            ],
            "history": [HISTORY_10],
        },
    ),
    (
        K03,
        {
            "kind": "task",
            "id": "t-3",
            "contextId": "c-2",
            "status": {"state": "canceled", **STAMP},
            "artifacts": [
                {
                    "artifactId": "a-1",
                    "name": "fox.gif",
                    "parts": [{"kind": "file", "file": {"uri": "https://f.example/x", "name": "x"}}],
                }
            ],
            "history": [{**HISTORY_10, "kind": "message", "role": "user", "parts": [{"kind": "text", "text": "Trim"}]}],
        },
    ),
    (
        P03,
        {
            "id": "t-3",
            "contextId": "c-2",
            "status": {"state": "TASK_STATE_CANCELLED", **STAMP},
            "artifacts": [
                {
                    "artifactId": "a-1",
                    "name": "fox.gif",
                    "parts": [{"file": {"fileWithUri": "https://f.example/x", "name": "x"}}],
                }
            ],
            "history": [
                {key: value for key, value in HISTORY_10.items() if key != "parts"} | {"content": [{"text": "Trim"}]}
            ],
        },
    ),
]


@pytest.mark.parametrize(("dialect", "shown"), TASKS, ids=["1.0", "0.3", "0.3 REST"])
def test_a_task_is_spelled_by_each_version_in_its_own_way(dialect: Any, shown: dict[str, Any]) -> None:
    assert json.loads(dialect.task(View(uid="u", seq=1, task=DONE))) == shown


@pytest.mark.parametrize(
    ("dialect", "chunk", "end"),
    [
        (
            P10,
            {
                "artifactUpdate": {
                    "artifact": {"artifactId": "a", "parts": [{"text": " end."}]},
                    "append": True,
                    "lastChunk": True,
                }
            },
            {"statusUpdate": {"status": {"state": "TASK_STATE_CANCELED"}}},
        ),
        (
            K03,
            {
                "kind": "artifact-update",
                "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": " end."}]},
                "append": True,
                "lastChunk": True,
            },
            {"kind": "status-update", "status": {"state": "canceled"}, "final": True},
        ),
        (
            P03,
            {
                "artifactUpdate": {
                    "artifact": {"artifactId": "a", "parts": [{"text": " end."}]},
                    "append": True,
                    "lastChunk": True,
                }
            },
            {"statusUpdate": {"status": {"state": "TASK_STATE_CANCELLED"}, "final": True}},
        ),
    ],
    ids=["1.0", "0.3", "0.3 REST"],
)
def test_events_are_spelled_by_each_version_in_its_own_way(dialect: Any, chunk: Any, end: Any) -> None:
    encode = dialect.events(REF)
    piece = Artifact(artifact_id="a", parts=(Part(text=" end."),))
    home = {"taskId": "t-3", "contextId": "c-2"}

    def housed(event: dict[str, Any]) -> dict[str, Any]:
        (name, inner), *others = event.items()
        return {name: {**inner, **home}} if not others else {**event, **home}

    assert json.loads(encode(Chunk(artifact=piece, append=True, last_chunk=True), False)) == housed(chunk)
    assert json.loads(encode(Settled(status=TaskStatus(state=TaskState.CANCELED)), True)) == housed(end)


# --- generated ----------------------------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
plain_json = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, plain_json, max_size=3)
metadata = st.none() | objects
described = st.fixed_dictionaries({"media_type": words, "filename": words, "metadata": metadata})
files = st.builds(lambda raw, more: Part(raw=raw, **more), st.binary(max_size=12), described) | st.builds(
    lambda url, more: Part(url=url, **more), words, described
)
# Where 0.3 has a place for everything: text and data without a media type.
parts_03 = (
    st.builds(lambda text, metadata: Part(text=text, metadata=metadata), words, metadata)
    | st.builds(lambda data, metadata: Part(data=data, metadata=metadata), plain_json, st.none() | objects.filter(bool))
    | files
)
parts_10 = (
    parts_03
    | st.builds(lambda text, more: Part(text=text, **more), words, described)
    | st.builds(lambda data, more: Part(data=data, **more), plain_json, described)
)


def messages(parts: st.SearchStrategy[Part], references: bool = True) -> st.SearchStrategy[Message]:
    return st.builds(
        Message,
        message_id=ids,
        context_id=st.just("") | ids,
        task_id=st.just("") | ids,
        role=st.sampled_from(Role),
        parts=st.lists(parts, min_size=1, max_size=4).map(tuple),
        metadata=metadata,
        extensions=st.lists(words, max_size=2).map(tuple),
        reference_task_ids=st.lists(ids, max_size=2).map(tuple) if references else st.just(()),
    )


def exact(value: object) -> bytes:
    """Equal bytes, so that 1 and 1.0 and -0.0 are told apart."""
    return msgspec.json.encode(value)


def sent(operation: Operation) -> Message:
    assert isinstance(operation, SendMessage)
    return operation.message


def spoken(encoded: bytes) -> bytes:
    """A result's message as the parameters of a send."""
    told = msgspec.json.decode(encoded)
    return msgspec.json.encode(told if "message" in told else {"message": told})


def snake(value: Any, *, keep: frozenset[str] = frozenset({"metadata", "data"})) -> Any:
    if isinstance(value, list):
        return [snake(each) for each in value]
    if isinstance(value, dict):
        return {
            "".join("_" + char.lower() if char.isupper() else char for char in key): inner
            if key in keep
            else snake(inner)
            for key, inner in value.items()
        }
    return value


@given(messages(parts_10))
def test_what_1_0_writes_it_reads_back_unchanged_by_either_path(message: Message) -> None:
    params = spoken(P10.item(message))
    assert exact(sent(P10.read("SendMessage", params, WIRE))) == exact(message)
    loose = msgspec.json.encode(snake(msgspec.json.decode(params)))
    assert exact(sent(P10.read("SendMessage", loose, WIRE))) == exact(message)


@given(messages(parts_03))
def test_what_0_3_writes_it_reads_back_unchanged_by_either_path(message: Message) -> None:
    params = spoken(K03.item(message))
    assert exact(sent(K03.read("SendMessage", params, WIRE))) == exact(message)
    assert exact(sent(K03.read_fields("SendMessage", msgspec.json.decode(params), WIRE, False))) == exact(message)


@given(messages(parts_03, references=False))
def test_what_0_3_writes_over_http_it_reads_back_unchanged(message: Message) -> None:
    params = spoken(P03_ONCE.item(message))
    assert exact(sent(P03_ONCE.read("SendMessage", params, WIRE))) == exact(message)


@given(messages(parts_03))
def test_a_message_survives_the_way_through_both_versions(message: Message) -> None:
    old = sent(K03.read("SendMessage", spoken(K03.item(message)), WIRE))
    new = sent(P10.read("SendMessage", spoken(P10.item(old)), WIRE))
    back = sent(K03.read("SendMessage", spoken(K03.item(new)), WIRE))
    assert exact(back) == exact(message)


artifacts = st.builds(
    Artifact,
    artifact_id=ids,
    name=words,
    description=words,
    parts=st.lists(parts_10, min_size=1, max_size=3).map(tuple),
    metadata=metadata,
    extensions=st.lists(words, max_size=2).map(tuple),
)
tasks = st.builds(
    Task,
    id=ids,
    context_id=ids,
    status=st.builds(TaskStatus, state=st.sampled_from(TaskState), message=st.none() | messages(parts_10)),
    artifacts=st.lists(artifacts, max_size=2).map(tuple),
    history=st.lists(messages(parts_10), max_size=2).map(tuple),
    metadata=metadata,
)


@settings(max_examples=50)
@given(tasks)
def test_a_task_is_written_whole(task: Task) -> None:
    view = View(uid="u", seq=1, task=task)
    written = msgspec.json.decode(P10.task(view), type=Task)
    assert exact(written) == exact(task)
    old = msgspec.json.decode(K03.task(view), type=shapes03.TaskShape)
    assert exact(old) == exact(shapes03.task_shape(task))


# --- nothing gets through that should not -------------------------------------------------------------------


def answered(found: Exchange | Reply) -> None:
    """Either understood, or refused with JSON; never anything else."""
    if isinstance(found, Reply):
        json.loads(found.body.removeprefix(b"event: error\ndata: "))
        assert found.status in (200, 400, 404, 405)


@settings(max_examples=300)
@given(st.sampled_from([*READERS, *k03.METHODS]), plain_json | objects, st.sampled_from(["", "1.0", "0.3"]))
def test_no_parameters_escape_the_reader(method: str, params: object, version: str) -> None:
    answered(call(method, params, version=version))


keys = st.sampled_from(
    [
        "message",
        "messageId",
        "role",
        "parts",
        "content",
        "text",
        "raw",
        "data",
        "file",
        "kind",
        "bytes",
        "metadata",
        "id",
    ]
)
leaves = st.none() | numbers | st.sampled_from(["text", "file", "data", "user", "ROLE_USER", "message", "AP8=", "x"])
near = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5), max_leaves=25
)


@settings(max_examples=300)
@given(
    st.sampled_from(
        ["/message:send", "/v1/message:send", "/v1/tasks/t/pushNotificationConfigs", "/tasks/t:cancel", "/"]
    ),
    near,
)
def test_no_body_that_is_nearly_right_escapes_the_reader(path: str, body: object) -> None:
    answered(visit("POST", path, {"message": body, "config": body, "jsonrpc": "2.0", "method": "message/send"}))
    answered(visit("POST", path, body))
    answered(call("message/send", {"message": body}))
    answered(call("SendMessage", {"message": body}))


@settings(max_examples=300)
@given(st.binary(max_size=60), st.sampled_from(["/", "/message:send", "/v1/message:send", "/tasks/t:cancel"]))
def test_no_bytes_escape_the_reader(body: bytes, path: str) -> None:
    headers = {"content-type": "application/json"}
    answered(receive(Inbound("POST", path, "", headers, body), WIRE))


@settings(max_examples=200)
@given(
    st.sampled_from(["GET", "POST", "DELETE"]),
    st.text(st.characters(codec="ascii"), max_size=30),
    st.text(st.characters(codec="ascii"), max_size=30),
)
def test_no_path_or_query_escapes_the_classifier(verb: str, path: str, query: str) -> None:
    answered(receive(Inbound(verb, "/" + path, query, {}, b""), WIRE))


def test_entries_are_shared_between_versions() -> None:
    entry = Entry(1, Chunk(artifact=Artifact(artifact_id="a", parts=(Part(text="x"),))))
    for method, message in (("SendStreamingMessage", SEND_10), ("message/stream", SEND_K03)):
        found = call(method, message)
        assert isinstance(found, Exchange)
        assert b"artifact" in found.frames(REF, [entry], False)
