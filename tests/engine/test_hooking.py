"""Webhooks as operations: who may keep which, what is shown of them, and what comes along with a message."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.engine.engine import Limits
from dragoman.model.errors import Busy, CallerError, InvalidParams, PushNotSupported, TaskNotFound
from dragoman.model.facts import AnyFact, Asked, Settled, Started
from dragoman.model.messages import Message, Part
from dragoman.model.operations import (
    Call,
    Configuration,
    CreatePush,
    DeletePush,
    GetPush,
    ListPush,
    Policy,
    PushConfig,
    PushPage,
    SendMessage,
)
from dragoman.model.tasks import Scope, TaskState, View
from dragoman.ports import Hook, HookedStore, Outcome, TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import SCOPE, Rig, call, chunk, rig, state_of, text_of

pytestmark = pytest.mark.anyio

URL = "https://cb.example/hook"
STRANGERS = (Scope("other"), Scope("agent", "acme"), Scope("agent", "", "somebody"))
SECRETS: dict[str, Any] = {"token": "s3cr3t", "authentication": {"scheme": "Bearer", "credentials": "hidden"}}


class Screening:
    """Lets every address through but those of one host, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def admit(self, url: str) -> None:
        self.asked.append(url)
        if self.gate is not None:
            await self.gate.wait()
        if "inside" in url:
            raise InvalidParams("may not be called")


async def echo(turn: TurnHandle) -> None:
    await chunk(turn, "echo", append=False)


async def asks(turn: TurnHandle) -> None:
    answer = await turn.ask([Part(text="Which one?")])
    await chunk(turn, text_of(answer), append=False)


class Hooked:
    """A rig whose tasks may have webhooks."""

    def __init__(self, rig: Rig, store: HookedStore, screening: Screening) -> None:
        self.rig, self.store, self.screening = rig, store, screening
        self.engine = rig.engine

    async def create(self, task: str, by: Call | None = None, **config: Any) -> PushConfig:
        config = {"url": URL, **config}
        return await self.engine.create_push(by or call(), CreatePush(config=PushConfig(task_id=task, **config)))

    async def get(self, task: str, id: str = "", by: Call | None = None) -> PushConfig | None:
        return await self.engine.get_push(by or call(), GetPush(task_id=task, id=id))

    async def list(self, task: str = "", by: Call | None = None, **page: Any) -> PushPage:
        return await self.engine.list_push(by or call(), ListPush(task_id=task, **page))

    async def delete(self, task: str, id: str = "", by: Call | None = None) -> None:
        await self.engine.delete_push(by or call(), DeletePush(task_id=task, id=id))

    async def ids(self, task: str = "") -> "list[str]":
        return [config.id for config in (await self.list(task)).configs]

    async def kept(self, uid: str = "") -> "Sequence[Hook]":
        return await self.store.hooks(SCOPE, uid)

    async def send(self, text: str = "hi", by: Call | None = None, of: str = "", **config: Any) -> View:
        config = {"url": URL, **config}
        configuration = Configuration(task_push_notification_config=PushConfig(**config))
        message = self.rig.message(text, task_id=of)
        view = await self.engine.send(by or call(), SendMessage(message=message, configuration=configuration))
        assert isinstance(view, View)
        return view

    async def told(self) -> "list[AnyFact]":
        """What its webhooks are told now, one after the other."""
        facts: list[AnyFact] = []
        while found := await self.store.due_deliveries(10):
            facts += [each.fact for each in found]
            await self.store.record([Outcome(id=each.id, delivered=True) for each in found])
        return facts


@asynccontextmanager
async def hooked(handler: Any = echo, limits: Limits | None = None, **route: Any) -> AsyncGenerator[Hooked]:
    store, screening = MemoryStore(), Screening()
    async with rig(handler, store=store, hooks=store, screen=screening, limits=limits, **route) as r:
        yield Hooked(r, store, screening)


# --- set ----------------------------------------------------------------------------------------------------


async def test_a_webhook_is_kept_as_it_was_set_and_shown_without_its_secrets() -> None:
    async with hooked() as h:
        task = await h.rig.send()
        by = replace(call(), origin="0.3")
        shown = await h.create(
            task.task.id, by, id="mine", header_name="X-Auth", event_types=("status",), tenant="ignored", **SECRETS
        )
        expected = PushConfig(
            id="mine",
            task_id=task.task.id,
            url=URL,
            authentication={"scheme": "Bearer"},
            header_name="X-Auth",
            event_types=("status",),
            origin="0.3",
        )
        assert shown == expected
        assert await h.get(task.task.id, "mine") == expected
        assert (await h.list(task.task.id)).configs == (expected,)
        (kept,) = await h.kept(task.uid)
        assert kept.config == replace(expected, origin="", **SECRETS) and kept.origin == "0.3"


