"""The tables of docs/dialects.md say what the code does."""

import pytest

from dragoman.server.pages import CARDS
from dragoman.wire.mounts import spoken
from dragoman.wire.settings import WireSettings
from tests.docs.dialects import COLUMNS, LOOKED_FOR, MOUNTS, PAGE, TABLES, block, renewed, spoken_at
from tests.protocol.speaking import Speaker, serving

HINT = "Run: python -m tests.docs.dialects"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_what_the_code_does(name: str) -> None:
    made = block(name, TABLES[name]())
    assert made in PAGE.read_text("utf-8"), f"{HINT}\n{made}"


def test_there_is_nothing_in_the_tables_that_nobody_made() -> None:
    page = PAGE.read_text("utf-8")
    assert renewed(page) == page, HINT
    made = [line for lines in TABLES.values() for line in lines()]
    assert [line for line in page.splitlines() if line.startswith("|")] == made


def test_every_dialect_has_a_column() -> None:
    assert {dialect.origin for dialect in COLUMNS.values()} == set(spoken(WireSettings()))


@pytest.mark.anyio
async def test_a_dialects_clients_find_its_address_on_the_card_they_look_for() -> None:
    assert set(LOOKED_FOR.values()) == set(CARDS)
    async with serving() as (stage, app):
        caller = Speaker("0.3", "JSONRPC", stage, app)
        for name, path in LOOKED_FOR.items():
            card = (await caller.ask("GET", path)).json()
            named = {each["url"] for each in card["supportedInterfaces"] + card["additionalInterfaces"]}
            assert any(f"http://127.0.0.1{path}" in named for path in MOUNTS if spoken_at(MOUNTS[path], COLUMNS[name]))
