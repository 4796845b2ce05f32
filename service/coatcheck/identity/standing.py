"""What a credential allows now: asked when a request comes in, and again before rights are handed on. Nothing else decides it."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from coatcheck.domain.errors import Unauthenticated
from coatcheck.identity.context import Credential, RequestContext
from coatcheck.identity.ports import RightsRecord


def context_of(credential: Credential, rights: RightsRecord, now: datetime) -> RequestContext:
    """The context of who has proven the credential. Raises Unauthenticated where it does not stand, or not at its door."""
    if rights.expires_at is not None:
        credential = dataclasses.replace(credential, expires_at=rights.expires_at)
    is_over = credential.is_over(now) or rights.revoked_at is not None
    if is_over or not (rights.principal_active and rights.tenant_active and credential.door in rights.doors):
        raise Unauthenticated
    operations = rights.role.grants if rights.operations is None else rights.operations & rights.role.ceiling
    return RequestContext(
        tenant_id=rights.tenant_id,
        principal_id=rights.principal_id,
        credential=credential,
        operations=operations if credential.scope is None else operations & credential.scope,
        sessions=rights.sessions,
        teams=rights.teams,
        permission_revision=rights.permission_revision,
        own_revision=rights.own_revision,
    )
