"""What reading a request is allowed to meet."""

from msgspec import Struct


class WireSettings(Struct, frozen=True, kw_only=True):
    """Limits and choices of the wire.

    `require_version` refuses 1.0 method names without `A2A-Version` (the letter of the specification: absent means
    0.3). By default they are read as 1.0, which cannot be misread: no 0.x version has those names.
    """

    require_version: bool = False
    max_depth: int = 64  # official clients give up at 100 (protobuf's own limit); our answers nest a few levels deeper
    max_containers: int = 200_000  # arrays and objects in one body: each costs a decoder some hundred bytes
    max_parts: int = 1000  # of a message; no other list in a request is longer either
