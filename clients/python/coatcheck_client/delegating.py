"""Credentials for agents: made, listed, revoked. Each function is a flow."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from coatcheck_client.flows import Flow, Send, at_page, every_page, json_body, read, request, without_nulls
from coatcheck_client.operations import JSON
from coatcheck_client.wire import DelegationOut, DelegationPage


def delegate(
    name: str,
    *,
    operations: Sequence[str],
    audience: Sequence[str] = ("api", "mcp"),
    sessions: Sequence[UUID | str] | None = None,
    expires_in_s: int | None = None,
) -> Flow[DelegationOut]:
    """Makes a credential that does less than one's own, for a day at most. ``credential`` in the answer is shown this once."""
    body = without_nulls(
        name=name,
        operations=list(operations),
        audience=list(audience),
        sessions=None if sessions is None else [str(one) for one in sessions],
        expires_in_s=expires_in_s,
    )
    return (yield from read(Send("POST", "/v1/delegations", json_body(body), headers=JSON), DelegationOut))


def delegations() -> Flow[list[DelegationOut]]:
    """One's own, without their secrets; for a delegate, those that it has made."""
    return (
        yield from every_page(
            lambda token: read(Send("GET", "/v1/delegations", params=at_page(token)), DelegationPage), lambda page: page.delegations
        )
    )


def revoke_delegation(delegation_id: UUID | str) -> Flow[None]:
    """Revokes a delegate at once, and all that was made with it."""
    yield from request(Send("DELETE", f"/v1/delegations/{delegation_id}"))
