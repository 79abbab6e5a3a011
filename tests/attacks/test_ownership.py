"""Somebody else's task, asked for by every method of every dialect over every binding: it is not there.

Each attempt is made twice: with what is somebody's, and with what nobody has. The two answers must be the same bytes,
once each name is put back to what it stands for; the owner must see the task afterwards as it was before.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from msgspec.structs import replace

import dragoman
from dragoman import Agent, Turn
from dragoman.auth.hashes import token_hash
from dragoman.testing.inprocess import App, Exchange, Lifespan, Response
from dragoman.wire.mounts import table
from dragoman.wire.rest import _ACTIONS, _PLAIN
from dragoman.wire.settings import WireSettings
from tests.seeds.calling import shown

pytestmark = pytest.mark.anyio

SECRET = "the-plan-nobody-else-may-read"
CALLERS = {"alice": "", "mallory": "", "carol": 'tenants = ["beta"]', "root": 'scopes = ["admin"]'}
BOUND = 20
HOOK = "http://127.0.0.1:49151/hook"


class Named(NamedTuple):
    """What an attempt asks for: ids of a task, its conversation and its webhook."""

    task: str
    context: str
    hook: str


class Ask(NamedTuple):
    verb: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}


class Scene:
    """The application, and its callers' requests."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def ask(self, caller: str, ask: Ask) -> Response:
        """The whole answer; of a stream that would stay open, what comes before a moment's silence."""
        data = b"" if ask.body is None else json.dumps(ask.body).encode()
        headers = {"authorization": f"Bearer {caller}-token", **ask.headers}
        if data:
            headers["content-type"] = "application/json"
        exchange = Exchange(self.app, ask.verb, ask.path, headers, data)
        async with asyncio.timeout(BOUND):
            await exchange.open()
            try:
                return await exchange.whole()
            finally:
                await exchange.close()

    async def call(self, caller: str, method: str, params: Any, tenant: str = "") -> Any:
        path = f"/{tenant}" if tenant else "/"
        answer = await self.ask(caller, Ask("POST", path, rpc(method, params), {"a2a-version": "1.0"}))
        assert answer.status == 200 and "result" in answer.json(), answer.text
        return answer.json()["result"]

    async def own(self, caller: str, text: str, tenant: str = "") -> Named:
        """A task of that caller's, with a webhook."""
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
        now = {"returnImmediately": text.startswith("wait")}
        task = (await self.call(caller, "SendMessage", {"message": message, "configuration": now}, tenant))["task"]
        hook = {"taskId": task["id"], "url": HOOK, "token": SECRET}
        kept = await self.call(caller, "CreateTaskPushNotificationConfig", hook, tenant)
        return Named(task["id"], task["contextId"], kept["id"])

    async def state(self, caller: str, named: Named, tenant: str = "") -> Any:
        """All that its owner can see of it."""
        task = await self.call(caller, "GetTask", {"id": named.task}, tenant)
        hooks = await self.call(caller, "ListTaskPushNotificationConfigs", {"taskId": named.task}, tenant)
        listed = await self.call(caller, "ListTasks", {"includeArtifacts": True}, tenant)
        return task, hooks, [each for each in listed["tasks"] if each["id"] == named.task]


