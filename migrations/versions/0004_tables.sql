CREATE TABLE tenant_limits (
    tenant_id uuid NOT NULL,
    requests_per_minute double precision,
    bytes_per_minute double precision,
    embedding_seconds_per_minute double precision,
    max_segments bigint,
    max_bytes bigint,
    changed_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_tenant_limits PRIMARY KEY (tenant_id),
    CONSTRAINT fk_tenant_limits_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE stored_usage (
    tenant_id uuid NOT NULL,
    usage_id uuid DEFAULT gen_random_uuid() NOT NULL,
    segments bigint NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT pk_stored_usage PRIMARY KEY (tenant_id, usage_id)
);

CREATE TABLE erasures (
    tenant_id uuid NOT NULL,
    erasure_id uuid NOT NULL,
    kind text NOT NULL,
    target_id uuid NOT NULL,
    session_id uuid,
    owner_id uuid,
    requested_by uuid,
    reason text NOT NULL,
    requested_at timestamptz NOT NULL,
    completed_at timestamptz,
    counts jsonb DEFAULT '{}' NOT NULL,
    journal_mac text,
    key_version integer,
    tag text,
    CONSTRAINT pk_erasures PRIMARY KEY (tenant_id, erasure_id),
    CONSTRAINT fk_erasures_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX uq_erasures_tenant_id_kind_target_id ON erasures (tenant_id, kind, target_id);

CREATE TABLE retention (
    tenant_id uuid NOT NULL,
    visibility text NOT NULL,
    max_age_days integer NOT NULL,
    changed_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_retention PRIMARY KEY (tenant_id, visibility),
    CONSTRAINT fk_retention_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE root_keys (
    version integer NOT NULL,
    fingerprint text NOT NULL,
    introduced_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_root_keys PRIMARY KEY (version),
    CONSTRAINT uq_root_keys_fingerprint UNIQUE (fingerprint)
);

ALTER TABLE tenants ADD COLUMN erasure_tenant_id uuid, ADD COLUMN erasure_id uuid;

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
END $$;

CREATE TRIGGER count_insert AFTER INSERT ON segments REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER count_update AFTER UPDATE ON segments REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER count_delete AFTER DELETE ON segments REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER count_insert AFTER INSERT ON blobs REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER count_update AFTER UPDATE ON blobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER count_delete AFTER DELETE ON blobs REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
