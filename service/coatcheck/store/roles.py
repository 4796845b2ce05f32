"""The roles that must exist before the tables: made where the login may, named where it may not."""

from __future__ import annotations

import sqlalchemy as sa

from coatcheck.domain.errors import RefusedToStart
from coatcheck.store.schema import APP_ROLE, LOGIN_ROLE, OWNER_ROLE, WORKER_ROLE

_NEEDED = {
    OWNER_ROLE: "NOLOGIN NOSUPERUSER NOBYPASSRLS",
    APP_ROLE: "NOLOGIN NOSUPERUSER NOBYPASSRLS",
    WORKER_ROLE: "NOLOGIN NOSUPERUSER NOBYPASSRLS",
}


def ensure_roles(connection: sa.Connection) -> None:
    """Makes the missing roles and lets this login act as the owner. Raises RefusedToStart naming what it may not make itself."""
    present = _present(connection)
    missing = {name: attributes for name, attributes in _NEEDED.items() if name not in present}
    may_create = connection.scalar(sa.text("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"))
    if missing and not may_create:
        statements = "; ".join(f"CREATE ROLE {name} {attributes}" for name, attributes in missing.items())
        raise RefusedToStart(f"This login may not create roles. Have an administrator run: {statements}.")
    for name, attributes in missing.items():
        connection.exec_driver_sql(f"CREATE ROLE {name} {attributes}")
    if not _may_act_as_owner(connection) and may_create:
        connection.exec_driver_sql(f"GRANT {OWNER_ROLE} TO CURRENT_USER")
    if not _may_act_as_owner(connection):
        raise RefusedToStart(f"This login may not act as the owner. Have an administrator run: GRANT {OWNER_ROLE} TO <this login>.")
    _open_schema(connection)


def ensure_login(connection: sa.Connection) -> None:
    """The embedded server's login: it inherits nothing, and takes one of its two roles for each transaction."""
    if LOGIN_ROLE not in _present(connection):
        connection.exec_driver_sql(f"CREATE ROLE {LOGIN_ROLE} LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS")
        connection.exec_driver_sql(f"GRANT {APP_ROLE}, {WORKER_ROLE} TO {LOGIN_ROLE}")


def _open_schema(connection: sa.Connection) -> None:
    for role, privilege in ((OWNER_ROLE, "CREATE"), (OWNER_ROLE, "USAGE"), (APP_ROLE, "USAGE"), (WORKER_ROLE, "USAGE")):
        holds = sa.text("SELECT has_schema_privilege(CAST(:role AS name), 'public', :privilege)")
        if not connection.scalar(holds, {"role": role, "privilege": privilege}):
            try:
                with connection.begin_nested():
                    connection.exec_driver_sql(f"GRANT {privilege} ON SCHEMA public TO {role}")
                granted = connection.scalar(holds, {"role": role, "privilege": privilege})
            except sa.exc.ProgrammingError:
                granted = False
            if not granted:
                raise RefusedToStart(
                    f"The schema is not open to {role}. Have an administrator run: GRANT {privilege} ON SCHEMA public TO {role}."
                )


def _present(connection: sa.Connection) -> set[str]:
    names = sa.text("SELECT rolname FROM pg_roles WHERE rolname LIKE 'coatcheck%'")
    return set(connection.scalars(names))


def _may_act_as_owner(connection: sa.Connection) -> bool:
    return bool(connection.scalar(sa.text("SELECT pg_has_role(CAST(:owner AS name), 'MEMBER')"), {"owner": OWNER_ROLE}))
