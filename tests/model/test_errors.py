"""Errors say the fact in a plain sentence and carry what a client's program can act on."""

import pytest

from dragoman.app.units import Bytes
from dragoman.model import errors
from dragoman.model.errors import DragomanError, InvalidParams, Violation


def test_parameters_are_named_one_by_one_or_in_a_word() -> None:
    several = InvalidParams([Violation("message.parts", "is empty"), Violation("tenant", "is odd")])
    assert [v.field for v in several.violations] == ["message.parts", "tenant"]
    assert str(several) == "message.parts: is empty"
    assert str(InvalidParams("is odd", "tenant")) == "tenant: is odd"
    assert str(InvalidParams("The request is odd")) == "The request is odd"


SAMPLES: list[tuple[DragomanError, str, dict[str, str]]] = [
    (errors.ParseFailure(), "not valid JSON", {}),
    (errors.ParseFailure("The body is empty."), "empty", {}),
    (errors.InvalidRequest("A batch is not a request"), "batch", {}),
    (errors.MethodNotFound("tasks/frob"), "tasks/frob", {"method": "tasks/frob"}),
    (errors.MethodNotFound(""), "Method not found", {"method": ""}),
    (errors.TaskNotFound("t"), "Task not found", {"taskId": "t"}),
    (errors.TaskNotCancelable("t", "DONE"), "cannot be canceled", {"taskId": "t", "state": "DONE"}),
    (errors.UnsupportedOperation("No streams here"), "No streams", {}),
    (errors.PushNotSupported(), "Push notifications", {}),
    (
        errors.ContentTypeNotSupported("Say it in JSON", accepts="application/json"),
        "JSON",
        {"accepts": "application/json"},
    ),
    (errors.ExtendedCardNotConfigured(), "extended", {}),
    (errors.ExtensionRequired("urn:x"), "A2A-Extensions", {"extension": "urn:x"}),
    (errors.VersionNotSupported("7.0", ("1.0", "0.3")), "use 1.0, 0.3", {"version": "7.0", "supported": "1.0, 0.3"}),
    (errors.BodyTooLarge(10), "10 bytes", {"limit": "10"}),
    (errors.BodyTooLarge(Bytes(1024)), "1024 bytes", {"limit": "1024"}),
    (errors.Unauthenticated("Bearer"), "Authentication is required", {}),
    (errors.Forbidden("Not yours"), "Not yours", {}),
    (errors.Busy("Too much", 3, taskId="t"), "Too much", {"taskId": "t"}),
]


@pytest.mark.parametrize(("error", "says", "facts"), SAMPLES, ids=lambda value: type(value).__name__)
def test_a_caller_is_told_what_is_wrong(error: errors.CallerError, says: str, facts: dict[str, str]) -> None:
    assert says in str(error)
    assert error.facts == facts


def test_what_a_caller_named_is_not_echoed_without_end() -> None:
    assert len(str(errors.MethodNotFound("x" * 10_000))) < 200
    assert len(str(errors.VersionNotSupported("x" * 10_000, ("1.0",)))) < 200


def test_errors_of_ours_carry_what_decides() -> None:
    assert errors.Unauthenticated('Bearer realm="x"').challenge == 'Bearer realm="x"'
    assert errors.Busy("Too much").retry_after == 1
    assert errors.Conflict().head is None
    assert errors.Conflict("head").head == "head"
    assert errors.KeyTaken("record").record == "record"
    assert "changed" in str(errors.HandlerChanged())
    assert "https" in str(errors.AddressRefused("must begin with https://"))


def test_faults_are_told_apart() -> None:
    assert issubclass(errors.Busy, errors.CallerError)
    assert issubclass(errors.HandlerChanged, errors.AgentError)
    assert issubclass(errors.OutcomeUnknown, errors.StoreError)
    for fault in (errors.AgentError, errors.StoreError):
        assert issubclass(fault, DragomanError) and not issubclass(fault, errors.CallerError)