async def test_an_answer_names_the_tenant_it_was_asked_in() -> None:
    async with hooked() as h:
        acme = Scope("agent", "acme")
        view = await h.engine.send(call(acme), h.rig.op())
        assert isinstance(view, View)
        assert (await h.create(view.task.id, call(acme))).tenant == "acme"


async def test_without_an_id_each_gets_one_of_its_own_and_with_one_it_replaces() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        first, second = await h.create(id), await h.create(id)
        assert len({first.id, second.id, id, ""}) == 4
        await h.create(id, id="mine")
        await h.create(id, id="mine", url="https://other.example")
        configs = (await h.list(id)).configs
        assert [each.id for each in configs] == [first.id, second.id, "mine"]
        assert configs[-1].url == "https://other.example"


async def test_dialects_whose_webhooks_have_no_ids_replace_what_has_the_tasks() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        own = call(own_hook=True)
        assert (await h.create(id, own)).id == id
        await h.create(id, own, url="https://other.example")
        await h.create(id, own, id="mine")
        assert await h.ids(id) == [id, "mine"]


async def test_dialects_that_know_one_webhook_per_task_have_one() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        single = call(single_hook=True, missing_hook="none")
        assert await h.get(id, by=single) is None
        assert (await h.create(id, single, id="whatever")).id == id
        assert (await h.create(id, single, url="https://other.example")).id == id
        shown = await h.get(id, "whatever", single)
        assert shown is not None and shown.url == "https://other.example"
        await h.create(id, id="another")
        await h.delete(id, by=single)
        assert await h.get(id, by=single) is None
        assert await h.ids(id) == ["another"]


async def test_the_origin_of_the_task_decides_whose_rules_hold() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        rules = call(by_origin={"test": Policy(single_hook=True)})
        assert (await h.create(id, rules)).id == id


async def test_a_webhook_may_be_set_whatever_the_task_does_and_hears_of_the_end() -> None:
    async with hooked(asks) as h:
        view = await h.rig.send()
        id = view.task.id
        await h.create(id, id="a")
        assert await h.told() == []
        await h.rig.send("this", task_id=id)
        end = [fact for fact in await h.told() if isinstance(fact, Settled)]
        assert len(end) == 1
        await h.create(id, id="late")
        (fact,) = await h.told()
        assert isinstance(fact, Settled) and fact == end[0]


async def test_an_address_that_may_not_be_called_is_refused_before_anything_is_kept() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        with pytest.raises(InvalidParams) as refused:
            await h.create(id, url="https://inside.example")
        assert [tuple(each) for each in refused.value.violations] == [("url", "may not be called")]
        with pytest.raises(InvalidParams) as refused:
            await h.send(url="https://inside.example")
        (violation,) = refused.value.violations
        assert violation.field == "configuration.taskPushNotificationConfig.url"
        assert await h.kept() == [] and (await h.rig.list()).total == 1


@pytest.mark.parametrize(
    ("field", "config"),
    [
        ("url", {"url": ""}),
        ("token", {"token": "a\r\nX-Evil: 1"}),
        ("token", {"token": "x" * 5_000}),
        ("token", {"token": "pässword"}),
        ("authentication.scheme", {"authentication": {"scheme": "Bearer\n"}}),
        ("authentication.scheme", {"authentication": {"credentials": "x"}}),
        ("authentication.credentials", {"authentication": {"scheme": "Bearer", "credentials": "a\nb"}}),
        ("authentication.credentials", {"authentication": {"scheme": "Basic", "credentials": "ä:\nb"}}),
        ("headerName", {"header_name": "X-Auth: evil"}),
        ("headerName", {"header_name": "Content-Length"}),
        ("eventTypes", {"event_types": ("x",) * 65}),
        ("eventTypes", {"event_types": ("x" * 101,)}),
    ],
)
async def test_what_no_request_could_carry_is_refused_without_repeating_it(field: str, config: dict[str, Any]) -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        with pytest.raises(InvalidParams) as refused:
            await h.create(id, **config)
        assert [each.field for each in refused.value.violations] == [field]
        assert "Evil" not in str(refused.value) and await h.kept() == []
        with pytest.raises(InvalidParams) as refused:
            await h.send(**config)
        assert [each.field for each in refused.value.violations] == [
            f"configuration.taskPushNotificationConfig.{field}"
        ]
        assert h.screening.asked == [], "the network is not asked about what is refused anyway"


async def test_a_users_name_and_password_may_be_in_any_letters() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        await h.create(id, authentication={"scheme": "Basic", "credentials": "jürgen:geheim"})


