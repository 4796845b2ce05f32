"""What the clients offer an operator, beside what everybody asks for: one line for each operation and each way to wait."""

from __future__ import annotations

from coatcheck_client import administration, auditing, issuing, people
from coatcheck_client.flows import Flow
from coatcheck_client.methods import Awaiting, Blocking, T


class BlockingOperator:
    """The operator's part of the blocking client."""

    def run(self, flow: Flow[T]) -> T:
        raise NotImplementedError

    scan = Blocking(administration.scan)
    repair = Blocking(administration.repair)
    reconcile = Blocking(administration.reconcile)
    redact_rescan = Blocking(administration.redact_rescan)
    keys = Blocking(administration.keys)
    create_key = Blocking(administration.create_key)
    revoke_key = Blocking(administration.revoke_key)
    rotate_key = Blocking(administration.rotate_key)
    tenants = Blocking(administration.tenants)
    create_tenant = Blocking(administration.create_tenant)
    tenant_limits = Blocking(administration.tenant_limits)
    set_tenant_limits = Blocking(administration.set_tenant_limits)
    erase_tenant = Blocking(administration.erase_tenant)
    retention = Blocking(administration.retention)
    set_retention = Blocking(administration.set_retention)
    principals = Blocking(people.principals)
    principal = Blocking(people.principal)
    create_principal = Blocking(people.create_principal)
    change_principal = Blocking(people.change_principal)
    teams = Blocking(people.teams)
    create_team = Blocking(people.create_team)
    delete_team = Blocking(people.delete_team)
    memberships = Blocking(people.memberships)
    join_team = Blocking(people.join_team)
    leave_team = Blocking(people.leave_team)
    issuers = Blocking(issuing.issuers)
    create_issuer = Blocking(issuing.create_issuer)
    delete_issuer = Blocking(issuing.delete_issuer)
    audit = Blocking(auditing.audit)


class AwaitingOperator:
    """The operator's part of the awaiting client."""

    async def run(self, flow: Flow[T]) -> T:
        raise NotImplementedError

    scan = Awaiting(administration.scan)
    repair = Awaiting(administration.repair)
    reconcile = Awaiting(administration.reconcile)
    redact_rescan = Awaiting(administration.redact_rescan)
    keys = Awaiting(administration.keys)
    create_key = Awaiting(administration.create_key)
    revoke_key = Awaiting(administration.revoke_key)
    rotate_key = Awaiting(administration.rotate_key)
    tenants = Awaiting(administration.tenants)
    create_tenant = Awaiting(administration.create_tenant)
    tenant_limits = Awaiting(administration.tenant_limits)
    set_tenant_limits = Awaiting(administration.set_tenant_limits)
    erase_tenant = Awaiting(administration.erase_tenant)
    retention = Awaiting(administration.retention)
    set_retention = Awaiting(administration.set_retention)
    principals = Awaiting(people.principals)
    principal = Awaiting(people.principal)
    create_principal = Awaiting(people.create_principal)
    change_principal = Awaiting(people.change_principal)
    teams = Awaiting(people.teams)
    create_team = Awaiting(people.create_team)
    delete_team = Awaiting(people.delete_team)
    memberships = Awaiting(people.memberships)
    join_team = Awaiting(people.join_team)
    leave_team = Awaiting(people.leave_team)
    issuers = Awaiting(issuing.issuers)
    create_issuer = Awaiting(issuing.create_issuer)
    delete_issuer = Awaiting(issuing.delete_issuer)
    audit = Awaiting(auditing.audit)
