"""What outsiders may make us call."""

import pytest

from dragoman.core.addresses import lane


@pytest.mark.parametrize(
    "url",
    [
        "https://Desk.example:8443",
        "https://desk.example:8443/a/b?c#d",
        "HTTPS://desk.example:8443?c",
        "https://desk.example:8443#d",
    ],
)
def test_a_lane_is_scheme_host_and_port(url: str) -> None:
    assert lane(url) == "https://desk.example:8443"
