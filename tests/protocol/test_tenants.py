"""Tenants: a boundary that every operation respects, named in the path or in the parameters."""

from typing import Any

import pytest

from tests.protocol.speaking import Refused, Speaker, violations

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-12-8")
async def test_a_tenants_task_is_made_read_and_ended_within_it(speaker: Speaker) -> None:
    asked = await speaker.send("ask", tenant="acme")
    assert (await speaker.get(asked.id, tenant="acme")).raw == asked.raw
    told = await speaker.send("blue", tenant="acme", taskId=asked.id)
    assert (told.id, told.artifacts) == (asked.id, ["You said blue"])
    other = await speaker.send("ask", tenant="acme", contextId=asked.context)
    assert (await speaker.cancel(other.id, tenant="acme")).state == "CANCELED"


@pytest.mark.proves("W-049", "W-053", "S-12-8")
async def test_no_operation_reaches_over_the_boundary(speaker: Speaker) -> None:
    asked = await speaker.send("ask", tenant="acme")
    for tenant in ("", "other", "acm", "acme2"):
        with pytest.raises(Refused) as caught:
            await speaker.get(asked.id, tenant=tenant)
        assert caught.value.code == -32001
        with pytest.raises(Refused) as caught:
            await speaker.cancel(asked.id, tenant=tenant)
        assert caught.value.code == -32001
        with pytest.raises(Refused) as caught:
            await speaker.send("blue", tenant=tenant, taskId=asked.id)
        assert caught.value.code == -32001
    assert (await speaker.get(asked.id, tenant="acme")).raw == asked.raw


@pytest.mark.proves("W-049", "W-069", "S-1-3")
async def test_a_context_of_the_same_name_is_another_conversation_elsewhere(speaker: Speaker) -> None:
    await speaker.send("echo secret plan", tenant="acme", contextId="c")
    seen = await speaker.send("context", tenant="other", contextId="c")
    (part,) = seen.raw["artifacts"][0].get("parts") or seen.raw["artifacts"][0]["content"]
    assert "secret plan" not in str(part)
    assert "earlier" in str(part)


async def test_an_idempotency_key_belongs_to_its_tenant(speaker: Speaker) -> None:
    key = {"idempotency-key": "once"}
    first = await speaker.send("echo hi", tenant="acme", headers=key)
    second = await speaker.send("echo other", tenant="other", headers=key)
    assert first.id != second.id
    assert second.artifacts == ["echo other"]


async def test_path_and_parameters_may_agree_but_not_contradict(modern: Speaker) -> None:
    def asked(tenant: str) -> tuple[str, str, Any]:
        params = {**modern.sending("echo hi"), "tenant": tenant}
        if modern.rest:
            return "POST", "/acme/message:send", params
        return "POST", "/acme", modern.envelope("SendMessage", params)

    agreed = await modern.ask(*asked("acme"))
    assert "COMPLETED" in agreed.text
    refused = await modern.ask(*asked("other"))
    assert "does not agree with the tenant in the path" in refused.text
    assert len(modern.stage.runs) == 1


@pytest.mark.proves("S-1-7")
@pytest.mark.parametrize("tenant", ["a%0d%0ab", "x" * 300, "tasks", "agents"])
async def test_a_name_that_is_taken_or_would_break_lines_is_no_tenant(modern: Speaker, tenant: str) -> None:
    if modern.rest:
        verb, path, body = "POST", f"/{tenant}/message:send", modern.sending("echo hi")
    else:
        verb, path, body = "POST", f"/{tenant}", modern.envelope("SendMessage", modern.sending("echo hi"))
    response = await modern.ask(verb, path, body)
    assert response.status in (400, 404, 405) or "error" in response.json()
    assert not modern.stage.runs


@pytest.mark.proves("S-1-7")
@pytest.mark.parametrize("tenant", ["tasks", "agents", ".well-known"])
async def test_parameters_cannot_name_a_tenant_that_no_path_could(modern: Speaker, tenant: str) -> None:
    """Who was let in under such a name by one binding would not be reached by the other."""
    body: dict[str, Any] = {**modern.sending("echo hi"), "tenant": tenant}
    path = "/message:send" if modern.rest else "/"
    response = await modern.ask("POST", path, body if modern.rest else modern.envelope("SendMessage", body))
    with pytest.raises(Refused) as refused:
        modern.result(response)
    assert refused.value.code == -32602
    assert violations(refused.value) == [
        {"field": "tenant", "description": f"{tenant} is a name of ours; choose another"}
    ]
    assert not modern.stage.runs
