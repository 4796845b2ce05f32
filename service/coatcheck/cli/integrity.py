"""``scan``, ``repair``, ``reconcile`` and ``redact``: is everything there, unchanged, findable, and free of secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

if TYPE_CHECKING:
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.administration import Progress
    from coatcheck_client.wire import JobOut

WithIndex = Annotated[bool, typer.Option("--index/--no-index", help="Compare with the live index, both ways.")]


def scan(index: WithIndex = True, as_json: AsJson = False) -> None:
    """Check every text, hash and index point.

    Exits with 1 when something is found.
    """
    job = _follow("scanning", lambda client, report: client.scan(index=index, on_progress=report))
    _print(job, as_json)
    if job.status == "failed" or job.findings_total:
        raise typer.Exit(1)


def repair(index: WithIndex = True, as_json: AsJson = False) -> None:
    """Repair what a scan finds.

    Exits with 1 when something is left that cannot be repaired.
    """
    job = _follow("repairing", lambda client, report: client.repair(index=index, on_progress=report))
    _print(job, as_json)
    if job.status == "failed" or job.findings_total > sum(finding.repaired for finding in job.findings):
        raise typer.Exit(1)


def reconcile(as_json: AsJson = False) -> None:
    """Bring the index in line with the database."""
    job = _follow("reconciling", lambda client, report: client.reconcile(on_progress=report))
    _print(job, as_json)
    if job.status == "failed":
        raise typer.Exit(1)


def redact(
    rescan: Annotated[bool, typer.Option("--rescan", help="Needed: it rewrites what is stored, for good.")] = False,
    as_json: AsJson = False,
) -> None:
    """Redact again, by today's rules, everything that is stored.

    Does nothing without --rescan, since it rewrites what is stored.
    """
    if not rescan:
        raise typer.BadParameter("it rewrites what is stored, for good: `coatcheck redact --rescan` does so", param_hint="--rescan")
    job = _follow("redacting", lambda client, report: client.redact_rescan(on_progress=report))
    _print(job, as_json)
    if job.status == "failed":
        raise typer.Exit(1)


def counts_and_findings(job: JobOut) -> dict[str, object]:
    """A job's outcome as ``--json`` prints it."""
    return {
        "status": job.status,
        "counts": job.progress,
        "findings_total": job.findings_total,
        "findings": job.findings,
        "error": job.error,
    }


def _follow(title: str, start: Callable[[AsyncCoatcheck, Progress], Awaitable[JobOut]]) -> JobOut:
    from coatcheck.cli import connection

    with output.progress(title) as advance:

        def report(job: JobOut) -> None:
            advance(max(job.progress.values(), default=0))

        async def work(client: AsyncCoatcheck) -> JobOut:
            return await start(client, report)

        return connection.run(work)


def _print(job: JobOut, as_json: bool) -> None:
    if as_json:
        output.print_json(counts_and_findings(job))
        return
    if job.findings:
        rows = (("repaired" if f.repaired else f.kind, f.session_id, (f.sha256 or "")[:12], f.detail) for f in job.findings)
        output.table(("finding", "session", "segment", "detail"), rows)
    if len(job.findings) < job.findings_total:
        output.say(f"... and {job.findings_total - len(job.findings)} more")
    counts = ", ".join(f"{count:,} {name}" for name, count in job.progress.items())
    output.say(f"{job.status}: {counts or 'nothing to do'}; {job.findings_total} findings")
    if job.error:
        output.warn(job.error)
