"""protoAgent: of a webhook's two shapes of a token, the one at the top counts; what a task cost."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.model.operations import CreatePush, PushConfig, SendMessage
from dragoman.model.tasks import Usage
from tests.wire.wording import asked, call, understood, view, visit

URL = "https://consumer.example/callback/abc"
BEARER = {"schemes": ["Bearer"], "credentials": "inner"}


def configured(**config: Any) -> list[PushConfig]:
    """As registered by each of the ways there are."""
    hook = {"url": URL, **config}
    params = {"taskId": "t-77", "pushNotificationConfig": hook}
    sent = {"message": {"parts": [{"text": "hi"}]}, "configuration": {"pushNotificationConfig": hook}}
    inside = asked(call("message/send", sent, path="/a2a"), SendMessage).configuration.task_push_notification_config
    assert inside is not None
    return [
        asked(call("tasks/pushNotificationConfig/set", params, path="/a2a"), CreatePush).config,
        asked(visit("POST", "/a2a/tasks/t-77/pushNotificationConfig", hook), CreatePush).config,
        inside,
    ]


@pytest.mark.parametrize(
    ("given", "token", "authentication"),
    [
        ({"token": "top"}, "top", None),
        ({"authentication": BEARER}, "", {"scheme": "Bearer", "credentials": "inner"}),
        ({"token": "top", "authentication": BEARER}, "top", {"scheme": "Bearer", "credentials": "top"}),
        (
            {"token": "top", "authentication": {"schemes": ["bearer"]}},
            "top",
            {"scheme": "bearer", "credentials": "top"},
        ),
        (
            {"token": "top", "authentication": {"schemes": ["Basic"], "credentials": "bWU6eA=="}},
            "top",
            {"scheme": "Basic", "credentials": "bWU6eA=="},
        ),
    ],
)
def test_the_token_at_the_top_is_the_bearer_too(given: Any, token: str, authentication: dict[str, str] | None) -> None:
    for config in configured(**given):
        assert (config.url, config.token, config.authentication) == (URL, token, authentication)


def test_a_send_without_a_webhook_is_left_alone() -> None:
    sent = asked(call("message/send", {"message": {"parts": [{"text": "hi"}]}}, path="/a2a"), SendMessage)
    assert sent.configuration.task_push_notification_config is None


@pytest.mark.proves("004-8", "004-9", "004-d1")
def test_what_an_agent_counted_of_its_own_is_told_and_no_task_took_no_time() -> None:
    used = Usage(input_tokens=3, output_tokens=4, extra={"cache_read_input_tokens": 2})
    spent = replace(view(), usage=used, created_at=5, status_at=5)
    read = understood(call("tasks/get", {"id": "t-77"}, path="/a2a"))
    assert json.loads(read.reply(spent).body)["result"]["data"] == {
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "cache_read_input_tokens": 2},
        "durationMs": 1,
    }
