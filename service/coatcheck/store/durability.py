"""What the server promises, read back at start: a weaker promise than the protocol builds on refuses to start."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from coatcheck.domain.errors import RefusedToStart
from coatcheck.store.schema import APP_ROLE, OLDEST_SERVER, OWNER_ROLE, SCHEMA_REVISION, WORKER_ROLE

_MIGRATED = sa.text("""
    SELECT (SELECT count(*) FROM pg_roles WHERE rolname IN (:owner, :app, :worker)) = 3
           AND to_regclass('public.alembic_version') IS NOT NULL
""")

_READ_BACK = sa.text("""
    SELECT current_setting('server_version') AS server_version,
           current_setting('server_version_num')::integer AS server_version_num,
           current_setting('fsync') AS fsync,
           current_setting('full_page_writes') AS full_page_writes,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('server_encoding') AS server_encoding,
           login.rolname AS login,
           login.rolsuper AS superuser,
           login.rolbypassrls AS bypasses,
           pg_has_role(login.oid, CAST(:owner AS name), 'MEMBER') AS owns,
           pg_has_role(login.oid, CAST(:app AS name), 'MEMBER') AND pg_has_role(login.oid, CAST(:worker AS name), 'MEMBER')
             AS serves,
           pg_has_role(login.oid, CAST(:app AS name), 'USAGE') OR pg_has_role(login.oid, CAST(:worker AS name), 'USAGE')
             AS inherits,
           EXISTS (SELECT FROM pg_roles r WHERE r.rolname IN (:app, :worker) AND (r.rolsuper OR r.rolbypassrls)) AS roles_bypass
      FROM pg_roles login WHERE login.rolname = session_user
""")

_REVISION = sa.text("SELECT version_num FROM alembic_version")


async def read_back(connection: AsyncConnection) -> dict[str, str]:
    """The settings as the server names them. Raises RefusedToStart with every reason at once."""
    names = {"owner": OWNER_ROLE, "app": APP_ROLE, "worker": WORKER_ROLE}
    if not await connection.scalar(_MIGRATED, names):
        raise RefusedToStart("The database has not been migrated: run `coatcheck migrate` first.")
    row = (await connection.execute(_READ_BACK, names)).one()
    reasons = [
        reason
        for holds, reason in (
            (row.server_version_num < OLDEST_SERVER * 10_000, f"PostgreSQL {OLDEST_SERVER} or newer is needed"),
            (row.fsync != "on", "fsync is off"),
            (row.full_page_writes != "on", "full_page_writes is off"),
            (row.synchronous_commit not in ("on", "remote_apply"), "synchronous_commit is weaker than on"),
            (row.server_encoding != "UTF8", "the database's encoding is not UTF8"),
            (row.superuser, "the serving login is a superuser"),
            (row.bypasses or row.roles_bypass, "the serving login or one of its roles bypasses row security"),
            (row.owns, f"the serving login is a member of {OWNER_ROLE}"),
            (not row.serves, f"the serving login is not a member of both {APP_ROLE} and {WORKER_ROLE}"),
            (row.inherits and not row.superuser, "the serving login inherits its roles' privileges: ALTER ROLE ... NOINHERIT"),
        )
        if holds
    ]
    revision = None if reasons else await _revision(connection)
    if not reasons and revision != SCHEMA_REVISION:
        reasons.append(f"its schema is at {revision}, this release needs {SCHEMA_REVISION}: run `coatcheck migrate`")
    if reasons:
        raise RefusedToStart(f"The database cannot be served from: {'; '.join(reasons)}.")
    return {
        "server_version": row.server_version,
        "fsync": row.fsync,
        "full_page_writes": row.full_page_writes,
        "synchronous_commit": row.synchronous_commit,
        "login": row.login,
        "schema_revision": str(revision),
    }


async def _revision(connection: AsyncConnection) -> str | None:
    await connection.execute(sa.text("SELECT set_config('role', :role, true)"), {"role": WORKER_ROLE})
    revision: str | None = await connection.scalar(_REVISION)
    return revision
