"""Windows of each format with a secret in every place that redaction reads; each place gets a secret of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.isolation import secret

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PROSE = "The build of the payment service was started again, and nothing in its output told why it had stopped. " * 6


@dataclass(slots=True)
class Planted:
    """Every secret that was planted so far."""

    secrets: list[str] = field(default_factory=list)

    def token(self) -> str:
        return self._new(secret.github())

    def password(self) -> str:
        return self._new(secret.password())

    def key_block(self) -> str:
        block = secret.private_key()
        self.secrets += block.split("\n")[1:-1]
        return block

    def any(self) -> str:
        return self._new((secret.aws, secret.slack, secret.jwt)[len(self.secrets) % 3]())

    def _new(self, one: str) -> str:
        self.secrets.append(one)
        return one


def chat(p: Planted) -> dict[str, Any]:
    arguments = json.dumps({"command": f"deploy --token {p.any()}", "password": p.password(), p.token(): "as a key"})
    messages = [
        {"role": "system", "content": f"{PROSE} The account is admin, my password is {p.password()}."},
        {
            "role": "user",
            "name": p.token(),
            "content": f"{PROSE} Use {p.any()} here.",
            "metadata": {p.token(): "k", "api_key": p.password()},
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": f"see postgres://app:{p.password()}@db.internal:5432/orders",
                    "cache_control": {"note": p.any()},
                },
                {"type": "image_url", "image_url": {"url": f"https://viewer:{p.password()}@img.internal/x.png"}},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                {"type": "file", "file": {"filename": f"{p.token()}.txt", "file_id": "file_1"}},
                {"type": "tomorrow", "content": p.any(), "title": p.token()},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": f"think of {p.any()}",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "deploy", "arguments": arguments}},
                {"id": "call_2", "type": "function", "function": {"name": p.token(), "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": f"{PROSE}\nwrote the key:\n{p.key_block()}\ndone"},
        {"role": "tool", "tool_call_id": "call_2", "content": json.dumps({"result": {"secret": p.password(), "log": p.any()}})},
    ]
    return {"format": "openai-chat", "messages": messages}


def responses(p: Planted) -> dict[str, Any]:
    messages = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{PROSE} with {p.any()}"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": f"about {p.any()}"}],
            "encrypted_content": "gAAAA" + "x" * 40,
        },
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": json.dumps({"token": p.password()})},
        {"type": "function_call_output", "call_id": "c1", "output": f"{PROSE} Authorization: Bearer {p.any()}"},
        {"type": "tomorrow", "id": "t1", "payload": {"title": p.token(), p.token(): [p.any()]}},
    ]
    return {"format": "openai-responses", "messages": messages}


def anthropic(p: Planted) -> dict[str, Any]:
    messages = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"{PROSE} {p.any()}"},
                {
                    "type": "document",
                    "title": p.token(),
                    "context": p.any(),
                    "source": {"type": "text", "media_type": "text/plain", "data": f"{PROSE} {p.any()}"},
                },
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": f"I should use {p.any()}", "signature": "EqQBCkYIBxgC"},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "bash",
                    "input": {"env": {"DB_PASSWORD": p.password()}, p.token(): [p.any()]},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": f"{PROSE} {p.any()}"}]},
                {"type": "text", "text": f"and then {p.token()}"},
            ],
        },
    ]
    system = [{"type": "text", "text": f"{PROSE} The service account's password is {p.password()}."}]
    return {"format": "anthropic", "messages": messages, "system": system}


FORMATS = {"openai-chat": chat, "openai-responses": responses, "anthropic": anthropic}
