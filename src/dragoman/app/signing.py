"""From files with keys to who signs with them. The libraries for it are loaded only where there is a key."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dragoman.app.settings import Settings, SettingsError
from dragoman.ports import Signer

if TYPE_CHECKING:
    from dragoman.auth.keys import SigningKeys

NEEDED = "Signing needs more packages; run: pip install 'dragoman[auth]'."


def signer(settings: Settings) -> Signer | None:
    """Who signs in this deployment's name; None without keys. Raises SettingsError for a file that cannot be used."""
    if not settings.signing.keys:
        return None
    try:
        return read_signer(*settings.signing.keys)
    except SettingsError as error:
        raise SettingsError(f"{settings.origin('signing_keys')}: {error}") from None


def read_signer(*files: str | Path) -> "SigningKeys":
    """Who signs with the first key of the first file. Raises SettingsError."""
    try:
        from dragoman.auth.keys import Key, KeyUnusable, SigningKeys, read_keys
    except ImportError:
        raise SettingsError(NEEDED) from None
    found: list[Key] = []
    for file in files:
        try:
            keys = read_keys(Path(file).expanduser())
        except KeyUnusable as error:
            raise SettingsError(f"Cannot sign with {file}: {error}.") from None
        if not found and not keys[0].private:
            raise SettingsError(f"Cannot sign with {file}: its first key is public; name a private key first.")
        found += keys
    return SigningKeys(found)


def sign_card(card: bytes | str | Mapping[str, Any], key: str | Path, *, jku: str = "") -> dict[str, Any]:
    """A card with signatures by the key in a file, for a card that `serve` does not sign by itself.

    `jku` is where you publish the public keys (`dragoman card jwks`). Signatures of other keys stay. Sign last:
    whatever is changed afterwards breaks the signature. Raises SettingsError for a key that cannot be used,
    DragomanError for what is no card.
    """
    signing = read_signer(key)
    from dragoman.wire.canonical import Uncanonical, plain, signatures

    try:
        document = plain(card) if isinstance(card, Mapping) else msgspec.json.decode(card, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Uncanonical("it is not a JSON object") from None
    given: Any = document.pop("signatures", None)
    others = [each for each in cast("list[Any]", given if isinstance(given, list) else []) if not signing.made(each)]
    made = signatures(document, partial(signing.seal, jku=jku))
    return document | {"signatures": [*others, *made]}
