"""From `[auth]`, and what the environment says, to an entrance for each agent."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.app import schemes
from dragoman.app.settings import (
    AgentSettings,
    ApiKey,
    Basic,
    Bearer,
    Jwt,
    Mtls,
    Scheme,
    Settings,
    SettingsError,
)
from dragoman.app.sources import AUTH_TOKEN, KEY_SUFFIX
from dragoman.model.cards import Profile, Skill
from dragoman.model.security import Requirement
from dragoman.ports import Agent, Authenticator, Clock

if TYPE_CHECKING:
    from dragoman.auth.callers import Caller, Callers
    from dragoman.auth.entrance import Alternative
    from dragoman.auth.passwords import PasswordScheme
    from dragoman.auth.scheme import Scheme as Way
    from dragoman.auth.trusted import TrustedKeys

log = logging.getLogger("dragoman.auth")

ENVIRONMENT = "environment"
"""What the schemes are called that only the environment asks for, when their usual name is taken."""


class Entry(NamedTuple):
    """An alternative by the names of its schemes."""

    names: tuple[str, ...]
    scopes: frozenset[str] = frozenset()


def guarded(settings: Settings, names: Iterable[str] | None = None) -> bool:
    """Whether nobody gets in without logging in, at any agent. Before the agents' names are known, whether that may
    be so."""
    if any(each.public for each in settings.agents):
        return False
    if _described(settings):
        return True
    keys = {name for name in settings.secrets if name.endswith(KEY_SUFFIX)}
    return bool(keys) if names is None else all(key_variable(name) in keys for name in names)


def names_of(agents: Mapping[str, Agent]) -> list[str]:
    return [agent.profile.name for agent in agents.values()]


def key_variable(name: str) -> str:
    """The variable with the API key of an agent of that name: "Currency desk" → CURRENCY_DESK_API_KEY."""
    return re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_") + KEY_SUFFIX


class Access:
    """The entrances of the agents where callers log in, and what stands behind them: opened, read again, closed once
    for all of them. Raises SettingsError."""

    def __init__(self, settings: Settings, profiles: Mapping[str, Profile], clock: Clock) -> None:
        self.entrances: Mapping[str, Authenticator] = {}
        self._callers: Sequence[Callers] = ()
        self._keys: Sequence[TrustedKeys] = ()
        self._passwords: Sequence[PasswordScheme] = ()
        described = _described(settings)
        self._closed: Sequence[str] = ()
        variables = {slug: key_variable(profile.name) for slug, profile in profiles.items()}
        keys = {slug: variable for slug, variable in variables.items() if variable in settings.secrets}
        self._variables = sorted({*keys.values(), *({AUTH_TOKEN} & settings.secrets.keys())})
        if described or keys:
            builder = _Builder(settings, described, clock)
            self.entrances = builder.entrances(profiles, keys)
            self._callers, self._keys, self._passwords = builder.callers, builder.keys, builder.passwords
        shut = [profile for slug, profile in profiles.items() if slug not in self.entrances]
        self._closed = [skill.id for profile in shut for skill in skills_of(profile) if skill.scopes]

    def open(self) -> None:
        """Begin to fetch the keys of issuers, so that the first caller need not wait for them."""
        for variable in self._variables:
            log.info("%s is a credential of callers", variable)
        if self._closed:
            log.warning(
                "Nobody logs in here, so nobody has a scope and nobody can use them: %s", ", ".join(self._closed)
            )
        for keys in self._keys:
            keys.keep_fresh()

    def reload(self) -> None:
        """Read the callers' file and the keys of issuers again, now."""
        for callers in self._callers:
            callers.reload()
        for keys in self._keys:
            keys.reload()

    async def close(self) -> None:
        for keys in self._keys:
            await keys.close()
        for scheme in self._passwords:
            scheme.close()


def _described(settings: Settings) -> dict[str, Scheme]:
    """The schemes of every agent. A callers' file alone means bearer tokens, and so does a token in the environment."""
    found = dict(settings.schemes)
    if settings.auth.callers and not found:
        found["bearer"] = Bearer()
    if AUTH_TOKEN in settings.secrets and not any(isinstance(each, Bearer) for each in found.values()):
        found["bearer" if "bearer" not in found else f"{ENVIRONMENT}-token"] = Bearer()
    return found


def skills_of(profile: Profile) -> Sequence[Skill]:
    return (*profile.skills, *(profile.extended_skills or ()))


