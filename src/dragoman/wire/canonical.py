"""What a card's signature is made over: canonical JSON of the members the protocol knows.

The specification's rule: required members are there even when they are empty, optional ones when they are set, and
everything else only when it differs from its default. The official SDKs go further and leave out whatever is empty, at
any depth. Where the two differ, a card needs a signature over each to be believed by everybody.

Protocol 0.3 has signatures and no rule. What is signed for it is the card as it stands, and what a2a-sdk 0.3 checks.

Needs the extra `auth`; imported where cards are signed or checked.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, cast

import msgspec
import rfc8785

from dragoman.model.errors import DragomanError
from dragoman.ports import Sealed

SAFE = 2**53 - 1
DEEPEST = 100

Many = Literal["one", "list", "map"]
Rule = Literal["default", "set", "required"]


class Uncanonical(DragomanError):
    """A document is no card, or has no canonical form. The text goes on where the card was named."""


class Member(NamedTuple):
    """`kind` is what one value is: text, a switch, anything at all, or a message of its own."""

    kind: "type | Shape"
    many: Many = "one"
    rule: Rule = "default"

    @property
    def empty(self) -> Any:
        """Its default; None for a message, which is there or not."""
        if self.many != "one":
            return [] if self.many == "list" else {}
        return "" if self.kind is str else False if self.kind is bool else None


class Shape:
    """The members of one message."""

    def __init__(self, **members: Member) -> None:
        self.members = members


TEXT, TEXTS = Member(str), Member(str, "list")
NEEDED, NEEDED_TEXTS = Member(str, rule="required"), Member(str, "list", "required")
SWITCH = Member(bool, rule="set")

_scopes = Member(str, "map", "required")
_requirements = Member(Shape(schemes=Member(Shape(list=TEXTS), "map")), "list")
_flows = Shape(
    authorizationCode=Member(
        Shape(authorizationUrl=NEEDED, tokenUrl=NEEDED, refreshUrl=TEXT, scopes=_scopes, pkceRequired=Member(bool))
    ),
    clientCredentials=Member(Shape(tokenUrl=NEEDED, refreshUrl=TEXT, scopes=_scopes)),
    deviceCode=Member(Shape(deviceAuthorizationUrl=NEEDED, tokenUrl=NEEDED, refreshUrl=TEXT, scopes=_scopes)),
    implicit=Member(Shape(authorizationUrl=TEXT, refreshUrl=TEXT, scopes=Member(str, "map"))),
    password=Member(Shape(tokenUrl=TEXT, refreshUrl=TEXT, scopes=Member(str, "map"))),
)
_schemes = Shape(
    apiKeySecurityScheme=Member(Shape(description=TEXT, location=NEEDED, name=NEEDED)),
    httpAuthSecurityScheme=Member(Shape(description=TEXT, scheme=NEEDED, bearerFormat=TEXT)),
    oauth2SecurityScheme=Member(Shape(description=TEXT, flows=Member(_flows), oauth2MetadataUrl=TEXT)),
    openIdConnectSecurityScheme=Member(Shape(description=TEXT, openIdConnectUrl=NEEDED)),
    mtlsSecurityScheme=Member(Shape(description=TEXT)),
)
_extension = Shape(uri=TEXT, description=TEXT, required=Member(bool), params=Member(object))
CARD = Shape(
    name=NEEDED,
    description=NEEDED,
    supportedInterfaces=Member(
        Shape(url=NEEDED, protocolBinding=NEEDED, tenant=TEXT, protocolVersion=NEEDED), "list", "required"
    ),
    provider=Member(Shape(url=NEEDED, organization=NEEDED)),
    version=NEEDED,
    documentationUrl=Member(str, rule="set"),
    capabilities=Member(
        Shape(
            streaming=SWITCH, pushNotifications=SWITCH, extensions=Member(_extension, "list"), extendedAgentCard=SWITCH
        )
    ),
    securitySchemes=Member(_schemes, "map"),
    securityRequirements=_requirements,
    defaultInputModes=NEEDED_TEXTS,
    defaultOutputModes=NEEDED_TEXTS,
    skills=Member(
        Shape(
            id=NEEDED,
            name=NEEDED,
            description=NEEDED,
            tags=NEEDED_TEXTS,
            examples=TEXTS,
            inputModes=TEXTS,
            outputModes=TEXTS,
            securityRequirements=_requirements,
        ),
        "list",
        "required",
    ),
    iconUrl=Member(str, rule="set"),
)

_any = Member(object)
_flow_03 = Member(Shape(authorizationUrl=_any, tokenUrl=_any, refreshUrl=_any, scopes=_any))
# The two names that are no identifiers are Python's, not the protocol's.
_scheme_03 = Shape(
    description=_any,
    **{"in": _any},
    name=_any,
    scheme=_any,
    bearerFormat=_any,
    flows=Member(Shape(authorizationCode=_flow_03, clientCredentials=_flow_03, implicit=_flow_03, password=_flow_03)),
    oauth2MetadataUrl=_any,
    openIdConnectUrl=_any,
)
OLD_CARD = Shape(
    additionalInterfaces=Member(Shape(transport=_any, url=_any), "list"),
    capabilities=Member(
        Shape(
            extensions=Member(Shape(description=_any, params=_any, required=_any, uri=_any), "list"),
            pushNotifications=_any,
            stateTransitionHistory=_any,
            streaming=_any,
        )
    ),
    defaultInputModes=_any,
    defaultOutputModes=_any,
    description=_any,
    documentationUrl=_any,
    iconUrl=_any,
    name=_any,
    preferredTransport=_any,
    protocolVersion=_any,
    provider=Member(Shape(organization=_any, url=_any)),
    security=_any,
    securitySchemes=Member(_scheme_03, "map"),
    skills=Member(
        Shape(
            description=_any,
            examples=_any,
            id=_any,
            inputModes=_any,
            name=_any,
            outputModes=_any,
            security=_any,
            tags=_any,
        ),
        "list",
    ),
    supportsAuthenticatedExtendedCard=_any,
    url=_any,
    version=_any,
)
OLD_DEFAULTS = {"preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


def payloads(card: Mapping[str, Any]) -> list[bytes]:
    """What to sign so that every verifier finds a signature it can check, each once. Raises Uncanonical."""
    found: list[bytes] = []
    if "supportedInterfaces" in card:
        found += (specified(card), compact(card))
    else:
        found.append(whole(card))
    if "url" in card:
        found.append(old(card))
    return list(dict.fromkeys(found))


def candidates(card: Mapping[str, Any]) -> list[bytes]:
    """What a signature found on a card may have been made over. Raises Uncanonical."""
    return list(dict.fromkeys((whole(card), *payloads(card))))


def whole(card: Mapping[str, Any]) -> bytes:
    """The document as it stands, whatever its members mean."""
    return canonical({name: value for name, value in card.items() if name != "signatures"})


def specified(card: Mapping[str, Any]) -> bytes:
    """The members of 1.0 by the specification's rule."""
    return canonical(_message(card, CARD))


