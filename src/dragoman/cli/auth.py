"""`dragoman auth`: secrets for the callers' file. What is printed for the file holds no secret."""

import secrets
import sys
from pathlib import Path

import click

PREFIX = "dgm_"
"""In front of our tokens, so that scanners for leaked secrets can know them."""


@click.group(name="auth")
def command() -> None:
    """Make tokens, and the hashes that stand in the callers' file."""


@command.command()
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, help="A scope its holder has; may be repeated.")
@click.option("--tenant", "tenants", multiple=True, help="A tenant its holder may use; may be repeated.")
@click.option("--key", is_flag=True, help="An API key instead of a bearer token.")
def token(name: str, scopes: tuple[str, ...], tenants: tuple[str, ...], key: bool) -> None:
    """Make a token for the caller NAME.

    The token goes to standard error, once. What belongs into the callers' file goes to standard output:

    dragoman auth token ci >> callers.toml
    """
    from dragoman.auth.callers import NAME
    from dragoman.auth.hashes import token_hash
    from dragoman.cli.config import literal

    if not NAME.fullmatch(name):
        raise click.BadParameter("Expected a name of letters, digits and . _ @ + -", param_hint="NAME")
    secret = PREFIX + secrets.token_urlsafe(32)
    lines = [f"[{literal(name)}]", f"{'key' if key else 'token'} = {literal(token_hash(secret.encode()))}"]
    lines += [f"scopes = {literal(scopes)}"] if scopes else []
    lines += [f"tenants = {literal(tenants)}"] if tenants else []
    click.echo("\n".join(lines))
    click.echo(f"The {'key' if key else 'token'} of {name}, shown only now: {secret}", err=True)


@command.command()
@click.option("--password", is_flag=True, help="A password, for HTTP Basic.")
@click.option(
    "--certificate", type=click.Path(dir_okay=False), help="A client's certificate in PEM instead of a secret."
)
def hash(password: bool, certificate: str | None) -> None:
    """Print the hash of a secret, for the callers' file. The secret is asked for, or read from standard input."""
    from dragoman.auth.hashes import password_hash, token_hash

    if certificate is not None:
        click.echo(f"sha256:{_fingerprint(Path(certificate))}")
        return
    if sys.stdin.isatty():
        secret = click.prompt("Password" if password else "Token", hide_input=True)
    else:
        secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        click.echo("Error: There is no secret: standard input is empty.", err=True)
        sys.exit(2)
    click.echo(password_hash(secret) if password else token_hash(secret.encode()))


def _fingerprint(path: Path) -> str:
    from dragoman.auth.certificates import thumbprint_of

    try:
        return thumbprint_of(path.read_text("ascii")).hex()
    except OSError as error:
        raise click.ClickException(f"Cannot read {path}: {error.strerror or 'it is not a file'}.") from None
    except ValueError as error:
        raise click.ClickException(f"{path}: {error}.") from None
