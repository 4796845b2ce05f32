"""What an operator asks about token issuers. Each function is a flow."""

from __future__ import annotations

from uuid import UUID

from coatcheck_client.flows import Flow, Send, at_page, every_page, json_body, read, request, without_nulls
from coatcheck_client.operations import JSON
from coatcheck_client.wire import IssuerOut, IssuerPage


def issuers() -> Flow[list[IssuerOut]]:
    """All token issuers of the installation."""
    return (
        yield from every_page(
            lambda token: read(Send("GET", "/v1/admin/issuers", params=at_page(token)), IssuerPage), lambda page: page.issuers
        )
    )


def create_issuer(issuer: str, *, jwks_uri: str, audience: str, tenant_id: UUID | str | None = None) -> Flow[IssuerOut]:
    """Lets an issuer speak for a tenant: one's own, where none is named."""
    body = json_body(without_nulls(issuer=issuer, jwks_uri=jwks_uri, audience=audience, tenant_id=tenant_id))
    return (yield from read(Send("POST", "/v1/admin/issuers", body, headers=JSON), IssuerOut))


def delete_issuer(issuer: str) -> Flow[None]:
    """Its tokens count no more from the next request on."""
    yield from request(Send("DELETE", "/v1/admin/issuers", params={"issuer": issuer}))
