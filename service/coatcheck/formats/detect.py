"""Which format a window is in, where the caller did not say: by what only one format has."""

from __future__ import annotations

from collections.abc import Sequence

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.messages import WindowFormat, WireFormat
from coatcheck.formats.checks import refuse
from coatcheck.formats.registry import FORMATS

_HINTS: dict[str, WindowFormat] = {
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file", "computer_screenshot"), "openai-responses"),
    **dict.fromkeys(("image_url", "input_audio"), "openai-chat"),
    **dict.fromkeys(("thinking", "redacted_thinking", "image", "document", "compaction", "search_result"), "anthropic"),
}
"""Blocks that one provider made, but that agents also carry inside another's messages."""


def detect(messages: Sequence[JsonValue], system: JsonValue) -> WireFormat:
    """The window's format.

    Calls and results decide: each format writes them in its own way, and a window that mixes them raises InvalidRequest.
    Without any, the blocks hint. Plain text reads the same everywhere: it is openai-chat, or anthropic beside a ``system``.
    """
    decided: WindowFormat | None = None
    hinted: WindowFormat | None = None
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        found = _proof(message)
        if found and decided and found != decided:
            refuse(("window", "messages", position), f"the window mixes {decided} and {found}; name its format")
        decided = decided or found
        hinted = hinted or _hint(message)
    return FORMATS[decided or ("anthropic" if system is not None else hinted) or "openai-chat"]


def _proof(message: JsonObject) -> WindowFormat | None:
    if message.get("role") in ("tool", "function") or any(message.get(key) for key in ("tool_calls", "function_call")):
        return "openai-chat"
    kind = message.get("type")
    if isinstance(kind, str) and kind != "message" and not ("role" in message and "content" in message):
        return "openai-responses"
    kinds = _block_types(message)
    return "anthropic" if any(kind.endswith(("tool_use", "tool_result")) for kind in kinds) else None


def _hint(message: JsonObject) -> WindowFormat | None:
    hints = [_HINTS[kind] for kind in _block_types(message) if kind in _HINTS]
    if hints:
        return hints[0]
    return "openai-responses" if message.get("type") == "message" and isinstance(message.get("content"), str) else None


def _block_types(message: JsonObject) -> list[str]:
    content = message.get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [kind for kind in kinds if isinstance(kind, str)]
