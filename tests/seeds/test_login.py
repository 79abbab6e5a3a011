"""Every way to log in, in every dialect over every binding, against a real server with a real issuer and real TLS."""

import http.client
import json
import os
import signal
import ssl
import warnings
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from dragoman.auth.hashes import password_hash, token_hash
from tests.auth.authority import Authority, Issued
from tests.auth.minting import AUDIENCE
from tests.auth.provider import Provider, providing
from tests.seeds.calling import WAIT, Answer, ask
from tests.seeds.spoken import BY_NAME, TONGUES, OverHttp
from tests.seeds.tongues import Tongue
from tests.serving import serving

AGENT = "tests/seeds/agents/guarded.py"


class Stage(NamedTuple):
    """A server whose agent takes any of these schemes, and one whose agent asks for two of them together."""

    base: str
    secure: str
    provider: Provider
    authority: Authority
    client: Issued
    callers: Path


CONFIG = """
[store]
url = "{folder}/{name}.db"
[server]
{server}
[auth]
callers = "{folder}/callers.toml"
{require}
[auth.schemes.token]
type = "bearer"
[auth.schemes.key]
type = "api-key"
[auth.schemes.asked]
type = "api-key"
place = "query"
name = "key"
[auth.schemes.cookie]
type = "api-key"
place = "cookie"
name = "session"
[auth.schemes.password]
type = "basic"
[auth.schemes.corp]
type = "jwt"
issuer = "{issuer}"
audience = ["{audience}"]
[auth.schemes.cert]
type = "mtls"
{header}
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("login")
    authority = Authority(folder)
    client, server = authority.issue("client"), authority.issue("server")
    callers = folder / "callers.toml"
    callers.write_text(f"""
