"""Asking the plugin what it finds beside this Python, without a server."""

from __future__ import annotations

import importlib
import json
from contextlib import suppress

from coatcheck.gpu.vllm.parts import Report, State
from coatcheck.gpu.vllm.plugin import armed
from coatcheck.gpu.vllm.saying import say_nothing


def asked(*, load: bool) -> Report:
    """The report of this process. ``load`` imports what is waited for, to see whether it is built as the plugin knows it.

    That takes seconds. A module that cannot be imported here (many of vLLM's want a GPU) goes on waiting.
    """
    say_nothing()
    plugin = armed()
    if load:
        for part in plugin.report().parts:
            for place in part.places:
                if place.state is State.WAITING:
                    _import(place.module)
    return plugin.report()


def as_json(report: Report) -> str:
    """The report as one JSON object."""
    return json.dumps(as_values(report), indent=2)


def as_values(report: Report) -> dict[str, object]:
    """The report in JSON's own types."""
    return {
        "vllm": report.vllm,
        "parts": [
            {
                "name": part.name, "purpose": part.purpose, "state": part.state.value,
                "places": [
                    {"module": place.module, "state": place.state.value, "detail": place.detail} for place in part.places
                ],
            }
            for part in report.parts
        ],
    }  # fmt: skip


def _import(name: str) -> None:
    # What a module of somebody else's raises while it runs is anybody's guess; the report says that it still waits.
    with suppress(Exception):
        importlib.import_module(name)
