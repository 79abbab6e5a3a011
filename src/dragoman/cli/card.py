"""`dragoman card`: keys to sign with, and signatures on cards that lie in files or are served by others."""

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from dragoman.app.settings import SettingsError
from dragoman.model.errors import CardUntrusted, DragomanError


def said(command: Callable[..., None]) -> Callable[..., None]:
    """What is in the way, as a sentence and a status: 1 when a card cannot be trusted, 2 for everything else."""

    @wraps(command)
    def run(*args: Any, **given: Any) -> None:
        try:
            command(*args, **given)
        except CardUntrusted as error:
            click.echo(f"{error}.", err=True)
            sys.exit(1)
        except DragomanError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)

    return run


@click.group(name="card")
def command() -> None:
    """Make keys, sign agent cards and check their signatures."""


@command.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--alg", type=click.Choice(["ES256", "ES384", "RS256"]), default="ES256", show_default=True)
@said
def keygen(file: Path, alg: str) -> None:
    """Write a new private key (a JWK) to FILE, readable by its owner alone."""
    keys = _keys()
    made = keys.generate(alg)
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(made + b"\n")
    except FileExistsError:
        raise SettingsError(f"{file} is there already; a key is never overwritten.") from None
    except OSError as error:
        raise SettingsError(f"Cannot write {file}: {error.strerror}.") from None
    click.echo(f"Key    {keys.parse_keys(made)[0].id} ({alg})")
    click.echo(f"Serve  DRAGOMAN_SIGNING_KEYS={file} dragoman serve ...")


@command.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@said
def jwks(files: tuple[str, ...]) -> None:
    """Print the public halves of the keys in FILES as a JWK Set."""
    keys = _keys()
    found: list[Any] = []
    for file in files:
        found += _usable(file, partial(keys.read_keys, Path(file)))
    click.echo(keys.jwk_set(found).decode())


@command.command()
@click.argument("card", type=click.File("rb"))
@click.option("--key", required=True, type=click.Path(dir_okay=False), help="File with the private key.")
@click.option("--jku", default="", help="Where the public keys are published, if they are.")
@said
def sign(card: Any, key: str, jku: str) -> None:
    """Sign the card in CARD (- is standard input) and print it. Signatures of other keys stay."""
    from dragoman.app.signing import sign_card

    signed = _usable(card.name, lambda: sign_card(card.read(), key, jku=jku))
    click.echo(msgspec.json.format(msgspec.json.encode(signed)).decode())


@command.command()
@click.argument("card")
@click.option("--keys", help="The keys you trust: a file (JWK Set, JWK, PEM) or an address.")
@click.option("--jku", "origins", multiple=True, metavar="ORIGIN", help="Trust keys published at this origin.")
@said
def verify(card: str, keys: str | None, origins: tuple[str, ...]) -> None:
    """Check that a key you trust has signed CARD: a file, - or an address.

    The status is 1 when none has. Where a card says its keys are is followed only with --jku.
    """
    from dragoman.client.verifying import verify_card

    document = _content(card)
    found = verify_card(document, _trusted(document, keys, origins))
    click.echo(f"Signed by {found.key} ({found.algorithm})")
    click.echo(msgspec.json.format(msgspec.json.encode(found.card)).decode())


def _keys() -> Any:
    from dragoman.app.signing import NEEDED

    try:
        from dragoman.auth import keys
    except ImportError:
        raise SettingsError(NEEDED) from None
    return keys


def _usable(name: str, work: Callable[[], Any]) -> Any:
    """Do it, and name the file in what goes wrong; settings' errors name theirs themselves."""
    try:
        return work()
    except SettingsError:
        raise
    except DragomanError as error:
        raise SettingsError(f"Cannot use {name}: {error}.") from None


def _content(place: str) -> bytes:
    """What a file, standard input or an address holds."""
    if place.startswith(("http://", "https://")):
        from dragoman.client.fetching import fetch

        return _usable(place, lambda: fetch(place))
    try:
        return sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise SettingsError(f"Cannot read {place}: {error.strerror}.") from None


def _trusted(document: bytes, place: str | None, origins: tuple[str, ...]) -> bytes:
    """The key set to believe: one the person named, else those that the card names at an origin the person named."""
    if place is not None:
        content = _content(place)
        if not place.startswith(("http://", "https://")):
            keys = _keys()
            return keys.jwk_set(_usable(place, lambda: keys.parse_keys(content)))
        return content
    from dragoman.client.verifying import keys_named

    named = keys_named(document)
    allowed = [url for url in named if _origin(url) in {_origin(each) for each in origins}]
    if not allowed:
        hint = f" The card names keys at {', '.join(named)}; if you trust that origin, add --jku." if named else ""
        raise SettingsError(f"Say which keys you trust, with --keys.{hint}")
    return _content(allowed[0])


def _origin(url: str) -> tuple[str, str]:
    try:
        split = urlsplit(url)
        port = split.port or {"http": 80, "https": 443}.get(split.scheme)
    except ValueError:
        return url, ""
    return f"{split.scheme}://{split.hostname}", str(port)
