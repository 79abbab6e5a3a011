"""From the settings to who signs in this deployment's name. Libraries for it are loaded only where there is a key."""

from pathlib import Path

from dragoman.app.settings import Settings, SettingsError
from dragoman.ports import Signer


def signer(settings: Settings) -> Signer | None:
    """None without keys. Raises SettingsError for a file that cannot be used."""
    files = settings.signing.keys
    if not files:
        return None
    origin = settings.origin("signing_keys")
    try:
        from dragoman.auth.keys import Key, KeyUnusable, SigningKeys, read_keys
    except ImportError:
        raise SettingsError(f"{origin}: Signing needs more packages; run: pip install 'dragoman[auth]'.") from None
    found: list[Key] = []
    for file in files:
        try:
            keys = read_keys(Path(file).expanduser())
        except KeyUnusable as error:
            raise SettingsError(f"{origin}: Cannot sign with {file}: {error}.") from None
        if not found and not keys[0].private:
            raise SettingsError(
                f"{origin}: Cannot sign with {file}: its first key is public; name a private key first."
            )
        found += keys
    return SigningKeys(found)
