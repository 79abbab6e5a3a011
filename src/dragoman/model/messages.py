"""What people and agents say to each other: parts, messages, artifacts.

The words are the specification's (1.0). Members a sender left out are absent, never null.
"""

from enum import Enum
from typing import Any

from msgspec import UNSET, Struct, UnsetType


class Role(str, Enum):
    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One piece of content. Exactly one of text, raw, url and data is set; `core.shape` enforces it."""

    text: str | UnsetType = UNSET
    raw: bytes | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    media_type: str = ""
    filename: str = ""
    metadata: dict[str, Any] | None = None


class Message(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    message_id: str = ""
    context_id: str = ""
    task_id: str = ""
    role: Role | None = None
    parts: tuple[Part, ...] = ()
    metadata: dict[str, Any] | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Artifact(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    artifact_id: str = ""
    name: str = ""
    description: str = ""
    parts: tuple[Part, ...] = ()
    metadata: dict[str, Any] | None = None
    extensions: tuple[str, ...] = ()
