"""From settings to running parts. The one place that knows which store, bus, clock and server are used."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dragoman.app import checks, pushing
from dragoman.app.access import Access
from dragoman.app.loading import is_agent, slug_of, take
from dragoman.app.profiles import PRESETS, dress
from dragoman.app.settings import Settings, SettingsError
from dragoman.app.signing import signer
from dragoman.app.stores import MemoryChoice, choose
from dragoman.app.system import SortedIds, SystemClock
from dragoman.bus.local import LocalBus
from dragoman.engine.engine import Engine
from dragoman.engine.limits import Limits
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.tasks import Scope, Task
from dragoman.ports import Agent, HookedStore
from dragoman.push.sender import DRAIN_SECONDS
from dragoman.server.asgi import Site
from dragoman.server.settings import ServerSettings
from dragoman.wire.settings import WireSettings

Agents = Agent | Sequence[Agent] | Mapping[str, Agent]


def named(agents: Agents) -> dict[str, Agent]:
    """One agent, several, or several by slug → by slug. The first is the one at the root."""
    if isinstance(agents, Mapping):
        given = list(agents.items())
    elif isinstance(agents, Sequence):
        given = [("", each) for each in agents]
    else:
        given = [("", agents)]
    found: dict[str, Agent] = {}
    for slug, each in given:
        if not is_agent(each):
            raise SettingsError(f"Cannot serve a {type(each).__name__}: make an agent with dragoman.Agent(...).")
        take(slug or (slug_of(each.profile.name) if found else ""), each, found)
    if not found:
        raise SettingsError("There is no agent to serve.")
    return found


def applicable(settings: Settings) -> Settings:
    """Without what the file says about agents that it only counts: these agents come from elsewhere, and only their
    slugs can tell which is meant."""
    return replace(settings, agents=tuple(each for each in settings.agents if each.slug))


def store(settings: Settings) -> HookedStore:
    """The store its URL names. SQLite is imported only by who uses it."""
    choice = choose(settings.store.url)
    if isinstance(choice, MemoryChoice):
        from dragoman.store.memory import MemoryStore

        return MemoryStore(
            max_tasks=settings.store.cached_tasks,
            max_contexts=settings.store.cached_contexts,
            ttl=settings.store.cached_for.ms,
            calm_interval=settings.push.interval.ms,
        )
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(
        choice.path,
        synchronous=choice.synchronous,
        max_bytes=settings.store.max_size,
        calm_interval=settings.push.interval.ms,
    )


def _forgetful(settings: Settings) -> bool:
    return isinstance(choose(settings.store.url), MemoryChoice)


def limits(settings: Settings) -> Limits:
    return Limits(
        running=settings.limits.running,
        held=settings.limits.held,
        inbox=settings.limits.inbox,
        tasks_per_caller=settings.limits.tasks_per_caller,
        bytes_per_caller=int(settings.limits.bytes_per_caller),
        hooks=settings.limits.webhooks,
        hooks_per_caller=settings.limits.webhooks_per_caller,
        hold_ms=settings.limits.hold.ms,
        parked_ms=settings.store.parked.ms,
        retention_ms=settings.store.retention.ms,
        sweep_ms=settings.store.sweep.ms,
        # A store in memory needs no copy of what it holds, which would outlive what it forgets.
        cached_tasks=0 if _forgetful(settings) else settings.store.cached_tasks,
        cached_bytes=settings.store.cached_bytes,
        cache_ms=settings.store.cached_for.ms,
    )


def door(settings: Settings) -> GatewaySettings:
    host = settings.server.host
    everywhere = host in ("", "0.0.0.0", "::")
    return GatewaySettings(
        # Who listens on an address of their own is called by it. The wildcards are nobody's name and every address.
        hosts=settings.server.allowed_hosts + (() if everywhere else (host,)),
        by_address=everywhere,
        origins=settings.server.allowed_origins,
        proxies=settings.server.trusted_proxies,
        public_url=settings.server.public_url,
        streams=settings.limits.streams,
        streams_per_caller=settings.limits.streams_per_caller,
        streams_per_address=settings.limits.streams_per_address,
        requests=settings.limits.requests,
        requests_per_caller=settings.limits.requests_per_caller,
        rate_per_caller=settings.limits.rate_per_caller,
        rate_per_address=settings.limits.rate_per_address,
        rate_burst=settings.limits.rate_burst,
        rate_wait=settings.limits.rate_wait,
        rate_loopback=settings.limits.rate_loopback,
        uploads=settings.limits.uploads,
        uploads_per_caller=settings.limits.uploads_per_caller,
        answers=settings.limits.answers,
        answers_per_caller=settings.limits.answers_per_caller,
        card_versions=settings.server.card_versions,
        mounts=settings.server.mounts,
        primary=_primary(settings),
        open_extended_card=settings.server.open_extended_card,
    )


def _primary(settings: Settings) -> tuple[str, str]:
    """The address the cards name first: the profile's, while that mount is on."""
    if settings.server.profile:
        path, version = PRESETS[settings.server.profile].primary
        if path in ("/", *settings.server.mounts):
            return path, version
    return "/", "1.0"


