"""Where JSON-RPC is spoken: which dialect each method name at a path belongs to.

No two systems that share a path share a name, except where `forks` or a task's origin tell them apart.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from dragoman.model.errors import Unauthenticated, VersionNotSupported
from dragoman.wire import a2x, coding, cortex, proto, simple
from dragoman.wire.dialect import Dialect
from dragoman.wire.k03 import K03
from dragoman.wire.p10 import P10
from dragoman.wire.settings import Style, WireSettings
from dragoman.wire.t01 import T01

KNOWN_VERSIONS = frozenset({"1.0", "0.3", "0.2", "0.1"})


class Mount(NamedTuple):
    """A path. When no known method name tells, errors are put in the words of `modern` or, for an old client, of
    `legacy`; for one that names no version, of `silent` if that is set, else of `legacy`.

    `forks` look into the parameters where one name belongs to several dialects. `shared` names are taken in any
    version. An `official` mount holds clients to the official rules of versions. `rest` answers HTTP+JSON below the
    path.
    """

    methods: Mapping[str, Dialect]
    modern: Dialect
    legacy: Dialect
    silent: Dialect | None = None
    forks: Mapping[str, Callable[[bytes], Dialect]] = {}
    shared: frozenset[str] = frozenset()
    official: bool = False
    rest: Dialect | None = None

    @property
    def greets(self) -> bool:
        """Whether the answer to who did not log in depends on what was asked."""
        return any(each.guest is not None or Unauthenticated in each.words.codes for each in self.methods.values())

    def find(self, method: str, params: bytes) -> Dialect | None:
        fork = self.forks.get(method) if self.forks else None
        return self.methods.get(method) if fork is None else fork(params)

    def unnamed(self, version: str, method: str = "") -> Dialect:
        """In whose words an error is put before a method is known. Only names of 1.0 begin with a capital."""
        if version:
            return self.legacy if version.startswith("0.") else self.modern
        if method[:1].isupper() and not self.official:
            return self.modern
        return self.silent or self.legacy

    def versions(self, method: str, dialect: Dialect) -> frozenset[str]:
        """What `A2A-Version` may be with this name."""
        own = dialect.exact or (self.official and method not in self.shared)
        return dialect.versions if own else KNOWN_VERSIONS


def table(wire: WireSettings) -> Mapping[str, Mount]:
    """Every mount these settings ask for, by its path."""
    found = {"/": _official(wire)}
    for path, (modern, legacy) in SEEDS.items():
        if path in wire.mounts:
            style = wire.frames.get(path, "superset")
            found[path] = _seed(path, modern(style, wire), legacy(style, wire), wire)
    return found


def spoken(wire: WireSettings) -> Mapping[str, Dialect]:
    """Every dialect by its origin, also those that no mount speaks now: tasks and webhooks may be older than that."""
    found = (
        P10,
        K03,
        T01,
        simple.dialect("plain", wire),
        *(make("plain", wire) for each in SEEDS.values() for make in each),
    )
    return {dialect.origin: dialect for dialect in found}


Make = Callable[[Style, WireSettings], Dialect]


def _modern(style: Style, wire: WireSettings) -> Dialect:
    return P10


# By path: who answers 1.0's names and who 0.3's.
SEEDS: Mapping[str, tuple[Make, Make]] = {
    "/a2a/jsonrpc": (_modern, coding.dialect),
    "/a2a": (cortex.dialect, proto.dialect),
    "/api/a2a": (_modern, a2x.dialect),
}


def _seed(path: str, modern: Dialect, own: Dialect, wire: WireSettings) -> Mount:
    older = simple.dialect(wire.frames.get(path, "superset"), wire, simple.OWN)
    return Mount(
        {**names(older, modern, own), **_asked(older)},
        modern,
        own,
        silent=modern if wire.primary == (path, modern.version) else None,
        forks=_forks(older),
        rest=proto.dialect("plain", wire) if path == "/a2a" else None,
    )


def _official(wire: WireSettings) -> Mount:
    """Official names by official rules, and beside them the two oldest dialects, which answer for their own tasks."""
    older = simple.dialect(wire.frames.get("/", "superset"), wire, simple.OWN)
    # Of those who use the shared names only simple_a2a's clients name a version, and know a number for a wrong one.
    unsupported = {VersionNotSupported: simple.WORDS.codes[VersionNotSupported]}
    shared = replace(
        K03,
        heirs={T01.origin: T01, older.origin: older},
        words=K03.words._replace(codes={**K03.words.codes, **unsupported}),
        policy=replace(K03.policy, by_origin={T01.origin: T01.policy, older.origin: older.policy}),
    )
    return Mount(
        {**names(older, P10, K03), **dict.fromkeys(SHARED, shared), **_asked(older)},
        P10,
        K03,
        forks=_forks(older),
        shared=SHARED,
        official=True,
    )


SHARED = frozenset(name for name in simple.METHODS if name in K03.methods)


def _forks(older: Dialect) -> Mapping[str, Callable[[bytes], Dialect]]:
    """Who sends with a type or a session speaks 0.1, everybody else simple_a2a; of webhooks, who calls their address
    a `url`."""

    def choose(params: bytes) -> Dialect:
        return T01 if _session_or_type(params) else older

    def choose_hook(params: bytes) -> Dialect:
        return T01 if b'"url"' in params and b'"webhookUrl"' not in params else older

    return {**dict.fromkeys(("tasks/send", "tasks/sendSubscribe"), choose), "tasks/pushNotification/set": choose_hook}


def _asked(older: Dialect) -> Mapping[str, Dialect]:
    """Whose webhook is asked for shows when it is found."""
    by_origin = {T01.origin: T01.policy}
    asked = replace(older, heirs={T01.origin: T01}, policy=replace(older.policy, by_origin=by_origin))
    return {"tasks/pushNotification/get": asked}


def _session_or_type(params: bytes) -> bool:
    """Whether these parameters of a send can only be 0.1's."""
    if b'"type"' not in params and b"sessionId" not in params:
        return False
    try:
        found: Any = msgspec.json.decode(params)
        parts: Any = found["message"]["parts"] if "sessionId" not in found else ()
        return "sessionId" in found or any(isinstance(part, dict) and "type" in part for part in parts)
    except (msgspec.DecodeError, KeyError, TypeError):
        return False


def names(*dialects: Dialect) -> Mapping[str, Dialect]:
    return {name: dialect for dialect in dialects for name in dialect.methods}
