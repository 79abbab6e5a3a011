"""From `[auth]` and what the environment says to an entrance for each agent."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from dragoman.app.settings import Settings, SettingsError
from dragoman.app.sources import AUTH_TOKEN
from dragoman.ports import Authenticator, Clock


def guarded(settings: Settings) -> bool:
    """Whether nobody gets in without logging in, at any agent."""
    return bool(settings.auth.callers or AUTH_TOKEN in settings.secrets)


def entrances(settings: Settings, slugs: Iterable[str], clock: Clock) -> Mapping[str, Authenticator]:
    """An entrance for each agent; none at all when nobody has to log in. Raises SettingsError."""
    if not guarded(settings):
        return {}
    from dragoman.auth.callers import Caller, Callers, CallersError
    from dragoman.auth.entrance import Alternative, Entrance
    from dragoman.auth.secrets import bearer_scheme

    fixed = [Caller(name=AUTH_TOKEN, tokens=(settings.secrets[AUTH_TOKEN],))] if AUTH_TOKEN in settings.secrets else []
    try:
        callers = Callers(clock, fixed, Path(settings.auth.callers) if settings.auth.callers else None)
        callers.open()
    except CallersError as error:
        raise SettingsError(f"{settings.origin('auth_callers')}: {error}.") from error
    entrance = Entrance([Alternative((bearer_scheme("bearer", callers),))])
    return dict.fromkeys(slugs, entrance)
