"""``coatcheck demo``: the main job on a real-sized transcript, with every promise checked."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

if TYPE_CHECKING:
    from coatcheck.cli.demo.story import Question
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.wire import CompactionResponse, JobOut, RecallResponse

KEEP_LAST = 4
TOP_K = 5
REBUILD_LIMIT_S = 60.0
REBUILD_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, and whether its exact line was among the hits."""

    question: Question
    rank: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo did and checked."""

    compaction: CompactionResponse
    answers: tuple[Answer, ...]
    window_equal: bool
    secrets_left: bool
    scan: JobOut
    seconds: float

    @property
    def reduction(self) -> float:
        """How much shorter the window became, in per cent of its characters."""
        return round(100 * (1 - self.compaction.handoff.chars / self.compaction.window.chars), 2)

    @property
    def exact_lines(self) -> int:
        return sum(answer.rank is not None for answer in self.answers)

    @property
    def is_good(self) -> bool:
        return (
            self.exact_lines == len(self.answers)
            and self.window_equal
            and not self.secrets_left
            and self.scan.status == "done"
            and self.scan.findings_total == 0
        )


def demo(
    data_dir: Annotated[Path | None, typer.Option(help="Where the demo keeps its data; a folder of its own by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try it on a day's transcript.

    Hands it in, asks it three questions, rebuilds it and checks every hash. Exits with 1 when anything is not as promised.
    """
    import asyncio

    folder = data_dir or default_folder()
    outcome = asyncio.run(_run(folder))
    if as_json:
        output.print_json(_as_json(outcome, folder))
    else:
        _tell(outcome)
    if not outcome.is_good:
        raise typer.Exit(1)


def default_folder() -> Path:
    """``demo`` in the data directory; for root without a chosen data directory a private folder outside its home.

    The embedded server would have to open every folder above its data to another user, which root's home must not be.
    """
    from coatcheck_client.discovery import data_dir, is_data_dir_configured

    if is_data_dir_configured() or os.name != "posix" or os.geteuid() != 0:
        return data_dir() / "demo"
    return private_folder(Path(tempfile.gettempdir()) / "coatcheck-demo-0")


def private_folder(folder: Path) -> Path:
    """The folder, made if need be; its name can be guessed, so it is used only when it is ours and a folder."""
    from coatcheck.domain.errors import RefusedToStart

    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RefusedToStart(f"{folder} is not a folder of this user: name another with --data-dir.")
    return folder


async def _run(folder: Path) -> Outcome:
    from coatcheck.cli import connection
    from coatcheck.cli.demo import story
    from coatcheck.cli.demo.edition import session_name
    from coatcheck_client.windows import plan_window

    started = time.monotonic()
    told = story.load()
    window = plan_window(told.messages, keep_last=KEEP_LAST)
    if window is None:
        raise RuntimeError("the demo's transcript holds no window")
    output.warn(f"starting PostgreSQL and the index in {folder}; the first start also compiles the redaction rules")
    async with connection.in_process(connection.local_settings(data_dir=folder, embedded=True)) as (app, client):
        session = session_name(app.parts.planning.revisions)
        output.warn(f"handing in {len(window.messages)} messages")
        compaction = await client.compact(
            window.messages,
            session=session,
            format="openai-chat",
            times=[told.times[index] for index in window.indices],
            deadline_s=300,
        )
        output.warn(f"asking {len(story.QUESTIONS)} questions, rebuilding the window, checking every hash")
        answers = tuple([await _ask(client, session, question) for question in story.QUESTIONS])
        rebuilt = await client.window(compaction.manifest_id)
        scan = await client.scan(index=True)
    return Outcome(
        compaction,
        answers,
        story.equals_redacted(list(window.messages), rebuilt.messages),
        story.holds_secret(repr(rebuilt.messages) + compaction.handoff.text),
        scan,
        time.monotonic() - started,
    )


async def _ask(client: AsyncCoatcheck, session: str, question: Question) -> Answer:
    found = await _recall(client, session, question)
    for rank, hit in enumerate(found.hits, 1):
        if question.exact_line in hit.text.split("\n"):
            return Answer(question, rank, hit.sha256)
    return Answer(question, None, None)


async def _recall(client: AsyncCoatcheck, session: str, question: Question) -> RecallResponse:
    """A folder that an earlier release filled has its index filled anew first."""
    gives_up_at = time.monotonic() + REBUILD_LIMIT_S
    while True:
        found = await client.recall(question.query, session=session, top_k=TOP_K, max_chars=40_000)
        is_rebuilding = any(warning.code == "index-rebuilding" for warning in found.warnings)
        if not is_rebuilding or time.monotonic() > gives_up_at:
            return found
        await asyncio.sleep(REBUILD_POLL_S)


def _as_json(outcome: Outcome, folder: Path) -> dict[str, Any]:
    return {
        "reduction": outcome.reduction,
        "exact_lines": outcome.exact_lines,
        "questions": [
            {"query": a.question.query, "exact_line": a.question.exact_line, "rank": a.rank, "sha256": a.sha256}
            for a in outcome.answers
        ],
        "window_equal": outcome.window_equal,
        "scan_findings": outcome.scan.findings_total,
        "scan_counts": outcome.scan.progress,
        "secrets_redacted": outcome.compaction.redactions.total,
        "secrets_left": outcome.secrets_left,
        "window_chars": outcome.compaction.window.chars,
        "handoff_chars": outcome.compaction.handoff.chars,
        "segments": outcome.compaction.segments.total,
        "manifest_id": outcome.compaction.manifest_id,
        "session_id": outcome.compaction.session_id,
        "data_dir": folder,
        "seconds": round(outcome.seconds, 1),
        "ok": outcome.is_good,
    }


def _tell(outcome: Outcome) -> None:
    compaction = outcome.compaction
    _panel("the handoff: what the agent carries on with", compaction.handoff.text)
    output.say(
        f"{compaction.window.messages} messages, {compaction.window.chars:,} characters became "
        f"{compaction.handoff.chars:,}: {outcome.reduction} % less. {compaction.segments.total} segments are kept word for word, "
        f"{compaction.redactions.total} secrets are not."
    )
    output.say()
    for answer in outcome.answers:
        output.say(f"? {answer.question.query}")
        where = f"hit {answer.rank}, segment {answer.sha256[:12]}" if answer.sha256 else "NOT among the hits"
        output.say(f"  {answer.question.exact_line.strip()}  ({where})")
    output.say()
    checks = (
        (f"{outcome.exact_lines} of {len(outcome.answers)} exact lines came back", outcome.exact_lines == len(outcome.answers)),
        ("the window rebuilt equals the redacted original, byte for byte", outcome.window_equal),
        ("no planted secret is left", not outcome.secrets_left),
        (f"the scan has {outcome.scan.findings_total} findings", outcome.scan.status == "done" and not outcome.scan.findings_total),
    )
    for sentence, is_good in checks:
        output.say(f"{'ok  ' if is_good else 'FAIL'} {sentence}")
    output.say(f"{outcome.seconds:.1f} s")


def _panel(title: str, text: str) -> None:
    if not sys.stdout.isatty():
        output.say(f"--- {title}")
        output.say(text)
        output.say("---")
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    Console().print(Panel(Text(output.for_terminal(text)), title=title))
