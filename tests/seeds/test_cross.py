"""A task made in one dialect is read, streamed, answered and cancelled in every other, in that one's words."""

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.seeds.calling import ask, envelope
from tests.seeds.spoken import BY_NAME, TONGUES, V01, OverHttp, words
from tests.seeds.tongues import Refused, Seen, Tongue
from tests.serving import serving

AGENT = "tests/seeds/agents/cross.py"
PAIRS = [(one, other) for one in TONGUES for other in TONGUES]
CALLERS = [tongue for tongue in TONGUES if not isinstance(tongue, OverHttp)]
# 0.3 and 0.1 have no number of their own for it.
VERSION = dict.fromkeys((tongue.name for tongue in CALLERS), -32009) | {
    "0.3": -32603,
    "0.1": -32603,
    "simple_a2a": -32008,
}
# Variations of 0.3 that only add to it, or only name things.
ALIKE = {("coding-agent", "0.3"), ("A2X", "0.3")}
_gates = itertools.count(1)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cross")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0].name} > {pair[1].name}")
def pair(request: pytest.FixtureRequest) -> tuple[Tongue, Tongue]:
    return request.param


def again(base: str, tongue: Tongue, task: Seen, whose: Tongue, code: int) -> None:
    """Cancel what is over: an error of that number, or the task unchanged."""
    if code:
        with pytest.raises(Refused) as refused:
            tongue.cancels(base, task, whose)
        assert refused.value.code == code
    else:
        assert tongue.cancels(base, task, whose).state == task.state


@pytest.mark.proves("S-6-9")
def test_a_working_task_is_read_and_streamed(base: str, pair: tuple[Tongue, Tongue]) -> None:
    one, other = pair
    whose = words(other, made_by=one)
    gate = f"g{next(_gates)}"
    with one.streams(base, f"write first \nwait {gate}\nwrite second") as made:
        assert made.until(text="first ")
        assert made.seen[0].kind == one.begins
        id = made.seen[0].id
        assert all(event.id == id for event in made.seen)
        read = other.reads(base, made.seen[0], whose)
        assert (read.id, read.state, read.text) == (id, "working", "first ")
        with other.subscribes(base, read, whose) as followed:
            begun = followed.next()
            assert begun is not None and (begun.kind, begun.id, begun.state) == (whose.resumes, id, "working")
            BY_NAME["1.0"].sends(base, f"open {gate}")
            for events in (made, followed):
                assert events.until(text="second")
                end = events.until(state="completed")
                assert end.kind == "status" and end.final
                assert events.rest() == [] and events.behind == events.whose.behind
                assert "".join(event.text for event in events.seen) == "first second"
    done = other.reads(base, read, whose)
    assert (done.id, done.context, done.state, done.text) == (id, read.context, "completed", "first second")
    code = other.cancel_completed if whose is other else whose.cancel_completed
    again(base, other, done, whose, code)


def test_a_question_is_answered(base: str, pair: tuple[Tongue, Tongue]) -> None:
    one, other = pair
    whose = words(other, made_by=one)
    asked = one.sends(base, "write So: \nask Which one?")
    assert (asked.kind, asked.state, asked.said) == ("task", "input_required", "Which one?")
    read = other.reads(base, asked, whose)
    assert (read.id, read.context, read.state, read.said) == (asked.id, asked.context, "input_required", "Which one?")
    done = other.answers(base, "that one", read)
    assert (done.id, done.context, done.state) == (asked.id, asked.context, "completed")
    assert done.text == "So: Heard 'that one'. "
    assert one.reads(base, asked, words(one, made_by=one)).text == done.text


def test_a_streamed_question_is_answered_from_elsewhere(base: str, pair: tuple[Tongue, Tongue]) -> None:
    one, other = pair
    with one.streams(base, "ask Which one?") as made:
        asked = made.until(state="input_required")
        assert asked.kind == "status" and asked.said == "Which one?"
        assert asked.final is one.ends_at_question
        if one.ends_at_question:
            assert made.rest() == [] and made.behind == one.behind
        task = other.reads(base, asked, words(other, made_by=one))
        with other.streaming(base, other.stream, other.answering("that one", task)) as answered:
            assert answered.until(state="completed").final
            assert answered.rest() == []
            assert {event.id for event in answered.seen} == {asked.id}
        if not one.ends_at_question:
            assert made.until(state="completed").final and made.rest() == []


@pytest.mark.proves("S-6-1")
def test_a_running_task_is_cancelled(base: str, pair: tuple[Tongue, Tongue]) -> None:
    one, other = pair
    whose = words(other, made_by=one)
    with one.streams(base, f"write first \nwait never{next(_gates)}") as made:
        begun = made.until(text="first ")
        ended = other.cancels(base, begun, whose)
        assert (ended.kind, ended.id, ended.state, ended.text) == ("task", begun.id, "canceled", "first ")
        assert made.until(state="canceled").final
        assert made.rest() == [] and made.behind == one.behind
    code = other.cancel_canceled if whose is other else whose.cancel_canceled
    again(base, other, ended, whose, code)


# --- in every dialect

ENDS = {
    "completed": "write Done",
    "failed": "fail It broke",
    "rejected": "refuse Not that",
    "input_required": "ask Which one?",
    "auth_required": "login Sign in first",
}
# 0.1 had no words for two of them yet, and tells those beside the message.
OLDER = {"rejected": "failed", "auth_required": "input_required"}


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
def test_every_state_has_its_word(base: str, tongue: Tongue, state: str) -> None:
    word = OLDER.get(state, state) if isinstance(tongue, V01) else state
    told = ENDS[state].partition(" ")[2]
    sent = tongue.sends(base, ENDS[state])
    assert (sent.state, sent.text if state == "completed" else sent.said) == (word, told)
    assert tongue.reads(base, sent, words(tongue, made_by=tongue)).state == word
    with tongue.streams(base, ENDS[state]) as events:
        assert events.until(state=word).said == ("" if state == "completed" else told)


@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
def test_a_task_nobody_made_is_not_found(base: str, tongue: Tongue) -> None:
    nobody = Seen("task", "nobody")
    for asking in (tongue.reads, tongue.cancels):
        with pytest.raises(Refused) as refused:
            asking(base, nobody, tongue)
        assert refused.value.code == -32001


@pytest.mark.parametrize("tongue", CALLERS, ids=lambda tongue: tongue.name)
def test_errors_have_their_numbers(base: str, tongue: Tongue) -> None:
    def number(body: bytes, **headers: str) -> int:
        answer = ask(base, "POST", tongue.path, body, {**tongue.headers, **headers})
        assert answer.status == 200 and "result" not in answer.json()
        return answer.json()["error"]["code"]

    send = envelope(tongue.send, tongue.saying("write Hello"))
    assert number(b"not json") == -32700
    assert number(b"{}") == number(b"[]") == -32600
    assert number(envelope("tasks/foo", {})) == -32601
    assert number(envelope(tongue.send, {})) == -32602
    assert number(send, **{"A2A-Version": "9.9"}) == VERSION[tongue.name]


def test_no_dialect_of_one_path_takes_another_ones_answer_for_its_own(base: str) -> None:
    """The reader of the tests itself: shapes are told apart."""
    answers = {tongue: tongue.ask(base, tongue.send, tongue.saying("write Hello")) for tongue in CALLERS}
    for asking, result in answers.items():
        for other in CALLERS:
            if (asking.name, other.name) not in ALIKE and asking is not other:
                with pytest.raises((AssertionError, KeyError, ValueError)):
                    other.sent(json.loads(json.dumps(result)))
