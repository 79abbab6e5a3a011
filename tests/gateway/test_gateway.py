"""From an exchange to the engine: which agent, on whose behalf, and what is refused before it begins."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.gateway.desk import Desk
from dragoman.gateway.gateway import NOBODY as NO_OWNER
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.cards import Extension, Overlay, Profile, Skill
from dragoman.model.errors import (
    ExtendedCardNotConfigured,
    ExtensionRequired,
    Forbidden,
    PushNotSupported,
    Unauthenticated,
    UnsupportedOperation,
)
from dragoman.model.messages import Message
from dragoman.model.operations import (
    Call,
    CancelTask,
    Configuration,
    CreatePush,
    DeletePush,
    GetExtendedCard,
    GetPush,
    GetTask,
    ListPush,
    ListTasks,
    Operation,
    Principal,
    PushConfig,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
)
from dragoman.model.security import Security
from dragoman.model.tasks import EVERYONE, Scope
from dragoman.ports import Presented
from dragoman.wire.exchange import Envoy, Exchange
from dragoman.wire.jsonrpc import Rpc
from dragoman.wire.p10 import P10

pytestmark = pytest.mark.anyio

NEEDED = "urn:needed"
KNOWN = "urn:known"
NOBODY = Principal()
PUSH = (CreatePush(config=PushConfig()), GetPush(), ListPush(), DeletePush())
SEND = SendMessage(message=Message())
STREAM = SendStreamingMessage(message=Message())


class Agent:
    def __init__(self, **profile: Any) -> None:
        self.profile = Profile(name="A", description="A", version="1", **profile)


class Engine:
    """Says which method was called, with what."""

    async def send(self, call: Call, op: Operation) -> Any:
        return ("send", call, op)

    async def stream(self, call: Call, op: Operation) -> Any:
        return ("stream", call, op)

    async def get(self, call: Call, op: Operation) -> Any:
        return ("get", call, op)

    async def list(self, call: Call, op: Operation) -> Any:
        return ("list", call, op)

    async def cancel(self, call: Call, op: Operation) -> Any:
        return ("cancel", call, op)

    async def subscribe(self, call: Call, op: Operation) -> Any:
        return ("subscribe", call, op)

    async def whose(self, scope: Scope, id: str) -> Scope | None:
        return Scope(scope.agent, scope.tenant, "somebody") if id == "x" else None

    async def create_push(self, call: Call, op: Operation) -> Any:
        return ("create_push", call, op)

    async def get_push(self, call: Call, op: Operation) -> Any:
        return ("get_push", call, op)

    async def list_push(self, call: Call, op: Operation) -> Any:
        return ("list_push", call, op)

    async def delete_push(self, call: Call, op: Operation) -> Any:
        return ("delete_push", call, op)


def exchange(operation: Operation, *extensions: str, **envoy: str) -> Exchange:
    return Exchange(P10, "Method", operation, Envoy(extensions=extensions, **envoy), Rpc(b"1", streamed=False))


def admit(operation: Operation, *extensions: str, principal: Principal = NOBODY, **profile: Any) -> Exchange:
    asked = exchange(operation, *extensions)
    Desk("", "", Agent(**profile).profile, GatewaySettings()).admit(asked, principal)
    return asked


@pytest.mark.parametrize(
    ("operation", "method"),
    [
        (SEND, "send"),
        (STREAM, "stream"),
        (GetTask(id="x"), "get"),
        (ListTasks(), "list"),
        (CancelTask(id="x"), "cancel"),
        (SubscribeToTask(id="x"), "subscribe"),
        *zip(PUSH, ("create_push", "get_push", "list_push", "delete_push"), strict=True),
    ],
)
async def test_every_operation_goes_to_its_method_with_all_that_came_around_it(
    operation: Operation, method: str
) -> None:
    gateway = Gateway(engine=Engine(), agents={"a": Agent(push=True)})
    asked = exchange(operation, cursor="u.3", idempotency_key="k")
    asked.tenant = "acme"
    called: Any = await gateway.call(gateway.root, asked, Principal(id="me"))
    name, call, given = called
    assert (name, given) == (method, operation)
    assert call.scope == ("a", "acme", "me")
    assert (call.cursor, call.idempotency_key, call.origin) == ("u.3", "k", P10.origin)
    assert call.policy is P10.policy
    assert call.principal.id == "me"


def test_what_no_method_stands_behind_is_said_so() -> None:
    gateway = Gateway(engine=Engine(), agents={"": Agent()})
    with pytest.raises(UnsupportedOperation):
        gateway.call(gateway.root, exchange(Operation()), Principal())


@pytest.mark.proves("W-061")
def test_an_agent_that_does_not_stream_is_sent_no_streams() -> None:
    for operation in (STREAM, SubscribeToTask(id="x")):
        with pytest.raises(UnsupportedOperation):
            admit(operation, streaming=False)
    admit(SEND, streaming=False)


@pytest.mark.proves("W-060")
def test_an_agent_that_does_not_notify_refuses_every_way_of_asking_for_it() -> None:
    inside = SendMessage(message=Message(), configuration=Configuration(task_push_notification_config=PushConfig()))
    for operation in (inside, *PUSH):
        with pytest.raises(PushNotSupported):
            admit(operation)
        admit(operation, push=True)


@pytest.mark.proves("W-063")
def test_a_required_extension_must_be_named_to_send_and_only_then() -> None:
    extensions = (Extension(uri=NEEDED, required=True), Extension(uri=KNOWN))
    for operation in (SEND, STREAM):
        with pytest.raises(ExtensionRequired):
            admit(operation, KNOWN, extensions=extensions)
        assert admit(operation, "urn:other", KNOWN, NEEDED, extensions=extensions).activated == (KNOWN, NEEDED)
    for operation in (GetTask(id="x"), CancelTask(id="x"), SubscribeToTask(id="x")):
        assert admit(operation, extensions=extensions).activated == ()


async def test_the_extensions_that_took_effect_reach_the_engine() -> None:
    gateway = Gateway(engine=Engine(), agents={"": Agent(extensions=(Extension(uri=KNOWN),))})
    called: Any = await gateway.call(gateway.root, exchange(SEND, "urn:other", KNOWN), Principal())
    assert called[1].extensions == (KNOWN,)


@pytest.mark.proves("W-033", "W-062")
async def test_the_extended_card_is_for_who_logged_in() -> None:
    hidden = Skill(id="h", name="H", description="H", tags=("h",))
    card = GetExtendedCard()
    with pytest.raises(UnsupportedOperation):
        admit(card)
    with pytest.raises(ExtendedCardNotConfigured):
        admit(card, extended=True)
    with pytest.raises(Unauthenticated):
        admit(card, extended=True, extended_skills=(hidden,))
    admit(card, extended=True, extended_skills=(hidden,), principal=Principal(id="me"))
    agents = {"": Agent(extended=True, extended_skills=(hidden,))}
    gateway = Gateway(engine=Engine(), agents=agents, settings=GatewaySettings(open_extended_card=True))
    source = await gateway.extended_card(gateway.root, exchange(card), Principal(), "http://localhost")
    assert source.extended
    assert source.profile.extended_skills == (hidden,)


async def test_each_caller_sees_an_extended_card_of_their_own_and_nobody_in_particular_the_common_one() -> None:
    plain = Skill(id="plain", name="P", description="P", tags=("p",))
    hidden = Skill(id="h", name="H", description="H", tags=("h",))
    own = Skill(id="own", name="Own", description="Yours", tags=("o",))

    def sync(principal: Principal) -> Overlay | None:
        return {
            "gold": Overlay(skills=(own,), description="For gold", extensions=(Extension(uri="urn:gold"),)),
            "iron": Overlay(without=("plain", "h"), documentation_url="https://iron.example"),
            "same": Overlay(skills=(replace(plain, description="Mine"),)),
        }.get(principal.id)

    async def slow(principal: Principal) -> Overlay | None:
        return sync(principal)

    for overlay in (sync, slow):
        agents = {"": Agent(skills=(plain,), extended=True, extended_skills=(hidden,), overlay=overlay)}
        gateway = Gateway(engine=Engine(), agents=agents, settings=GatewaySettings(open_extended_card=True))

        async def shown(id: str, gateway: Gateway = gateway) -> Profile:
            card = exchange(GetExtendedCard())
            return (await gateway.extended_card(gateway.root, card, Principal(id=id), "http://localhost")).profile

        gold, iron, same = await shown("gold"), await shown("iron"), await shown("same")
        assert (gold.skills, gold.extended_skills) == ((plain,), (hidden, own))
        assert (gold.description, gold.extensions) == ("For gold", (Extension(uri="urn:gold"),))
        assert (iron.skills, iron.extended_skills) == ((), ())
        assert iron.documentation_url == "https://iron.example"
        assert (same.skills, [skill.description for skill in same.extended_skills or ()]) == ((), ["H", "Mine"])
        for id in ("other", ""):
            assert await shown(id) == gateway.root.profile
        assert gateway.card(gateway.root, "http://localhost").profile == gateway.root.profile


class Shut:
    """An entrance that says how it opens."""

    challenge = 'ApiKey realm="dragoman", in="header", name="K"'
    terms = None
    explicit = True
    security = Security()

    def authenticate(self, presented: Presented) -> Principal:
        return Principal()

    def lapsed(self, principal: Principal) -> bool:
        return False


def test_who_asks_for_the_extended_card_is_told_what_the_agent_takes() -> None:
    agents = {"": Agent(extended=True, extended_skills=())}
    gateway = Gateway(engine=Engine(), agents=agents, entrances={"": Shut()})
    with pytest.raises(Unauthenticated) as caught:
        gateway.root.admit(exchange(GetExtendedCard()), Principal())
    assert caught.value.challenge == Shut.challenge


@pytest.mark.parametrize(
    ("tls", "certificate"),
    [
        ({"client_cert_chain": ["mine", "authority"]}, "mine"),
        ({"client_cert_chain": ["mine"], "client_cert_error": None}, "mine"),
        ({"client_cert_chain": ["mine"], "client_cert_error": "expired"}, ""),
        ({"client_cert_chain": []}, ""),
        ({}, ""),
    ],
)
def test_only_a_certificate_that_was_verified_is_one(tls: dict[str, Any], certificate: str) -> None:
    seen: list[Presented] = []

    class Watching(Shut):
        def authenticate(self, presented: Presented) -> Principal:
            seen.append(presented)
            return Principal()

    settings = GatewaySettings(proxies=("10.0.0.0/8",))
    gateway = Gateway(engine=Engine(), agents={"": Agent()}, entrances={"": Watching()}, settings=settings)
    for peer in ("10.0.0.1", "192.0.2.1"):
        gateway.principal(gateway.root, {"a": "b"}, "q", {"client": (peer, 1), "extensions": {"tls": tls}})
    assert [each.certificate for each in seen] == [certificate] * 2
    assert [each.forwarded for each in seen] == [True, False]
    assert (seen[0].headers, seen[0].query) == ({"a": "b"}, "q")


def test_cards_name_the_versions_they_are_told_to() -> None:
    def versions(*told: str) -> list[str]:
        settings = GatewaySettings(card_versions=told, mounts=())
        gateway = Gateway(engine=Engine(), agents={"": Agent()}, settings=settings)
        return [each.version for each in gateway.root.card("http://localhost").interfaces]

    assert versions() == versions("1.0", "0.3") == ["1.0", "1.0", "0.3", "0.3"]
    assert versions("1.0") == ["1.0", "1.0"]
    assert versions("0.3") == ["0.3", "0.3"]


def test_paths_below_a_slug_belong_to_its_agent_and_all_others_to_the_first() -> None:
    gateway = Gateway(engine=Engine(), agents={"a": Agent(), "b": Agent()})

    def found(path: str) -> tuple[str, str] | None:
        match = gateway.find(path)
        return match and (match[0].slug, match[1])

    assert found("/") == ("a", "/")
    assert found("/tasks/x") == ("a", "/tasks/x")
    assert found("/agents/b") == ("b", "/")
    assert found("/agents/b/") == ("b", "/")
    assert found("/agents/b/tasks/x:cancel") == ("b", "/tasks/x:cancel")
    assert found("/agents/c/") is None
    assert found("/agents/") is None
    assert Gateway(engine=Engine(), agents={"": Agent()}).find("/agents//") is None


# --- who may use what -------------------------------------------------------------------------------------

ADA = Principal(id="ada", tenants=frozenset({"acme"}))


async def scope_of(operation: Operation, tenant: str, principal: Principal, **policy: Any) -> Scope:
    gateway = Gateway(engine=Engine(), agents={"": Agent(push=True)})
    asked = exchange(operation)
    asked.tenant = tenant
    if policy:
        asked.policy = replace(asked.policy, **policy)
    called: Any = await gateway.call(gateway.root, asked, principal)
    return called[1].scope


@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_a_caller_uses_its_own_tenants_and_none(tenant: str) -> None:
    for operation in (SEND, STREAM, GetTask(id="x"), ListTasks(), CancelTask(id="x"), SubscribeToTask(id="x")):
        assert await scope_of(operation, tenant, ADA) == ("", tenant, "ada")


async def test_without_a_list_every_word_is_a_tenant() -> None:
    assert await scope_of(SEND, "anything", Principal(id="ada")) == ("", "anything", "ada")
    with pytest.raises(Forbidden):
        await scope_of(SEND, "anything", Principal(id="ada", tenants=frozenset()))


@pytest.mark.proves("W-192", "W-195")
async def test_in_a_tenant_of_others_there_is_nothing_of_ones_own() -> None:
    for operation in (GetTask(id="x"), CancelTask(id="x"), SubscribeToTask(id="x")):
        scope = await scope_of(operation, "other", ADA)
        assert scope == ("", "other", NO_OWNER) and scope.owner != "ada"
    to_task = SendMessage(message=Message(task_id="x"))
    assert (await scope_of(to_task, "other", ADA)).owner == NO_OWNER


async def test_nothing_begins_in_a_tenant_of_others() -> None:
    to_task = SendMessage(message=Message(task_id="x"))
    for operation, policy in ((SEND, {}), (STREAM, {}), (ListTasks(), {}), (to_task, {"unknown": "fresh"})):
        with pytest.raises(Forbidden, match="You may not use this tenant"):
            await scope_of(operation, "other", ADA, **policy)


ADMIN = Principal(id="root", admin=True)


async def test_an_admin_sees_everybodys_tasks() -> None:
    assert await scope_of(ListTasks(), "t", ADMIN) == ("", "t", EVERYONE)
    for operation in (GetTask(id="x"), SubscribeToTask(id="x")):
        assert await scope_of(operation, "t", ADMIN) == ("", "t", "somebody")
    assert await scope_of(GetTask(id="unknown"), "t", ADMIN) == ("", "t", "root"), "unknown as to anybody else"


async def test_an_admin_touches_no_task_but_their_own() -> None:
    for operation in (SEND, STREAM, CancelTask(id="x"), SendMessage(message=Message(task_id="x"))):
        assert (await scope_of(operation, "t", ADMIN)).owner == "root"


async def test_an_admin_of_some_tenants_sees_nothing_in_others() -> None:
    admin = replace(ADMIN, tenants=frozenset({"acme"}))
    assert await scope_of(ListTasks(), "acme", admin) == ("", "acme", EVERYONE)
    with pytest.raises(Forbidden):
        await scope_of(ListTasks(), "other", admin)
    assert (await scope_of(GetTask(id="x"), "other", admin)).owner == NO_OWNER
