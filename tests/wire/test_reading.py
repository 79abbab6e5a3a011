"""The tolerant reader, where its dialects do not reach."""

from dragoman.wire.reading import Sheet, ident, many, text
from dragoman.wire.settings import WireSettings


def test_a_list_in_a_query_is_separated_by_commas() -> None:
    sheet = Sheet(WireSettings(), query=True)
    assert many(text)(sheet, "a,b", "modes") == ("a", "b")
    assert not sheet.violations


def test_what_is_wrong_in_a_list_is_named_by_its_place() -> None:
    sheet = Sheet(WireSettings())
    assert many(ident)(sheet, ["a", 5, "b\n"], "ids") == ("a", "", "b\n")
    assert [violation.field for violation in sheet.violations] == ["ids[1]", "ids[2]"]
