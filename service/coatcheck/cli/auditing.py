"""``audit``: who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson


def audit(
    principal: Annotated[UUID | None, typer.Option(help="Only what this principal did.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, say session.export; or a kind of them: session.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only what was done from this time on, in UTC.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, counted from the newest.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Show who did what in the tenant, newest first."""
    from coatcheck.cli import connection

    found = connection.run(
        lambda client: client.audit(principal_id=principal, action=action, since=output.in_utc(since), limit=limit)
    )
    rows = ((r.occurred_at, r.principal_id, r.delegation_id, r.action, r.target_kind, r.target_id) for r in found)
    output.show_table(found, as_json, ("at", "principal", "delegation", "action", "kind", "target"), rows)