async def test_a_task_has_so_many_webhooks_and_no_more() -> None:
    async with hooked(asks, limits=Limits(hooks=3)) as h:
        id = (await h.send(id="a")).task.id
        await h.create(id, id="b")
        await h.create(id, id="c")
        with pytest.raises(Busy) as refused:
            await h.create(id, id="d")
        assert "3 webhooks" in str(refused.value)
        assert (refused.value.limit, refused.value.most) == ("limits.webhooks", "3")
        await h.create(id, id="b", url="https://other.example")
        with pytest.raises(Busy):
            await h.send("this", of=id, id="e")
        assert state_of(await h.rig.get(id)) is TaskState.INPUT_REQUIRED, "the message was not taken either"
        await h.delete(id, "a")
        await h.create(id, id="d")
        assert await h.ids(id) == ["b", "c", "d"]


async def test_many_set_at_once_are_no_more_than_may_be() -> None:
    async with hooked(limits=Limits(hooks=3)) as h:
        id = (await h.rig.send()).task.id
        h.screening.gate = asyncio.Event()
        creating = [asyncio.create_task(h.create(id, id=f"h{n}")) for n in range(10)]
        while len(h.screening.asked) < 10:
            await asyncio.sleep(0)
        h.screening.gate.set()
        answers = await asyncio.gather(*creating, return_exceptions=True)
        assert sum(isinstance(each, PushConfig) for each in answers) == 3
        assert sum(isinstance(each, Busy) for each in answers) == 7
        assert len(await h.ids(id)) == 3
        await h.delete(id, (await h.ids(id))[0])
        await h.create(id, id="again")


# --- get, list, delete --------------------------------------------------------------------------------------


async def test_a_webhook_that_is_not_there_is_not_found() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        with pytest.raises(TaskNotFound):
            await h.get(id, "nothing")
        with pytest.raises(TaskNotFound):
            await h.get(id)
        assert await h.get(id, "nothing", call(missing_hook="none")) is None


async def test_without_an_id_the_tasks_own_is_meant_or_else_the_first() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        any_hook = call(any_hook=True)
        with pytest.raises(TaskNotFound):
            await h.get(id, by=any_hook)
        await h.create(id, id="a")
        await h.create(id, id="b")
        assert (await h.get(id, by=any_hook)) == await h.get(id, "a")
        await h.create(id, call(own_hook=True))
        assert (await h.get(id, by=any_hook)) == await h.get(id, id)
        for left in (["a", "b"], ["b"], [], []):
            await h.delete(id, by=any_hook)
            assert await h.ids(id) == left


async def test_deleting_twice_deletes_once_and_needs_an_id_where_ids_are_named() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        await h.create(id, id="a")
        await h.delete(id)
        assert await h.ids(id) == ["a"]
        for _ in range(2):
            await h.delete(id, "a")
            assert await h.ids(id) == []


async def test_a_deleted_webhook_is_told_nothing() -> None:
    async with hooked(asks) as h:
        id = (await h.send(id="a")).task.id
        await h.delete(id, "a")
        await h.rig.send("this", task_id=id)
        assert await h.told() == []


async def test_lists_come_in_pages_that_outlive_deletions() -> None:
    async with hooked() as h:
        id = (await h.rig.send()).task.id
        for name in "abcde":
            await h.create(id, id=name)
        page = await h.list(id, page_size=2)
        assert [each.id for each in page.configs] == ["a", "b"] and page.next_page_token
        await h.delete(id, "b")
        page = await h.list(id, page_size=2, page_token=page.next_page_token)
        assert [each.id for each in page.configs] == ["c", "d"]
        page = await h.list(id, page_size=2, page_token=page.next_page_token)
        assert ([each.id for each in page.configs], page.next_page_token) == (["e"], "")
        assert len((await h.list(id, page_size=0)).configs) == len((await h.list(id, page_size=50)).configs) == 4
        with pytest.raises(InvalidParams):
            await h.list(id, page_token="nonsense")


async def test_without_a_task_all_of_the_callers_are_listed() -> None:
    async with hooked() as h:
        first, second = (await h.rig.send()).task.id, (await h.rig.send()).task.id
        await h.create(second, id="x")
        await h.create(first, id="y")
        assert [(each.task_id, each.id) for each in (await h.list()).configs] == [(second, "x"), (first, "y")]
        for scope in STRANGERS:
            assert (await h.list(by=call(scope))).configs == ()


@pytest.mark.parametrize("scope", STRANGERS)
async def test_what_is_not_yours_is_unknown_in_every_operation(scope: Scope) -> None:
    async with hooked() as h:
        view = await h.rig.send()
        await h.create(view.task.id, id="a")
        theirs = replace(call(), scope=scope)
        for id in (view.task.id, "nobody"):
            for doing in (
                lambda id=id: h.create(id, theirs, id="evil"),
                lambda id=id: h.create(id, theirs, url="https://inside.example"),
                lambda id=id: h.get(id, "a", theirs),
                lambda id=id: h.list(id, theirs),
                lambda id=id: h.delete(id, "a", theirs),
            ):
                with pytest.raises(TaskNotFound) as refused:
                    await doing()
                assert (str(refused.value), refused.value.facts) == ("Task not found", {"taskId": id})
        assert h.screening.asked == [URL]
        assert await h.ids(view.task.id) == ["a"]


