"""Documents of an issuer, from a real server that may be anything: bounded, not led astray, over nothing unsafe."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from dragoman.auth.fetching import LARGEST, Fetcher, Unfetchable, secure
from dragoman.auth.issuers import Discovered, Fetched, Kept
from tests.auth.authority import Authority
from tests.auth.provider import DISCOVERY, KEYS, Provider, _Handler, providing
from tests.serving import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://id.example/keys", True),
        ("https://id.example:8443/keys?x=1", True),
        ("http://127.0.0.1:9/keys", True),
        ("http://[::1]/keys", True),
        ("http://localhost/keys", True),
        ("http://id.example/keys", False),
        ("http://127.0.0.1.nip.io/keys", False),
        ("http://localhost.example/keys", False),
        ("http://10.0.0.1/keys", False),
        ("ftp://id.example/keys", False),
        ("file:///etc/passwd", False),
        ("https://user:pw@id.example/", False),
        ("https://id.example/#x", False),
        ("https://", False),
        ("https://id.example:99999/", False),
        ("", False),
    ],
)
def test_only_what_nobody_on_the_way_can_change_is_fetched(url: str, safe: bool) -> None:
    assert secure(url) is safe


async def test_a_document_is_fetched(provider: Provider) -> None:
    found = await Fetched(Fetcher(), provider.issuer + KEYS)()
    assert found == {"keys": [key.jwk() for key in provider.keys]}


async def test_discovery_leads_to_the_keys(provider: Provider) -> None:
    found = await Discovered(Fetcher(), provider.issuer + DISCOVERY, provider.issuer)()
    assert found == {"keys": [key.jwk() for key in provider.keys]}
    assert provider.asked == [DISCOVERY, KEYS]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((302, {"Location": "/elsewhere"}, b""), "redirects"),
        ((301, {"Location": "http://10.0.0.1/"}, b""), "redirects"),
        ((404, {}, b"{}"), "answered 404"),
        ((500, {}, b"{}"), "answered 500"),
        ((204, {}, b""), "answered 204"),
        ((200, {}, b"{"), "not JSON"),
        ((200, {}, b"[]"), "no object"),
        ((200, {}, b"\xff\xfe{}"), "not JSON"),
        ((200, {}, b'"' + b"x" * (LARGEST + 10) + b'"'), "more than"),
    ],
)
async def test_what_is_no_such_document_is_refused(
    provider: Provider, answer: tuple[int, dict[str, str], bytes], told: str
) -> None:
    provider.answers[KEYS] = answer
    with pytest.raises(Unfetchable, match=told):
        await Fetcher().json(provider.issuer + KEYS)
    assert "/elsewhere" not in provider.asked


async def test_an_answer_that_grows_when_unpacked_is_bounded_too(provider: Provider) -> None:
    import gzip

    provider.answers[KEYS] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * (LARGEST * 20)))
    with pytest.raises(Unfetchable, match="more than"):
        await Fetcher().json(provider.issuer + KEYS)


async def test_an_answer_that_does_not_come_is_not_waited_for(provider: Provider) -> None:
    provider.gate.clear()
    with pytest.raises(Unfetchable, match="in time"):
        await Fetcher(seconds=0.2).json(provider.issuer + KEYS)


async def test_where_nobody_listens_is_told_so() -> None:
    with pytest.raises(Unfetchable, match="could not be reached"):
        await Fetcher().json(f"http://127.0.0.1:{free_port()}/keys")
    with pytest.raises(Unfetchable, match="neither https nor on this machine"):
        await Fetcher().json("http://id.example/keys")


async def test_no_proxy_comes_from_the_environment(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert await Fetcher().json(provider.issuer + KEYS)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"issuer": "https://evil.example", "jwks_uri": "KEYS"}, "another issuer"),
        ({"jwks_uri": "KEYS"}, "another issuer"),
        ({"issuer": "SELF"}, "names no address of keys"),
        ({"issuer": "SELF", "jwks_uri": 7}, "names no address of keys"),
        ({"issuer": "SELF", "jwks_uri": "http://10.0.0.1/keys"}, "names no address of keys"),
        ({"issuer": "SELF", "jwks_uri": "file:///etc/passwd"}, "names no address of keys"),
    ],
)
async def test_a_discovery_document_leads_nowhere_else(
    provider: Provider, document: dict[str, object], told: str
) -> None:
    named = {"SELF": provider.issuer, "KEYS": provider.issuer + KEYS}
    written = {name: named.get(str(value), value) for name, value in document.items()}
    provider.answers[DISCOVERY] = (200, {}, json.dumps(written).encode())
    with pytest.raises(Unfetchable, match=told):
        await Discovered(Fetcher(), provider.issuer + DISCOVERY, provider.issuer)()
    assert provider.count(KEYS) == 0


async def test_https_is_checked_against_the_authorities_we_trust(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server").file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    base = f"https://127.0.0.1:{server.server_port}"
    provider = server.provider = Provider(base)  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        assert await Fetcher(ca_file=str(authority.file)).json(base + KEYS)
        with pytest.raises(Unfetchable, match="could not be reached"):
            await Fetcher().json(base + KEYS)
        provider.answers[DISCOVERY] = (
            200,
            {},
            json.dumps({"issuer": base, "jwks_uri": f"http://127.0.0.1:{server.server_port}{KEYS}"}).encode(),
        )
        with pytest.raises(Unfetchable, match="less safe than its own"):
            await Discovered(Fetcher(ca_file=str(authority.file)), base + DISCOVERY, base)()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_a_file_of_keys_is_read_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text('{"keys": []}')
    assert Kept(tmp_path / "keys").read() == {"keys": []}
    with pytest.raises(Unfetchable, match="cannot be read: No such file"):
        Kept(tmp_path / "none").read()
    (tmp_path / "large").write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(Unfetchable, match="holds more than"):
        Kept(tmp_path / "large").read()
