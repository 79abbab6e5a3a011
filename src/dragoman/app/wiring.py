"""From settings to running parts. The one place that knows which store, bus, clock and server are used."""

from collections.abc import Mapping, Sequence

from dragoman.app.loading import is_agent, slug_of
from dragoman.app.settings import Settings, SettingsError
from dragoman.app.stores import MemoryChoice, choose
from dragoman.app.system import SortedIds, SystemClock
from dragoman.bus.local import LocalBus
from dragoman.engine.engine import Engine
from dragoman.engine.limits import Limits
from dragoman.ports import Agent, Store

Agents = Agent | Sequence[Agent] | Mapping[str, Agent]


def named(agents: Agents) -> dict[str, Agent]:
    """One agent, several, or several by slug → by slug. The first is also the one at the root."""
    if isinstance(agents, Mapping):
        found = dict(agents)
    elif isinstance(agents, Sequence):
        found = {slug_of(each.profile.name) if len(agents) > 1 else "": each for each in agents}
        if len(found) < len(agents):
            raise SettingsError("Two agents have the same name: give them slugs, as in {'first': one, 'second': two}.")
    else:
        found = {"": agents}
    if not found:
        raise SettingsError("There is no agent to serve.")
    for each in found.values():
        if not is_agent(each):
            raise SettingsError(f"Cannot serve a {type(each).__name__}: make an agent with dragoman.Agent(...).")
    return found


def store(settings: Settings) -> Store:
    """The store its URL names. SQLite is imported only by who uses it."""
    choice = choose(settings.store.url)
    if isinstance(choice, MemoryChoice):
        from dragoman.store.memory import MemoryStore

        return MemoryStore(
            max_tasks=settings.store.cached_tasks,
            max_contexts=settings.store.cached_contexts,
            ttl=settings.store.cached_for.ms,
        )
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(choice.path, synchronous=choice.synchronous, max_bytes=settings.store.max_size)


def limits(settings: Settings) -> Limits:
    return Limits(
        running=settings.limits.running,
        held=settings.limits.held,
        inbox=settings.limits.inbox,
        hold_ms=settings.limits.hold.ms,
        parked_ms=settings.store.parked.ms,
        retention_ms=settings.store.retention.ms,
        sweep_ms=settings.store.sweep.ms,
        cached_tasks=settings.store.cached_tasks,
        cached_bytes=settings.store.cached_bytes,
        cache_ms=settings.store.cached_for.ms,
    )


def engine(agents: Mapping[str, Agent], settings: Settings) -> Engine:
    return Engine(
        store=store(settings),
        bus=LocalBus(),
        agents=agents,
        clock=SystemClock(),
        ids=SortedIds(),
        limits=limits(settings),
    )
