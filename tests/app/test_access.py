"""From settings to entrances: what is written, what the environment adds, and every mistake named with its place."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.access import Access, guarded, key_variable
from dragoman.app.checks import reach
from dragoman.app.settings import Jwt, Settings, SettingsError
from dragoman.app.sources import resolve, strays
from dragoman.auth.hashes import token_hash
from dragoman.cli.config import as_toml
from dragoman.model.cards import Profile, Skill
from dragoman.model.errors import MissingScope, Unauthenticated
from dragoman.model.operations import Principal
from dragoman.ports import Authenticator, Presented
from tests.auth.minting import AUDIENCE, ISSUER, pair
from tests.auth.rig import Clock

pytestmark = pytest.mark.anyio

DESK = Profile(
    name="Currency desk",
    description="Converts",
    version="1",
    skills=(
        Skill(id="convert", name="C", description="C", tags=("a",)),
        Skill(id="refund", name="R", description="R", tags=("a",), scopes=("refunds",)),
    ),
)
FAQ = Profile(name="FAQ", description="Answers", version="1")
JWT = {"type": "jwt", "issuer": ISSUER, "audience": [AUDIENCE]}


class Written:
    """A settings file beside a callers' file with one caller, ci, who has a token and a key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.callers = folder / "callers.toml"
        self.callers.write_text(
            f'[ci]\ntoken = "{token_hash(b"tok")}"\nkey = "{token_hash(b"key")}"\nscopes = ["refunds"]\n'
            f'[bob]\ntoken = "{token_hash(b"bob")}"\n'
        )

    def settings(self, text: str, env: dict[str, str] | None = None, **flags: Any) -> Settings:
        file = self.folder / "dragoman.toml"
        file.write_text(text.replace("CALLERS", f'callers = "{self.callers}"'))
        return resolve(flags, file=file, environ=env or {})


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def doors(settings: Settings, **profiles: Profile) -> Any:
    access = Access(settings, profiles or {"": DESK}, Clock())
    return access.entrances


async def who(door: Authenticator, query: str = "", **headers: str) -> str:
    given = Presented({name.replace("_", "-"): value for name, value in headers.items()}, query)
    found = door.authenticate(given)
    return (found if isinstance(found, Principal) else await found).id


async def shut(door: Authenticator, **headers: str) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as caught:
        await who(door, **headers)
    return caught.value


def requirements(door: Authenticator) -> list[dict[str, list[str]]]:
    return [{name: list(scopes) for name, scopes in each.items()} for each in door.security.requirements]


# --- what is written --------------------------------------------------------------------------------------


def test_without_any_of_it_nobody_has_to_log_in() -> None:
    assert doors(Settings()) == {}
    assert not guarded(Settings())


async def test_a_callers_file_alone_means_bearer_tokens(written: Written) -> None:
    door = doors(written.settings("[auth]\nCALLERS"))[""]
    assert await who(door, authorization="Bearer tok") == "caller:ci"
    assert requirements(door) == [{"bearer": []}]
    await shut(door, x_api_key="key")


async def test_schemes_are_alternatives_unless_something_else_is_required(written: Written) -> None:
    text = '[auth]\nCALLERS\n[auth.schemes.t]\ntype="bearer"\n[auth.schemes.k]\ntype="api-key"\nname="K"\n'
    door = doors(written.settings(text))[""]
    assert requirements(door) == [{"t": []}, {"k": []}]
    assert await who(door, k="key") == await who(door, authorization="Bearer tok") == "caller:ci"
    door = doors(written.settings(text, auth_require="t + k"))[""]
    assert requirements(door) == [{"t": [], "k": []}]
    await shut(door, k="key")
    assert await who(door, k="key", authorization="Bearer tok") == "caller:ci"


async def test_each_agent_may_ask_for_something_else(written: Written) -> None:
    text = """
[auth]
CALLERS
[auth.schemes.t]
type = "bearer"
[auth.schemes.k]
type = "api-key"
place = "query"
name = "key"
[[agents]]
target = "desk.py"
slug = "desk"
require = ["k"]
scopes = ["refunds"]
[[agents]]
target = "faq.py"
slug = "faq"
public = true
"""
    found = doors(written.settings(text), desk=DESK, faq=FAQ, third=FAQ)
    assert requirements(found["desk"]) == [{"k": ["refunds"]}]
    await shut(found["desk"], authorization="Bearer tok")
    assert await who(found["desk"], "key=key") == "caller:ci"
    assert await who(found["faq"]) == ""
    assert await who(found["faq"], authorization="Bearer bob") == "caller:bob"
    await shut(found["faq"], authorization="Bearer wrong")
    assert requirements(found["third"]) == [{"t": []}, {"k": []}]


