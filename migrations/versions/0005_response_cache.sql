-- The response cache's tables, frozen: later changes are later revisions.

CREATE TABLE cache_entries (
    tenant_id uuid NOT NULL,
    entry_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    acl text[] NOT NULL,
    session_id uuid,
    scope text NOT NULL,
    sharing text NOT NULL,
    conversation text NOT NULL,
    permission text NOT NULL,
    sources text NOT NULL,
    model text NOT NULL,
    instructions text NOT NULL,
    tools text NOT NULL,
    settings text NOT NULL,
    schema text NOT NULL,
    prompt text NOT NULL,
    frame text,
    guard text,
    embedder text,
    embedding bytea,
    answer bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT pk_cache_entries PRIMARY KEY (tenant_id, entry_id),
    CONSTRAINT fk_cache_entries_tenant_id
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    CONSTRAINT fk_cache_entries_tenant_id_session_id
        FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);
CREATE INDEX ix_cache_entries_tenant_id_scope_prompt ON cache_entries (tenant_id, scope, prompt);
CREATE INDEX ix_cache_entries_tenant_id_prompt ON cache_entries (tenant_id, prompt);
CREATE INDEX ix_cache_entries_tenant_id_sharing_created_at ON cache_entries (tenant_id, sharing, created_at);
CREATE INDEX ix_cache_entries_tenant_id_expires_at ON cache_entries (tenant_id, expires_at);
CREATE INDEX ix_cache_entries_tenant_id_session_id ON cache_entries (tenant_id, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE cache_ties (
    tenant_id uuid NOT NULL,
    tag text NOT NULL,
    entry_id uuid NOT NULL,
    CONSTRAINT pk_cache_ties PRIMARY KEY (tenant_id, tag, entry_id),
    CONSTRAINT fk_cache_ties_tenant_id_entry_id
        FOREIGN KEY (tenant_id, entry_id) REFERENCES cache_entries (tenant_id, entry_id) ON DELETE CASCADE
);
CREATE INDEX ix_cache_ties_tenant_id_entry_id ON cache_ties (tenant_id, entry_id);
