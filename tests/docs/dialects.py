"""The tables of docs/dialects.md, made of what the code does. `python -m tests.docs.dialects` writes them anew.

No cell is written by hand: names come from the dialects' own tables, shapes from encoding a task and looking at it, and
where a request goes from classifying one.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dragoman.app.profiles import PRESETS
from dragoman.model import errors as e
from dragoman.model.facts import Said, Settled
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import GetTask, ListTasks
from dragoman.model.tasks import TERMINAL, Task, TaskState, TaskStatus, Usage, View
from dragoman.server.pages import CARDS
from dragoman.wire import simple
from dragoman.wire.classify import receive
from dragoman.wire.dialect import Dialect
from dragoman.wire.exchange import Exchange, Inbound
from dragoman.wire.liberal import EVERYTHING
from dragoman.wire.mounts import Mount, table
from dragoman.wire.settings import WireSettings
from dragoman.wire.t01 import T01
from dragoman.wire.told import tell

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dialects.md"
WIRE = WireSettings()
MOUNTS = table(WIRE)
COLUMNS: Mapping[str, Dialect] = {
    "1.0": MOUNTS["/"].modern,
    "0.3": MOUNTS["/"].legacy,
    "0.1": T01,
    "coding-agent": MOUNTS["/a2a/jsonrpc"].legacy,
    "Cortex": MOUNTS["/a2a"].modern,
    # At `/` some of its names are shared with others, so the mount's own table of them is shorter.
    "simple_a2a": replace(MOUNTS["/"].methods["tasks/list"], methods=simple.METHODS),
    "A2X": MOUNTS["/api/a2a"].legacy,
    "protoAgent": MOUNTS["/a2a"].legacy,
}
CALLED = {dialect.origin: name for name, dialect in COLUMNS.items()}
# Where each system's clients look for a card; the test asks for it there.
LOOKED_FOR = {
    "1.0": "/.well-known/agent-card.json",
    "0.3": "/.well-known/agent-card.json",
    "0.1": "/.well-known/agent.json",
    "coding-agent": "/.well-known/agent-card.json",
    "Cortex": "/api/a2a/agent-card.json",
    "simple_a2a": "/agentCard",
    "A2X": "/.well-known/agent.json",
    "protoAgent": "/.well-known/agent-card.json",
}

# --- a task to look at ------------------------------------------------------------------------------------

ANSWER, TOKENS = "the answer", 1234


def message(text: str, role: Role = Role.AGENT) -> Message:
    return Message(message_id="m", context_id="c", task_id="t", role=role, parts=(Part(text=text),))


def seen(state: TaskState, *, said: str = "", answer: str = "", asked: str = "", spent: int = 0) -> View:
    status = TaskStatus(state=state, message=message(said) if said else None, timestamp="2026-01-01T00:00:00.000Z")
    return View(
        uid="u",
        seq=3,
        task=Task(
            id="t",
            context_id="c",
            status=status,
            artifacts=(Artifact(artifact_id="a", parts=(Part(text=answer),)),) if answer else (),
            history=(message(asked, Role.USER),) if asked else (),
        ),
        usage=Usage(input_tokens=spent) if spent else None,
    )


def shown(dialect: Dialect, view: View) -> Any:
    """What `tasks/get` answers; 0.1 shows history to who asks for it."""
    return json.loads(dialect.encode(GetTask(id="t", history_length=10), view))


def places(found: Any, wanted: Any, at: str = "") -> Iterator[str]:
    """Paths to a value."""
    if found == wanted:
        yield at
    elif isinstance(found, dict):
        for name, value in found.items():
            yield from places(value, wanted, f"{at}.{name}" if at else str(name))
    elif isinstance(found, list):
        for value in found:
            yield from places(value, wanted, at)


# --- what a client sees -----------------------------------------------------------------------------------

FRESH = {"refuse": "error", "fresh": "new task", "adopt": "new task of that id", "queue": "waits its turn"}
FRAMED = {"wrapped": "responses", "nameless": "responses without id", "bare": "bare"}


def named(operation: str) -> Callable[[Dialect], str]:
    """The method's usual name."""
    return lambda dialect: next(
        (f"`{method}`" for method, means in dialect.methods.items() if means == operation), "none"
    )


def spelt(state: TaskState) -> Callable[[Dialect], str]:
    return lambda dialect: f"`{shown(dialect, seen(state))['status']['state']}`"


def identified(dialect: Dialect) -> str:
    """How parameters may name the task."""
    try:
        operation = dialect.read("GetTask", b'{"taskId":"x"}', WIRE)
    except e.InvalidParams:
        return "`id`"
    assert isinstance(operation, GetTask) and operation.id == "x"
    return "`id` or `taskId`"


