"""The formats by name."""

from __future__ import annotations

from collections.abc import Mapping

from coatcheck.domain.messages import WindowFormat, WireFormat
from coatcheck.formats.anthropic import Anthropic
from coatcheck.formats.checks import refuse
from coatcheck.formats.openai_chat import OpenAIChat
from coatcheck.formats.openai_responses import OpenAIResponses

FORMATS: Mapping[WindowFormat, WireFormat] = {
    "openai-chat": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": Anthropic(),
}


def get(name: str) -> WireFormat:
    """The format of this name. Raises InvalidRequest on an unknown one."""
    for known, wire in FORMATS.items():
        if known == name:
            return wire
    refuse(("window", "format"), f"format must be one of {', '.join(FORMATS)} or auto")