async def test_scopes_of_an_agent_are_needed_whatever_one_logs_in_with(written: Written) -> None:
    text = '[auth]\nCALLERS\n[[agents]]\ntarget="a.py"\nslug="desk"\nscopes=["refunds"]'
    door = doors(written.settings(text), desk=DESK)["desk"]
    assert await who(door, authorization="Bearer tok") == "caller:ci"
    with pytest.raises(MissingScope, match="refunds"):
        await who(door, authorization="Bearer bob")


def test_skills_ask_for_what_their_author_and_the_settings_say(written: Written) -> None:
    text = """
[auth]
CALLERS
[auth.schemes.t]
type = "bearer"
[auth.schemes.cert]
type = "mtls"
[[agents]]
target = "desk.py"
slug = "desk"
require = ["t"]
[agents.skills.convert]
require = ["t + cert"]
scopes = ["money"]
[agents.skills.refund]
scopes = ["extra"]
"""
    door = doors(written.settings(text), desk=DESK)["desk"]
    assert door.terms is not None
    assert door.terms.skills == {
        "convert": ({"t": ("money",), "cert": ()},),
        "refund": ({"t": ("extra", "refunds")},),
    }
    assert set(door.security.schemes) == {"t", "cert"}, "the card tells of what only a skill asks for"
    assert not door.explicit


