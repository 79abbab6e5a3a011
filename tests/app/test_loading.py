"""From `module:attribute` or `file.py[:attribute]` to an agent."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.app.loading import CannotImport, load, load_all, slug_of
from dragoman.app.settings import AgentSettings, SettingsError

ONE = "from dragoman import Agent\ndesk = Agent('Desk')\n"
TWO = "from dragoman import Agent\nfirst = Agent('First one')\nsecond = Agent('Second')\n"
NAMED = TWO + "agent = Agent('Main')\nalias = agent\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own to import from, forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def name_of(target: str) -> str:
    return load(target).profile.name


def test_the_only_agent_of_a_file_is_meant_whatever_it_is_called(here: Path) -> None:
    (here / "one_agent.py").write_text(ONE)
    assert name_of("one_agent.py") == "Desk"
    assert name_of(str(here / "one_agent.py")) == "Desk"


def test_of_several_the_one_called_agent_is_meant(here: Path) -> None:
    (here / "named_agents.py").write_text(NAMED)
    assert name_of("named_agents.py") == "Main"
    assert name_of("named_agents.py:second") == "Second"
    assert name_of("named_agents:first") == "First one"


def test_several_without_a_name_are_listed(here: Path) -> None:
    (here / "two_agents.py").write_text(TWO)
    with pytest.raises(SettingsError, match=r"two_agents.py:first, two_agents.py:second"):
        load("two_agents.py")


def test_a_file_may_import_its_neighbours(here: Path) -> None:
    folder = here / "deep"
    folder.mkdir()
    (folder / "neighbour_words.py").write_text("NAME = 'From next door'\n")
    (folder / "importing_agent.py").write_text(
        "from dragoman import Agent\nfrom neighbour_words import NAME\nagent = Agent(NAME)\n"
    )
    assert name_of("deep/importing_agent.py") == "From next door"


def test_a_file_called_like_a_library_does_not_replace_it(here: Path) -> None:
    (here / "json.py").write_text(ONE)
    import json

    assert name_of("json.py") == "Desk"
    assert sys.modules["json"] is json


def test_an_attribute_may_be_nested(here: Path) -> None:
    (here / "nested_agent.py").write_text("from dragoman import Agent\nclass desk:\n    agent = Agent('Nested')\n")
    assert name_of("nested_agent:desk.agent") == "Nested"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("none.py", "There is no file none.py"),
        ("no_such_module", "there is no module no_such_module"),
        ("no_such_module.inner:agent", "there is no module no_such_module"),
        ("some_agent.py:nothing", "there is no nothing in it. It has: desk"),
        ("some_agent.py:Agent", "Agent is a type, not an agent"),
        ("empty_module.py", "There is no agent in empty_module.py"),
        (":agent", "module:attribute"),
        ("some_agent.py:", "module:attribute"),
        ("..", "module:attribute"),
    ],
)
def test_what_cannot_be_found_is_named(here: Path, target: str, words: str) -> None:
    (here / "some_agent.py").write_text(ONE)
    (here / "empty_module.py").write_text("")
    with pytest.raises(SettingsError, match=words):
        load(target)


def test_an_import_that_fails_inside_is_the_authors_to_see(here: Path) -> None:
    (here / "broken_agent.py").write_text("import not_installed_anywhere\n")
    for target in ("broken_agent.py", "broken_agent"):
        with pytest.raises(CannotImport, match="broken_agent") as failed:
            load(target)
        assert isinstance(failed.value.__cause__, ModuleNotFoundError)
        trace = failed.value.trace.splitlines()
        assert trace[1].endswith('broken_agent.py", line 1, in <module>')
        assert trace[-1] == "ModuleNotFoundError: No module named 'not_installed_anywhere'"
    assert "broken_agent" not in sys.modules


def test_a_syntax_error_is_shown_where_it_is(here: Path) -> None:
    (here / "unclosed_agent.py").write_text("agent = (\n")
    with pytest.raises(CannotImport) as failed:
        load("unclosed_agent.py")
    trace = failed.value.trace
    assert 'unclosed_agent.py", line 1' in trace and "SyntaxError" in trace and "loading.py" not in trace


def test_a_file_that_ends_the_process_is_told_what_to_do_instead(here: Path) -> None:
    (here / "ending_agent.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(SettingsError, match=r"sys.exit\(3\).*__main__"):
        load("ending_agent.py")


def test_a_file_that_serves_when_it_is_imported_is_told_what_to_do_instead(here: Path) -> None:
    (here / "serving_agent.py").write_text(f"{ONE}import dragoman\ndragoman.serve(desk)\n")
    with pytest.raises(SettingsError, match=r"serving_agent.py calls serve\(\).*__main__"):
        load("serving_agent.py")
    (here / "serving_agent.py").write_text(ONE)
    assert name_of("serving_agent.py") == "Desk"


def test_several_agents_have_slugs_of_their_own(here: Path) -> None:
    (here / "slug_agents.py").write_text(TWO)
    found = load_all(
        [AgentSettings(target="slug_agents.py:first"), AgentSettings(target="slug_agents.py:second", slug="zwei")]
    )
    assert {slug: agent.profile.name for slug, agent in found.items()} == {"": "First one", "zwei": "Second"}


def test_the_same_slug_twice_is_refused(here: Path) -> None:
    (here / "same_agents.py").write_text(TWO)
    with pytest.raises(SettingsError, match="'x'"):
        load_all([AgentSettings(target=f"same_agents.py:{name}", slug="x") for name in ("first", "second")])


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Currency desk", "currency-desk"), ("  A/B  ", "a-b"), ("Übersetzer", "bersetzer"), ("翻訳", "agent")],
)
def test_a_slug_is_made_of_a_name(name: str, slug: str) -> None:
    assert slug_of(name) == slug


@pytest.mark.proves("S-1-7")
@pytest.mark.parametrize("slug", ["a2a", "agents", "tasks", "v1", "a/b", "..", "a\r\nb", "x" * 65])
def test_a_name_of_ours_is_no_slug(here: Path, slug: str) -> None:
    (here / "named_agents.py").write_text(TWO)
    with pytest.raises(SettingsError, match="No agent can be called"):
        load_all([AgentSettings(target="named_agents.py:first", slug=slug)])