def answered(dialect: Dialect) -> str:
    """Where the agent's answer stands in a finished task."""
    view = seen(TaskState.COMPLETED, answer=ANSWER, asked="a question")
    found = dict.fromkeys(path.split(".")[0] for path in places(shown(dialect, view), ANSWER))
    return " and ".join(f"`{place}`" for place in found)


def spent(dialect: Dialect) -> str:
    """Where a finished task says what it used."""
    task = shown(dialect, seen(TaskState.COMPLETED, answer=ANSWER, spent=TOKENS))
    for path in places(task, TOKENS):
        if path.startswith("artifacts."):
            [name] = [each["name"] for each in task["artifacts"] if list(places(each, TOKENS))]
            return f"artifact `{name}`"
        return f"`{path.rpartition('.')[0]}`"
    return "nowhere"


def replied(dialect: Dialect) -> str:
    """What a send answers when there is no task."""
    found = json.loads(dialect.item(message("hi")))
    said = "message" in found or found.get("kind") == "message" or "role" in found
    return " and ".join(what for what, there in (("a message", said), ("a completed task", "status" in found)) if there)


def listed(dialect: Dialect) -> str:
    """How much a list is of, unless a client says so. 0.3 had none."""
    if "ListTasks" not in dialect.methods.values():
        return "none"
    asked = dialect.read("ListTasks", b"{}", WIRE)
    assert isinstance(asked, ListTasks)
    size = "everything" if asked.page_size == EVERYTHING else "50 tasks"
    return f"{size}, {'with' if asked.include_artifacts else 'without'} artifacts"


def cancelling(dialect: Dialect) -> str:
    again = dialect.policy.cancel_again
    if again == TERMINAL:
        return "changes nothing"
    return "error, but for a canceled one" if again else "error"


def part(dialect: Dialect) -> str:
    [found] = shown(dialect, seen(TaskState.WORKING, said=ANSWER))["status"]["message"]["parts"]
    return f"`{json.dumps(found, separators=(',', ':')).replace(ANSWER, '…')}`"


def roles(dialect: Dialect) -> str:
    task = shown(dialect, seen(TaskState.WORKING, said=ANSWER, asked="a question"))
    return f"`{task['history'][0]['role']}`, `{task['status']['message']['role']}`"


def hears(dialect: Dialect) -> str:
    """What a webhook is told of."""
    busy = seen(TaskState.WORKING, said="Looking")
    assert busy.task.status is not None
    return "every change" if dialect.news(tell(Said(status=busy.task.status), busy), ()) else "questions and the end"


def told(dialect: Dialect) -> str:
    """In what it is told the end."""
    done = seen(TaskState.COMPLETED, answer=ANSWER)
    assert done.task.status is not None
    body = json.loads(dialect.news(tell(Settled(status=done.task.status), done), ()))
    if "task" in body:
        return "a response with the task"
    what = "an event" if "type" in body else "a status update" if body.get("kind") == "status-update" else "the task"
    return what if what == "the task" else f"{what} with the artifacts" if list(places(body, ANSWER)) else what


def versions(dialect: Dialect) -> str:
    [mount] = [each for each in MOUNTS.values() if spoken_at(each, dialect)][:1]
    return ", ".join(sorted(mount.versions(named("SendMessage")(dialect).strip("`"), dialect)))


SEES: Mapping[str, Callable[[Dialect], str]] = {
    "send": named("SendMessage"),
    "stream": named("SendStreamingMessage"),
    "get": named("GetTask"),
    "list": named("ListTasks"),
    "cancel": named("CancelTask"),
    "take a stream up again": named("SubscribeToTask"),
    "set a webhook": named("CreateTaskPushNotificationConfig"),
    "ask for the card": named("GetExtendedAgentCard"),
    "its clients look for the card at": lambda d: f"`{LOOKED_FOR[CALLED[d.origin]]}`",
    "`A2A-Version` may be": versions,
    "`A2A-Version` of answers": lambda d: d.version,
    "a task is named": identified,
    "a text part": part,
    "roles": roles,
    "a working task": spelt(TaskState.WORKING),
    "a canceled task": spelt(TaskState.CANCELED),
    "a question's state": spelt(TaskState.INPUT_REQUIRED),
    "the answer stands in": answered,
    "what was used stands in": spent,
    "a reply without a task": replied,
    "a list is of": listed,
    "a stream begins with": lambda d: "the task" if d.policy.first else "a status update",
    "its frames are": lambda d: FRAMED[d.framing],
    "behind the last frame": lambda d: f"`{d.end.decode().strip()}`" if d.end else "nothing",
    "a question": lambda d: "closes" if TaskState.INPUT_REQUIRED in d.policy.closes else "stays open",
    "the context alone answers": lambda d: "yes" if d.policy.resume_by_context else "no",
    "message to a finished task": lambda d: FRESH[d.policy.terminal],
    "message to an unknown task": lambda d: FRESH[d.policy.unknown],
    "message to a working task": lambda d: FRESH[d.policy.working],
    "cancel of a finished task": cancelling,
    "resubscribe to a finished task": lambda d: "its state" if d.policy.subscribe_terminal else "error",
    "a webhook hears of": hears,
    "it is told the end in": told,
    "webhooks of a task": lambda d: "one" if d.policy.single_hook else "many",
}
ERRORS: Mapping[str, BaseException] = {
    "not JSON": e.ParseFailure(),
    "no request": e.InvalidRequest("x"),
    "unknown method": e.MethodNotFound("x"),
    "bad parameters": e.InvalidParams("x"),
    "something went wrong": RuntimeError(),
    "no such task": e.TaskNotFound("x"),
    "not to be cancelled": e.TaskNotCancelable("x", "completed"),
    "no webhooks here": e.PushNotSupported(),
    "unsupported": e.UnsupportedOperation("x"),
    "message to a finished task": e.TaskOver("x"),
    "no streams here": e.StreamingNotSupported(),
    "content type": e.ContentTypeNotSupported("x"),
    "the agent answered nonsense": e.InvalidAgentResponse("x"),
    "no extended card": e.ExtendedCardNotConfigured(),
    "extension required": e.ExtensionRequired("urn:x"),
    "version not supported": e.VersionNotSupported("9", ("1.0",)),
}