def test_scopes_a_scheme_demands_stand_with_it(written: Written, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(json.dumps({"keys": [pair().jwk()]}))
    corp = {**JWT, "jwks": str(tmp_path / "keys"), "scopes": ["a2a"]}
    door = doors(resolve({"auth_schemes": {"corp": corp}}, environ={}))[""]
    assert requirements(door) == [{"corp": ["a2a"]}]
    assert door.terms is not None and door.terms.skills == {"refund": ({"corp": ("a2a", "refunds")},)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[auth.schemes.x]\ntype="jwt"', "auth.schemes.x.issuer: Expected who issues"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"', "auth.schemes.x.audience: Expected what tokens"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="http://i.example"\naudience=["a"]', "x.issuer: Expected an https"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://a|b"\naudience=["a"]', "x.issuer: Expected who issues"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\njwks="http://x/k"', "x.jwks: Expected an"),
        (
            '[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\njwks="/no/keys"',
            "/no/keys cannot be read",
        ),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\nalgorithms=["HS256"]', "x.algorithms: Exp"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\nalgorithms=["none"]', "x.algorithms: Exp"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\nalgorithms=[]', "x.algorithms: Expected"),
        (
            '[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\nauthorization_url="https://a"',
            "x.token_url",
        ),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience=["a"]\ntoken_url="a"', "x.token_url: Expected an"),
        ('[auth.schemes.x]\ntype="jwt"\nissuer="https://i"\naudience="a"', "x.audience: Expected"),
        ('[auth.schemes.x]\ntype="jwt"\nleeway="soon"', "x.leeway: Expected a duration"),
        ('[auth.schemes.x]\ntype="saml"', "auth.schemes.x.type: Expected one of bearer, api-key"),
        ("[auth.schemes.x]", "auth.schemes.x.type: Expected one of"),
        (
            '[auth.schemes.x]\ntype="api-key"\nplace="body"',
            "auth.schemes.x.place: Expected one of header, query, cookie",
        ),
        ('[auth.schemes.x]\ntype="api-key"\nnam="K"', "unknown key nam. Did you mean name?"),
        ('[auth.schemes."a b"]\ntype="bearer"', "Expected a name of letters"),
        ('[auth]\nschemes = "x"', "Expected a table for each scheme"),
        ("[auth]\nschemes = {x = 1}", "Expected a table"),
        ('[auth]\nrequire = ["y"]\n[auth.schemes.x]\ntype="bearer"', "there is no scheme called 'y'"),
        ('[auth]\nrequire = ["x + x"]\n[auth.schemes.x]\ntype="bearer"', "names a scheme twice"),
        ('[auth]\ncallers = "/no/callers"', "Cannot read /no/callers"),
        ('[[agents]]\ntarget="a"\nslug="d"\nrequire=[]\n[auth.schemes.x]\ntype="bearer"', "nobody could call it"),
        ('[[agents]]\ntarget="a"\nslug="d"\nskills.x.scopes=["y"]\n[auth.schemes.x]\ntype="bearer"', "no skill 'x'"),
        ('[[agents]]\ntarget="a"\nslug="d"\nskills.x.scope=["y"]', "unknown field"),
    ],
)
def test_every_mistake_is_named_before_anything_is_opened(written: Written, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        doors(written.settings(text), d=DESK)
    assert told in str(caught.value)


def test_what_jwts_need_may_not_be_installed() -> None:
    """In an interpreter of its own, where the extra's package cannot be found."""
    code = (
        "import sys; sys.modules['joserfc'] = None\n"
        "from dragoman.app.access import Access\nfrom dragoman.app.sources import resolve\n"
        "from dragoman.app.system import SystemClock\n"
        f"settings = resolve({{'auth_schemes': {{'corp': {JWT!r}}}}}, environ={{}})\n"
        "try:\n    Access(settings, {}, SystemClock())\nexcept Exception as error: print(error)\n"
        "settings = resolve({}, environ={'A2A_AUTH_TOKEN': 'x'})\n"
        "Access(settings, {}, SystemClock())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "auth.schemes.corp: JWTs need more packages; run: pip install 'dragoman[auth]'." in ran.stdout


# --- what the environment adds ----------------------------------------------------------------------------


async def test_the_token_of_the_environment_opens_every_agent_beside_what_it_asks_for(written: Written) -> None:
    env = {"A2A_AUTH_TOKEN": "s3same"}
    alone = doors(resolve({}, environ=env))[""]
    assert await who(alone, authorization="Bearer s3same") == "caller:A2A_AUTH_TOKEN"
    text = '[auth]\nCALLERS\n[auth.schemes.k]\ntype="api-key"\n[[agents]]\ntarget="a"\nslug="d"\nrequire=["k"]'
    door = doors(written.settings(text, env), d=DESK)["d"]
    assert requirements(door) == [{"k": []}, {"bearer": []}]
    assert await who(door, authorization="Bearer s3same") == "caller:A2A_AUTH_TOKEN"
    assert await who(door, x_api_key="key") == "caller:ci"


@pytest.mark.parametrize("token", ["a b", " ", "a,b", "a\nb"])
def test_a_token_no_header_could_carry_is_refused(token: str) -> None:
    with pytest.raises(SettingsError, match="A2A_AUTH_TOKEN: Expected a token") as caught:
        resolve({}, environ={"A2A_AUTH_TOKEN": token})
    assert token not in str(caught.value).replace("a token", "") or token == " "


def test_an_empty_token_is_none() -> None:
    assert not guarded(resolve({}, environ={"A2A_AUTH_TOKEN": ""}))


@pytest.mark.parametrize(
    ("name", "variable"),
    [("Currency desk", "CURRENCY_DESK_API_KEY"), ("proto-agent 2", "PROTO_AGENT_2_API_KEY"), ("Ünï", "N_API_KEY")],
)
def test_the_variable_of_an_agents_key_is_its_name_in_capitals(name: str, variable: str) -> None:
    assert key_variable(name) == variable


async def test_the_key_of_an_agent_opens_that_agent_and_no_other(written: Written) -> None:
    env = {"CURRENCY_DESK_API_KEY": "sesame", "OTHER_API_KEY": "other"}
    found = doors(resolve({}, environ=env), desk=DESK, other=FAQ)
    assert await who(found["desk"], x_api_key="sesame") == "caller:CURRENCY_DESK_API_KEY"
    await shut(found["desk"], x_api_key="other")
    both = doors(resolve({}, environ={**env, "A2A_AUTH_TOKEN": "tok"}), desk=DESK)["desk"]
    assert requirements(both) == [{"bearer": []}, {"key": []}], "alternatives, as protoAgent has them"


async def test_an_agent_without_a_key_beside_one_with_stays_as_it_was(written: Written) -> None:
    found = doors(resolve({}, environ={"CURRENCY_DESK_API_KEY": "k"}), desk=DESK, faq=FAQ)
    assert await who(found["desk"], x_api_key="k")
    assert "faq" not in found, "nobody has to log in there"


def test_the_authentication_of_coding_agents_is_understood() -> None:
    env = {
        "AUTH_ENABLED": "true",
        "AUTH_ISSUER": ISSUER,
        "AUTH_AUDIENCE": AUDIENCE,
        "AUTH_REQUIRED_SCOPES": "run, read",
        "AUTH_AUTHORIZATION_URL": "https://id.example/auth",
        "AUTH_TOKEN_URL": "https://id.example/token",
    }
    door = doors(resolve({}, environ=env))[""]
    assert requirements(door) == [{"oauth2": ["read", "run"]}]
    scheme = door.security.schemes["oauth2"]
    assert (scheme.kind, scheme.authorization_url, scheme.token_url) == (
        "oauth2",
        "https://id.example/auth",
        "https://id.example/token",
    )
    assert set(scheme.scopes) == {"run", "read"}
    assert doors(resolve({}, environ={**env, "AUTH_ENABLED": "false"})) == {}


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, "AUTH_ENABLED: Expected AUTH_ISSUER or AUTH_OIDC_DISCOVERY_URL"),
        ({"AUTH_ISSUER": ISSUER}, "AUTH_ENABLED: Expected AUTH_AUDIENCE"),
        ({"AUTH_OIDC_DISCOVERY_URL": "https://x/other", "AUTH_AUDIENCE": "a"}, "auth.schemes.oauth2.issuer: Expected"),
    ],
)
def test_half_of_it_is_an_error(env: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        doors(resolve({}, environ={"AUTH_ENABLED": "1", **env}))
    assert told in str(caught.value)


def test_the_issuer_follows_from_the_discovery_document_and_the_other_way_round() -> None:
    url = f"{ISSUER}/.well-known/openid-configuration"
    env = {"AUTH_ENABLED": "yes", "AUTH_OIDC_DISCOVERY_URL": url, "AUTH_AUDIENCE": "a b"}
    found = resolve({}, environ=env).schemes["oauth2"]
    assert isinstance(found, Jwt) and found.audience == ("a", "b")
    for settings in (resolve({}, environ=env), resolve({"auth_schemes": {"oauth2": JWT}}, environ={})):
        assert doors(settings)[""].security.schemes["oauth2"].discovery_url == url


def test_other_systems_allowed_origins_are_ours() -> None:
    found = resolve({}, environ={"A2A_ALLOWED_ORIGINS": "https://a.example, https://b.example"})
    assert found.server.allowed_origins == ("https://a.example", "https://b.example")


def test_a_key_of_an_agent_called_like_us_is_no_stray_variable() -> None:
    assert strays({"DRAGOMAN_API_KEY": "x"}) == []


# --- what it means for listening --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "public", "names", "ok"),
    [
        ({"A2A_AUTH_TOKEN": "x"}, False, ["Currency desk"], True),
        ({"A2A_AUTH_TOKEN": "x"}, True, ["Currency desk"], False),
        ({"CURRENCY_DESK_API_KEY": "x"}, False, ["Currency desk"], True),
        ({"CURRENCY_DESK_API_KEY": "x"}, False, ["Currency desk", "FAQ"], False),
        ({"OPENAI_API_KEY": "x"}, False, ["Currency desk"], False),
        ({}, False, ["Currency desk"], False),
    ],
)
def test_beyond_this_machine_only_where_every_agent_asks(
    written: Written, env: dict[str, str], public: bool, names: list[str], ok: bool
) -> None:
    text = '[server]\nhost = "0.0.0.0"\n' + ('[[agents]]\ntarget="a"\npublic=true' if public else "")
    settings = written.settings(text, env)
    if ok:
        reach(settings, names)
        return
    with pytest.raises(SettingsError, match=r"--allow-public") as caught:
        reach(settings, names)
    assert "A2A_AUTH_TOKEN" in str(caught.value)


