"""docs/security.md and docs/configuration.md say of authentication what is so."""

from pathlib import Path

import pytest

from dragoman.app.schemes import KINDS
from dragoman.app.settings import AgentSettings, SkillSettings
from dragoman.auth.callers import Caller, Written
from dragoman.cli.config import literal

DOCS = Path(__file__).resolve().parents[2] / "docs"
SECURITY = (DOCS / "security.md").read_text("utf-8")
CONFIGURATION = (DOCS / "configuration.md").read_text("utf-8").partition("## `[auth]`")[2].partition("\n## ")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_scheme_is_described_with_its_keys_and_defaults(kind: str) -> None:
    text = CONFIGURATION.partition(f"- `{kind}`:")[2].partition("\n- `")[0]
    assert text
    scheme = KINDS[kind]()
    for key in scheme.__struct_fields__:
        default = getattr(scheme, key)
        assert f"`{key}`" in text or f"`{key} = " in text, key
        if default not in ("", (), None):
            assert f"`{key} = {literal(default)}`" in text, key


def test_every_key_of_callers_agents_and_skills_is_shown() -> None:
    for key in (*Written.__struct_fields__, *AgentSettings.__struct_fields__, *SkillSettings.__struct_fields__):
        assert key in ("target", "slug") or key in CONFIGURATION, key


@pytest.mark.proves("W-196")
def test_what_callers_may_see_is_told_with_how_they_are_known() -> None:
    assert "A task belongs to whoever made it, within the agent and the tenant." in SECURITY
    assert Caller(name="<name>").id in SECURITY
    assert "`jwt:<issuer>|<subject>`" in SECURITY and "`cert:<SHA-256 of the certificate>`" in SECURITY
    for word in (
        "Getting, listing, following, answering, cancelling",
        "`admin_scope`",
        "`tenants_claim`",
        "unknown task",
    ):
        assert word in SECURITY


VARIABLES = """
A2A_AUTH_TOKEN <AGENT>_API_KEY AUTH_ENABLED AUTH_ISSUER AUTH_AUDIENCE AUTH_OIDC_DISCOVERY_URL AUTH_JWKS_URI
AUTH_REQUIRED_SCOPES AUTH_AUTHORIZATION_URL AUTH_TOKEN_URL
"""


@pytest.mark.parametrize("variable", VARIABLES.split())
def test_variables_of_other_systems_are_named(variable: str) -> None:
    assert f"`{variable}`" in CONFIGURATION
