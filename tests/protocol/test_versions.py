"""Versions and extensions: what a request names decides how it is read and answered."""

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.model.cards import Extension
from tests.protocol.speaking import SPEAKERS, Refused, Speaker, serving
from tests.protocol.stage import Stage
from tests.protocol.test_sending import told

pytestmark = pytest.mark.anyio

MODERN = ("1.0", "JSONRPC")
LEGACY = ("0.3", "JSONRPC")
RPC_03 = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "echo hi"}]}
RPC_10 = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "echo hi"}]}


def body(method: str, message: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}


class TestVersions:
    @pytest.mark.proves("W-088", "W-115")
    async def test_a_request_is_read_and_answered_in_its_own_version(self) -> None:
        """One task, made in one version and read in the other."""
        async with serving() as (stage, app):
            made = await Speaker(*MODERN, stage, app).send("echo hi")
            old = await Speaker(*LEGACY, stage, app).get(made.id)
            assert made.raw["status"]["state"] == "TASK_STATE_COMPLETED"
            assert (old.raw["kind"], old.raw["status"]["state"]) == ("task", "completed")
            assert old.raw["artifacts"][0]["parts"] == [{"kind": "text", "text": "echo hi"}]
            for version, binding in SPEAKERS:
                speaker = Speaker(version, binding, stage, app)
                seen = await speaker.get(made.id)
                assert (seen.id, seen.state, seen.artifacts) == (made.id, "COMPLETED", ["echo hi"])
                assert speaker.last.headers["a2a-version"] == version

    @pytest.mark.proves("W-090")
    @pytest.mark.parametrize("headers", [{}, {"a2a-version": ""}, {"a2a-version": "  "}])
    async def test_no_version_is_0_3(self, headers: dict[str, str]) -> None:
        async with serving() as (stage, app):
            speaker = Speaker(*LEGACY, stage, app)
            answer = await speaker.ask("POST", "/", body("message/send", RPC_03), headers)
            assert answer.json()["result"]["kind"] == "task"
            assert answer.headers["a2a-version"] == "0.3"
            unknown = (await speaker.ask("POST", "/", body("Nonsense", RPC_10), headers)).json()
            assert (unknown["error"]["code"], "data" in unknown["error"]) == (-32601, False)

    @pytest.mark.proves("W-090")
    async def test_to_the_letter_no_version_is_0_3_also_for_the_methods_of_1_0(self) -> None:
        async with serving(require_version=True) as (stage, app):
            speaker = Speaker(*LEGACY, stage, app)
            refused = (await speaker.ask("POST", "/", body("SendMessage", RPC_10))).json()
            assert refused["error"]["code"] == -32009
            assert "1.0" in refused["error"]["message"]
            assert not stage.runs

    @pytest.mark.proves("W-089")
    @pytest.mark.parametrize("version", ["2.0", "1.1", "0.1", "latest", "1", "1.0, 0.3"])
    async def test_a_version_that_is_not_served_is_refused(self, modern: Speaker, version: str) -> None:
        with pytest.raises(Refused) as caught:
            await modern.send("echo hi", headers={"a2a-version": version})
        assert caught.value.code == (-32602 if "," in version else -32009)
        if caught.value.code == -32009:
            assert "1.0" in caught.value.message
        assert not modern.stage.runs

    @pytest.mark.proves("W-089")
    @pytest.mark.parametrize(
        ("binding", "version"), [("JSONRPC", "1.0"), ("JSONRPC", "2.0"), ("HTTP+JSON", "2.0"), ("HTTP+JSON", "0.1")]
    )
    async def test_old_clients_are_refused_in_words_they_know(self, binding: str, version: str) -> None:
        """-32009 meant something else before 1.0."""
        async with serving() as (stage, app):
            old = Speaker("0.3", binding, stage, app)
            with pytest.raises(Refused) as caught:
                await old.send("echo hi", headers={"a2a-version": version})
            assert caught.value.code == -32603
            assert "0.3" in caught.value.message
            assert not stage.runs

    @pytest.mark.proves("W-086")
    @pytest.mark.parametrize("patch", [".0", ".1", ".42"])
    async def test_patch_digits_make_no_difference(self, speaker: Speaker, patch: str) -> None:
        seen = await speaker.send("echo hi", headers={"a2a-version": speaker.version + patch})
        assert seen.state == "COMPLETED"

    @pytest.mark.proves("W-085")
    async def test_versions_are_told_without_patch_digits(self, speaker: Speaker) -> None:
        await speaker.send("echo hi")
        assert speaker.last.headers["a2a-version"] == speaker.version
        card = (await speaker.ask("GET", "/.well-known/agent-card.json", headers={"a2a-version": "1.0"})).json()
        assert {each["protocolVersion"] for each in card["supportedInterfaces"]} == {"1.0", "0.3"}

    async def test_the_query_may_name_it(self, modern: Speaker) -> None:
        verb, path, sent = modern.spelled("send", modern.sending("echo hi"))
        answer = await modern.ask(verb, f"{path}?A2A-Version=1.0", sent, {"a2a-version": ""})
        assert answer.headers["a2a-version"] == "1.0"
        assert modern.read_result(modern.result(answer, sent.get("id"))).state == "COMPLETED"
        refused = await modern.ask(verb, f"{path}?A2A-Version=7.0", sent, {"a2a-version": ""})
        assert "7.0" in refused.text


