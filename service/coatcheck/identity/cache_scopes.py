"""The response cache's scopes: a verified context and what is known of an answer's circumstances, or the name of what is not.

A private scope takes the caller's word for its circumstances, since only that caller's own answers are at stake. Its permission
holds all that the credential may do: an answer made with wider rights is none for a narrower credential of the same principal.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.errors import Forbidden
from coatcheck.domain.response_cache import CACHE_SCHEMA, CacheScope, Dimension, Dimensions, Fingerprint, Sharing, Stated, Ties
from coatcheck.identity.context import RequestContext
from coatcheck.identity.fingerprints import Fingerprints

_ASKED = (
    Dimension.CONVERSATION,
    Dimension.SOURCES,
    Dimension.MODEL,
    Dimension.INSTRUCTIONS,
    Dimension.TOOLS,
    Dimension.SETTINGS,
)


def require_sharing(context: RequestContext, sharing: Sharing) -> None:
    """Raises Forbidden for a sharing scope that the caller is not in; a credential kept to some sessions is in its own alone."""
    if sharing.team_id is not None and sharing.team_id not in context.teams:
        raise Forbidden("You are not a member of that team.")
    if not sharing.is_private and context.sessions is not None:
        raise Forbidden("The credential is kept to some sessions.")


def cache_scope(
    context: RequestContext,
    prints: Fingerprints,
    sharing: Sharing,
    stated: Stated,
    ties: Ties,
    rules: str,
) -> CacheScope | Dimension:
    """The scope, or the first dimension that is unknown. ``rules``: the revision of the redaction that an answer passed.

    Raises Forbidden as ``require_sharing``.
    """
    require_sharing(context, sharing)
    for dimension in _ASKED:
        if getattr(stated, dimension.value) is None:
            return dimension
    owner = sharing.acl_key(context.principal_id)
    dimensions = Dimensions(
        sharing=prints.of("sharing", owner),
        conversation=prints.of("conversation", stated.conversation),
        permission=prints.of("permission", _permission(context, sharing)),
        sources=prints.of("sources", stated.sources),
        model=prints.of("model", stated.model),
        instructions=prints.of("instructions", stated.instructions),
        tools=prints.of("tools", stated.tools),
        settings=prints.of("settings", stated.settings),
        schema=schema_print(prints, rules),
    )
    return CacheScope(context.scope, sharing, dimensions, prints.of("scope", dimensions.as_json()), ties)


def schema_print(prints: Fingerprints, rules: str) -> Fingerprint:
    """What an entry is and was checked by."""
    return prints.of("schema", {"cache": CACHE_SCHEMA, "redaction": rules})


def prompt_print(prints: Fingerprints, owner: str, label: str, value: JsonValue) -> Fingerprint:
    """A fingerprint of a prompt, or of a part of it, that means nothing outside of its sharing scope.

    Bob's index entries for a prompt are therefore not those of Alice's for the same one: his look-up never walks over hers.
    """
    return prints.of(label, {"owner": owner, "value": value})


def conversation_tag(prints: Fingerprints, principal_id: UUID, session: UUID | str) -> Fingerprint:
    """What an entry of a conversation is purged by: a session's id, or a principal's own name for a conversation of its own."""
    if isinstance(session, UUID):
        return prints.of("tie", {"resource": str(session)})
    return prints.of("tie", {"conversation": session, "principal": str(principal_id)})


def source_tags(prints: Fingerprints, source_ids: Sequence[str]) -> tuple[Fingerprint, ...]:
    """What entries that rest on a source are purged by. A session or manifest of ours is named by its id."""
    return tuple(prints.of("tie", {"resource": source_id}) for source_id in source_ids)


def _permission(context: RequestContext, sharing: Sharing) -> JsonValue:
    if not sharing.is_private:
        return {"revision": context.permission_revision}
    return {
        "revision": context.own_revision,
        "operations": [*sorted(context.operations)],
        "sessions": None if context.sessions is None else [*sorted(map(str, context.sessions))],
        "teams": [*sorted(map(str, context.teams))],
    }
