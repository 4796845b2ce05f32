"""Cached answers count among what is stored, the audit names the delegation, and each principal has a permission revision."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0010"
branch_labels = None
depends_on = None

COUNT = """
CREATE FUNCTION count_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO stored_usage (tenant_id, segments, bytes)
        SELECT tenant_id, 0, sum(octet_length(answer)) FROM new_rows GROUP BY tenant_id;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO stored_usage (tenant_id, segments, bytes)
        SELECT tenant_id, 0, -sum(octet_length(answer)) FROM old_rows GROUP BY tenant_id;
    END IF;
    RETURN NULL;
END $$"""
SEEN = {
    "INSERT": "NEW TABLE AS new_rows",
    "UPDATE": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "DELETE": "OLD TABLE AS old_rows",
}


def upgrade() -> None:
    limit_waiting()
    op.execute("ALTER TABLE audit ADD COLUMN delegation_id uuid")
    op.execute("ALTER TABLE principals ADD COLUMN permission_revision bigint DEFAULT '0' NOT NULL")
    op.execute(COUNT)
    for event, seen in SEEN.items():
        op.execute(
            f"CREATE TRIGGER count_{event.lower()} AFTER {event} ON cache_entries REFERENCING {seen}"
            " FOR EACH STATEMENT EXECUTE FUNCTION count_answers()"
        )
    count_what_is_stored("")


def downgrade() -> None:
    limit_waiting()
    count_what_is_stored("-")
    for event in SEEN:
        op.execute(f"DROP TRIGGER count_{event.lower()} ON cache_entries")
    op.execute("DROP FUNCTION count_answers()")
    op.execute("ALTER TABLE principals DROP COLUMN permission_revision")
    op.execute("ALTER TABLE audit DROP COLUMN delegation_id")


def count_what_is_stored(sign: str) -> None:
    """What stands already goes into the ledger, or out of it. Row security is forced on the owner too: lifted meanwhile."""
    for table in ("cache_entries", "stored_usage"):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "INSERT INTO stored_usage (tenant_id, segments, bytes)"
        f" SELECT tenant_id, 0, {sign}sum(octet_length(answer)) FROM cache_entries GROUP BY tenant_id"
    )
    for table in ("cache_entries", "stored_usage"):
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
