"""The JSON-RPC envelope: what is let in, and how the id comes back."""

from typing import Any

import pytest

from dragoman.model.operations import GetExtendedCard, GetTask, SendMessage
from dragoman.wire.settings import WireSettings
from tests.wire.wording import (
    USER_03,
    USER_10,
    asked,
    body_of,
    call,
    error_of,
    header,
    post,
    refused,
    understood,
    view,
    visit,
)


@pytest.mark.parametrize("id", [b'"r-17"', b"17", b"0", b"-4", b"null", b"12345678901234567", b'"\xc3\xa9"', b'""'])
@pytest.mark.parametrize("method", [b"GetTask", b"tasks/get"])
def test_the_id_comes_back_with_its_type_and_digits(id: bytes, method: bytes) -> None:
    found = post(b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{"id":"t-77"}}' % (id, method))
    exchange = understood(found)
    for body in (exchange.reply(view()).body, exchange.fail(KeyError()).body, exchange.open(view())):
        assert b'"jsonrpc":"2.0","id":%b,' % id in body


def test_an_id_with_escapes_comes_back_as_the_same_string() -> None:
    found = post(b'{"jsonrpc":"2.0","id":"a\\u00e9\\n\\/","method":"GetTask","params":{"id":"t-77"}}')
    assert body_of(understood(found).reply(view()))["id"] == "aé\n/"


@pytest.mark.parametrize(
    "id", [b"true", b"false", b"1.5", b"1.0", b"1e3", b"{}", b"[]", b'["x"]', b'"%b"' % (b"x" * 1_000)]
)
def test_an_odd_id_is_no_request_and_is_not_echoed(id: bytes) -> None:
    found = post(b'{"jsonrpc":"2.0","id":%b,"method":"GetTask","params":{"id":"t-77"}}' % id)
    assert body_of(found)["id"] is None
    assert error_of(found)["code"] == -32600


def test_a_request_without_an_id_is_answered_with_null() -> None:
    exchange = understood(post(b'{"jsonrpc":"2.0","method":"GetTask","params":{"id":"t-77"}}'))
    assert body_of(exchange.reply(view()))["id"] is None


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xef\xbb\xbf{}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}} x', -32700, None),
        (b"{'jsonrpc': '2.0', 'id': 1}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\xff"}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a\x00"}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud800"}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\udc00x"}}', -32700, None),
        (b"[" + b"[" * 200, -32600, None),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
            -32600,
            None,
        ),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}]', -32600, None),
        (b'"hello"', -32600, None),
        (b"7", -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"id":1,"method":"GetTask"}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32600, 1),
        (b'{"jsonrpc":2.0,"id":"x","method":"GetTask"}', -32600, "x"),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":{},"method":5}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":7,"x":1e400}', -32602, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"Nonsense"}', -32601, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/listen","params":{}}', -32601, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"sendmessage","params":{}}', -32601, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":"x"}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":7}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":null}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask"}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":1e400}}', -32602, 1),
    ],
)
@pytest.mark.parametrize("version", ["", "1.0"])
def test_what_is_no_request_is_refused_with_its_number(body: bytes, code: int, id: Any, version: str) -> None:
    found = refused(post(body, version=version, headers={"content-type": "application/json"}))
    assert found.status == 200
    assert body_of(found)["id"] == id
    assert error_of(found)["code"] == code
    assert header(found, "content-type") == "application/json"
    assert "Traceback" not in found.body.decode() and "msgspec" not in found.body.decode()


def test_an_error_without_a_method_is_worded_for_the_version_named() -> None:
    assert header(refused(post(b"{", version="1.0")), "a2a-version") == "1.0"
    assert header(refused(post(b"{")), "a2a-version") == "0.3"
    assert header(refused(post(b"{", version="0.3")), "a2a-version") == "0.3"


