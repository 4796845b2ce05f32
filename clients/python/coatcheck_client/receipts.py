"""What a client asks about what was erased: receipts, and whether one is true. Each function is a flow."""

from __future__ import annotations

from uuid import UUID

from coatcheck_client.flows import Flow, Send, json_body, read
from coatcheck_client.operations import JSON
from coatcheck_client.wire import ErasureOut, VerifiedOut

RECEIPT = {"receipt": "true"}


def erase_session_with_receipt(session_id: UUID | str) -> Flow[ErasureOut]:
    """As ``erase_session``, with the erasure's receipt; the same receipt again for what is erased already."""
    return (yield from read(Send("DELETE", f"/v1/sessions/{session_id}", params=RECEIPT), ErasureOut))


def erase_manifest_with_receipt(manifest_id: UUID | str) -> Flow[ErasureOut]:
    """As ``erase_manifest``, with the erasure's receipt; the same receipt again for what is erased already."""
    return (yield from read(Send("DELETE", f"/v1/manifests/{manifest_id}", params=RECEIPT), ErasureOut))


def erasure(erasure_id: UUID | str) -> Flow[ErasureOut]:
    """The receipt of an erasure."""
    return (yield from read(Send("GET", f"/v1/erasures/{erasure_id}"), ErasureOut))


def verify_receipt(receipt: ErasureOut) -> Flow[bool]:
    """Whether the service wrote this receipt, every field of it, for the caller's tenant."""
    body = json_body(receipt.model_dump(mode="json"))
    return (yield from read(Send("POST", "/v1/erasures/verify", body, headers=JSON), VerifiedOut)).valid
