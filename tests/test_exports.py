"""The public names are what the package says they are, loaded late."""

import subprocess
import sys

import dragoman

PUBLIC = [
    "Agent",
    "Artifact",
    "Message",
    "News",
    "Part",
    "Receiver",
    "Reply",
    "Role",
    "Task",
    "TaskState",
    "TaskStatus",
    "Turn",
    "VerifiedCard",
    "asgi",
    "errors",
    "serve",
    "sign_card",
    "verify_card",
]


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(dragoman.__all__) == PUBLIC
    assert set(dragoman._HOMES) == set(PUBLIC)


def test_every_public_name_is_there_and_is_the_one_at_home() -> None:
    for name in PUBLIC:
        found = getattr(dragoman, name)
        assert getattr(dragoman, name) is found
        if name != "errors":
            home = sys.modules[dragoman._HOMES[name]]
            assert getattr(home, name) is found
    assert issubclass(dragoman.errors.TaskNotFound, dragoman.errors.DragomanError)


def test_dir_names_them_all() -> None:
    assert set(PUBLIC) <= set(dir(dragoman))


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    try:
        _ = dragoman.Agnet
    except AttributeError as error:
        assert "Agnet" in str(error)
    else:
        raise AssertionError("a typo went unnoticed")


def test_importing_the_package_loads_nothing_else_of_it() -> None:
    code = "import sys, dragoman; print([name for name in sys.modules if name.startswith('dragoman.')])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
