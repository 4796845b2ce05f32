"""``sessions``, ``export`` and ``import``: what is kept, who may read it, and taking it along."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson, counted

if TYPE_CHECKING:
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.wire import ErasureOut, SessionOut

Session = Annotated[str, typer.Argument(metavar="SESSION", help="The name of a session of your own, or any session's id.")]

sessions = typer.Typer(help="List, show, share and erase sessions.", no_args_is_help=True, rich_markup_mode=None)


@sessions.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List the sessions that you may read."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.sessions())
    columns = ("session", "name", "visibility", "manifests", "segments", "created")
    rows = ((s.session_id, s.name, s.visibility, s.manifests, s.segments, s.created_at) for s in found)
    output.show_table(found, as_json, columns, rows)


@sessions.command(name="show")
def show_(session: Session, as_json: AsJson = False) -> None:
    """Show one session."""
    from coatcheck.cli import connection

    _print(connection.run(lambda client: client.session(session)), as_json)


@sessions.command()
def visibility(
    session: Session,
    to: Annotated[str, typer.Argument(metavar="VISIBILITY", help="conversation, personal, team:<id> or public.")],
    participant: Annotated[
        list[UUID] | None, typer.Option(help="Who takes part, instead of those before; may be given more than once.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change who may read a session."""
    from coatcheck.cli import connection

    async def work(client: AsyncCoatcheck) -> SessionOut:
        return await client.change_session(await _id_of(client, session), visibility=to, participants=participant)

    _print(connection.run(work), as_json)


@sessions.command()
def delete(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    receipt: Annotated[bool, typer.Option("--receipt", help="Print the erasure's receipt, as JSON.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a session and everything derived from it."""
    from coatcheck.cli import connection

    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Erase {session} for good?", err=True)):
        output.warn("nothing was erased; --yes answers the question beforehand")
        raise typer.Exit(2)

    async def work(client: AsyncCoatcheck) -> ErasureOut:
        return await client.erase_session_with_receipt(await _id_of(client, session))

    given = connection.run(work)
    if receipt:
        output.print_json(given)
    elif as_json:
        output.print_json({"erased": given.target_id})
    else:
        output.say(f"Erased {session}. Receipt: {given.erasure_id}")


def export(
    session: Session,
    to: Annotated[Path | None, typer.Option("--output", "-o", dir_okay=False, help="A file; stdout where none is given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Export a session as JSON lines."""
    from coatcheck.cli import connection

    if to is not None and not to.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {to.absolute().parent} to write it to", param_hint="--output")

    async def work(client: AsyncCoatcheck) -> int:
        session_id = await _id_of(client, session)
        size_bytes = 0
        with _opened(to) as file:
            async for chunk in client.export(session_id):
                size_bytes += file.write(chunk)
        return size_bytes

    size_bytes = connection.run(work)
    if to is not None:
        if as_json:
            output.print_json({"file": to, "bytes": size_bytes})
        else:
            output.say(f"{size_bytes:,} bytes written to {to}.")


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="An export.")],
    as_json: AsJson = False,
) -> None:
    """Take an export in.

    Everything is redacted again and every hash verified.
    """
    from coatcheck.cli import connection

    taken = connection.run(lambda client: client.import_file(file))
    if as_json:
        output.print_json(taken)
        return
    made = ", ".join((counted(taken.manifests, "manifest"), counted(taken.segments, "segment")))
    why = "here already, erased here, or too short to gain anything"
    left_out = f"; {counted(taken.skipped, 'manifest')} left out: {why}" if taken.skipped else ""
    output.say(f"{made} of {counted(taken.sessions, 'session')} taken in{left_out}.")
    for warning in taken.warnings:
        output.warn(f"{warning.code}: {warning.detail}")


def describe(session: SessionOut) -> None:
    """A session for a person."""
    output.say(f"{session.name}  {session.session_id}")
    kept = f"{counted(session.manifests, 'manifest')}, {counted(session.segments, 'segment')}"
    output.say(f"{session.visibility}, owner {session.owner_id}; {kept}; since {output.moment(session.created_at)}")
    if session.participants:
        while_another_kind = "" if session.visibility == "conversation" else " (of a conversation, which this is not now)"
        output.say(f"participants{while_another_kind}: {', '.join(map(str, session.participants))}")


async def _id_of(client: AsyncCoatcheck, session: str) -> UUID:
    """An id is taken as it is, not looked up: an operator changes and erases sessions that it may not read."""
    from coatcheck_client.wire import written_uuid

    return written_uuid(session) or (await client.session(session)).session_id


@contextmanager
def _opened(to: Path | None) -> Iterator[IO[bytes]]:
    """A file takes its name when it is whole, and none does where that does not come; a pipe or a device is written as it is."""
    if to is None or (to.exists() and not to.is_file()):
        with open(sys.stdout.fileno(), "wb", closefd=False) if to is None else to.open("wb") as file:
            yield file
        return
    from coatcheck.ops.unfinished import file_beside

    with file_beside(to) as partial:
        with partial.open("wb") as file:
            yield file
        partial.replace(to)


def _print(session: SessionOut, as_json: bool) -> None:
    if as_json:
        output.print_json(session)
    else:
        describe(session)