class _Builder:
    """Builds each scheme once, however many agents ask for it."""

    def __init__(self, settings: Settings, described: Mapping[str, Scheme], clock: Clock) -> None:
        from dragoman.auth.callers import Caller

        self._settings = settings
        self._clock = clock
        self.callers: list[Callers] = []
        self.keys: list[TrustedKeys] = []
        self.passwords: list[PasswordScheme] = []
        token = settings.secrets.get(AUTH_TOKEN)
        fixed = [Caller(name=AUTH_TOKEN, tokens=(token,))] if token else []
        self._callers = self._opened(fixed, settings.auth.callers)
        self._described = described
        self._built: dict[str, Way] = {name: self._build(name, each) for name, each in described.items()}

    def entrances(self, profiles: Mapping[str, Profile], keys: Mapping[str, str]) -> Mapping[str, Authenticator]:
        usual = self._entries(self._settings.auth.require or tuple(self._described), "auth_require")
        rules = {each.slug: each for each in self._settings.agents}
        return {
            slug: self._entrance(profile, rules.get(slug) or AgentSettings(target=""), usual, keys.get(slug, ""))
            for slug, profile in profiles.items()
            if self._described or slug in keys
        }

    def _entrance(self, profile: Profile, rules: AgentSettings, usual: Sequence[Entry], variable: str) -> Authenticator:
        from dragoman.auth.entrance import Entrance

        where = f"agents {profile.name!r}"
        entries = usual if rules.require is None else self._entries(rules.require, where)
        if not entries and not variable and AUTH_TOKEN not in self._settings.secrets and not rules.public:
            raise SettingsError(f"{where}: nobody could call it; let require name a scheme, or say public = true.")
        built = dict(self._built)
        if AUTH_TOKEN in self._settings.secrets:
            entries = [*entries, *self._with_token(entries)]
        if variable:
            name = "key" if "key" not in built else f"{ENVIRONMENT}-key"
            built[name] = self._key(name, variable)
            entries = [*entries, Entry((name,))]
        skills = self._skills(profile, rules, entries, where)
        asked = {name for each in entries for name in each.names}
        further = {name for needed in skills.values() for each in needed for name in each} - asked
        return Entrance(
            [_alternative(each, built, frozenset(rules.scopes)) for each in entries],
            public=rules.public,
            further=[built[name] for name in sorted(further)],
            skills=skills,
            admin_scope=self._settings.auth.admin_scope,
        )

    def _entries(self, written: Sequence[str], where: str) -> list[Entry]:
        """Scopes that a scheme asks of all its tokens come with its name."""
        origin = self._settings.origins.get(where, where)
        found: list[Entry] = []
        for each in written:
            names = schemes.together(each, self._described, origin)
            asked = (self._described[name] for name in names)
            scopes = frozenset(scope for each in asked if isinstance(each, Jwt) for scope in each.scopes)
            found.append(Entry(names, scopes))
        return found

    def _with_token(self, entries: Sequence[Entry]) -> list[Entry]:
        """The environment's token opens every agent, whatever else it asks for."""
        names = [name for name, each in self._described.items() if isinstance(each, Bearer)]
        return [] if any(each.names == (names[0],) for each in entries) else [Entry((names[0],))]

    def _skills(
        self, profile: Profile, rules: AgentSettings, entries: Sequence[Entry], where: str
    ) -> dict[str, tuple[Requirement, ...]]:
        """What skills ask for beyond what their agent does, from their author and from the settings."""
        found: dict[str, tuple[Requirement, ...]] = {}
        known = {each.id: each for each in skills_of(profile)}
        for id in rules.skills:
            if id not in known:
                raise SettingsError(f"{where}: there is no skill {id!r}. Known: {', '.join(known)}.")
        for id, skill in known.items():
            rule = rules.skills.get(id)
            scopes = frozenset(skill.scopes) | frozenset(rule.scopes if rule else ())
            if rule is not None and rule.require is not None:
                entries_of = self._entries(rule.require, f"{where} skill {id!r}")
            elif scopes:
                entries_of = entries
            else:
                continue
            found[id] = tuple(_requirement(each, scopes | frozenset(rules.scopes)) for each in entries_of)
        return found

    # --- schemes

    def _build(self, name: str, scheme: Scheme) -> "Way":
        from dragoman.auth.secrets import bearer_scheme, key_scheme

        match scheme:
            case Bearer():
                return bearer_scheme(name, self._callers)
            case ApiKey():
                return key_scheme(name, self._callers, scheme.place, scheme.name)
            case Basic():
                from dragoman.auth.passwords import PasswordScheme

                self.passwords.append(PasswordScheme(name, self._callers, self._clock))
                return self.passwords[-1]
            case Mtls():
                return self._certificates(name, scheme)
            case Jwt():
                return self._tokens(name, scheme)

    def _key(self, name: str, variable: str) -> "Way":
        from dragoman.auth.callers import Caller
        from dragoman.auth.secrets import key_scheme

        caller = Caller(name=variable, keys=(self._settings.secrets[variable],))
        return key_scheme(name, self._opened([caller], ""), "header", "X-API-Key")

    def _certificates(self, name: str, scheme: Mtls) -> "Way":
        from dragoman.auth.certificates import CertificateScheme

        return CertificateScheme(
            name,
            self._callers,
            header=scheme.header,
            listed=scheme.listed,
            scopes=frozenset(scheme.scopes),
            tenants=None if scheme.tenants is None else frozenset(scheme.tenants),
        )

    def _tokens(self, name: str, scheme: Jwt) -> "Way":
        from dragoman.app.issuers import jwt_scheme  # what it needs may not be installed

        found, keys = jwt_scheme(name, scheme, self._clock)
        self.keys.append(keys)
        return found

    def _opened(self, fixed: "Sequence[Caller]", file: str) -> "Callers":
        from dragoman.auth.callers import Callers, CallersError

        callers = Callers(self._clock, fixed, Path(file).expanduser() if file else None)
        try:
            callers.open()
        except CallersError as error:
            raise SettingsError(f"{self._settings.origin('auth_callers')}: {error}.") from error
        self.callers.append(callers)
        return callers


def _alternative(entry: Entry, built: "Mapping[str, Way]", scopes: frozenset[str]) -> "Alternative":
    from dragoman.auth.entrance import Alternative

    return Alternative(tuple(built[name] for name in entry.names), entry.scopes | scopes)


def _requirement(entry: Entry, scopes: frozenset[str]) -> Requirement:
    first, *others = entry.names
    return {first: tuple(sorted(entry.scopes | scopes)), **dict.fromkeys(others, ())}