@pytest.mark.parametrize("media", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonp"])
def test_a_body_that_does_not_say_it_is_json_is_refused(media: str) -> None:
    found = post(b'{"jsonrpc":"2.0","id":1,"method":"GetTask"}', version="1.0", headers={"content-type": media})
    assert error_of(found)["code"] == -32005
    assert "application/json" in error_of(found)["message"]


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "Application/JSON", "application/a2a+json"])
def test_json_may_be_said_in_several_ways(media: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t-77"}}'
    assert asked(post(body, headers={"content-type": media}), GetTask).id == "t-77"


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "PATCH"])
def test_only_post_calls(verb: str) -> None:
    found = refused(visit(verb, "/"))
    assert (found.status, header(found, "allow")) == (405, "POST")


def test_other_verbs_find_nothing_at_a_tenants_path() -> None:
    assert refused(visit("GET", "/favicon.ico")).status == 404


def test_the_tenant_may_stand_in_the_path_or_in_the_parameters() -> None:
    assert understood(call("GetTask", {"id": "t-77"}, path="/studio")).tenant == "studio"
    assert understood(call("GetTask", {"id": "t-77"}, path="/stu%20dio/")).tenant == "stu dio"
    assert understood(call("GetTask", {"id": "t-77", "tenant": "studio"})).tenant == "studio"
    assert understood(call("GetTask", {"id": "t-77", "tenant": "studio"}, path="/studio")).tenant == "studio"
    assert understood(call("message/send", {"message": USER_03}, path="/studio")).operation.tenant == "studio"


def test_two_tenants_in_one_request_contradict() -> None:
    error = error_of(call("GetTask", {"id": "t-77", "tenant": "workshop"}, path="/studio"))
    assert error["code"] == -32602
    assert error["data"][0]["fieldViolations"][0]["field"] == "tenant"


def test_a_bad_tenant_in_the_path_is_refused() -> None:
    assert refused(call("GetTask", {"id": "t-77"}, path="/a%0Ab")).status == 400
    assert refused(call("GetTask", {"id": "t-77"}, path="/a%FFb")).status == 400


@pytest.mark.parametrize(
    "path", ["/a2a/x", "/api", "/agents", "/.well-known", "/v1", "/%61pi", "//", "/a/b", "/tasks/"]
)
def test_reserved_and_unknown_paths_are_no_tenants(path: str) -> None:
    assert refused(call("GetTask", {"id": "t-77"}, path=path)).status == 404


def test_v1_is_a_tenant_only_for_those_who_ask_for_1_0() -> None:
    assert understood(call("GetTask", {"id": "t-77"}, path="/v1", version="1.0")).tenant == "v1"


def test_the_extended_card_needs_no_parameters() -> None:
    assert asked(call("GetExtendedAgentCard"), GetExtendedCard) == GetExtendedCard()
    assert asked(call("agent/getAuthenticatedExtendedCard"), GetExtendedCard) == GetExtendedCard()


