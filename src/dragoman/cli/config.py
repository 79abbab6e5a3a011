"""`dragoman config`: the settings in effect, as a dragoman.toml that would set them."""

import sys
from typing import cast

import click

from dragoman.app.settings import NAMES, SECTIONS, Settings, SettingsError, value_of
from dragoman.app.sources import resolve


@click.command(name="config")
@click.option("--config", type=click.Path(dir_okay=False), help="Settings file.  [dragoman.toml; DRAGOMAN_CONFIG]")
def command(config: str | None) -> None:
    """Show the settings in effect, each with where it came from. The output is a valid dragoman.toml."""
    try:
        click.echo(as_toml(resolve(file=config)))
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)


def as_toml(settings: Settings) -> str:
    lines: list[str] = [f"# A2A is off: {settings.off}", ""] if settings.off else []
    for agent in settings.agents:
        lines += ["[[agents]]", f"target = {literal(agent.target)}"]
        lines += [f"slug = {literal(agent.slug)}"] if agent.slug else []
        lines.append("")
    for section in SECTIONS:
        lines.append(f"[{section}]")
        for name, (at, key) in NAMES.items():
            if at == section:
                origin = settings.origins.get(name)
                lines.append(f"{key} = {literal(value_of(settings, name))}" + (f"  # {origin}" if origin else ""))
        lines.append("")
    for name, remote in settings.remotes.items():
        lines.append(f"# remote agent {name}: {remote.url}{', with a token' if remote.token else ''}")
    return "\n".join(lines).rstrip()


def literal(value: object) -> str:
    """The value as TOML spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(literal(item) for item in cast("tuple[object, ...]", value)) + "]"
    if type(value) is int:
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