def serving(settings: Settings) -> ServerSettings:
    return ServerSettings(
        body_limit=settings.limits.body,
        keepalive_seconds=settings.server.keepalive,
        card_max_age=int(settings.server.card_max_age),
        access_log=settings.log.requests,
        head_seconds=settings.server.head_timeout,
        head_limit=settings.limits.head,
        body_seconds=settings.server.body_timeout,
        idle_seconds=settings.server.idle_timeout,
        stall_seconds=settings.server.stall_timeout,
        drain_seconds=settings.server.drain,
        close_seconds=settings.server.close,
        connections_per_address=settings.server.connections_per_address,
        backlog=settings.server.backlog,
    )


def reading(settings: Settings) -> WireSettings:
    return WireSettings(
        require_version=settings.server.require_version,
        mounts=settings.server.mounts,
        primary=_primary(settings),
        frames=checks.frames(settings),
        cortex_statuses=settings.server.cortex_statuses,
        a2x_tasks=settings.auth.a2x_tasks,
        simple_errors=settings.auth.simple_errors,
        patience=settings.limits.patience,
        max_depth=settings.limits.depth,
        max_containers=settings.limits.containers,
        max_parts=settings.limits.parts,
    )


class Works:
    """The running parts, with one life: start before the first request, drain while requests still run, close last."""

    def __init__(self, agents: Mapping[str, Agent], settings: Settings, *, demo: bool = False) -> None:
        dressed = dress(agents, settings.server.profile, push=settings.push.enabled, demo=demo)
        clock = SystemClock()
        self._agents = agents
        self._access = Access(settings, {slug: each.profile for slug, each in dressed.items()}, clock)
        kept, signing, wire = store(settings), signer(settings), reading(settings)
        self._engine = Engine(
            store=kept,
            bus=LocalBus(),
            agents=agents,
            clock=clock,
            ids=SortedIds(),
            limits=limits(settings),
            hooks=kept,
            screen=pushing.screen(settings),
        )
        self._sender = pushing.sender(settings, kept, self._engine.look, wire, signing)
        self._local = pushing.local(settings, kept)
        gateway = Gateway(
            engine=self._engine,
            agents=dressed,
            settings=door(settings),
            entrances=self._access.entrances,
            signer=signing,
        )
        self.site = Site(gateway=gateway, settings=serving(settings), wire=wire)

    async def start(self) -> None:
        self._access.open()
        await self._engine.start()
        if self._sender is not None:
            await self._sender.start()
        if self._local is not None:
            await self._local.open()

    def reload(self) -> None:
        """Read again what may change while we serve: callers, and keys of issuers."""
        self._access.reload()

    async def drain(self, seconds: float) -> None:
        self.site.readiness.stage = "stopping"
        await self._engine.drain(seconds)
        if self._sender is not None:
            await self._sender.drain(min(seconds, DRAIN_SECONDS))

    async def resume(self, scope: Scope, task_id: str) -> Task:
        return (await self._engine.resume(scope, task_id)).task

    async def close(self) -> None:
        if self._local is not None:
            await self._local.close()
        if self._sender is not None:
            await self._sender.close()
        await self._engine.close()
        await self._access.close()
        for agent in self._agents.values():
            await agent.close()