def of_each(rows: Mapping[str, Callable[[Dialect], str]]) -> list[str]:
    lines = ["| |" + "|".join(f" {each} " for each in COLUMNS) + "|", "|---" * (len(COLUMNS) + 1) + "|"]
    for row, cell in rows.items():
        lines.append(f"| {row} |" + "|".join(f" {cell(dialect)} " for dialect in COLUMNS.values()) + "|")
    return lines


def numbers(error: BaseException) -> Callable[[Dialect], str]:
    return lambda dialect: str(dialect.fault(error).code)


# --- where --------------------------------------------------------------------------------------------------

OVER_HTTP = (("/message:send", "/tasks/{id}"), ("/{tenant}/message:send",), ("/v1/message:send", "/v1/tasks/{id}"))
OF_SEEDS = (("/a2a/message:send", "/a2a/tasks/{id}"),)


def spoken_at(mount: Mount, dialect: Dialect) -> bool:
    send = named("SendMessage")(dialect).strip("`")
    params = b'{"sessionId":"s"}' if dialect is T01 else b"{}"
    found = mount.find(send, params)
    return found is not None and found.origin == dialect.origin


def reached(path: str) -> str:
    """Who answers this path over HTTP+JSON."""
    where = path.replace("{tenant}", "acme").replace("{id}", "t")
    said = b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}'
    body = said if where.endswith(":send") else b""
    inbound = Inbound("POST" if body else "GET", where, "", {"content-type": "application/json"}, body)
    exchange = receive(inbound, WIRE, MOUNTS)
    assert isinstance(exchange, Exchange), path
    return CALLED[exchange.origin]


def paths() -> list[str]:
    lines = ["| where | who is spoken to there | rules |", "|---|---|---|"]
    for path, mount in MOUNTS.items():
        who = [name for name, dialect in COLUMNS.items() if spoken_at(mount, dialect)]
        cell = ", ".join(f"{name} ({named('SendMessage')(COLUMNS[name])})" for name in who)
        lines.append(f"| `POST {path}` | {cell} | {'official' if mount.official else 'lenient'} |")
    for each, rules in [*((each, "official") for each in OVER_HTTP), *((each, "lenient") for each in OF_SEEDS)]:
        [who] = {reached(path) for path in each}
        lines.append(f"| {', '.join(f'`{path}`' for path in each)} | {who} over HTTP+JSON | {rules} |")
    lines.append(f"| {', '.join(f'`GET {path}`' for path in CARDS)} | one card for the clients of every dialect | |")
    return lines


def profiles() -> list[str]:
    lines = ["| profile | port | first on the card | mounts beside `/` |", "|---|---|---|---|"]
    for name, preset in PRESETS.items():
        mounts = ", ".join(f"`{path}`" for path in preset.mounts) or "none"
        lines.append(f"| `{name}` | {preset.port} | `{preset.primary[0]}` | {mounts} |")
    return lines


# --- the page -----------------------------------------------------------------------------------------------

TABLES: Mapping[str, Callable[[], list[str]]] = {
    "paths": paths,
    "sees": lambda: of_each(SEES),
    "errors": lambda: of_each({name: numbers(error) for name, error in ERRORS.items()}),
    "profiles": profiles,
}


def block(name: str, lines: Iterable[str]) -> str:
    return f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- /{name} -->\n"


def renewed(page: str) -> str:
    for name, lines in TABLES.items():
        made = block(name, lines())
        page, times = re.subn(rf"<!-- {name} -->\n.*?<!-- /{name} -->\n", lambda _: made, page, flags=re.DOTALL)  # noqa: B023
        assert times == 1, f"the page has {times} places for the table {name}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
