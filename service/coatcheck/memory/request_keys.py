"""What a request is recognised by when it comes again: keyed digests, under today's root key and under those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.domain.canonical import JsonValue, to_sorted_bytes
from coatcheck.identity.context import RequestContext
from coatcheck.identity.keyring import Keyring
from coatcheck_client.wire import CompactionRequest


@dataclass(frozen=True, slots=True)
class RequestKey:
    """``key`` names the request, ``digest`` covers all of it: another digest under the same key is another request."""

    key: str
    digest: str


def request_keys(
    keyring: Keyring, context: RequestContext, request: CompactionRequest, idempotency_key: str | None
) -> Sequence[RequestKey]:
    """Today's first; then as earlier root keys gave it."""
    raw, found = to_sorted_bytes(_plain(request)), []
    for version in keyring.versions:
        digest = keyring.request_digest(context.tenant_id, raw, version)
        supplied = f"key:{idempotency_key}" if idempotency_key is not None else f"digest:{digest}"
        material = to_sorted_bytes([str(context.principal_id), request.session, supplied])
        found.append(RequestKey(keyring.request_digest(context.tenant_id, material, version), digest))
    return found


def _plain(request: CompactionRequest) -> JsonValue:
    """The request as JSON: what is digested. The window's messages stand in it as they came."""
    plain: dict[str, JsonValue] = request.model_dump(mode="json", exclude={"window": {"messages", "system"}})
    window = plain["window"]
    assert isinstance(window, dict)
    return {**plain, "window": {**window, "messages": request.window.messages, "system": request.window.system}}
