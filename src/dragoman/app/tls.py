"""TLS of our own listener, from the files the settings name."""

import logging
import ssl
from pathlib import Path

from dragoman.app.settings import Settings, SettingsError

log = logging.getLogger("dragoman")


class Secure:
    """A context, and where its certificate came from. New connections get what was read last."""

    def __init__(self, certificate: Path, key: Path | None, client_ca: Path | None) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._certificate, self._key = certificate, key
        self.context.load_cert_chain(certificate, key)
        if client_ca is not None:
            # Asked of everybody and demanded of nobody: cards stay public, and other schemes may do instead.
            self.context.load_verify_locations(client_ca)
            self.context.verify_mode = ssl.CERT_OPTIONAL

    def reload(self) -> None:
        """Read the certificate again. What cannot be used is reported and changes nothing."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._certificate, self._key)
            self.context.load_cert_chain(self._certificate, self._key)
        except OSError as error:
            log.error("The certificate stays as it was: %s", error)


def open(settings: Settings) -> Secure | None:
    """None without a certificate. Raises SettingsError for files that cannot be used."""
    server = settings.server
    if not server.tls_certificate:
        for name in ("tls_key", "tls_client_ca"):
            if getattr(server, name):
                raise SettingsError(f"{settings.origin(name)}: Expected tls_certificate beside it.")
        return None
    files = {name: _file(settings, name) for name in ("tls_certificate", "tls_key", "tls_client_ca")}
    certificate = files["tls_certificate"]
    assert certificate is not None
    try:
        return Secure(certificate, files["tls_key"], files["tls_client_ca"])
    except ssl.SSLError as error:
        raise SettingsError(
            f"{settings.origin('tls_certificate')}: The files do not make a certificate with its key "
            f"({error.reason or 'unreadable'})."
        ) from None


def _file(settings: Settings, name: str) -> Path | None:
    written = getattr(settings.server, name)
    if not written:
        return None
    path = Path(written).expanduser()
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise SettingsError(
            f"{settings.origin(name)}: Cannot read {written}: {error.strerror or 'it is not a file'}."
        ) from None