class TestExtensions:
    @pytest.mark.proves("W-106", "W-108")
    async def test_what_is_known_takes_effect_and_is_named_back_and_what_is_not_is_ignored(
        self, speaker: Speaker
    ) -> None:
        asked = {"a2a-extensions": "urn:unknown, urn:known"}
        seen = await speaker.send("context", headers=asked)
        assert told(seen)["extensions"] == ["urn:known"]
        assert named(speaker.last.headers) == "urn:known"
        async with speaker.stream("echo hi", headers=asked) as stream:
            assert named(stream.headers) == "urn:known"
            assert (await stream.rest())[-1].state == "COMPLETED"
        await speaker.send("echo hi")
        assert named(speaker.last.headers) == ""

    @pytest.mark.proves("W-107")
    @pytest.mark.parametrize("near", ["urn:known/v2", "urn:know", "URN:KNOWN", "urn:known/"])
    async def test_another_version_of_an_extension_is_another_extension(self, speaker: Speaker, near: str) -> None:
        seen = await speaker.send("context", headers={"a2a-extensions": near})
        assert told(seen)["extensions"] == []
        assert named(speaker.last.headers) == ""

    @pytest.mark.proves("W-063", "W-106", "W-107")
    @pytest.mark.parametrize("asked", ["", "urn:other", "urn:needed/v2"])
    async def test_an_extension_the_card_requires_must_be_named(self, speaker: Speaker, asked: str) -> None:
        stage = Stage(extensions=[Extension(uri="urn:needed/v1", required=True)])
        async with serving(stage) as (stage, app):
            strict = Speaker(speaker.version, speaker.binding, stage, app)
            headers = {"a2a-extensions": asked} if asked else {}
            for operation in ("send", "stream"):
                with pytest.raises(Refused) as caught:
                    await strict.call(operation, strict.sending("echo hi"), headers)
                assert caught.value.code == (-32008 if strict.modern else -32603)
                assert "urn:needed/v1" in caught.value.message
            assert not stage.runs
            seen = await strict.send("echo hi", headers={"a2a-extensions": "urn:needed/v1"})
            assert seen.state == "COMPLETED"
            assert (await strict.get(seen.id)).raw == seen.raw, "reading works without it"


def named(headers: Mapping[str, str]) -> str:
    """Each version looks for its own spelling."""
    return headers.get("a2a-extensions", "") or headers.get("x-a2a-extensions", "")