def rpc(method: str, params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": "same", "method": method, "params": params}


def unknown() -> Named:
    return Named(str(uuid4()), str(uuid4()), str(uuid4()))


# --- every way to ask ---------------------------------------------------------------------------------------

MOUNTS = table(WireSettings())


def message(modern: bool, **members: Any) -> Any:
    part = {"text": "blue"} if modern else {"kind": "text", "text": "blue"}
    return {"messageId": "mine", "role": "ROLE_USER" if modern else "user", "parts": [part], **members}


def sends(named: Named, modern: bool) -> Iterator[Any]:
    """Messages to the task, to its conversation, and about it; with and without a webhook."""
    task, context, _ = named
    hook = {"taskPushNotificationConfig" if modern else "pushNotificationConfig": {"url": HOOK}}
    yield {"message": message(modern, taskId=task)}
    yield {"message": message(modern, taskId=task, contextId=context)}
    yield {"message": message(modern, taskId=task), "configuration": hook}
    yield {"message": message(modern, taskId=task), "configuration": {"idempotencyKey": f"key-{task}"}}
    yield {"message": message(modern, contextId=context)}
    yield {"message": message(modern, contextId=context), "metadata": {"contextId": context}}
    yield {"message": message(modern, referenceTaskIds=[task])}
    if not modern:
        yield {"id": task, "message": message(modern)}
        yield {"taskId": task, "message": message(modern)}
        yield {"contextId": context, "message": message(modern)}


def reads(named: Named) -> Iterator[Any]:
    for name in ("id", "taskId"):
        yield {name: named.task}
        yield {name: named.task, "historyLength": 9}
        yield {name: named.task, "metadata": {}}


def lists(named: Named) -> Iterator[Any]:
    yield {"contextId": named.context}
    yield {"contextId": named.context, "status": "TASK_STATE_INPUT_REQUIRED", "includeArtifacts": True}


def hooks(named: Named, operation: str) -> Iterator[Any]:
    """Webhooks in the shapes of all four families."""
    task, _, hook = named
    if operation.startswith("Create"):
        yield {"taskId": task, "url": HOOK, "token": "t"}
        yield {"taskId": task, "id": hook, "url": HOOK}
        yield {"taskId": task, "pushNotificationConfig": {"url": HOOK}}
        yield {"taskId": task, "pushNotificationConfig": {"id": hook, "url": HOOK}}
        yield {"id": task, "pushNotificationConfig": {"url": HOOK}}
        yield {"id": task, "pushNotificationConfig": {"webhookUrl": HOOK}}
        return
    for name in ("id", "taskId"):
        yield {name: task}
        yield {name: task, "pushNotificationConfigId": hook}
    yield {"taskId": task, "id": hook}


def by_method(named: Named, tenant: str) -> Iterator[tuple[str, Ask]]:
    """Every name of every JSON-RPC mount, with all that may follow it."""
    for path, mount in MOUNTS.items():
        if tenant and path != "/":
            continue  # these know no tenants
        for method, dialect in mount.methods.items():
            operation = dialect.methods[method]
            modern = dialect.origin == "1.0"
            if "ExtendedAgentCard" in operation:
                continue
            if operation in ("SendMessage", "SendStreamingMessage"):
                given = sends(named, modern)
            elif operation == "ListTasks":
                given = lists(named)
            elif "Push" in operation:
                given = hooks(named, operation)
            else:
                given = reads(named)
            version = {"a2a-version": "1.0"} if modern else {}
            for number, params in enumerate(given):
                cursors = [{}]
                if operation in ("SubscribeToTask", "SendStreamingMessage"):
                    cursors.append({"last-event-id": f"{named.task}.1"})
                for cursor in cursors:
                    where = f"/{tenant}" if tenant else path
                    name = f"{path} {method} #{number}{' from a cursor' if cursor else ''}"
                    yield name, Ask("POST", where, rpc(method, params), {**version, **cursor})


def by_path(named: Named, tenant: str) -> Iterator[tuple[str, Ask]]:
    """Every route of HTTP+JSON: 1.0, 0.3 and protoAgent's."""
    task, context, hook = named
    start = f"/{tenant}" if tenant else ""
    for root, modern, word in (("", True, "pushNotificationConfigs"), ("/v1", False, "pushNotificationConfigs")) + (
        () if tenant else (("/a2a", False, "pushNotificationConfig"),)
    ):
        base, version = start + root, {"a2a-version": "1.0"} if modern else {}
        content = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "blue"}], "taskId": task}}
        asks = [
            *(Ask("GET", f"{base}/tasks/{task}{query}") for query in ("", "?historyLength=5", "?tenant=" + tenant)),
            *(
                Ask("GET", f"{base}/tasks?{query}")
                for query in (f"contextId={context}", f"contextId={context}&pageSize=1")
            ),
            *(
                Ask(verb, f"{base}/tasks/{task}:{action}", {} if verb == "POST" else None)
                for action, verbs in _ACTIONS.items()
                for verb in verbs
            ),
            Ask("GET", f"{base}/tasks/{task}/{word}"),
            Ask("GET", f"{base}/tasks/{task}/{word}/{hook}"),
            Ask("DELETE", f"{base}/tasks/{task}/{word}/{hook}"),
            Ask("POST", f"{base}/tasks/{task}/{word}", {"url": HOOK}),
            Ask("POST", f"{base}/tasks/{task}/{word}", {"config": {"pushNotificationConfig": {"url": HOOK}}}),
            *(
                Ask("POST", f"{base}/{action}", given)
                for action, verbs in _PLAIN.items()
                if "POST" in verbs
                for given in (*sends(named, True), content)
            ),
        ]
        for ask in asks:
            yield f"{ask.verb} {ask.path.replace(task, 'X')} {json.dumps(ask.body)[:60]}", ask._replace(headers=version)
            if ":subscribe" in ask.path:
                cursor = {**version, "last-event-id": f"{task}.1"}
                yield f"{ask.path.replace(task, 'X')} from a cursor", ask._replace(headers=cursor)


