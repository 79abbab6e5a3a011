"""TLS of our own listener, from files that may be wrong or change."""

import ssl
from pathlib import Path

import pytest

from dragoman.app import tls
from dragoman.app.settings import Settings, SettingsError
from dragoman.app.sources import resolve
from tests.auth.authority import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def settings(**given: object) -> Settings:
    return resolve({name: str(value) for name, value in given.items()}, environ={})


def test_without_a_certificate_there_is_none() -> None:
    assert tls.open(Settings()) is None


@pytest.mark.proves("W-206")
def test_old_versions_are_off_and_clients_are_asked_not_forced(authority: Authority) -> None:
    server = authority.issue("server").file
    plain = tls.open(settings(tls_certificate=server))
    assert plain is not None and plain.context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert plain.context.verify_mode == ssl.CERT_NONE
    asking = tls.open(settings(tls_certificate=server, tls_client_ca=authority.file))
    assert asking is not None and asking.context.verify_mode == ssl.CERT_OPTIONAL


def test_what_cannot_be_used_is_named(authority: Authority, tmp_path: Path) -> None:
    server = authority.issue("server").file
    (tmp_path / "nonsense").write_text("nonsense")
    cases = {
        "tls_certificate: Cannot read": {"tls_certificate": tmp_path / "none"},
        "tls_certificate: The files do not make": {"tls_certificate": tmp_path / "nonsense"},
        "tls_key: Cannot read": {"tls_certificate": server, "tls_key": tmp_path / "none"},
        "tls_certificate: The files do not": {"tls_certificate": server, "tls_key": authority.issue("other").file},
        "tls_key: Expected tls_certificate": {"tls_key": server},
        "tls_client_ca: Expected tls_certificate": {"tls_client_ca": authority.file},
        "tls_client_ca: Cannot read": {"tls_certificate": server, "tls_client_ca": tmp_path / "none"},
    }
    for told, given in cases.items():
        with pytest.raises(SettingsError) as caught:
            tls.open(settings(**given))
        assert str(caught.value).startswith(told)


def test_a_certificate_that_broke_changes_nothing(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.pem"
    file.write_bytes(authority.issue("server").file.read_bytes())
    secure = tls.open(settings(tls_certificate=file))
    assert secure is not None
    secure.reload()
    assert not caplog.records
    file.write_text("nonsense")
    secure.reload()
    assert "The certificate stays as it was" in caplog.text
