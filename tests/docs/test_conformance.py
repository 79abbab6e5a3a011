"""The list of excused tests is explained, and the script that reads the kit's reports counts them right."""

from pathlib import Path

import pytest

from conformance.run import HERE, Known, judge

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text()

CASE = '<testcase classname="tests.kit.{place}" name="{name}" file="tests/kit/test_a.py">{end}</testcase>'
CASES = [
    ("test_a", "test_fine[jsonrpc]", ""),
    ("test_a.TestB", "test_bad[rest]", "<failure/>"),
    ("test_a.TestB", "test_excused[rest]", "<failure/>"),
    ("test_a.TestB", "test_broken", "<error/>"),
    ("test_a", "test_left", '<skipped type="pytest.skip"/>'),
    ("test_a", "test_later", '<skipped type="pytest.xfail"/>'),
]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "junit.xml"
    cases = "".join(CASE.format(place=place, name=name, end=end) for place, name, end in CASES)
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return path


def known(directory: Path, *lines: str) -> Known:
    path = directory / "known.txt"
    path.write_text("# a comment\n\n" + "".join(f"{line}  # a reason\n" for line in lines))
    return Known(path)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_every_excused_test_is_explained(version: str) -> None:
    for line in (HERE / f"known_{version}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition("  # ")
            assert reason, f"{test} has no reason"
            assert test.split(".py::")[1] in PAGE, f"docs/conformance.md does not explain {test}"


def test_a_report_is_counted_and_unexcused_failures_are_named(tmp_path: Path, report: Path) -> None:
    count, failures = judge(report, known(tmp_path, "tests/kit/test_a.py::TestB::test_excused"))
    assert dict(count) == {"passed": 1, "failed": 2, "known": 1, "skipped": 1, "xfailed": 1}
    assert failures == ["tests/kit/test_a.py::TestB::test_bad[rest]", "tests/kit/test_a.py::TestB::test_broken"]


def test_an_excuse_for_a_test_that_passes_everywhere_is_needless(tmp_path: Path, report: Path) -> None:
    excuses = known(tmp_path, "tests/kit/test_a.py::test_fine[jsonrpc]", "tests/kit/test_a.py::TestB::test_excused")
    judge(report, excuses)
    assert excuses.needless == ["tests/kit/test_a.py::test_fine[jsonrpc]"]