async def test_a_task_that_goes_while_its_webhook_is_judged_is_unknown() -> None:
    async with hooked() as h:
        view = await h.rig.send()
        h.screening.gate = asyncio.Event()
        creating = asyncio.create_task(h.create(view.task.id))
        while not h.screening.asked:
            await asyncio.sleep(0)
        assert isinstance(h.store, MemoryStore)
        h.store._evict([view.uid])
        h.screening.gate.set()
        with pytest.raises(TaskNotFound):
            await creating


# --- with a message -----------------------------------------------------------------------------------------


async def test_a_webhook_that_comes_with_a_message_hears_everything_from_the_start() -> None:
    async with hooked(asks) as h:
        view = await h.send(id="mine", **SECRETS)
        (kept,) = await h.kept(view.uid)
        assert kept.config == PushConfig(id="mine", task_id=view.task.id, url=URL, **SECRETS)
        assert kept.origin == "test"
        assert isinstance((await h.told())[0], Asked | Started)


async def test_one_that_comes_with_a_further_message_is_kept_with_it() -> None:
    async with hooked(asks) as h:
        id = (await h.rig.send()).task.id
        view = await h.send("this", of=id, id="mine")
        assert await h.ids(id) == ["mine"]
        assert [type(fact) for fact in await h.told()][-1] is Settled
        assert state_of(view) is TaskState.COMPLETED


async def test_what_it_says_about_its_task_is_not_believed() -> None:
    async with hooked() as h:
        other = (await h.rig.send()).task.id
        view = await h.send(task_id=other, tenant="other")
        assert await h.ids(other) == []
        (config,) = (await h.list(view.task.id)).configs
        assert (config.task_id, config.tenant) == (view.task.id, "")


async def test_one_that_comes_with_a_message_gets_its_id_by_the_same_rules() -> None:
    async with hooked() as h:
        view = await h.send(by=call(single_hook=True), id="whatever")
        assert await h.ids(view.task.id) == [view.task.id]
        view = await h.send(by=call(own_hook=True))
        assert await h.ids(view.task.id) == [view.task.id]
        view = await h.send()
        assert (await h.ids(view.task.id))[0] not in ("", view.task.id)


async def test_a_repeated_message_does_not_set_its_webhook_again() -> None:
    async with hooked() as h:
        configuration = Configuration(task_push_notification_config=PushConfig(url=URL, id="a"), idempotency_key="k")
        op = SendMessage(message=h.rig.message(), configuration=configuration)
        first = await h.engine.send(call(), op)
        assert isinstance(first, View)
        await h.delete(first.task.id, "a")
        assert await h.engine.send(call(), op) == first
        assert await h.ids(first.task.id) == []


async def test_a_direct_reply_has_nothing_to_tell() -> None:
    async with hooked(direct=True) as h:
        configuration = Configuration(task_push_notification_config=PushConfig(url=URL))
        reply = await h.engine.send(call(), SendMessage(message=h.rig.message(), configuration=configuration))
        assert isinstance(reply, Message)
        assert await h.kept() == []


# --- without --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["hooks", "screen"])
async def test_without_a_store_or_a_screen_for_them_there_are_no_webhooks(missing: str) -> None:
    store = MemoryStore()
    parts: dict[str, Any] = {"hooks": store, "screen": Screening()}
    parts[missing] = None
    async with rig(echo, store=store, **parts) as r:
        id = (await r.send()).task.id
        h = Hooked(r, store, Screening())
        for doing in (h.create(id), h.get(id, "a"), h.list(id), h.list(), h.delete(id, "a"), h.send()):
            with pytest.raises(PushNotSupported):
                await doing
        assert isinstance(PushNotSupported(), CallerError)


async def test_a_caller_keeps_only_so_many_webhooks_in_all_tasks_together() -> None:
    async with hooked(limits=Limits(hooks_per_caller=2)) as h:
        one, two = [(await h.rig.send()).task.id for _ in range(2)]
        await h.create(one, id="a")
        await h.create(two, id="b")
        with pytest.raises(Busy) as refused:
            await h.create(one, id="c")
        assert (refused.value.limit, refused.value.most) == ("limits.webhooks_per_caller", "2")
        with pytest.raises(Busy):
            await h.send(id="d")
        await h.create(two, id="b")  # takes the place of the one that is there
        await h.delete(one, "a")
        await h.send(id="d")
        assert await h.store.count_hooks(SCOPE.owner, 10) == 2
