"""`serve()`: agents on a port of our own, until somebody stops us."""

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.agents import Agent as Authored
from dragoman.app import checks, tls, wiring
from dragoman.app.access import guarded, names_of
from dragoman.app.banner import banner
from dragoman.app.loading import importing
from dragoman.app.logs import configure
from dragoman.app.settings import Settings, SettingsError
from dragoman.app.sources import resolve, strays
from dragoman.ports import Agent
from dragoman.server.run import Listener
from dragoman.server.run import run as run_listener

log = logging.getLogger("dragoman")


def serve(agents: wiring.Agents, *, config: str | Path | None = None, **settings: Any) -> None:
    """Serve one agent or several (a list, or a dictionary by slug) and return when stopped by SIGINT or SIGTERM.

    Settings are those of docs/configuration.md, as keywords: `port=9000`, `store="memory://"`. Environment and file
    count too. Raises SettingsError before anything is opened, CannotListen when the address is taken.
    """
    if importing:
        raise SettingsError(
            f"{importing[-1]} calls serve() when it is imported, and the command that imports it is to serve: put the "
            'call under `if __name__ == "__main__":`.'
        )
    found = wiring.applicable(resolve(settings, file=config))
    named = wiring.named(agents)
    shut = guarded(found, names_of(named))
    run(named, found, lambda url: print(banner(url, found, guarded=shut), flush=True))  # noqa: T201


def run(agents: Mapping[str, Agent], settings: Settings, opened: Callable[[str], None], *, demo: bool = False) -> None:
    """Serve until stopped. `opened` is called with our address once requests are answered. The demo agent takes over
    the profile's card."""
    checks.values(settings)
    names = names_of(agents)
    checks.certificates(settings)
    checks.reach(settings, names)
    for slug, agent in agents.items():
        if isinstance(agent, Authored) and not agent.skilled:
            raise SettingsError(
                f"The agent {slug or agent.profile.name!r} has no skills: decorate a function with @agent.skill()."
            )
    configure(settings.log.level, settings.log.format)
    if unused := strays():
        log.warning("These variables set nothing: %s", ", ".join(unused))
    if not (checks.loopback(settings.server.host) or guarded(settings, names)):
        log.warning(
            "Listening on %s (%s): anybody who can reach it can use these agents. They call it by its address, or by a "
            "name that public_url or allowed_hosts says",
            settings.server.host or "every address",
            settings.origin("host"),
        )
    works = wiring.Works(agents, settings, demo=demo)
    secure = tls.open(settings)
    listener = Listener(
        works.site,
        works,
        host=settings.server.host,
        port=settings.server.port,
        settings=wiring.serving(settings),
        tls=secure and secure.context,
    )

    def reload() -> None:
        log.info("Reading again what may change: callers, keys, certificates")
        works.reload()
        if secure is not None:
            secure.reload()

    if not sys.stderr.isatty():  # on a terminal it means that the terminal is gone
        listener.reload = reload
    run_listener(listener, opened)
