"""`dragoman serve`: what the flags mean; the serving itself is `app.serving`."""

import sys
from typing import Any

import click
from msgspec.structs import replace

from dragoman.app.settings import SettingsError
from dragoman.model.errors import DragomanError

DEMO = "dragoman.demo:agent"


@click.command(name="serve")
@click.argument("target", required=False)
@click.option("--host", help="Address to listen on.  [127.0.0.1; HOST]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on; 0 takes a free one.  [8000; PORT]")
@click.option("--store", help="Where tasks are kept: memory://, sqlite:///file.db, a path.  [sqlite:///dragoman.db]")
@click.option("--profile", help="Look like: official, coding-agent, cortex, simple, a2x, proto.  [every mount]")
@click.option("--public-url", help="The address callers use, when it is not the one listened on.  [A2A_PUBLIC_URL]")
@click.option("--config", type=click.Path(dir_okay=False), help="Settings file.  [dragoman.toml; DRAGOMAN_CONFIG]")
@click.option("--reload", is_flag=True, help="Start again whenever a Python file or the settings file changes.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="How much is logged.")
@click.option("--allow-public", is_flag=True, default=None, help="Listen beyond this machine although nobody logs in.")
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="Any other setting; see `dragoman config`.")
def command(target: str | None, config: str | None, reload: bool, extra: tuple[str, ...], **given: Any) -> None:
    """Serve TARGET: module:attribute, file.py or file.py:attribute.

    Without TARGET: the agents of dragoman.toml or DRAGOMAN_AGENT, else the demo agent.
    """
    try:
        flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()} | _pairs(extra)
        run(target, flags, config, reload)
    except DragomanError as error:
        if trace := getattr(error, "trace", ""):
            click.echo(trace, err=True)
        # What a person typed, wrote or has running is in the way: a sentence for them, no traceback.
        click.echo(f"Error: {error}", err=True)
        sys.exit(2 if isinstance(error, SettingsError) else 1)


def run(target: str | None, flags: dict[str, Any], config: str | None, reload: bool) -> None:
    from dragoman.app import checks
    from dragoman.app.sources import resolve

    settings = resolve(flags, file=config)
    if target is not None:
        settings = replace(settings, agents=())  # it stands for the whole list
    checks.values(settings)
    checks.reach(settings)
    if reload:
        from dragoman.cli.reload import supervise

        sys.exit(supervise(_arguments(), target, config))

    from dragoman.app.access import guarded, names_of
    from dragoman.app.banner import banner
    from dragoman.app.loading import load, load_all, rules
    from dragoman.app.serving import run as serve

    agents = load_all(settings.agents) if settings.agents else {"": load(target or DEMO)}
    demo = target is None and not settings.agents
    settings = replace(settings, agents=rules(settings.agents, agents) if settings.agents else ())
    shut = guarded(settings, names_of(agents))
    serve(agents, settings, lambda url: click.echo(banner(url, settings, agents, demo=demo, guarded=shut)), demo=demo)


def _pairs(extra: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in extra:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingsError(f"--set takes name=value, got {pair!r}.")
        pairs[name] = value
    return pairs


def _arguments() -> list[str]:
    """This very command without --reload, for the child that does the serving."""
    return [sys.executable, "-m", "dragoman", *(argument for argument in sys.argv[1:] if argument != "--reload")]
