"""The triggers that keep the ledger of what is stored: every way in and out of the counted tables, none of them forgotten.

Each statement adds one row to ``stored_usage``, so that writers of one tenant never wait for one another; a worker folds them.
"""

from __future__ import annotations

COUNTED = ("segments", "blobs")
FUNCTION = """
CREATE FUNCTION count_stored() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one bigint := CASE WHEN TG_TABLE_NAME = 'segments' THEN 1 ELSE 0 END;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO stored_usage (tenant_id, segments, bytes)
        SELECT tenant_id, one * count(*), coalesce(sum(octet_length(raw)), 0) FROM new_rows GROUP BY tenant_id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO stored_usage (tenant_id, segments, bytes)
        SELECT tenant_id, -one * count(*), -coalesce(sum(octet_length(raw)), 0) FROM old_rows GROUP BY tenant_id;
    ELSE
        INSERT INTO stored_usage (tenant_id, segments, bytes)
        SELECT tenant_id, one * sum(rows), coalesce(sum(bytes), 0)
          FROM (SELECT tenant_id, 1 AS rows, octet_length(raw) AS bytes FROM new_rows
                UNION ALL
                SELECT tenant_id, -1, -octet_length(raw) FROM old_rows) changed
         GROUP BY tenant_id HAVING sum(rows) <> 0 OR coalesce(sum(bytes), 0) <> 0;
    END IF;
    RETURN NULL;
END $$"""
ANSWERS = "cache_entries"
OF_ANSWERS = """
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
_SEEN = {
    "INSERT": "NEW TABLE AS new_rows",
    "UPDATE": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "DELETE": "OLD TABLE AS old_rows",
}


def statements() -> list[str]:
    """The SQL that puts them on freshly created tables, as their owner."""
    stored = [_trigger(table, event, "count_stored") for table in COUNTED for event in _SEEN]
    return [FUNCTION, OF_ANSWERS, *stored, *(_trigger(ANSWERS, event, "count_answers") for event in _SEEN)]


def _trigger(table: str, event: str, function: str) -> str:
    return (
        f"CREATE TRIGGER count_{event.lower()} AFTER {event} ON {table} REFERENCING {_SEEN[event]}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
    )
