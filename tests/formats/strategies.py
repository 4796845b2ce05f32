"""Messages of each format as Hypothesis makes them: known blocks, unknown ones, odd keys, and any text there is."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from coatcheck.domain.canonical import JsonObject, JsonValue
from tests.formats.looking import PIXEL, PIXEL_URL

Values = st.SearchStrategy[JsonValue]
Objects = st.SearchStrategy[JsonObject]

_TEXTS = st.one_of(
    st.text(max_size=20),
    st.just(PIXEL_URL),
    st.sampled_from(["", "two\nlines", "\ud83d", "nul\0", 'quote " and \\ slash', PIXEL, "日本語", "x" * 300]),
)
_IDS = st.text("abc123_", min_size=1, max_size=8)
_ODD_KEYS = st.sampled_from(
    ["name", "ts", "id", "agent", "type", "data", "_private", "cache_control", "text", "content", "a b", ""]
)


def json_values() -> Values:
    scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXTS)
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(_TEXTS, _ODD_KEYS), inner, max_size=3)),
        max_leaves=8,
    )


def _shaped(required: Mapping[str, Values], optional: Mapping[str, Values] | None = None) -> Objects:
    """An object with these keys in any order, and odd ones that the format does not define here."""
    known = st.fixed_dictionaries(required, optional=optional or {})
    taken = {*required, *(optional or {})}
    others = st.dictionaries(_ODD_KEYS.filter(lambda key: key not in taken and key != "type"), json_values(), max_size=2)
    return st.tuples(known, others).flatmap(
        lambda pair: st.permutations([*pair[0].items(), *pair[1].items()]).map(lambda items: dict(items))
    )


def _typed(kind: str, required: Mapping[str, Values] | None = None, optional: Mapping[str, Values] | None = None) -> Objects:
    return _shaped({"type": st.just(kind), **(required or {})}, optional)


def _blocks() -> Objects:
    source = st.one_of(
        _typed("base64", {"media_type": st.just("image/png"), "data": st.sampled_from([PIXEL, "left out", ""])}),
        _typed("text", {"data": _TEXTS}),
        _typed("url", {"url": _TEXTS}),
        json_values(),
    )
    return st.one_of(
        _typed("text", {"text": _TEXTS}, {"citations": json_values()}),
        _typed("input_text", {"text": _TEXTS}),
        _typed("output_text", {"text": _TEXTS}, {"annotations": json_values(), "logprobs": json_values()}),
        _typed("refusal", {"refusal": _TEXTS}),
        _typed("image", {"source": source}),
        _typed("document", {"source": source}, {"title": json_values()}),
        _typed("image_url", {"image_url": st.one_of(_shaped({"url": _TEXTS}), json_values())}),
        _typed("input_image", {}, {"image_url": json_values()}),
        _typed("input_audio", {"input_audio": _shaped({"data": st.just(PIXEL), "format": _TEXTS})}),
        _typed("file", {}, {"file": json_values(), "path": _TEXTS, "content": json_values()}),
        _typed("thinking", {"thinking": st.one_of(_TEXTS, json_values())}, {"signature": _TEXTS}),
        _typed("redacted_thinking", {"data": _TEXTS}),
        _typed("compaction", {"content": json_values()}, {"encrypted_content": _TEXTS}),
        _typed("search_result", {"source": _TEXTS, "title": _TEXTS, "content": json_values()}),
        st.text(max_size=8).filter(lambda kind: not kind.endswith(("tool_use", "tool_result"))).flatmap(_typed),
    )


def _content() -> Values:
    return st.one_of(st.none(), _TEXTS, st.lists(_blocks(), max_size=3))


def _output() -> Values:
    return st.one_of(_content(), st.lists(json_values().filter(lambda item: not _is_bad_text(item)), max_size=3))


def _is_bad_text(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("type") in ("text", "input_text", "output_text")


def chat_messages() -> Objects:
    arguments = st.one_of(_TEXTS, json_values())
    call = _shaped(
        {"id": _IDS, "type": st.just("function"), "function": _shaped({"name": _IDS}, {"arguments": arguments})},
        {"extra_content": json_values()},
    )
    custom = _shaped({"id": _IDS, "type": st.just("custom"), "custom": _shaped({"name": _IDS}, {"input": arguments})})
    calls: Values = st.one_of(st.none(), st.lists(st.one_of(call, custom), max_size=3))
    spoken = {
        "refusal": json_values(),
        "reasoning": json_values(),
        "reasoning_content": json_values(),
        "thinking_blocks": json_values(),
        "reasoning_details": json_values(),
        "audio": json_values(),
        "tool_calls": calls,
        "function_call": st.one_of(st.none(), _shaped({"name": _IDS}, {"arguments": arguments})),
    }
    plain_roles = st.sampled_from(["system", "developer", "user", "function"])
    return st.one_of(
        _shaped({"role": plain_roles}, {"content": _content()}),
        _shaped({"role": st.just("assistant")}, {"content": _content(), **spoken}),
        _shaped({"role": st.just("tool"), "tool_call_id": _IDS}, {"content": _output()}),
        _shaped({"role": st.just("tool"), "tool_call_ids": st.lists(_IDS, min_size=1, max_size=2)}, {"content": _output()}),
    )


def anthropic_messages() -> Objects:
    calls = st.sampled_from(["tool_use", "server_tool_use", "mcp_tool_use"])
    results = st.sampled_from(["tool_result", "web_search_tool_result", "mcp_tool_result"])
    block = st.one_of(
        _blocks(),
        calls.flatmap(lambda kind: _typed(kind, {"id": _IDS, "name": _IDS}, {"input": json_values()})),
        results.flatmap(lambda kind: _typed(kind, {"tool_use_id": _IDS}, {"content": _output(), "is_error": st.booleans()})),
    )
    roles = st.sampled_from(["user", "assistant", "system"])
    return _shaped({"role": roles}, {"content": st.one_of(_content(), st.lists(block, max_size=4))})


def responses_items() -> Objects:
    call = {"call_id": _IDS, "name": _IDS}
    roles = st.sampled_from(["user", "assistant", "system", "developer"])
    hosted = {"id": _IDS, "arguments": json_values(), "output": json_values(), "code": json_values(), "outputs": json_values()}
    return st.one_of(
        _shaped({"role": roles}, {"content": _content()}).map(lambda item: {key: item[key] for key in item if key != "type"}),
        _typed("message", {"role": roles}, {"content": _content(), "status": st.just("completed")}),
        _typed("function_call", call, {"arguments": json_values()}),
        _typed("custom_tool_call", call, {"input": json_values()}),
        _typed("shell_call", call, {"action": json_values()}),
        _typed("function_call_output", {}, {"call_id": _IDS, "output": _output()}),
        _typed("reasoning", {}, {"summary": json_values(), "content": json_values(), "encrypted_content": _TEXTS}),
        _typed("compaction", {"encrypted_content": _TEXTS}),
        st.sampled_from(["mcp_call", "code_interpreter_call"]).flatmap(lambda kind: _typed(kind, {}, hosted)),
        _typed("image_generation_call", {"result": json_values()}, {"output_format": json_values()}),
        st.sampled_from(["tomorrow", "tomorrow_call", "item_reference"]).flatmap(_typed),
    )
