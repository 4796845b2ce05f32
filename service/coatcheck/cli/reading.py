"""``recall``, ``show`` and ``window``: getting the exact text back."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from coatcheck.cli import output, sessions
from coatcheck.cli.output import AsJson, counted

if TYPE_CHECKING:
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.wire import ManifestOut, SegmentOut, SessionOut

_LEAST_DIGITS = 12
_HASH = re.compile(rf"[0-9a-fA-F]{{{_LEAST_DIGITS},64}}")
_DIGITS = re.compile(r"[0-9a-fA-F]+")


def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is wanted, in any language.")],
    session: Annotated[
        str | None, typer.Option(help="The name of a session of your own, or any session's id; all that you may read without.")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, max=50, help="How many hits.")] = 5,
    max_chars: Annotated[int | None, typer.Option(help="How much text in all.")] = None,
    rerank: Annotated[Literal["auto", "on", "off"], typer.Option(help="Whether a model orders the hits anew.")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Find exact texts by meaning."""
    from coatcheck.cli import connection

    answer = connection.run(lambda c: c.recall(query, session=session, top_k=top_k, max_chars=max_chars, rerank=rerank))
    if as_json:
        output.print_json(answer)
        return
    for number, hit in enumerate(answer.hits, 1):
        when = output.moment(hit.occurred_at) if hit.occurred_at else "time unknown"
        output.say(f"{number}. {hit.sha256[:12]}  {hit.role}  {when}  {hit.manifest_id}#{hit.ordinal}")
        if hit.places > 1:
            output.say(f"   the same text in {counted(hit.places - 1, 'other session')}")
        if hit.superseded_by is not None:
            later = hit.superseded_by
            entry = "" if later.ordinal is None else f"#{later.ordinal}"
            output.say(f"   corrected later: {later.reason} ({later.sha256[:12]}  {later.manifest_id}{entry})")
        output.say(_indented(hit.text) + ("…" if hit.truncated else ""))
    if not answer.hits:
        output.say("Nothing found.")
    for warning in answer.warnings:
        output.warn(f"{warning.code}: {warning.detail}")


def show(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="A manifest's or session's id, a segment's hash, or 12 or more digits of it.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show a manifest, a session, or one exact text."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: _find(client, id))
    if as_json:
        output.print_json(found)
    else:
        _describe(found)


def window(
    id: Annotated[UUID, typer.Argument(metavar="ID", help="A manifest's id.")],
    as_json: AsJson = False,
) -> None:
    """Rebuild a window as it came, redacted."""
    from coatcheck.cli import connection

    rebuilt = connection.run(lambda client: client.window(id))
    if as_json:
        output.print_json({"format": rebuilt.format, "system": rebuilt.system, "messages": rebuilt.messages})
        return
    if rebuilt.system is not None:
        output.say("== system")
        output.say(_readable(rebuilt.system))
    for number, message in enumerate(rebuilt.messages):
        role = message.get("role") or message.get("type") if isinstance(message, dict) else type(message).__name__
        output.say(f"== {number} {role}")
        output.say(_readable(message))


async def _find(client: AsyncCoatcheck, id: str) -> ManifestOut | SessionOut | SegmentOut:
    from coatcheck_client.errors import NotFound

    if _HASH.fullmatch(id):
        return await client.segment(id.lower())
    try:
        UUID(id)
    except ValueError:
        return await _session_or_too_few_digits(client, id)
    try:
        return await client.manifest(id)
    except NotFound:
        return await client.session(id)


async def _session_or_too_few_digits(client: AsyncCoatcheck, id: str) -> SessionOut:
    """A session may be named like a hash that is cut too short; where none is, that is what it will have been meant for."""
    from coatcheck_client.errors import NotFound

    try:
        return await client.session(id)
    except NotFound:
        if not _DIGITS.fullmatch(id) or len(id) >= _LEAST_DIGITS:
            raise
    raise typer.BadParameter(
        f"no session has this name, and as a segment's hash it is too short: {_LEAST_DIGITS} or more of its digits are needed",
        param_hint="ID",
    )


def _describe(found: ManifestOut | SessionOut | SegmentOut) -> None:
    from coatcheck_client.wire import ManifestOut, SegmentOut

    if isinstance(found, SegmentOut):
        output.say(found.text)
    elif isinstance(found, ManifestOut):
        output.say(found.handoff.text)
        output.say()
        output.say(
            f"{found.status}; {found.window.messages} messages, {found.window.chars:,} characters, {found.segments.total} segments "
            f"({found.segments.keep} kept, {found.segments.compress} reduced, {found.segments.drop} dropped), "
            f"{found.redactions.total} redactions, {found.index.passages} passages"
        )
    else:
        sessions.describe(found)


def _readable(value: Any) -> str:
    """A message's text where it is one string; its JSON where it is more."""
    content = (
        value.get("content") if isinstance(value, dict) and set(value) <= {"role", "content", "tool_call_id", "name"} else value
    )
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)


def _indented(text: str) -> str:
    return "\n".join("   " + line for line in text.split("\n"))
