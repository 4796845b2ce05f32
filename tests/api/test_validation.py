"""What does not fit is named by its place and in our words, never by what was sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from coatcheck.api.dependencies import parse_body
from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.errors import InvalidRequest, MalformedJson
from coatcheck_client.wire import CompactionRequest, KeyCreate, RecallRequest, SessionPatch, WindowIn

CANARY = "canary-" + "c0de" * 4


def refusal(model: type[BaseModel], body: object) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse_body(model, json.dumps(body).encode())
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.parametrize(
    ("model", "body", "pointer", "detail"),
    [
        (RecallRequest, {}, "/query", "is required"),
        (RecallRequest, {"query": ""}, "/query", "must have at least 1 characters"),
        (RecallRequest, {"query": CANARY * 1_000}, "/query", "must have at most 4000 characters"),
        (RecallRequest, {"query": 5}, "/query", "must be a string"),
        (RecallRequest, {"query": "q", "session": f"{CANARY}\ud800"}, "/session", "must be text without lone surrogates"),
        (RecallRequest, {"query": "q", "top_k": 51}, "/top_k", "must be at most 50"),
        (RecallRequest, {"query": "q", "top_k": CANARY}, "/top_k", "must be a whole number"),
        (RecallRequest, {"query": "q", "since": CANARY}, "/since", "must be a time as RFC 3339 writes it"),
        (RecallRequest, {"query": "q", "rerank": CANARY}, "/rerank", "must be one of 'auto', 'on' or 'off'"),
        (RecallRequest, {"query": "q", "roles": ["user", CANARY]}, "/roles/1", None),
        (RecallRequest, {"query": "q", CANARY: 1}, "", None),
        (RecallRequest, {"query": "q", "tenant_id": 1}, "", None),
        (RecallRequest, [CANARY], "", "must be an object"),
        (CompactionRequest, {"session": "s", "window": {"messages": CANARY}}, "/window/messages", "must be a list"),
        (CompactionRequest, {"session": "s", "window": {"messages": [], "x/~y": 1}}, "/window", None),
        (CompactionRequest, {"session": "s", "window": {"messages": [], "times": [None, CANARY]}}, "/window/times/1", None),
        (CompactionRequest, {"session": "s", "window": {"messages": []}, "focus": CANARY * 99}, "/focus", None),
        (CompactionRequest, {"session": "s" * 201, "window": {"messages": []}}, "/session", "must have at most 200 characters"),
        (CompactionRequest, {"session": "s", "window": {"messages": []}, "max_handoff_chars": 599}, "/max_handoff_chars", None),
        (
            CompactionRequest,
            {"session": "s", "window": {"messages": []}, "parent_manifest_id": CANARY},
            "/parent_manifest_id",
            "must be a UUID",
        ),
        (KeyCreate, {"name": "n", "sessions": [CANARY]}, "/sessions/0", "must be a UUID"),
        (SessionPatch, {"participants": [1]}, "/participants/0", "must be a UUID"),
    ],
)  # fmt: skip
def test_the_place_is_a_json_pointer_and_the_value_is_not_repeated(
    model: type[BaseModel], body: object, pointer: str, detail: str | None
) -> None:
    error = refusal(model, body)

    assert [one.pointer for one in error.errors] == [pointer]
    assert detail is None or error.errors[0].detail == detail
    assert CANARY not in error.detail + "".join(one.pointer + one.detail for one in error.errors)


@pytest.mark.parametrize(
    ("body", "pointer", "model"),
    [
        ({"session": "s", "window": {"messages": []}, CANARY: 1}, "", CompactionRequest),
        ({"session": "s", "window": {"messages": [], CANARY: 1}}, "/window", WindowIn),
    ],
)
def test_a_field_that_is_made_up_has_those_that_exist_listed(body: object, pointer: str, model: type[BaseModel]) -> None:
    (error,) = refusal(CompactionRequest, body).errors

    assert error.pointer == pointer
    assert error.detail == f"holds a field that the contract does not know; it knows {', '.join(model.model_fields)}"


def test_a_thousand_faults_are_told_of_twenty() -> None:
    error = refusal(CompactionRequest, {"session": "s", "window": {"messages": [], "times": ["x"] * 1_000}})

    assert len(error.errors) == 20


@pytest.mark.parametrize(
    "raw", [b"", b" \n", b"{", b'{"query": "a", "query": "b"}', b'{"query": NaN}', b"\xff{}", b'{"query": 1e999}']
)
def test_what_is_no_json_object_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse_body(RecallRequest, raw)


def test_a_duplicate_key_deep_in_a_message_is_malformed() -> None:
    raw = b'{"session": "s", "window": {"messages": [{"role": "user", "content": "a", "content": "b"}]}}'

    with pytest.raises(MalformedJson):
        parse_body(CompactionRequest, raw)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(categories=["L", "Cs", "Cc", "S"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4))
def test_messages_reach_the_use_case_untouched(messages: list[JsonValue]) -> None:
    """Key order, exact integers, lone surrogates and NUL included."""
    raw = json.dumps({"session": "s", "window": {"messages": messages}}).encode()

    request = parse_body(CompactionRequest, raw)

    assert json.dumps(request.window.messages) == json.dumps(messages)