[ada]
token = "{token_hash(b"ada-token")}"
key = "{token_hash(b"ada-key")}"
password = "{password_hash("ada-password")}"
scopes = ["refunds"]
[bob]
token = "{token_hash(b"bob-token")}"
[listed]
certificate = "sha256:{authority.issue("unused").fingerprint}"
""")
    trusts = 'trusted_proxies = ["127.0.0.1"]'
    tls = f'tls_certificate = "{server.file}"\ntls_client_ca = "{authority.file}"'
    with providing() as provider:
        about = {"folder": folder, "issuer": provider.issuer, "audience": AUDIENCE}
        trusted = ssl.create_default_context(cafile=authority.file)
        plain, secure = folder / "plain.toml", folder / "secure.toml"
        plain.write_text(
            CONFIG.format(name="plain", server=trusts, require="", header='header = "X-Client-Cert"', **about)
        )
        both = 'require = ["token + cert", "corp"]'
        secure.write_text(CONFIG.format(name="secure", server=tls, require=both, header="", **about))
        with (
            serving(AGENT, "--config", str(plain), logs=folder / "plain.log") as base,
            serving(AGENT, "--config", str(secure), logs=folder / "secure.log", tls=trusted) as locked,
        ):
            yield Stage(base, locked, provider, authority, client, callers)


class Login(NamedTuple):
    """What is added to a request, and who that is."""

    headers: dict[str, str]
    query: str = ""
    id: str = "caller:ada"


def pem(client: Issued) -> str:
    return client.pem.replace("\n", "%0A").replace("+", "%2B").replace("=", "%3D").replace(" ", "%20")


LOGINS: dict[str, Any] = {
    "bearer token": lambda s: Login({"Authorization": "Bearer ada-token"}),
    "key in a header": lambda s: Login({"X-API-Key": "ada-key"}),
    "key in the query": lambda s: Login({}, "key=ada-key"),
    "key in a cookie": lambda s: Login({"Cookie": "other=1; session=ada-key"}),
    "password": lambda s: Login({"Authorization": "Basic " + b64encode(b"ada:ada-password").decode()}),
    "JWT by discovery": lambda s: Login(
        {"Authorization": f"Bearer {s.provider.token('eve')}"}, "", f"jwt:{s.provider.issuer}|eve"
    ),
    "certificate from a proxy": lambda s: Login({"X-Client-Cert": pem(s.client)}, "", f"cert:{s.client.fingerprint}"),
}
WRONG: dict[str, Any] = {
    "nothing": lambda s: Login({}),
    "another token": lambda s: Login({"Authorization": "Bearer adb-token"}),
    "another key": lambda s: Login({"X-API-Key": "ada-token"}),
    "another password": lambda s: Login({"Authorization": "Basic " + b64encode(b"ada:ada-token").decode()}),
    "a JWT for others": lambda s: Login({"Authorization": f"Bearer {s.provider.token(aud='https://other')}"}),
    "a certificate that is none": lambda s: Login({"X-Client-Cert": "nonsense"}),
}


def put(base: str, tongue: Tongue, method: str, params: Any, login: Login) -> Answer:
    """A request of that dialect with those credentials, answered whole."""
    if isinstance(tongue, OverHttp):
        verb, path, body = tongue.request(method, params)
    else:
        verb, path, body = (
            "POST",
            tongue.path,
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode(),
        )
    target = f"{path}?{login.query}" if login.query else path
    return ask(base, verb, target, body, {**tongue.headers, **login.headers})


@pytest.mark.proves("W-044", "W-126", "W-109")
@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
def test_who_logs_in_is_let_in_and_known_by_their_id(stage: Stage, tongue: Tongue, login: str) -> None:
    given: Login = LOGINS[login](stage)
    sent = put(stage.base, tongue, tongue.send, tongue.saying("whoami"), given)
    assert sent.status == 200 and given.id in sent.body.decode(), sent.body
    streamed = put(stage.base, tongue, tongue.stream, tongue.saying("whoami"), given)
    assert streamed.status == 200 and streamed.headers["content-type"].startswith("text/event-stream")
    assert given.id in streamed.body.decode()


@pytest.mark.proves("W-044", "W-045", "W-046", "W-127", "W-128")
@pytest.mark.parametrize("login", WRONG)
@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
def test_who_does_not_is_told_what_would_do(stage: Stage, tongue: Tongue, login: str) -> None:
    given: Login = WRONG[login](stage)
    for method, params in (
        (tongue.send, tongue.saying("whoami")),
        (tongue.stream, tongue.saying("whoami")),
        (tongue.get, {"id": "x"}),
    ):
        refused = put(stage.base, tongue, method, params, given)
        assert refused.status == 401
        challenge = refused.headers["www-authenticate"]
        assert all(name in challenge for name in ("Bearer", "ApiKey", "Basic", "Certificate"))
        assert ("error=" in challenge) == bool(given.headers)
        body = refused.json()
        if not isinstance(tongue, OverHttp):
            assert body["id"] is None and body["error"]["code"] == -32603
        elif tongue.headers:
            assert (body["error"]["code"], body["error"]["status"]) == (401, "UNAUTHENTICATED")
        else:
            assert (body["code"], body["type"]) == (-32603, "UnauthenticatedError")


@pytest.mark.proves("W-047", "W-048")
@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
def test_a_missing_scope_is_named(stage: Stage, tongue: Tongue) -> None:
    ada, bob = Login({"Authorization": "Bearer ada-token"}), Login({"Authorization": "Bearer bob-token"})
    allowed = put(stage.base, tongue, tongue.send, tongue.saying("refund me"), ada)
    assert allowed.status == 200 and "refunded to caller:ada" in allowed.body.decode()
    for method in (tongue.send, tongue.stream):
        refused = put(stage.base, tongue, method, tongue.saying("refund me"), bob)
        assert refused.status == 403
        assert refused.headers["www-authenticate"] == (
            'Bearer realm="dragoman", error="insufficient_scope", scope="refunds"'
        )
        assert "This needs the scope refunds" in refused.body.decode()


def test_a_jwt_brings_its_own_scopes(stage: Stage) -> None:
    tongue = BY_NAME["1.0"]
    for claims, status in (({"scope": "a refunds"}, 200), ({"scp": ["refunds"]}, 200), ({"scope": "refund"}, 403)):
        given = Login({"Authorization": f"Bearer {stage.provider.token('eve', **claims)}"})
        assert put(stage.base, tongue, tongue.send, tongue.saying("refund me"), given).status == status


def test_tokens_go_on_while_keys_rotate(stage: Stage) -> None:
    tongue = BY_NAME["1.0"]

    def status(token: str) -> int:
        return put(
            stage.base, tongue, tongue.send, tongue.saying("whoami"), Login({"Authorization": f"Bearer {token}"})
        ).status

    old = stage.provider.token("old")
    assert status(old) == 200
    for alg in ("RS256", "EdDSA"):
        stage.provider.rotate(alg)
        assert status(stage.provider.token(f"new {alg}")) == 200
        assert status(old) == 200


# --- certificates and keys together, over TLS --------------------------------------------------------------


def over_tls(stage: Stage, tongue: Tongue, login: Login, client: Issued | None) -> Answer:
    context = ssl.create_default_context(cafile=stage.authority.file)
    if client is not None:
        context.load_cert_chain(client.file)
    where = urlsplit(stage.secure)
    if isinstance(tongue, OverHttp):
        verb, path, body = tongue.request(tongue.send, tongue.saying("whoami"))
    else:
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": tongue.send, "params": tongue.saying("whoami")}
        ).encode()
        verb, path = "POST", tongue.path
    with closing(http.client.HTTPSConnection(where.hostname or "", where.port, timeout=WAIT, context=context)) as line:
        line.request(verb, path, body, {"Content-Type": "application/json", **tongue.headers, **login.headers})
        response = line.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


ADA = Login({"Authorization": "Bearer ada-token"})


@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
def test_a_token_and_a_certificate_together(stage: Stage, tongue: Tongue) -> None:
    both = over_tls(stage, tongue, ADA, stage.client)
    assert both.status == 200 and "caller:ada" in both.body.decode()
    for login, client in ((ADA, None), (Login({}), stage.client), (Login({}), None)):
        refused = over_tls(stage, tongue, login, client)
        assert refused.status == 401 and "www-authenticate" in refused.headers
    forged = Login({**ADA.headers, "X-Client-Cert": pem(stage.client)})
    assert over_tls(stage, tongue, forged, None).status == 401, "nobody named that header here"
    alone = Login({"Authorization": f"Bearer {stage.provider.token('eve')}"})
    assert over_tls(stage, tongue, alone, None).status == 200, "the other alternative"


def test_a_certificate_of_another_authority_does_not_get_through_the_handshake(stage: Stage, tmp_path: Path) -> None:
    for stranger in (Authority(tmp_path, "Another").issue("client"), stage.authority.issue("late", days=-1)):
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            over_tls(stage, BY_NAME["1.0"], ADA, stranger)


@pytest.mark.proves("W-206")
def test_old_versions_of_tls_are_refused(stage: Stage) -> None:
    context = ssl.create_default_context(cafile=stage.authority.file)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):  # that it is old is the point
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    where = urlsplit(stage.secure)
    line = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=WAIT, context=context)
    with closing(line), pytest.raises(ssl.SSLError):
        line.request("GET", "/healthz")


# --- the card -----------------------------------------------------------------------------------------------

CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/api/a2a/agent-card.json", "/agentCard")


@pytest.mark.proves("W-126", "003-6b", "01-22")
@pytest.mark.parametrize("path", CARDS)
def test_the_card_is_public_and_tells_the_truth(stage: Stage, path: str) -> None:
    schemes = {"token", "key", "asked", "cookie", "password", "corp", "cert"}
    card = ask(stage.base, "GET", path).json()
    assert set(card["securitySchemes"]) == schemes
    assert card["security"] == [{name: []} for name in card["securitySchemes"]]
    assert card["securityRequirements"] == [{"schemes": {name: {}}} for name in card["securitySchemes"]]
    assert card["authentication"] == {"schemes": ["Bearer", "apiKey", "Basic"]}
    (refund,) = [skill for skill in card["skills"] if skill["id"] == "refund"]
    assert refund["security"] == [{name: ["refunds"]} for name in card["securitySchemes"]]
    modern = ask(stage.base, "GET", path, headers={"A2A-Version": "1.0"}).json()
    assert (
        set(modern["securitySchemes"]) == schemes and "openIdConnectSecurityScheme" in modern["securitySchemes"]["corp"]
    )
    legacy = ask(stage.base, "GET", path, headers={"A2A-Version": "0.3"}).json()
    assert legacy["securitySchemes"]["asked"] | {"description": ""} == {
        "type": "apiKey",
        "in": "query",
        "name": "key",
        "description": "",
    }


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json"])
def test_probes_and_descriptions_are_public(stage: Stage, path: str) -> None:
    assert ask(stage.base, "GET", path).status == 200


# --- what changes while it serves -----------------------------------------------------------------------------


def test_callers_are_read_again_on_sighup(tmp_path: Path) -> None:
    """The file's time, size and place stay the same, so that only the signal can have told."""
    callers, log = tmp_path / "callers.toml", tmp_path / "server.log"
    callers.write_text(f'[ada]\ntoken = "{token_hash(b"old")}"\n')
    before = callers.stat()
    tongue = BY_NAME["1.0"]
    options = ("--store", "memory://", "--set", f"auth_callers={callers}")
    with serving(AGENT, *options, logs=log) as base:

        def status(token: str) -> int:
            given = Login({"Authorization": f"Bearer {token}"})
            return put(base, tongue, tongue.send, tongue.saying("whoami"), given).status

        assert (status("old"), status("new")) == (200, 401)
        with callers.open("r+") as file:
            file.write(f'[ada]\ntoken = "{token_hash(b"new")}"\n')
        os.utime(callers, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.kill(base.pid, signal.SIGHUP)
        end = 0
        while status("new") != 200:
            end += 1
            assert end < 500, log.read_text()
        assert status("old") == 401
