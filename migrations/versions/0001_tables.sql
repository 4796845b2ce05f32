-- The tables of the first revision, frozen: later changes are later revisions.

CREATE TABLE generations (
    generation integer NOT NULL,
    embedder_revision text NOT NULL,
    dimensions integer NOT NULL,
    analyser_revision text NOT NULL,
    fusion jsonb NOT NULL,
    status text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_generations PRIMARY KEY (generation)
);

CREATE TABLE tenants (
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    status text DEFAULT 'active' NOT NULL,
    key_fingerprint text NOT NULL,
    permission_revision bigint DEFAULT '0' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_tenants PRIMARY KEY (tenant_id),
    CONSTRAINT uq_tenants_name UNIQUE (name)
);

CREATE TABLE audit (
    tenant_id uuid NOT NULL,
    audit_id uuid NOT NULL,
    principal_id uuid,
    action text NOT NULL,
    target_kind text NOT NULL,
    target_id text NOT NULL,
    occurred_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_audit PRIMARY KEY (tenant_id, audit_id),
    CONSTRAINT fk_audit_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE issuers (
    issuer text NOT NULL,
    tenant_id uuid NOT NULL,
    jwks_uri text NOT NULL,
    audience text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_issuers PRIMARY KEY (issuer),
    CONSTRAINT fk_issuers_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE outbox (
    tenant_id uuid NOT NULL,
    item_id uuid NOT NULL,
    kind text NOT NULL,
    session_id uuid NOT NULL,
    manifest_id uuid,
    segment_sha256 text,
    attempts integer DEFAULT '0' NOT NULL,
    next_attempt_at timestamptz DEFAULT now() NOT NULL,
    lease_owner text,
    lease_fence bigint DEFAULT '0' NOT NULL,
    lease_until timestamptz,
    quarantined_at timestamptz,
    last_error text,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_outbox PRIMARY KEY (tenant_id, item_id),
    CONSTRAINT fk_outbox_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);
CREATE INDEX ix_outbox_tenant_id_manifest_id ON outbox (tenant_id, manifest_id);
CREATE INDEX ix_outbox_tenant_id_session_id ON outbox (tenant_id, session_id);
CREATE INDEX ix_outbox_tenant_id_next_attempt_at ON outbox (tenant_id, next_attempt_at);

CREATE TABLE principals (
    tenant_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    name text NOT NULL,
    subject text,
    status text DEFAULT 'active' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_principals PRIMARY KEY (tenant_id, principal_id),
    CONSTRAINT uq_principals_tenant_id_subject UNIQUE (tenant_id, subject),
    CONSTRAINT fk_principals_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE sessions (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    name text NOT NULL,
    owner_id uuid NOT NULL,
    visibility text NOT NULL,
    participants uuid[] DEFAULT '{}' NOT NULL,
    acl text[] NOT NULL,
    writers text[] NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    erased_at timestamptz,
    CONSTRAINT pk_sessions PRIMARY KEY (tenant_id, session_id),
    CONSTRAINT fk_sessions_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);
CREATE INDEX ix_sessions_tenant_id_created_at_session_id ON sessions (tenant_id, created_at, session_id);
CREATE UNIQUE INDEX uq_sessions_tenant_id_owner_id_name ON sessions (tenant_id, owner_id, name) WHERE erased_at IS NULL;

CREATE TABLE teams (
    tenant_id uuid NOT NULL,
    team_id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_teams PRIMARY KEY (tenant_id, team_id),
    CONSTRAINT fk_teams_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE tombstones (
    tenant_id uuid NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    session_id uuid,
    manifest_id uuid,
    acl text[] NOT NULL,
    erased_at timestamptz NOT NULL,
    CONSTRAINT pk_tombstones PRIMARY KEY (tenant_id, kind, key),
    CONSTRAINT fk_tombstones_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE api_keys (
    tenant_id uuid NOT NULL,
    key_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    name text NOT NULL,
    secret_hash bytea NOT NULL,
    key_version integer DEFAULT '1' NOT NULL,
    operations text[] NOT NULL,
    sessions uuid[],
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT pk_api_keys PRIMARY KEY (tenant_id, key_id),
    CONSTRAINT fk_api_keys_tenant_id_principal_id
        FOREIGN KEY (tenant_id, principal_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
);

CREATE TABLE blobs (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    sha256 text NOT NULL,
    media_type text,
    raw bytea NOT NULL,
    stored_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_blobs PRIMARY KEY (tenant_id, session_id, sha256),
    CONSTRAINT fk_blobs_tenant_id_session_id
        FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);

CREATE TABLE memberships (
    tenant_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    team_id uuid NOT NULL,
    role text DEFAULT 'member' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_memberships PRIMARY KEY (tenant_id, principal_id, team_id),
    CONSTRAINT fk_memberships_tenant_id_principal_id
        FOREIGN KEY (tenant_id, principal_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE,
    CONSTRAINT fk_memberships_tenant_id_team_id
        FOREIGN KEY (tenant_id, team_id) REFERENCES teams (tenant_id, team_id) ON DELETE CASCADE
);

CREATE TABLE runs (
    tenant_id uuid NOT NULL,
    manifest_id uuid NOT NULL,
    session_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    parent_manifest_id uuid,
    idempotency_key text NOT NULL,
    request_digest text NOT NULL,
    status text NOT NULL,
    lease_owner text,
    lease_fence bigint DEFAULT '0' NOT NULL,
    lease_until timestamptz,
    window_format text NOT NULL,
    max_handoff_chars integer NOT NULL,
    handoff_text bytea NOT NULL,
    handoff_sha256 text NOT NULL,
    handoff bytea NOT NULL,
    counts jsonb NOT NULL,
    revisions jsonb NOT NULL,
    warnings jsonb NOT NULL,
    timings_ms jsonb NOT NULL,
    passages integer DEFAULT '0' NOT NULL,
    generation integer DEFAULT '0' NOT NULL,
    created_at timestamptz NOT NULL,
    acknowledged_at timestamptz,
    erased_at timestamptz,
    CONSTRAINT pk_runs PRIMARY KEY (tenant_id, manifest_id),
    CONSTRAINT fk_runs_tenant_id_session_id
        FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);
CREATE INDEX ix_runs_tenant_id_lease_until ON runs (tenant_id, lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX ix_runs_tenant_id_session_id_created_at ON runs (tenant_id, session_id, created_at);
CREATE INDEX ix_runs_tenant_id_session_id_handoff_sha256 ON runs (tenant_id, session_id, handoff_sha256);
CREATE UNIQUE INDEX uq_runs_tenant_id_principal_id_session_id_idempotency_key ON runs (tenant_id, principal_id, session_id, idempotency_key);

CREATE TABLE segments (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    sha256 text NOT NULL,
    raw bytea,
    chars integer NOT NULL,
    rule_revision text NOT NULL,
    stored_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_segments PRIMARY KEY (tenant_id, session_id, sha256),
    CONSTRAINT fk_segments_tenant_id_session_id
        FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);
CREATE INDEX ix_segments_tenant_id_sha256 ON segments (tenant_id, sha256 text_pattern_ops) WHERE raw IS NOT NULL;

CREATE TABLE entries (
    tenant_id uuid NOT NULL,
    manifest_id uuid NOT NULL,
    ordinal integer NOT NULL,
    session_id uuid NOT NULL,
    message_index integer NOT NULL,
    part_index integer NOT NULL,
    segment_index integer NOT NULL,
    role text NOT NULL,
    kind text NOT NULL,
    encoding text NOT NULL,
    segment_sha256 text,
    blob_sha256 text,
    handoff_manifest_id uuid,
    frame_before bytea NOT NULL,
    frame_after bytea NOT NULL,
    call_id text,
    group_id text,
    name bytea,
    occurred_at timestamptz,
    is_system_field boolean NOT NULL,
    chars integer NOT NULL,
    route text NOT NULL,
    reason text NOT NULL,
    protection text,
    CONSTRAINT pk_entries PRIMARY KEY (tenant_id, manifest_id, ordinal),
    CONSTRAINT fk_entries_tenant_id_manifest_id
        FOREIGN KEY (tenant_id, manifest_id) REFERENCES runs (tenant_id, manifest_id) ON DELETE CASCADE,
    CONSTRAINT fk_entries_tenant_id_session_id_segment_sha256
        FOREIGN KEY (tenant_id, session_id, segment_sha256) REFERENCES segments (tenant_id, session_id, sha256),
    CONSTRAINT fk_entries_tenant_id_session_id_blob_sha256
        FOREIGN KEY (tenant_id, session_id, blob_sha256) REFERENCES blobs (tenant_id, session_id, sha256)
);
CREATE INDEX ix_entries_tenant_id_session_id_blob_sha256 ON entries (tenant_id, session_id, blob_sha256)
    WHERE blob_sha256 IS NOT NULL;
CREATE INDEX ix_entries_tenant_id_session_id_segment_sha256 ON entries (tenant_id, session_id, segment_sha256)
    WHERE segment_sha256 IS NOT NULL;

CREATE TABLE projections (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    segment_sha256 text NOT NULL,
    generation integer NOT NULL,
    passages integer NOT NULL,
    content_version text NOT NULL,
    context_manifest_id uuid NOT NULL,
    context_ordinal integer NOT NULL,
    projected_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_projections PRIMARY KEY (tenant_id, session_id, segment_sha256, generation),
    CONSTRAINT fk_projections_tenant_id_session_id_segment_sha256
        FOREIGN KEY (tenant_id, session_id, segment_sha256) REFERENCES segments (tenant_id, session_id, sha256) ON DELETE CASCADE
);

CREATE TABLE reductions (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    exact_sha256 text NOT NULL,
    reducer_revision text NOT NULL,
    raw bytea NOT NULL,
    sha256 text NOT NULL,
    verdicts jsonb NOT NULL,
    stored_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_reductions PRIMARY KEY (tenant_id, session_id, exact_sha256, reducer_revision),
    CONSTRAINT fk_reductions_tenant_id_session_id_exact_sha256
        FOREIGN KEY (tenant_id, session_id, exact_sha256) REFERENCES segments (tenant_id, session_id, sha256) ON DELETE CASCADE
);
