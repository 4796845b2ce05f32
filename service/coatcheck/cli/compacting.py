"""``coatcheck compact``: a transcript from a file, cut into windows, handed in one after the other."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coatcheck.cli import output
from coatcheck.cli.failures import failure_text
from coatcheck.cli.output import AsJson

if TYPE_CHECKING:
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.transcripts import Transcript
    from coatcheck_client.windows import Cut
    from coatcheck_client.wire import CompactionResponse

DEADLINE_S = 300.0
"""A command can wait longer for the index than an agent in the middle of its turn."""


def compact(
    file: Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False, help="JSON, or JSON lines; - is stdin.")],
    session: Annotated[str | None, typer.Option(help="The session's name or id; the file's name where none is given.")] = None,
    window_chars: Annotated[int, typer.Option(min=1, help="About how long a window is, in characters.")] = 100_000,
    format: Annotated[
        Literal["auto", "openai-chat", "openai-responses", "anthropic"], typer.Option(help="The messages' format.")
    ] = "auto",
    visibility: Annotated[str | None, typer.Option(help="conversation, personal, team:<id> or public.")] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a transcript and print its handoffs.

    It is cut into message-safe windows, which are handed in one after the other. The same file again goes on where an
    interrupted run ended. --json prints a list with an answer for each window, also where a later one fails.

    Read are the messages of OpenAI chat, OpenAI Responses and Anthropic (a list, an object that holds one as "messages",
    "history" or "input", or one a line), and the logs of Claude Code, Codex, SWE-agent, OpenHands and cline.
    """
    from coatcheck.cli import connection
    from coatcheck_client.windows import cut_windows

    transcript = _read(file, session)
    cut = cut_windows(transcript.messages, window_chars)
    for warning in transcript.warnings:
        output.warn(warning)
    for left in cut.left_out:
        first, last = left.indices[0], left.indices[-1]
        which = f"message {first} of {len(transcript.messages)} is" if first == last else f"messages {first} to {last} are"
        output.warn(f"{which} in no window: {left.reason}")
    wire_format = transcript.format if format == "auto" else format
    name = session or session_name(file)
    with output.json_list() if as_json else nullcontext(_show) as show:
        done, failed = connection.run(lambda client: _hand_in(client, transcript, cut, wire_format, name, visibility, show))
    if not as_json:
        _sum_up(done, len(cut.windows))
    if failed or not done:
        raise typer.Exit(1)


def session_name(file: Path) -> str:
    """A session's name made of a file's: visible ASCII, at most 200 characters."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", file.name.split(".")[0]).strip("-")[:200] or "transcript"


def _read(file: Path, session: str | None) -> Transcript:
    from coatcheck_client.transcripts import parse_transcript, read_transcript

    if str(file) != "-":
        if not file.exists():
            raise typer.BadParameter(f"file '{file}' does not exist", param_hint="FILE")
        return read_transcript(file)
    if session is None:
        raise typer.BadParameter("what comes from stdin has no name: give one", param_hint="--session")
    return parse_transcript(sys.stdin.buffer.read())


async def _hand_in(
    client: AsyncCoatcheck,
    transcript: Transcript,
    cut: Cut,
    wire_format: Literal["openai-chat", "openai-responses", "anthropic"],
    session: str,
    visibility: str | None,
    show: Callable[[CompactionResponse], None],
) -> tuple[list[CompactionResponse], int]:
    """The answers in order, each shown as soon as it is there, and how many windows failed.

    One window that is refused never blocks the next.
    """
    from coatcheck_client.errors import ClientError, InvalidRequest, NoProgress

    done: list[CompactionResponse] = []
    failed = 0
    for number, window in enumerate(cut.windows):
        place = f"window {number + 1} of {len(cut.windows)}, messages {window.start} to {window.stop - 1}"
        if len(cut.windows) > 1:
            output.warn(place)
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
            output.warn(f"{place}: too short to gain anything, nothing was stored")
        except InvalidRequest as error:
            failed += 1
            output.warn(f"{place}: {failure_text(error)}")
        except ClientError as error:
            if error.retryable:
                output.warn(f"{place}: not acknowledged; the same command again goes on from here")
            raise
        else:
            done.append(answer)
            show(answer)
    return done, failed


def _show(answer: CompactionResponse) -> None:
    output.say(answer.handoff.text)
    output.say()


def _sum_up(done: list[CompactionResponse], windows: int) -> None:
    before = sum(answer.window.chars for answer in done)
    after = sum(answer.handoff.chars for answer in done)
    if before:
        redacted = sum(answer.redactions.total for answer in done)
        output.say(
            f"{len(done)} of {windows} windows kept: {before:,} characters became {after:,} "
            f"({100 * (1 - after / before):.2f} % less); {redacted} secrets redacted."
        )
