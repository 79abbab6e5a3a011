"""Which parts an agent takes, by the media types it names."""

import pytest

from dragoman.core.modes import admit
from dragoman.model.errors import ContentTypeNotSupported
from dragoman.model.messages import Part

TEXT = Part(text="x")
DATA = Part(data=None)
PNG = Part(raw=b"", media_type="Image/PNG; q=1")
UNKNOWN = Part(url="https://example.com/x")


@pytest.mark.proves("S-12-6")
@pytest.mark.parametrize(
    ("accepts", "part"),
    [
        ((), PNG),
        (("text/plain",), TEXT),
        (("text",), TEXT),
        (("data",), DATA),
        (("application/json",), DATA),
        (("image/png",), PNG),
        (("image/*",), PNG),
        (("file",), PNG),
        (("*/*",), PNG),
        (("text/plain",), UNKNOWN),
    ],
)
def test_a_part_of_a_type_the_agent_names_is_taken(accepts: tuple[str, ...], part: Part) -> None:
    admit([part], accepts)


@pytest.mark.parametrize(
    ("accepts", "part"), [(("text/plain",), DATA), (("image/*",), TEXT), (("application/json", "text"), PNG)]
)
def test_a_part_of_another_type_is_refused_and_both_are_named(accepts: tuple[str, ...], part: Part) -> None:
    with pytest.raises(ContentTypeNotSupported, match="it takes " + accepts[0]):
        admit([part], accepts)
