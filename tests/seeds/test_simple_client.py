"""simple_a2a's own client against us: what its example programs do, read by its rules."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.seeds.gem import MADE_UP, Gem, GemError, Read, texts, user
from tests.seeds.test_simple import AGENT
from tests.serving import serving


@pytest.fixture(scope="module", params=["superset", "literal"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("gem")
    options = ("--store", "memory://", "--set", f"frames=/={request.param}")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture
def gem(url: str) -> Gem:
    return Gem(url)


def text(task: Read) -> str:
    return "".join(texts(artifact.parts) for artifact in task.artifacts)


def told(events: list[Read]) -> str:
    return "".join(texts(event.artifact.parts) for event in events if event.kind == "Artifact")


pytestmark = pytest.mark.proves("002-d20")


def test_the_basics(gem: Gem) -> None:
    card = gem.agent_card()
    assert (card.name, card.version, card.capabilities.streaming) == ("Simple agent", "1.0", True)
    assert [skill.name for skill in card.skills] == ["Play", "Answer"]
    assert all(each.type == "json-rpc" and each.url and each.version for each in card.interfaces)
    tasks = [gem.send_task(user(who)) for who in ("world", "Ruby developers", "A2A protocol")]
    assert [(task.status.state, text(task)) for task in tasks] == [
        ("completed", "world"),
        ("completed", "Ruby developers"),
        ("completed", "A2A protocol"),
    ]
    for task in tasks:
        assert MADE_UP not in (task.id, task.context_id, task.status.timestamp, task.artifacts[0].artifact_id)
        assert gem.get_task(task.id) == task
    listed = gem.list_tasks()
    assert [task for task in listed if task in tasks] == tasks[::-1]
    with pytest.raises(GemError, match="Task not found"):
        gem.get_task("no-such-task-id")
    with pytest.raises(GemError, match="cannot be canceled"):
        gem.cancel_task(tasks[0].id)


def test_streaming(gem: Gem) -> None:
    events = list(gem.send_subscribe(user("write The \nwrite God \nsay Thinking\nwrite particle.")))
    assert told(events) == "The God particle."
    states = [event.status.state for event in events if event.kind == "Status"]
    assert states == ["working", "working", "completed"]
    assert [bool(event.members.get("final")) for event in events] == [False] * (len(events) - 1) + [True]
    assert len({event.task_id for event in events}) == 1 and events[0].task_id
    said = [event.status.message for event in events if event.kind == "Status" and event.status.message]
    assert [(message.role, texts(message.parts)) for message in said] == [("agent", "Thinking")]


def test_joining_a_stream(gem: Gem) -> None:
    stream = gem.send_subscribe(user("write One \nwait join\nwrite two."))
    first = [next(stream), next(stream)]
    joined = gem.resubscribe(first[0].task_id)
    snapshot = next(joined)
    assert isinstance(snapshot, dict), "the task has no type and stays as it is"
    assert snapshot["status"]["state"] == "working" and len(snapshot["artifacts"]) == 1
    gem.send_task(user("open join"))
    rest, same = list(stream), list(joined)
    assert rest == same and told(rest) == "two." and rest[-1].final is True
    (over,) = gem.resubscribe(first[0].task_id)
    assert over["error"]["code"] == -32004


def test_cancelling_one_of_three(gem: Gem) -> None:
    streams = {name: gem.send_subscribe(user(f"write {name} \nwait three\nwrite done.")) for name in "ABC"}
    begun = {name: [next(stream), next(stream)] for name, stream in streams.items()}
    assert gem.cancel_task(begun["B"][0].task_id).status.state == "canceled"
    gem.send_task(user("open three"))
    with ThreadPoolExecutor(3) as pool:
        ends = dict(zip("ABC", pool.map(list, streams.values()), strict=True))
    assert {name: end[-1].status.state for name, end in ends.items()} == {
        "A": "completed",
        "B": "canceled",
        "C": "completed",
    }
    assert told(begun["A"] + ends["A"]) == "A done."


@pytest.mark.parametrize("by", ["context", "task"])
def test_interrupted_states(gem: Gem, by: str) -> None:
    first = gem.send_task(user("ask What would you like to order?", contextId=f"order-{by}"))
    assert (first.status.state, texts(first.status.message.parts)) == (
        "input_required",
        "What would you like to order?",
    )
    if by == "context":
        second = gem.send_task(user("pasta", contextId=f"order-{by}"))
    else:
        second = gem.send_task(user("pasta"), id=first.id)
    assert (second.status.state, text(second)) == ("completed", "Heard 'pasta'. ")
    states = [gem.send_task(user(said, contextId=f"vault-{by}")) for said in ("auth Token?", "wrong", "open-sesame")]
    assert [task.status.state for task in states] == ["auth_required", "auth_required", "completed"]


def test_an_interrupted_stream_ends_and_its_answer_is_streamed(gem: Gem) -> None:
    for question, answer in (("ask Which?", "this"), ("auth Token?", "open-sesame")):
        events = list(gem.send_subscribe(user(question)))
        assert events[-1].final is True and events[-1].status.state.endswith("_required")
        rest = list(gem.send_subscribe(user(answer), id=events[-1].task_id))
        assert rest[-1].status.state == "completed"


def test_parts_of_every_kind(gem: Gem) -> None:
    task = gem.send_task(user("write Words.\ndata 3\nfile a.csv\nlink https://x.example/y.png"))
    found = [artifact.parts[0] for artifact in task.artifacts]
    assert [[name for name in ("text", "data", "raw", "url") if part.members[name] is not None] for part in found] == [
        ["text"],
        ["data"],
        ["raw"],
        ["url"],
    ]
    assert (found[1].data, found[2].raw, found[2].filename) == ({"number": 3}, "AP9hLmNzdg==", "a.csv")


def test_headers_of_its_own(url: str) -> None:
    assert Gem(url, {"A2A-Version": "1.0"}).send_task(user("hi")).status.state == "completed"
    with pytest.raises(GemError, match=r"use 1\.0, 0\.3"):
        Gem(url, {"A2A-Version": "2.0"}).send_task(user("hi"))
