"""`dragoman config`: the settings in effect, as a dragoman.toml that would set them."""

import sys
from typing import cast

import click

from dragoman.app.settings import NAMES, SECTIONS, AgentSettings, Settings, SettingsError, value_of
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
        lines += _terms(agent, "agents")
        lines.append("")
    for section in SECTIONS:
        lines.append(f"[{section}]")
        for name, (at, key) in NAMES.items():
            if at == section:
                origin = settings.origins.get(name)
                lines.append(f"{key} = {literal(value_of(settings, name))}" + (f"  # {origin}" if origin else ""))
        lines.append("")
        if section == "auth":
            lines += _schemes(settings)
    for name, remote in settings.remotes.items():
        lines.append(f"# remote agent {name}: {remote.url}{', with a token' if remote.token else ''}")
    return "\n".join(lines).rstrip()


def _terms(agent: AgentSettings, table: str) -> list[str]:
    """What an agent and its skills ask of their callers."""
    lines = ["public = true"] if agent.public else []
    lines += [] if agent.require is None else [f"require = {literal(agent.require)}"]
    lines += [f"scopes = {literal(agent.scopes)}"] if agent.scopes else []
    for id, skill in agent.skills.items():
        lines.append(f"[{table}.skills.{literal(id)}]")
        lines += [] if skill.require is None else [f"require = {literal(skill.require)}"]
        lines += [f"scopes = {literal(skill.scopes)}"] if skill.scopes else []
    return lines


def _schemes(settings: Settings) -> list[str]:
    lines: list[str] = []
    for name, scheme in settings.schemes.items():
        lines += [f"[auth.schemes.{literal(name)}]", f"type = {literal(scheme.__struct_config__.tag)}"]
        for key in scheme.__struct_fields__:
            value = getattr(scheme, key)
            lines += [] if value is None else [f"{key} = {literal(value)}"]
        lines.append("")
    return lines


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
