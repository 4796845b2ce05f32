"""Tool calls and their results: no window splits them, and a batch of calls with its results shares a group.

Calls are known by their id. A legacy function call has none; it is then known by its function's name, and answered in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from coatcheck.domain.canonical import pointer
from coatcheck.domain.errors import FieldError, InvalidWindow
from coatcheck.domain.messages import PartKind, Site
from coatcheck.domain.values import value


@value
class Link:
    """What pairing says of one part: its group, and the tool's name as its call gave it."""

    group_id: str
    name: str | None


@dataclass(slots=True)
class _State:
    links: dict[str, Link] = field(default_factory=dict)
    """By key, of every call so far; a later call with the same id takes the place of the earlier."""
    open_at: dict[str, int] = field(default_factory=dict)
    """The message of each call that has no result yet."""
    batches: int = 0
    in_batch: bool = False


def pair(sites_by_message: Sequence[Sequence[Site]]) -> list[list[Link | None]]:
    """For every site its link, None where it is neither call nor result.

    Raises InvalidWindow, with the pointer of the message, for a result without its call and for an unanswered call.
    """
    state = _State()
    links: list[list[Link | None]] = []
    for index, sites in enumerate(sites_by_message):
        links.append([_link(site, index, state) for site in sites])
        if any(site.role in ("user", "system", "developer") for site in sites):
            state.in_batch = False
    if state.open_at:
        index = min(state.open_at.values())
        _refuse(index, "A tool call in this message has no result in the window: cut before the call, or after its result.")
    return links


def _link(site: Site, index: int, state: _State) -> Link | None:
    if site.kind is PartKind.TOOL_CALL:
        return _open(site, index, state)
    if site.kind is PartKind.TOOL_RESULT or (site.call_id is not None and site.role == "tool"):  # a result may be an image alone
        return _close(site, index, state)
    return None


def _open(site: Site, index: int, state: _State) -> Link:
    if not state.in_batch:
        state.in_batch = True
        state.batches += 1
    link = Link(f"g{state.batches}", site.name)
    key = _key(site)
    state.links[key] = link
    state.open_at[key] = index
    return link


def _close(site: Site, index: int, state: _State) -> Link:
    state.in_batch = False
    key = _key(site)
    link = state.links.get(key)
    if link is None:
        _refuse(index, "A tool result in this message has no call in the window: cut before the call, or after its result.")
    state.open_at.pop(key, None)
    return link


def _key(site: Site) -> str:
    return f"id:{site.call_id}" if site.call_id is not None else f"name:{site.name}"


def _refuse(index: int, detail: str) -> NoReturn:
    at = pointer(("window", "messages", index))
    raise InvalidWindow("The window splits a tool call from its result.", errors=[FieldError(at, detail)])
