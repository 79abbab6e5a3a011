"""Webhooks through the whole server, as clients of every dialect set, see and delete them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.client.receivers import receiving
from tests.protocol.stage import Stage
from tests.push.asking import Asking, Refused, Shown
from tests.push.test_whole import serving
from tests.push.ways import JSON, WAYS, WAYS_BY_NAME, rpc, said, said_10
from tests.serving import free_port

pytestmark = pytest.mark.anyio

NAMES = [way.name for way in WAYS]
SECRETS: JSON = {"token": "s3cr3t-token", "authentication": {"schemes": ["Bearer"], "credentials": "s3cr3t-password"}}
NESTED = ("0.3", "coding", "proto", "a2x")


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with serving(Stage().agent) as (client, _):
        yield client


@pytest.fixture(params=NAMES)
def asking(request: pytest.FixtureRequest, client: httpx2.AsyncClient) -> Asking:
    return Asking(client, request.param)


@pytest.fixture
def url() -> str:
    """Of a receiver that is not there: nothing of what is tested here needs one."""
    return f"http://127.0.0.1:{free_port()}/hook"


# --- set, get, list, delete -----------------------------------------------------------------------------------


@pytest.mark.proves("W-025", "W-026", "W-027", "W-028", "W-030", "004-38", "004-38b", "004-51", "004-51b")
@pytest.mark.proves("002-10", "002-11", "002-12", "002-13", "01-19", "01-20")
async def test_a_webhook_is_set_shown_listed_deleted_and_gone(asking: Asking, url: str) -> None:
    task, other = await asking.task(), await asking.task()
    shown = await asking.set(task, {"url": url, **({"id": "mine"} if asking.name != "0.3-http" else {}), **SECRETS})
    assert shown == Shown(task, shown.id, url)
    if asking.ids:
        assert shown.id == ("mine" if asking.name != "0.3-http" else shown.id) and shown.id
    assert await asking.get(task, shown.id) == shown
    assert await asking.list(task) == [shown]
    assert await asking.list(other) == []
    for _ in range(2):
        await asking.delete(task, shown.id)
        assert await asking.list(task) == []
    if asking.null:
        assert await asking.get(task, shown.id) is None
    else:
        with pytest.raises(Refused) as refused:
            await asking.get(task, shown.id)
        assert refused.value.why == "unknown"
    assert "s3cr3t" not in asking.said


async def test_a_task_has_many_webhooks_where_they_have_ids_and_one_where_they_have_none(
    asking: Asking, url: str
) -> None:
    task = await asking.task()
    first = await asking.set(task, {"url": f"{url}/1"})
    second = await asking.set(task, {"url": f"{url}/2"})
    if not asking.ids:
        assert await asking.list(task) == [second]
        return
    if asking.name in ("coding", "proto", "proto-http", "a2x"):
        # Their clients name no ids, and delete by the task alone: the next one replaces what has none.
        assert first.id == second.id == task
        assert await asking.list(task) == [second]
        third = await asking.set(task, {"url": f"{url}/3", "id": "more"})
        assert await asking.list(task) == [second, third]
        return
    assert first.id != second.id and task not in (first.id, second.id)
    assert await asking.list(task) == [first, second]
    await asking.delete(task, first.id)
    assert await asking.list(task) == [second]


async def test_a_webhook_of_a_known_id_is_replaced(client: httpx2.AsyncClient, url: str) -> None:
    for name in ("1.0", "1.0-http", "0.3", "cortex", "proto"):
        asking = Asking(client, name)
        task = await asking.task()
        await asking.set(task, {"url": f"{url}/old", "id": "mine"})
        await asking.set(task, {"url": f"{url}/new", "id": "mine"})
        assert await asking.list(task) == [Shown(task, "mine", f"{url}/new")]


async def test_scheme_header_and_event_types_are_shown_and_what_goes_in_them_is_not(
    client: httpx2.AsyncClient, url: str
) -> None:
    task = await Asking(client, "simple").task()
    info = {"scheme": "apikey", "value": "s3cr3t", "headerName": "X-Hook"}
    own = {"webhookUrl": url, "authenticationInfo": info, "eventTypes": ["completed"]}
    params = {"id": task, "pushNotificationConfig": own}
    shown = {
        "id": task,
        "pushNotificationConfig": {**own, "authenticationInfo": {"scheme": "apikey", "headerName": "X-Hook"}},
    }
    assert await rpc(client, "/", "tasks/pushNotification/set", params) == shown
    assert await rpc(client, "/", "tasks/pushNotification/get", {"id": task}) == shown
    assert await rpc(client, "/", "tasks/pushNotification/list", {}) == [shown]
    # 1.0 sees the same one, and only what it has words for.
    (config,) = (await rpc(client, "/", "ListTaskPushNotificationConfigs", {"taskId": task}))["configs"]
    assert config == {"id": task, "taskId": task, "url": url, "authentication": {"scheme": "apikey"}}


async def test_all_of_a_callers_webhooks_are_listed_to_simple_a2a_and_one_tasks_to_who_asks_for_it(
    client: httpx2.AsyncClient, url: str
) -> None:
    simple = Asking(client, "simple")
    tasks = [await simple.task() for _ in range(3)]
    for task in tasks[:2]:
        await simple.set(task, {"url": url})
    everything = await rpc(client, "/", "tasks/pushNotification/list", {})
    assert [each["id"] for each in everything] == tasks[:2]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotification/list"}  # its clients send no params at all
    assert (await client.post("/", json=body)).json()["result"] == everything
    assert await rpc(client, "/", "tasks/pushNotification/list", {"id": tasks[1]}) == everything[1:]


@pytest.mark.proves("002-c7")
async def test_simple_a2a_s_clients_do_with_a_webhook_all_there_is(client: httpx2.AsyncClient) -> None:
    async with receiving() as receiver:
        task = (await rpc(client, "/", "tasks/send", {"message": said("ask")}))["id"]
        own = {"webhookUrl": receiver.url()}
        kept = {"id": task, "pushNotificationConfig": own}
        assert await rpc(client, "/", "tasks/pushNotification/set", kept) == kept
        assert await rpc(client, "/", "tasks/pushNotification/get", {"id": task}) == kept
        assert await rpc(client, "/", "tasks/pushNotification/list", {}) == [kept]
        await rpc(client, "/", "tasks/send", {"id": task, "message": said("this")})
        async with asyncio.timeout(10):
            while not any(b'"completed"' in body for body in receiver.bodies):
                await asyncio.sleep(0.005)
        assert await rpc(client, "/", "tasks/pushNotification/delete", {"id": task}) is None
        assert await rpc(client, "/", "tasks/pushNotification/get", {"id": task}) is None
        assert await rpc(client, "/", "tasks/pushNotification/list", {}) == []


@pytest.mark.proves("S-6-7")
async def test_a_webhook_is_shown_in_the_words_of_who_set_it_where_names_are_shared(
    client: httpx2.AsyncClient, url: str
) -> None:
    old, simple = Asking(client, "0.1"), Asking(client, "simple")
    task = await old.task()
    await old.set(task, {"url": url})
    assert (await rpc(client, "/", "tasks/pushNotification/get", {"id": task}))["pushNotificationConfig"] == {
        "url": url
    }
    other = await simple.task()
    await simple.set(other, {"url": url})
    answer = await rpc(client, "/", "tasks/pushNotification/get", {"id": other})
    assert answer["pushNotificationConfig"] == {"webhookUrl": url}


async def test_pages_of_a_list_where_a_dialect_has_them(client: httpx2.AsyncClient, url: str) -> None:
    for name in ("1.0-http", "0.3-http"):
        asking = Asking(client, name)
        task = await asking.task()
        ids = [(await asking.set(task, {"url": url})).id for _ in range(3)]
        first = await asking.http("GET", f"{asking.path(task)}?pageSize=2")
        second = await asking.http("GET", f"{asking.path(task)}?pageSize=2&pageToken={first['nextPageToken']}")
        assert "nextPageToken" not in second
        assert [asking.shown(each).id for each in (*first["configs"], *second["configs"])] == ids


# --- with a message -------------------------------------------------------------------------------------------


INLINE: dict[str, Any] = {
    "1.0": ("/", "SendMessage", "configuration", "taskPushNotificationConfig", said_10),
    "0.3": ("/", "message/send", "configuration", "pushNotificationConfig", said),
    "coding": ("/a2a/jsonrpc", "message/send", "configuration", "pushNotificationConfig", said),
    "cortex": ("/a2a", "SendMessage", "configuration", "pushNotificationConfig", said_10),
    "cortex, as 1.0 says": ("/a2a", "SendMessage", "configuration", "taskPushNotificationConfig", said_10),
    "proto": ("/a2a", "message/send", "configuration", "pushNotificationConfig", said),
    "a2x": ("/api/a2a", "message/send", "configuration", "pushNotificationConfig", said),
    "0.1": ("/", "tasks/send", "", "pushNotification", said),
}


@pytest.mark.proves("001-d5", "01-19")
@pytest.mark.parametrize("name", INLINE)
async def test_a_webhook_comes_along_with_a_message(client: httpx2.AsyncClient, url: str, name: str) -> None:
    path, method, outer, inner, message = INLINE[name]
    config: JSON = {"url": url, "token": "s3cr3t"}
    params: JSON = {"message": message("echo hello"), outer: {inner: config}} if outer else {inner: config}
    if not outer:
        params |= {"id": "mine", "message": {"role": "user", "parts": [{"type": "text", "text": "echo hello"}]}}
    answer = await rpc(client, path, method, params)
    assert "s3cr3t" not in str(answer)
    task = answer.get("task", answer)["id"]
    asking = Asking(client, name.partition(",")[0])
    (shown,) = await asking.list(task)
    assert (shown.task, shown.url) == (task, url)
    assert shown.id == (task if name in ("coding", "proto", "a2x") else shown.id)


async def test_one_comes_along_over_http_too_and_with_further_messages(client: httpx2.AsyncClient, url: str) -> None:
    body = {"message": said_10("ask"), "configuration": {"taskPushNotificationConfig": {"url": url, "id": "a"}}}
    task = (await client.post("/message:send", json=body)).json()["task"]["id"]
    more = {
        "message": said_10("", content=[{"text": "this"}], taskId=task),
        "configuration": {"blocking": True, "pushNotification": {"url": url, "id": "b"}},
    }
    answer = await client.post("/v1/message:send", json=more)
    assert answer.is_success, answer.text
    assert [each.id for each in await Asking(client, "1.0").list(task)] == ["a", "b"]


# --- shapes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/a2a/jsonrpc", "/a2a", "/api/a2a"])
async def test_every_shape_is_taken_at_the_paths_of_the_systems(
    client: httpx2.AsyncClient, url: str, path: str
) -> None:
    """And the answer is in the words of the name that was called."""
    task = (await rpc(client, path, "message/send", {"message": said("echo hello")}))["id"]
    shapes: list[JSON] = [
        {"taskId": task, "pushNotificationConfig": {"url": url, "token": "t"}},
        {"task_id": task, "push_notification_config": {"url": url}},
        {"id": task, "pushNotificationConfig": {"url": url}},
        {"taskId": task, "url": url, "token": "t"},
        {
            "id": task,
            "pushNotificationConfig": {"webhookUrl": url, "authenticationInfo": {"scheme": "token", "value": "t"}},
        },
        {
            "taskId": task,
            "pushNotificationConfig": {"url": url, "authentication": {"scheme": "Bearer", "credentials": "t"}},
        },
        {"taskId": task, "pushNotificationConfig": {"url": url, "authentication": {"credentials": "t"}}},
    ]
    for shape in shapes:
        answer = await rpc(client, path, "tasks/pushNotificationConfig/set", shape)
        assert answer["taskId"] == task and answer["pushNotificationConfig"]["url"] == url
        for params in ({"id": task}, {"taskId": task}, {"task_id": task}):
            found = await rpc(client, path, "tasks/pushNotificationConfig/get", params)
            assert found == answer
            assert await rpc(client, path, "tasks/pushNotificationConfig/list", params) == [found]
        assert await rpc(client, path, "tasks/pushNotificationConfig/delete", {"taskId": task}) is None
        assert await rpc(client, path, "tasks/pushNotificationConfig/list", {"id": task}) == []


@pytest.mark.proves("S-12-18")
async def test_protoagents_aliases_take_a_configuration_bare_or_nested_and_answer_without_an_envelope(
    client: httpx2.AsyncClient, url: str
) -> None:
    task = await Asking(client, "proto").task()
    path = f"/a2a/tasks/{task}/pushNotificationConfig"
    for body in ({"url": url, "token": "t"}, {"pushNotificationConfig": {"url": url, "token": "t"}}):
        answer = (await client.post(path, json=body)).json()
        assert answer == {"taskId": task, "pushNotificationConfig": {"url": url, "id": task}}
        assert (await client.get(path)).json() == [answer]
    assert (await client.get(f"{path}s")).json() == [answer], "its server spells the path like this"


async def test_a_system_that_asks_for_nothing_in_particular_gets_the_one_there_is(
    client: httpx2.AsyncClient, url: str
) -> None:
    asking = Asking(client, "0.3")
    task = await asking.task()
    shown = await asking.set(task, {"url": url, "id": "only"})
    assert await asking.get(task) == shown
    for name in ("coding", "proto", "a2x"):
        neighbour = Asking(client, name)
        assert await neighbour.get(task) == shown
    await Asking(client, "proto").delete(task)
    assert await asking.list(task) == []


# --- refusals -------------------------------------------------------------------------------------------------


async def test_an_unknown_task_has_no_webhooks_and_gets_none(asking: Asking, url: str) -> None:
    for doing in (
        lambda: asking.set("nobody", {"url": url}),
        lambda: asking.set("nobody", {"url": "http://169.254.169.254/"}),
        lambda: asking.get("nobody", "h"),
        lambda: asking.delete("nobody", "h"),
    ):
        with pytest.raises(Refused) as refused:
            await doing()
        assert refused.value.why == "unknown"
    if asking.name not in ("simple", "0.1"):
        with pytest.raises(Refused):
            await asking.list("nobody")


@pytest.mark.parametrize(
    "bad",
    [
        {"url": "http://169.254.169.254/latest"},
        {"url": "http://10.0.0.1/"},
        {"url": "file:///etc/passwd"},
        {"url": ""},
        {"token": "a\r\nX-Evil: 1"},
        {"token": "x" * 5_000},
    ],
)
async def test_what_may_not_be_called_or_cannot_be_sent_is_invalid(asking: Asking, url: str, bad: JSON) -> None:
    task = await asking.task()
    if asking.name == "simple" and "token" in bad:
        bad = {"authentication": {"schemes": ["token"], "credentials": bad["token"]}}
    with pytest.raises(Refused) as refused:
        await asking.set(task, {"url": url, **bad})
    assert refused.value.why == "invalid" and "Evil" not in refused.value.body
    assert await asking.list(task) == []


async def test_a_configuration_that_is_incomplete_is_invalid(client: httpx2.AsyncClient) -> None:
    task = await Asking(client, "simple").task()
    calls: list[tuple[str, str, JSON]] = [
        ("/", "tasks/pushNotification/set", {"id": task}),
        ("/", "tasks/pushNotification/set", {"pushNotificationConfig": {"webhookUrl": "https://x.example"}}),
        ("/", "tasks/pushNotification/set", {"id": task, "pushNotificationConfig": {}}),
        ("/", "tasks/pushNotification/get", {}),
        ("/", "tasks/pushNotification/delete", {}),
        ("/", "CreateTaskPushNotificationConfig", {"url": "https://x.example"}),
        ("/", "CreateTaskPushNotificationConfig", {"taskId": task}),
        ("/", "GetTaskPushNotificationConfig", {"taskId": task}),
        ("/", "ListTaskPushNotificationConfigs", {}),
        ("/a2a", "ListTaskPushNotificationConfigs", {}),
        ("/", "tasks/pushNotificationConfig/delete", {"id": task}),
    ]
    for path, method, params in calls:
        answer = (await client.post(path, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).json()
        assert answer["error"]["code"] == -32602, (method, answer)


async def test_a_task_has_so_many_and_no_more(url: str) -> None:
    async with serving(Stage().agent, limit_webhooks=2) as (client, _):
        for name in ("1.0", "1.0-http", "0.3", "0.3-http", "cortex", "proto"):
            asking = Asking(client, name)
            task = await asking.task()
            for id in ("a", "b"):
                await Asking(client, "1.0").set(task, {"url": url, "id": id})
            with pytest.raises(Refused) as refused:
                await asking.set(task, {"url": url, "id": "c"})
            assert "2 webhooks" in refused.value.body and refused.value.why == "busy"
            assert len(await Asking(client, "1.0").list(task)) == 2


@pytest.mark.proves("002-21", "002-c9b", "W-060")
async def test_an_agent_that_does_not_notify_says_so_in_every_dialect(url: str) -> None:
    async with serving(Stage().agent, push=False) as (client, _):
        for name in NAMES:
            asking = Asking(client, name)
            task = await asking.task()
            for doing in (
                lambda asking=asking, task=task: asking.set(task, {"url": url}),
                lambda asking=asking, task=task: asking.get(task, "h"),
                lambda asking=asking, task=task: asking.list(task),
                lambda asking=asking, task=task: asking.delete(task, "h"),
            ):
                with pytest.raises(Refused) as refused:
                    await doing()
                assert refused.value.why == "unsupported", name


# --- what lasts -----------------------------------------------------------------------------------------------


async def test_webhooks_outlive_the_process_in_every_dialect(tmp_path: Path, url: str) -> None:
    store = {"store": f"{tmp_path}/tasks.db"}
    kept: dict[str, Shown] = {}
    async with serving(Stage().agent, **store) as (client, _):
        for name in NAMES:
            asking = Asking(client, name)
            task = await asking.task()
            kept[name] = await asking.set(task, {"url": url, **SECRETS})
    async with serving(Stage().agent, **store) as (client, _):
        for name, shown in kept.items():
            asking = Asking(client, name)
            assert await asking.get(shown.task, shown.id) == shown
            assert await asking.list(shown.task) == [shown]
            await asking.delete(shown.task, shown.id)
            assert await asking.list(shown.task) == []
            assert "s3cr3t" not in asking.said
    async with serving(Stage().agent, **store) as (client, _):
        assert await rpc(client, "/", "tasks/pushNotification/list", {}) == []


async def test_a_webhook_set_in_one_dialect_is_everybodys_to_see_and_delete(client: httpx2.AsyncClient) -> None:
    async with receiving() as receiver:
        task = await WAYS_BY_NAME["1.0"].send(client, "echo hello")
        await Asking(client, "1.0").set(task, {"url": receiver.url(), "id": "a"})
        for name in NAMES:
            if name not in ("simple", "0.1"):
                assert [each.id for each in await Asking(client, name).list(task)] == ["a"]
        await receiver.received(1)
        await Asking(client, "a2x").delete(task)
        assert await Asking(client, "1.0").list(task) == []