def test_before_the_names_are_known_a_key_may_be_enough(written: Written) -> None:
    reach(written.settings('[server]\nhost = "0.0.0.0"', {"CURRENCY_DESK_API_KEY": "x"}))


# --- what is shown ----------------------------------------------------------------------------------------


def test_the_settings_in_effect_can_be_read_back_and_hold_no_secret(written: Written) -> None:
    text = """
[auth]
CALLERS
require = ["corp", "k + cert"]
[auth.schemes.corp]
type = "jwt"
issuer = "https://id.example"
audience = ["a"]
leeway = "2m"
tenants = ["acme"]
[auth.schemes.k]
type = "api-key"
name = "K\\"K"
[auth.schemes.cert]
type = "mtls"
listed = true
[[agents]]
target = "desk.py"
slug = "desk"
require = ["k"]
scopes = ["s"]
[agents.skills."a.b"]
scopes = ["t"]
require = ["corp"]
[[agents]]
target = "faq.py"
public = true
"""
    settings = written.settings(text, {"A2A_AUTH_TOKEN": "s3same", "DESK_API_KEY": "0pen"})
    shown = as_toml(settings)
    assert "s3same" not in shown and "0pen" not in shown and token_hash(b"s3same")[8:] not in shown
    again = written.settings(shown)
    assert (again.schemes, again.agents, again.auth) == (settings.schemes, settings.agents, settings.auth)


def test_variables_that_let_callers_in_are_named_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    env = {"A2A_AUTH_TOKEN": "s3same", "CURRENCY_DESK_API_KEY": "0pen", "OPENAI_API_KEY": "of somebody else"}
    with caplog.at_level("INFO", "dragoman.auth"):
        Access(resolve({}, environ=env), {"": DESK}, Clock()).open()
    assert [record.getMessage() for record in caplog.records] == [
        "A2A_AUTH_TOKEN is a credential of callers",
        "CURRENCY_DESK_API_KEY is a credential of callers",
    ]