class TestVersions:
    def test_an_absent_version_is_taken_from_the_name(self) -> None:
        assert understood(call("SendMessage", {"message": USER_10})).origin == "1.0"
        assert understood(call("message/send", {"message": USER_03})).origin == "0.3"

    @pytest.mark.proves("W-090")
    def test_an_absent_version_is_0_3_where_the_letter_is_wanted(self) -> None:
        strict = WireSettings(require_version=True)
        error = error_of(call("SendMessage", {"message": USER_10}, wire=strict))
        assert error["code"] == -32009
        assert error["data"][0]["metadata"] == {"version": "0.3", "supported": "1.0"}
        assert understood(call("SendMessage", {"message": USER_10}, wire=strict, version="1.0"))
        assert understood(call("message/send", {"message": USER_03}, wire=strict))

    @pytest.mark.proves("W-086")
    @pytest.mark.parametrize("version", ["1.0", "1.0.3", " 1.0 ", "1.0, 1.0", "1.0,"])
    def test_patch_digits_and_repetition_do_not_matter(self, version: str) -> None:
        assert asked(call("SendMessage", {"message": USER_10}, version=version), SendMessage)

    @pytest.mark.proves("W-089")
    @pytest.mark.parametrize("version", ["0.3", "0.2", "1.1", "2.0", "9.9.9", "one", "1"])
    def test_another_version_than_the_names_is_refused(self, version: str) -> None:
        error = error_of(call("SendMessage", {"message": USER_10}, version=version))
        assert error["code"] == -32009
        assert "use 1.0" in error["message"]
        assert error["data"][0]["reason"] == "VERSION_NOT_SUPPORTED"

    @pytest.mark.parametrize("version", ["0.3", "0.3.0", "0.2", "0.2.6"])
    def test_0_2_is_answered_by_0_3(self, version: str) -> None:
        assert asked(call("message/send", {"message": USER_03}, version=version), SendMessage)

    @pytest.mark.parametrize("version", ["1.0", "0.1", "2.0"])
    def test_an_old_client_never_sees_the_new_number(self, version: str) -> None:
        error = error_of(call("message/send", {"message": USER_03}, version=version))
        assert error["code"] == -32603
        assert "data" not in error

    def test_an_unknown_name_in_an_unknown_version_is_the_versions_fault(self) -> None:
        error = error_of(call("MessageSendNow", {}, version="7.0"))
        assert (error["code"], error["data"][0]["metadata"]["supported"]) == (-32009, "1.0, 0.3")

    def test_the_query_may_name_the_version(self) -> None:
        assert header(refused(visit("POST", "/", b"{", query="x=1&A2A-Version=1.0")), "a2a-version") == "1.0"
        assert header(refused(visit("POST", "/", b"{", query="x=1")), "a2a-version") == "0.3"

    def test_two_versions_contradict(self) -> None:
        found = refused(call("SendMessage", {"message": USER_10}, version="1.0, 0.3"))
        assert error_of(found)["code"] == -32602


class TestEnvoys:
    def test_extensions_come_in_either_spelling_merged_and_once(self) -> None:
        found = understood(
            call(
                "GetTask",
                {"id": "t-77"},
                headers={"a2a-extensions": "urn:b, urn:a", "x-a2a-extensions": "urn:a,,urn:c"},
            )
        )
        assert found.extensions == ("urn:b", "urn:a", "urn:c")

    @pytest.mark.parametrize(
        ("method", "params", "name"),
        [
            ("SendMessage", {"message": USER_10}, "a2a-extensions"),
            ("message/send", {"message": USER_03}, "x-a2a-extensions"),
        ],
    )
    def test_what_took_effect_is_echoed_in_the_dialects_own_header(
        self, method: str, params: object, name: str
    ) -> None:
        exchange = understood(call(method, params, headers={"a2a-extensions": "urn:a,urn:b"}))
        assert header(exchange.reply(view()), name) is None
        exchange.activated = ("urn:a", "urn:b")
        assert header(exchange.reply(view()), name) == "urn:a, urn:b"
        assert dict(exchange.stream_headers())[name.encode()] == b"urn:a, urn:b"

    def test_the_cursor_is_handed_on(self) -> None:
        assert understood(call("GetTask", {"id": "t"}, headers={"last-event-id": " u.7 "})).cursor == "u.7"
        assert understood(call("GetTask", {"id": "t"})).cursor == ""

    @pytest.mark.proves("D-5-9")
    @pytest.mark.parametrize(("method", "message"), [("SendMessage", USER_10), ("message/send", USER_03)])
    def test_the_idempotency_key_may_stand_in_either_place(self, method: str, message: object) -> None:
        inside = {"message": message, "configuration": {"idempotencyKey": "k-1"}}
        assert understood(call(method, inside)).idempotency_key == "k-1"
        bare = {"message": message}
        assert understood(call(method, bare, headers={"idempotency-key": "k-2"})).idempotency_key == "k-2"
        assert understood(call(method, inside, headers={"idempotency-key": "k-1"})).idempotency_key == "k-1"
        assert error_of(call(method, inside, headers={"idempotency-key": "k-2"}))["code"] == -32602
        assert error_of(call(method, bare, headers={"idempotency-key": "k" * 300}))["code"] == -32602
