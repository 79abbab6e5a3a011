"""One record is one line, and none holds a secret."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.app.logs import HumanFormatter, JsonFormatter, configure


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    return logging.getLogger("dragoman.test").makeRecord(
        "dragoman.test", logging.INFO, __file__, 1, message, arguments, None, extra=extra
    )


def failed(text: str) -> logging.LogRecord:
    try:
        raise ValueError(text)
    except ValueError:
        made = record("it broke")
        made.exc_info = sys.exc_info()
        return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = JsonFormatter().format(made)
    assert "\n" not in line
    return json.loads(line)


FIELDS = {
    "a2a.method": "SendMessage",
    "a2a.task.id": "t1",
    "a2a.context.id": "c1",
    "a2a.task.state": "TASK_STATE_COMPLETED",
    "a2a.dialect": "1.0",
    "duration_ms": 12.5,
}


def test_the_fields_of_a_request_are_in_both_formats() -> None:
    found = as_json(record("done", **FIELDS))
    assert {name: found[name] for name in FIELDS} == FIELDS
    line = HumanFormatter().format(record("done", **FIELDS))
    assert all(f"{name}={value}" in line for name, value in FIELDS.items())


def test_a_json_line_says_when_who_and_how_bad() -> None:
    found = as_json(record("hello %s", "you"))
    assert found["message"] == "hello you"
    assert found["level"] == "info"
    assert found["logger"] == "dragoman.test"
    assert found["time"].endswith("Z")


@pytest.mark.parametrize("mark", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1b[2J", "\x00"])
def test_what_a_client_sent_cannot_start_a_line_or_drive_the_terminal(mark: str) -> None:
    forged = f"x{mark}12:00:00 error   forged"
    line = HumanFormatter().format(record("from %s", forged, **{"a2a.task.id": forged, f"k{mark}": "v"}))
    assert line.splitlines() == [line]
    assert "\x1b" not in line
    assert "\x00" not in line
    assert len(JsonFormatter().format(record(forged, **{"a2a.task.id": forged})).split("\n")) == 1


def test_a_lone_surrogate_is_shown_not_lost() -> None:
    assert as_json(record("id \ud800", **{"a2a.task.id": "\ud800"}))["a2a.task.id"] == "\\ud800"
    HumanFormatter().format(record("id \ud800"))


def test_a_traceback_is_indented_so_that_its_text_cannot_pass_for_a_record() -> None:
    lines = HumanFormatter().format(failed("first\n12:00:00 error   forged")).splitlines()
    assert len(lines) > 2
    assert all(line.startswith("    ") for line in lines[1:])
    assert "ValueError" in as_json(failed("x"))["exception"]


@pytest.mark.proves("W-211")
@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2hunter2",
        "authorization: basic aHVudGVyMg==hunter2",
        "postgresql://ann:hunter2@db.example/tasks",
        "https://a.example/hook?token=hunter2&x=1",
        '{"api_key": "hunter2", "x": 1}',
        "password=hunter2",
        "client_secret='hunter2'",
    ],
)
def test_what_looks_like_a_secret_is_veiled_wherever_it_stands(text: str) -> None:
    for made in (record("got %s", text), record("got", detail=text), failed(text)):
        for shown in (HumanFormatter().format(made), JsonFormatter().format(made)):
            assert "hunter2" not in shown
            assert "***" in shown


@pytest.mark.proves("W-211")
@pytest.mark.parametrize("name", ["authorization", "Cookie", "push.token", "api_key", "password", "credentials"])
def test_a_field_with_a_secrets_name_is_veiled(name: str) -> None:
    made = record("got", **{name: "hunter2"})
    assert "hunter2" not in HumanFormatter().format(made)
    assert as_json(made)[name] == "***"


def test_counts_of_tokens_are_no_secret() -> None:
    assert as_json(record("used", input_tokens=12))["input_tokens"] == 12


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("dragoman")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:], ours_level = before[0], before[2]
    root.setLevel(before[1])
    ours.setLevel(ours_level)


@pytest.mark.usefixtures("logging_restored")
def test_a_terminal_gets_lines_for_people_and_a_pipe_gets_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen, pipe = Terminal(), io.StringIO()
    configure("info", stream=screen)
    logging.getLogger("dragoman.x").info("hello")
    configure("info", stream=pipe)
    logging.getLogger("dragoman.x").info("hello")
    assert "\x1b[36minfo" in screen.getvalue()
    assert json.loads(pipe.getvalue())["message"] == "hello"


@pytest.mark.usefixtures("logging_restored")
def test_no_colour_when_asked_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Terminal()
    configure("info", stream=screen)
    logging.getLogger("dragoman.x").info("hello")
    assert "\x1b" not in screen.getvalue()


@pytest.mark.usefixtures("logging_restored")
def test_the_level_is_ours_and_other_libraries_speak_from_warning_on() -> None:
    pipe = io.StringIO()
    configure("warning", stream=pipe)
    logging.getLogger("dragoman.x").info("not this")
    configure("info", stream=pipe)
    logging.getLogger("dragoman.x").debug("not this")
    logging.getLogger("elsewhere").info("not this")
    logging.getLogger("elsewhere").warning("but this")
    configure("debug", stream=pipe)
    logging.getLogger("elsewhere").debug("and this")
    assert [json.loads(line)["message"] for line in pipe.getvalue().splitlines()] == ["but this", "and this"]
