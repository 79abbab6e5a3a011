"""How to log in, as each version's cards say it. The examples are the specification's."""

import json
from typing import Any

import pytest

from dragoman.model.cards import Interface, Profile, Skill
from dragoman.model.security import Security, SecurityScheme
from dragoman.wire.cards import CardSource, pure_03, pure_10, union

CORP = SecurityScheme(kind="oauth2", token_url="https://id.example/token", scopes={"run": "start tasks"})
KEY = SecurityScheme(kind="key", place="header", parameter="X-Key")
EVERY = {
    "key": KEY,
    "basic": SecurityScheme(kind="http", http="Basic", description="Name and password"),
    "jwt": SecurityScheme(kind="http", http="Bearer", format="JWT"),
    "web": SecurityScheme(
        kind="oauth2", authorization_url="https://id.example/auth", token_url="https://id.example/token", scopes={}
    ),
    "oidc": SecurityScheme(kind="oidc", discovery_url="https://id.example/.well-known/openid-configuration"),
    "cert": SecurityScheme(kind="mtls", description="A client certificate"),
}
SKILLS = (
    Skill(id="open", name="Open", description="Open", tags=("a",)),
    Skill(id="pay", name="Pay", description="Pay", tags=("a",), scopes=("pay",)),
)


def cards(security: Security, skills: tuple[Skill, ...] = SKILLS) -> tuple[Any, Any, Any]:
    """The 1.0 card, the 0.3 card and the union."""
    interfaces = tuple(Interface(url="http://x/", binding="JSONRPC", version=each) for each in ("1.0", "0.3"))
    profile = Profile(name="A", description="A", version="1", skills=skills)
    source = CardSource(profile=profile, interfaces=interfaces, root="http://x", security=security)
    return tuple(json.loads(each(source)) for each in (pure_10, pure_03, union))  # pyright: ignore[reportReturnType]


def test_the_examples_of_the_specification() -> None:
    security = Security(schemes={"corp": CORP, "key": KEY}, requirements=({"corp": ("run",)}, {"key": ()}))
    modern, legacy, _ = cards(security)
    flows = {"clientCredentials": {"tokenUrl": "https://id.example/token", "scopes": {"run": "start tasks"}}}
    assert modern["securitySchemes"] == {
        "corp": {"oauth2SecurityScheme": {"flows": flows}},
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
    }
    assert modern["securityRequirements"] == [{"schemes": {"corp": {"list": ["run"]}}}, {"schemes": {"key": {}}}]
    assert legacy["securitySchemes"] == {
        "corp": {"type": "oauth2", "flows": flows},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    }
    assert legacy["security"] == [{"corp": ["run"]}, {"key": []}]
    assert "security" not in modern and "securityRequirements" not in legacy


def test_every_kind_of_scheme_in_both_spellings() -> None:
    modern, legacy, both = cards(Security(schemes=EVERY, requirements=({"key": ()},)))
    assert modern["securitySchemes"] == {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "basic": {"httpAuthSecurityScheme": {"scheme": "Basic", "description": "Name and password"}},
        "jwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
        "web": {
            "oauth2SecurityScheme": {
                "flows": {
                    "authorizationCode": {
                        "authorizationUrl": "https://id.example/auth",
                        "tokenUrl": "https://id.example/token",
                        "scopes": {},
                    }
                }
            }
        },
        "oidc": {
            "openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/.well-known/openid-configuration"}
        },
        "cert": {"mtlsSecurityScheme": {"description": "A client certificate"}},
    }
    types = {"key": "apiKey", "basic": "http", "jwt": "http", "web": "oauth2", "oidc": "openIdConnect"}
    assert {name: each["type"] for name, each in legacy["securitySchemes"].items()} == {**types, "cert": "mutualTLS"}
    for name, scheme in both["securitySchemes"].items():
        assert scheme == {**modern["securitySchemes"][name], **legacy["securitySchemes"][name]}


def test_the_union_says_it_in_the_words_of_every_version() -> None:
    *_, both = cards(Security(schemes=EVERY, requirements=({"key": (), "cert": ()}, {"oidc": ("run",)})))
    assert both["security"] == [{"key": [], "cert": []}, {"oidc": ["run"]}]
    assert both["securityRequirements"] == [
        {"schemes": {"key": {}, "cert": {}}},
        {"schemes": {"oidc": {"list": ["run"]}}},
    ]
    assert both["authentication"] == {"schemes": ["apiKey", "Basic", "Bearer"]}, "for clients of 0.1"
    *_, both = cards(Security(schemes={"cert": EVERY["cert"]}, requirements=({"cert": ()},)))
    assert "authentication" not in both, "0.1 has no word for certificates"


@pytest.mark.parametrize("at", range(3))
def test_without_authentication_no_card_speaks_of_it(at: int) -> None:
    card = cards(Security())[at]
    assert not {"securitySchemes", "securityRequirements", "security", "authentication"} & set(card)
    assert all(set(skill) == {"id", "name", "description", "tags"} for skill in card["skills"])


def test_what_single_skills_ask_for_stands_with_them() -> None:
    security = Security(schemes={"corp": CORP}, requirements=({"corp": ()},), skills={"pay": ({"corp": ("pay",)},)})
    modern, legacy, both = cards(security)
    for card in (modern, legacy, both):
        assert not {"security", "securityRequirements", "scopes"} & set(card["skills"][0])
        assert "scopes" not in card["skills"][1]
    assert modern["skills"][1]["securityRequirements"] == [{"schemes": {"corp": {"list": ["pay"]}}}]
    assert legacy["skills"][1]["security"] == [{"corp": ["pay"]}]
    assert {"security", "securityRequirements"} <= set(both["skills"][1])
    assert "security" not in modern["skills"][1] and "securityRequirements" not in legacy["skills"][1]


def test_an_agent_open_to_all_says_so_beside_what_it_takes() -> None:
    modern, legacy, _ = cards(Security(schemes={"key": KEY}, requirements=({"key": ()}, {})))
    assert modern["securityRequirements"] == [{"schemes": {"key": {}}}, {"schemes": {}}]
    assert legacy["security"] == [{"key": []}, {}]
