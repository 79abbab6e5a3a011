"""The tables of docs/dialects.md say what the code does."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app.profiles import PRESETS
from dragoman.model import errors as e
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import ListTasks
from dragoman.model.tasks import TERMINAL, Task, TaskState, TaskStatus, View
from dragoman.wire.dialect import Dialect
from dragoman.wire.liberal import EVERYTHING
from dragoman.wire.mounts import table
from dragoman.wire.p03 import P03
from dragoman.wire.settings import WireSettings
from dragoman.wire.t01 import T01

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dialects.md").read_text("utf-8")
MOUNTS = table(WireSettings())
COLUMNS = {
    "1.0": MOUNTS["/"].modern,
    "0.3": MOUNTS["/"].legacy,
    "0.1": T01,
    "coding-agent": MOUNTS["/a2a/jsonrpc"].legacy,
    "Cortex": MOUNTS["/a2a"].modern,
    "simple_a2a": MOUNTS["/"].methods["tasks/list"],
    "A2X": MOUNTS["/api/a2a"].legacy,
    "protoAgent": MOUNTS["/a2a"].legacy,
}
FRESH = {"refuse": "error", "fresh": "new task", "adopt": "new task of that id", "queue": "waits its turn"}


def name(dialect: Dialect, operation: str) -> str:
    """The method's usual name."""
    return next(f"`{method}`" for method, means in dialect.methods.items() if means == operation)


def cancelling(dialect: Dialect) -> str:
    again = dialect.policy.cancel_again
    if again == TERMINAL:
        return "changes nothing"
    return "error, but for a canceled one" if again else "error"


def question(dialect: Dialect) -> str:
    return "closes" if TaskState.INPUT_REQUIRED in dialect.policy.closes else "stays open"


def spelt(dialect: Dialect) -> str:
    """A state of two words."""
    asks = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.INPUT_REQUIRED))
    return f"`{json.loads(dialect.task(View(uid='u', seq=1, task=asks)))['status']['state']}`"


def replied(dialect: Dialect) -> str:
    """What a send answers when there is no task."""
    said = Message(message_id="m", context_id="c", role=Role.AGENT, parts=(Part(text="hi"),))
    found = json.loads(dialect.item(said))
    message = "message" in found or found.get("kind") == "message" or "role" in found
    return " and ".join(
        what for what, there in (("a message", message), ("a completed task", "status" in found)) if there
    )


def listed(dialect: Dialect) -> str:
    """How much a list is of, unless a client says so. 0.3 had none."""
    if "ListTasks" not in dialect.methods.values():
        return "none"
    asked = dialect.read("ListTasks", b"{}", WireSettings())
    assert isinstance(asked, ListTasks)
    size = "everything" if asked.page_size == EVERYTHING else "50 tasks"
    return f"{size}, {'with' if asked.include_artifacts else 'without'} artifacts"


def login(dialect: Dialect) -> str:
    return "closes" if TaskState.AUTH_REQUIRED in dialect.policy.closes else "stays open"


def code(dialect: Dialect, error: Exception) -> str:
    return str(dialect.fault(error).code)


ROWS: dict[str, Callable[[Dialect], str]] = {
    "send": lambda d: name(d, "SendMessage"),
    "stream": lambda d: name(d, "SendStreamingMessage"),
    "a stream begins with": lambda d: "the task" if d.policy.first else "a status update",
    "its frames are": lambda d: {"wrapped": "responses", "nameless": "responses without id", "bare": "bare"}[d.framing],
    "a question": question,
    "a demand to log in": login,
    "behind the last frame": lambda d: f"`{d.end.decode().strip()}`" if d.end else "nothing",
    "message to a finished task": lambda d: FRESH[d.policy.terminal],
    "message to an unknown task": lambda d: FRESH[d.policy.unknown],
    "message to a working task": lambda d: FRESH[d.policy.working],
    "the context alone answers": lambda d: "yes" if d.policy.resume_by_context else "no",
    "cancel of a finished task": cancelling,
    "resubscribe to a finished task": lambda d: "its state" if d.policy.subscribe_terminal else "error",
    "a question's state": spelt,
    "a reply without a task": replied,
    "a list is of": listed,
    "the task is finished": lambda d: code(d, e.TaskOver("over")),
    "the agent does not stream": lambda d: code(d, e.StreamingNotSupported()),
    "extension required": lambda d: code(d, e.ExtensionRequired("urn:x")),
    "version not supported": lambda d: code(d, e.VersionNotSupported("9", ("1.0",))),
}


def expected() -> list[str]:
    lines = ["| |" + "|".join(f" {each} " for each in COLUMNS) + "|", "|---" * (len(COLUMNS) + 1) + "|"]
    for row, cell in ROWS.items():
        lines.append(f"| {row} |" + "|".join(f" {cell(dialect)} " for dialect in COLUMNS.values()) + "|")
    return lines


@pytest.mark.proves("S-2-8", "S-6-1", "S-6-6")
def test_the_table_of_dialects_is_what_the_code_does() -> None:
    wanted = expected()
    assert "\n".join(wanted) in PAGE, "docs/dialects.md should hold this table:\n" + "\n".join(wanted)


def test_every_mount_is_listed_with_who_speaks_there() -> None:
    for path in MOUNTS:
        assert f"| `POST {path}` |" in PAGE
    assert P03.version == "0.3" and "`/v1/…`" in PAGE


@pytest.mark.parametrize("profile", PRESETS)
def test_every_profile_is_listed_with_its_port_first_address_and_mounts(profile: str) -> None:
    preset = PRESETS[profile]
    mounts = ", ".join(f"`{path}`" for path in preset.mounts) or "none"
    assert f"| `{profile}` | {preset.port} | `{preset.primary[0]}` | {mounts} |" in PAGE
