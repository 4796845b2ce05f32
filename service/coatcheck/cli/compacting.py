"""``coatcheck compact``: a transcript from a file, cut into windows, handed in one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

if TYPE_CHECKING:
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.transcripts import Transcript
    from coatcheck_client.windows import Cut
    from coatcheck_client.wire import CompactionResponse

DEADLINE_S = 300.0
"""A command can wait longer for the index than an agent in the middle of its turn."""


def compact(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A transcript: JSON, or JSON lines.")],
    session: Annotated[str | None, typer.Option(help="The session's name or id; the file's name where none is given.")] = None,
    window_chars: Annotated[int, typer.Option(min=1, help="About how long a window is, in characters.")] = 100_000,
    format: Annotated[
        Literal["auto", "openai-chat", "openai-responses", "anthropic"], typer.Option(help="The messages' format.")
    ] = "auto",
    visibility: Annotated[str | None, typer.Option(help="conversation, personal, team:<id> or public.")] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a transcript and print its handoffs.

    It is cut into message-safe windows, which are handed in one after the other.
    """
    from coatcheck.cli import connection
    from coatcheck_client.transcripts import read_transcript
    from coatcheck_client.windows import cut_windows

    transcript = read_transcript(file)
    cut = cut_windows(transcript.messages, window_chars)
    for warning in transcript.warnings:
        output.warn(warning)
    for left in cut.left_out:
        places = f"{left.indices[0]}" if len(left.indices) == 1 else f"{left.indices[0]} to {left.indices[-1]}"
        output.warn(f"messages {places} of {len(transcript.messages)} are in no window: {left.reason}")
    wire_format = transcript.format if format == "auto" else format
    name = session or session_name(file)
    done, failed = connection.run(lambda client: _hand_in(client, transcript, cut, wire_format, name, visibility))
    if as_json:
        output.print_json(done)
    else:
        for answer in done:
            output.say(answer.handoff.text)
            output.say()
        _sum_up(done, len(cut.windows))
    if failed or not done:
        raise typer.Exit(1)


def session_name(file: Path) -> str:
    """A session's name made of a file's: visible ASCII, at most 200 characters."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", file.name.split(".")[0]).strip("-")[:200] or "transcript"


async def _hand_in(
    client: AsyncCoatcheck,
    transcript: Transcript,
    cut: Cut,
    wire_format: Literal["openai-chat", "openai-responses", "anthropic"],
    session: str,
    visibility: str | None,
) -> tuple[list[CompactionResponse], int]:
    """The answers in order, and how many windows failed. One window that is refused never blocks the next."""
    from coatcheck_client.errors import InvalidRequest, NoProgress

    done: list[CompactionResponse] = []
    failed = 0
    with output.progress("compacting", len(cut.windows)) as advance:
        for number, window in enumerate(cut.windows):
            try:
                answer = await client.compact(
                    window.messages,
                    session=session,
                    format=wire_format,
                    # The system field belongs to the whole conversation; the first window carries it.
                    system=transcript.system if number == 0 else None,
                    times=[transcript.times[index] for index in window.indices] if any(transcript.times) else None,
                    visibility=visibility,
                    deadline_s=DEADLINE_S,
                )
            except NoProgress:
                output.warn(f"window {number + 1} (messages {window.start} to {window.stop - 1}) is too short to gain anything")
            except InvalidRequest as error:
                failed += 1
                output.warn(f"window {number + 1} (messages {window.start} to {window.stop - 1}): {output.failure_text(error)}")
            else:
                done.append(answer)
            advance(number + 1)
    return done, failed


def _sum_up(done: list[CompactionResponse], windows: int) -> None:
    before = sum(answer.window.chars for answer in done)
    after = sum(answer.handoff.chars for answer in done)
    if before:
        redacted = sum(answer.redactions.total for answer in done)
        output.say(
            f"{len(done)} of {windows} windows kept: {before:,} characters became {after:,} "
            f"({100 * (1 - after / before):.2f} % less); {redacted} secrets redacted."
        )