def compact(card: Mapping[str, Any]) -> bytes:
    """The members of 1.0 as the official SDKs sign them."""
    return canonical(_filled(_message(card, CARD)) or {})


def old(card: Mapping[str, Any]) -> bytes:
    """The members of 0.3 as a2a-sdk 0.3 signs them: sorted and compact, and all in ASCII."""
    members: dict[str, Any] = _filled(_message(card, OLD_CARD)) or {}
    kept = {name: value for name, value in members.items() if OLD_DEFAULTS.get(name) != value}
    return json.dumps(kept, separators=(",", ":"), sort_keys=True).encode()


def canonical(value: object) -> bytes:
    """RFC 8785. Raises Uncanonical for what has no such form."""
    try:
        return rfc8785.dumps(_numbers(value, DEEPEST))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        raise Uncanonical("it holds a value that has no canonical form") from None


def signatures(card: Mapping[str, Any], seal: Callable[[bytes], Sealed]) -> list[dict[str, str]]:
    """The card's `signatures`. `card` is plain JSON. Raises Uncanonical."""
    sealed = [seal(payload) for payload in payloads(card)]
    return [{"protected": each.protected, "signature": each.signature} for each in sealed]


def plain(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card as somebody reads it who gets it as JSON."""
    return msgspec.json.decode(msgspec.json.encode(card))


def _message(value: object, shape: Shape) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Uncanonical("it is not shaped like a card")
    given = cast("Mapping[str, Any]", value)
    found: dict[str, Any] = {}
    for name, member in shape.members.items():
        one = given.get(name)
        if one is None:
            continue
        read = _values(one, member)
        if member.rule != "default" or member.empty is None or read != member.empty:
            found[name] = read
    return found


def _values(value: Any, member: Member) -> Any:
    if member.many == "list" and isinstance(value, list):
        return [_value(each, member.kind) for each in cast("list[Any]", value)]
    if member.many == "map" and isinstance(value, Mapping):
        return {name: _value(each, member.kind) for name, each in cast("Mapping[str, Any]", value).items()}
    if member.many != "one":
        raise Uncanonical("it is not shaped like a card")
    return _value(value, member.kind)


def _value(value: Any, kind: "type | Shape") -> Any:
    if isinstance(kind, Shape):
        return _message(value, kind)
    if not isinstance(value, kind):
        raise Uncanonical("it is not shaped like a card")
    return value


def _filled(value: Any) -> Any:
    """The value without whatever is empty; None if nothing is left."""
    if isinstance(value, dict):
        kept = {name: one for name, each in cast("dict[str, Any]", value).items() if (one := _filled(each)) is not None}
        return kept or None
    if isinstance(value, list):
        return [one for each in cast("list[Any]", value) if (one := _filled(each)) is not None] or None
    return None if value == "" else value


def _numbers(value: Any, depth: int) -> Any:
    """The value with its large integers as what JSON's numbers are to most who read them."""
    if depth == 0:
        raise Uncanonical("it nests too deep")
    if isinstance(value, Mapping):
        return {name: _numbers(each, depth - 1) for name, each in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_numbers(each, depth - 1) for each in cast("list[Any]", value)]
    if isinstance(value, int) and not isinstance(value, bool) and not -SAFE <= value <= SAFE:
        try:
            return float(value)
        except OverflowError:
            raise Uncanonical("it holds a number beyond all bounds") from None
    return value
