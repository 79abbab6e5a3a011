"""`dragoman push`: webhooks that could not be delivered. What is done is `app.undelivered`; here it is put in words."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.app.settings import SettingsError
from dragoman.model.errors import DragomanError, StoreError

if TYPE_CHECKING:
    from dragoman.app.settings import Settings
    from dragoman.app.undelivered import Answer, Letter, Request

STORE = click.option("--store", help="Where tasks are kept: sqlite:///file.db or a path.  [sqlite:///dragoman.db]")
CONFIG = click.option("--config", type=click.Path(dir_okay=False), help="Settings file.  [dragoman.toml]")
JSON = click.option("--json", "plain", is_flag=True, help="Print JSON, one object per line.")


@click.group(name="push")
def command() -> None:
    """Webhooks that were given up: list them, show one, send them again.

    Works beside a running server of the same store, and without one.
    """


@command.command(name="list")
@STORE
@CONFIG
@JSON
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="How many.")
@click.option("--before", default="", help="Only those before this id: the last one of the list so far.")
def list_(store: str | None, config: str | None, plain: bool, limit: int, before: str) -> None:
    """List what was given up, the newest first."""
    letters = _ask(store, config, do="list", limit=limit, before=before).letters
    for letter in letters:
        _print(letter) if plain else click.echo(_line(letter))
    if not letters and not plain:
        click.echo("Nothing was given up.", err=True)


@command.command()
@click.argument("ids", nargs=-1, required=True)
@STORE
@CONFIG
@JSON
def show(ids: tuple[str, ...], store: str | None, config: str | None, plain: bool) -> None:
    """Show deliveries with what they say. Their webhooks' secrets are not shown."""
    answer = _ask(store, config, do="show", ids=ids)
    for letter in answer.letters:
        if plain:
            _print(letter)
            continue
        for name, value in _fields(letter).items():
            click.echo(f"{name + ':':<12}{value}")
        click.echo(f"\n{_pretty(letter.body)}\n" if letter.body else "\n(It was never rendered.)\n")
    _miss(answer)


@command.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that was given up.")
@STORE
@CONFIG
def resend(ids: tuple[str, ...], everything: bool, store: str | None, config: str | None) -> None:
    """Send again, with the id and the body they had. Receivers that know the id drop what they have already."""
    if bool(ids) == everything:
        raise click.UsageError("Name deliveries, or say --all.")
    answer = _ask(store, config, do="resend", ids=ids)
    when = "now" if answer.running else "when the server starts"
    click.echo(f"{len(answer.resent)} to be sent again {when}.")
    _miss(answer)


def _ask(store: str | None, config: str | None, **request: Any) -> "Answer":
    from dragoman.app.sources import resolve
    from dragoman.app.undelivered import Request

    try:
        return asyncio.run(_answer(resolve({"--store": store}, file=config), Request(**request)))
    except DragomanError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2 if isinstance(error, SettingsError) else 1)


async def _answer(settings: "Settings", request: "Request") -> "Answer":
    """The server's, if one runs on this store; ours, over the file, if none does."""
    import msgspec

    from dragoman.app import undelivered, wiring
    from dragoman.app.stores import SqliteChoice, choose
    from dragoman.server.local import ask

    choice, socket = choose(settings.store.url), undelivered.socket_of(settings)
    if socket is None or not isinstance(choice, SqliteChoice):
        raise SettingsError(
            f"What {settings.store.url} could not deliver is known to its server alone and ends with it; "
            "name a store that is a file with --store."
        )
    if not choice.path.exists():
        raise SettingsError(f"There is no store {choice.path}; name another one with --store.")
    try:
        said = await ask(socket, msgspec.json.encode(request))
    except (ConnectionError, PermissionError) as error:
        raise StoreError(f"The server of this store cannot be asked: {error}") from None
    if said is not None:
        answer = msgspec.json.decode(said, type=undelivered.Answer)
        if answer.error:
            raise StoreError(answer.error)
        return answer
    kept = wiring.store(settings)
    await kept.open()
    try:
        return await undelivered.answer(kept, request)
    finally:
        await kept.close()


def _miss(answer: "Answer") -> None:
    if answer.missing:
        click.echo(f"Error: There is no delivery {', '.join(answer.missing)} (any more).", err=True)
        sys.exit(1)


def _line(letter: "Letter") -> str:
    return f"{letter.id}  {letter.at}  {letter.task}  {letter.url}  {letter.attempts}×  {letter.error}"


def _fields(letter: "Letter") -> dict[str, object]:
    state = "given up" if letter.dead else "waits for its next attempt"
    return {
        "Delivery": letter.id,
        "Made": letter.at,
        "Agent": letter.agent or "(the first)",
        "Task": letter.task,
        "Webhook": letter.config,
        "Receiver": letter.url,
        "Attempts": letter.attempts,
        "Last": f"the receiver {letter.error}" if letter.error else "-",
        "State": state,
        "Type": letter.media_type or "-",
    }


def _print(letter: "Letter") -> None:
    import msgspec

    click.echo(msgspec.json.encode(letter))


def _pretty(body: str) -> str:
    import msgspec

    try:
        return msgspec.json.format(body, indent=2)
    except msgspec.DecodeError:
        return body