def attempts(named: Named, tenant: str) -> list[tuple[str, Ask]]:
    return [*by_method(named, tenant), *by_path(named, tenant)]


def plain(answer: Response, named: Named) -> tuple[int, dict[str, str], str]:
    """The answer, with what the caller itself wrote called by its name, and without what no two answers share."""
    text = shown(answer.text, task=named.task, context=named.context, hook=named.hook)
    text = re.sub(r'"durationMs":\d+', '"durationMs":0', text)
    text = re.sub(r'"nextPageToken":"[^"]+"', '"nextPageToken":"<token>"', text)
    text = re.sub(r'"artifactId":"[0-9a-f]{8}-', '"artifactId":"<id>-', text)
    text = re.sub(r"<id>\.\d+\.\d+", "<id>.<piece>", text)
    text = re.sub(r"id: <(?:id|task)>\.\d+", "id: <cursor>", text)
    headers = {name: value for name, value in answer.headers.items() if name not in ("content-length", "date")}
    return answer.status, headers, text


# --- the scene ----------------------------------------------------------------------------------------------


class Pushing:
    """The agent, with webhooks."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.profile = replace(agent.profile, push=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    route = property(lambda self: self._agent.route)
    run = property(lambda self: self._agent.run)
    reply = property(lambda self: self._agent.reply)
    close = property(lambda self: self._agent.close)


def agent(gate: asyncio.Event) -> Any:
    made = Agent("Desk", description="Keeps secrets")

    @made.skill
    async def desk(turn: Turn) -> str:  # pyright: ignore[reportUnusedFunction]
        word = turn.text.split(" ")[0]
        if word == "ask":
            reply = await turn.ask(f"Which one, {SECRET}?")
            return f"{reply.text} {SECRET}"
        if word == "wait":
            await gate.wait()
        earlier = await turn.conversation()
        return f"{word} {SECRET if word != 'blue' else ''} after {len(earlier)}"

    return Pushing(made)


@pytest.fixture(params=["memory", "sqlite"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    callers = tmp_path / "callers.toml"
    callers.write_text(
        "\n".join(
            f'[{name}]\ntoken = "{token_hash(f"{name}-token".encode())}"\n{more}' for name, more in CALLERS.items()
        )
    )
    gate = asyncio.Event()
    app = dragoman.asgi(
        agent(gate),
        store="memory://" if request.param == "memory" else str(tmp_path / "tasks.db"),
        drain=0,
        auth_callers=str(callers),
        auth_admin_scope="admin",
        push_allow_loopback=True,
        cached_tasks=5_000,
    )
    lifespan = Lifespan(app)
    await lifespan.start()
    try:
        yield Scene(app)
    finally:
        gate.set()
        await lifespan.stop()


KINDS = {"a question": "ask me", "a finished task": "done", "a working task": "wait here"}
# Whose task, in which tenant; who wants it, and looks where.
WANTED = {
    "of another caller": ("alice", "", "mallory", ""),
    "of another caller in their tenant": ("alice", "acme", "mallory", "acme"),
    "of one's own in another tenant": ("alice", "acme", "alice", "other"),
    "of one's own in a tenant, without naming it": ("alice", "acme", "alice", ""),
    "of one's own without a tenant, in one": ("alice", "", "alice", "acme"),
    "in a tenant that is not the caller's": ("alice", "acme", "carol", "acme"),
}


@pytest.mark.proves("002-d22")
@pytest.mark.proves("W-049", "W-053", "W-054", "W-139", "W-191", "W-192", "W-193", "W-194", "W-195", "W-217")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", WANTED)
async def test_somebody_elses_task_is_nobodys(scene: Scene, kind: str, wanted: str) -> None:
    owner, home, thief, tenant = WANTED[wanted]
    theirs, nobodys = await scene.own(owner, KINDS[kind], home), unknown()
    before = await scene.state(owner, theirs, home)
    pairs = list(zip(attempts(theirs, tenant), attempts(nobodys, tenant), strict=True))
    assert len(pairs) > 100
    for (name, real), (_, made_up) in pairs:
        answer, other = await scene.ask(thief, real), await scene.ask(thief, made_up)
        assert plain(answer, theirs) == plain(other, nobodys), name
        assert SECRET not in answer.text, name
        if thief != owner:
            assert theirs.hook not in answer.text.replace(json.dumps(real.body), "") or theirs.hook in str(real), name
    assert await scene.state(owner, theirs, home) == before


async def test_the_owner_is_let_in_by_the_very_same_attempts(scene: Scene) -> None:
    """Otherwise all that was shown above is that nothing works."""
    mine = await scene.own("alice", "done")
    found = 0
    for name, ask in attempts(mine, ""):
        if "Send" in name or "message" in name or "DELETE" in name or "delete" in name:
            continue  # what changes it
        answer = await scene.ask("alice", ask)
        found += mine.task in answer.text and SECRET in answer.text
    assert found > 30


@pytest.mark.proves("W-193")
async def test_lists_hold_ones_own_tasks_whatever_is_asked(scene: Scene) -> None:
    theirs = [await scene.own("alice", text) for text in KINDS.values()]
    mine = await scene.own("mallory", "done")
    asks = [
        *(Ask("POST", path, rpc(method, {})) for path in MOUNTS for method in ("ListTasks", "tasks/list")),
        *(Ask("POST", path, rpc(method, {})) for path in MOUNTS for method in ("tasks/pushNotification/list",)),
        *(Ask("GET", f"{root}/tasks") for root in ("", "/v1", "/a2a")),
    ]
    seen = 0
    for ask in asks:
        answer = await scene.ask("mallory", ask._replace(headers={"a2a-version": "1.0"} if "List" in str(ask) else {}))
        seen += mine.task in answer.text
        for each in theirs:
            assert not any(name in answer.text for name in each), ask
    assert seen >= 6


async def test_anothers_page_token_leads_nowhere_else(scene: Scene) -> None:
    for _ in range(3):
        await scene.own("alice", "done")
    page = await scene.call("alice", "ListTasks", {"pageSize": 1})
    assert page["nextPageToken"]
    mine = await scene.own("mallory", "done")
    stolen = await scene.call("mallory", "ListTasks", {"pageToken": page["nextPageToken"]})
    assert {task["id"] for task in stolen["tasks"]} <= {mine.task} and stolen["totalSize"] == 1


@pytest.mark.proves("01-23")
async def test_an_id_that_a_caller_chose_is_free_to_others(scene: Scene) -> None:
    def sent(text: str) -> Ask:
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        return Ask("POST", "/", rpc("tasks/send", {"id": "mine", "sessionId": "s", "message": message}))

    for caller, text in (("alice", "done"), ("mallory", "blue")):
        answer = (await scene.ask(caller, sent(text))).json()["result"]
        assert answer["id"] == "mine" and text in json.dumps(answer["artifacts"])
    theirs = await scene.ask("alice", Ask("POST", "/", rpc("tasks/get", {"id": "mine"})))
    mine = await scene.ask("mallory", Ask("POST", "/", rpc("tasks/get", {"id": "mine"})))
    assert SECRET in theirs.text and SECRET not in mine.text and "blue" in mine.text


async def test_anothers_idempotency_key_is_free(scene: Scene) -> None:
    async def send(caller: str) -> Any:
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": f"done {caller}"}]}
        configuration = {"idempotencyKey": "once"}
        return await scene.call(caller, "SendMessage", {"message": message, "configuration": configuration})

    theirs, mine = await send("alice"), await send("mallory")
    assert theirs["task"]["id"] != mine["task"]["id"]
    assert (await send("alice"))["task"]["id"] == theirs["task"]["id"]


@pytest.mark.proves("W-142")
async def test_an_admin_sees_and_does_not_touch(scene: Scene) -> None:
    theirs = await scene.own("alice", "ask me")
    before = await scene.state("alice", theirs)
    seen = await scene.call("root", "GetTask", {"id": theirs.task})
    assert seen == before[0]
    listed = await scene.call("root", "ListTasks", {})
    assert theirs.task in {task["id"] for task in listed["tasks"]}
    subscribe = Exchange(
        scene.app,
        "GET",
        f"/tasks/{theirs.task}:subscribe",
        {"authorization": "Bearer root-token", "a2a-version": "1.0"},
        b"",
    )
    async with asyncio.timeout(BOUND):
        await subscribe.open()
        assert theirs.task in (await anext(subscribe.chunks())).decode()
        await subscribe.close()
    for name, ask in attempts(theirs, ""):
        touches = any(word in name.lower() for word in ("cancel", "delete", "create", "set", "send", "post"))
        if touches and "subscribe" not in name:
            await scene.ask("root", ask)
    assert await scene.state("alice", theirs) == before
    hidden = await scene.ask(
        "root", Ask("GET", f"/tasks/{theirs.task}/pushNotificationConfigs", None, {"a2a-version": "1.0"})
    )
    assert hidden.status == 404, "where news go is the owner's affair"
