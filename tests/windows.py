"""Windows to hand in: message-safe, of a made-up agent at work."""

from __future__ import annotations

import json
from typing import Any


def call(number: int, command: str) -> dict[str, Any]:
    """An assistant's message with one tool call (OpenAI chat)."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


def result(number: int, text: str) -> dict[str, Any]:
    """The tool's answer to it."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def window(calls: int = 4, filler: int = 12, mark: str = "alpha") -> list[dict[str, Any]]:
    """A user's request, then calls with their results, then an answer; about ``calls * filler * 60`` characters."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Find out why service {mark} fails on staging."}]
    for number in range(calls):
        messages.append(call(number, f"curl -s http://10.2.0.{number}:8443/{mark}/health"))
        noise = f"2026-11-29T20:15:0{number % 10}Z INFO {mark} worker heartbeat ok, queue depth 3\n" * filler
        messages.append(result(number, f"{noise}GET /{mark}/health on 10.2.0.{number}:8443 failed with 50{number}\n"))
    messages.append({"role": "assistant", "content": f"The {mark} service fails because the pool is exhausted."})
    return messages


def request(session: str, messages: list[dict[str, Any]] | None = None, **more: object) -> dict[str, Any]:
    """The body of a compaction."""
    return {"session": session, "window": {"messages": window() if messages is None else messages}, **more}
