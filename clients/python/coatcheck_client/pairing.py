"""Which messages belong together: a call with its result, an assistant batch of calls with all of its results.

Reads all three formats by their shapes, so that it needs not be told which one it has: OpenAI chat (``tool_calls``, the
roles tool and function), Anthropic (blocks that end in ``tool_use`` and ``tool_result``), OpenAI Responses (items that end
in ``_call`` and ``_output``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Flaw(StrEnum):
    """Why a group cannot stand in a window."""

    UNANSWERED = "a call has no result"
    ORPHAN = "a result has no call"


@dataclass(frozen=True, slots=True)
class Group:
    """Messages ``start`` to ``stop`` (exclusive) that are kept or cut as one. ``flaw`` is null for a group that is whole."""

    start: int
    stop: int
    flaw: Flaw | None = None


def groups(messages: Sequence[Any]) -> list[Group]:
    """The conversation as groups, in order, covering every message. A message outside any exchange is its own group.

    A call id used again later is another call: a result belongs to the newest call of its id that is still open.
    """
    open_calls: defaultdict[str, list[int]] = defaultdict(list)
    last_of: list[int] = list(range(len(messages)))
    """For each message, the last message that must stay with it."""
    flaws: dict[int, Flaw] = {}
    batch_start: int | None = None
    for index, message in enumerate(messages):
        # A batch of Responses items, with the reasoning that must precede them, is one assistant turn.
        if _is_batch_item(message):
            if batch_start is None:
                batch_start = index
            last_of[batch_start] = max(last_of[batch_start], index)
        elif batch_start is not None:
            if _is_output_of_model(message):
                last_of[batch_start] = max(last_of[batch_start], index)
            batch_start = None
        for kind, call_id in _marks(message):
            if kind == "call":
                open_calls[call_id].append(index)
            elif open_calls[call_id]:
                caller = open_calls[call_id].pop()
                last_of[caller] = max(last_of[caller], index)
            else:
                flaws.setdefault(index, Flaw.ORPHAN)
    for callers in open_calls.values():
        for caller in callers:
            flaws[caller] = Flaw.UNANSWERED
    return list(_merged(last_of, flaws))


def _merged(last_of: Sequence[int], flaws: dict[int, Flaw]) -> Iterator[Group]:
    start = 0
    while start < len(last_of):
        last = last_of[start]
        index = start
        while index <= last:
            last = max(last, last_of[index])
            index += 1
        yield Group(start, last + 1, next((flaws[i] for i in range(start, last + 1) if i in flaws), None))
        start = last + 1


def _marks(message: Any) -> Iterator[tuple[str, str]]:
    """The calls and results in one message, in order, as ("call" | "result", id)."""
    if not isinstance(message, dict):
        return
    kind = message.get("type")
    if isinstance(kind, str) and "role" not in message:
        yield from _item_marks(kind, message)
        return
    role = message.get("role")
    if role == "tool":
        yield "result", _chat_result_id(message)
    elif role == "function":
        yield "result", f"function {message.get('name')}"
    content = message.get("content")
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield from _block_marks(block)
    for call in _list(message.get("tool_calls")):
        if isinstance(call, dict) and call.get("id") is not None:
            yield "call", str(call["id"])
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield "call", f"function {legacy.get('name')}"


def _item_marks(kind: str, item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if kind == "mcp_approval_request":
        yield "call", str(item.get("id"))
    elif kind == "mcp_approval_response":
        yield "result", str(item.get("approval_request_id"))
    elif item.get("call_id") is not None:
        # Built-in tools that the provider runs itself (web search, file search) carry no call_id: they are whole in one item.
        if kind.endswith("_call"):
            yield "call", str(item["call_id"])
        elif kind.endswith("_output"):
            yield "result", str(item["call_id"])


def _block_marks(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = block.get("type")
    if not isinstance(kind, str):
        return
    if kind.endswith("tool_use") and block.get("id") is not None:
        yield "call", str(block["id"])
    elif kind.endswith("tool_result") and block.get("tool_use_id") is not None:
        yield "result", str(block["tool_use_id"])


def _chat_result_id(message: dict[str, Any]) -> str:
    call_id = message.get("tool_call_id")
    if call_id is None:
        # SWE-agent writes a list of one.
        ids = _list(message.get("tool_call_ids"))
        call_id = ids[0] if len(ids) == 1 else None
    return str(call_id)


def _is_batch_item(message: Any) -> bool:
    if not isinstance(message, dict) or "role" in message:
        return False
    kind = message.get("type")
    return kind == "reasoning" or (isinstance(kind, str) and kind.endswith("_call"))


def _is_output_of_model(message: Any) -> bool:
    """An assistant's message item right after reasoning: the provider refuses the reasoning without it."""
    return isinstance(message, dict) and message.get("type") == "message" and message.get("role") == "assistant"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
