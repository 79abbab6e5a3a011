"""Webhooks: what their bodies say, in the words of whoever registered them."""

from collections.abc import Callable

from dragoman.model.facts import AnyFact
from dragoman.model.tasks import View
from dragoman.ports import Hook
from dragoman.wire.mounts import spoken
from dragoman.wire.p10 import P10
from dragoman.wire.settings import WireSettings
from dragoman.wire.told import lighter, tell

Render = Callable[[Hook, AnyFact, View], tuple[bytes, str]]


def newsroom(wire: WireSettings) -> Render:
    """How a fact reads in a hook's dialect: the body and its media type. An empty body means that this hook is not told
    this (its dialect does not, or its owner asked for other events): there is nothing to deliver."""
    dialects = spoken(wire)

    def render(hook: Hook, fact: AnyFact, view: View) -> tuple[bytes, str]:
        dialect = dialects.get(hook.origin, P10)
        body = b""
        for told in lighter(tell(fact, view)):
            body = dialect.news(told, hook.config.event_types)
            if len(body) <= wire.max_news:
                break
        return body, dialect.news_type

    return render
