"""Under what an answer is produced: what the caller states, and what the service knows of it itself.

What is kept here is looked up: the session must be readable, and its real revision stands beside the one that was stated. What
is not kept here is the caller's word, good for the caller's own entries; a wider scope takes only what all its readers may read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from uuid import UUID

from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.response_cache import Fingerprint, Sharing, Stated, Ties
from coatcheck.domain.scopes import PUBLIC
from coatcheck.identity.cache_scopes import conversation_tag, source_tags
from coatcheck.identity.context import RequestContext
from coatcheck.identity.fingerprints import Fingerprints
from coatcheck.memory.access import find_session
from coatcheck.store import cache_resources
from coatcheck.store.cache_resources import Resource
from coatcheck.store.database import ReadTransaction
from coatcheck_client.wire import CacheCircumstances

NO_CONVERSATION: JsonValue = {}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that is said and known, and what an entry would be tied to."""

    stated: Stated
    ties: Ties


def stated_alone(prints: Fingerprints, asked: CacheCircumstances) -> Stated:
    """What needs no look at the database; conversation and sources are not known yet.

    Long values are fingerprints already, so that no transaction waits for them.
    """

    def printed(label: str, value: JsonValue) -> JsonValue:
        return None if value is None else prints.of(label, value)

    return Stated(
        conversation=None,
        sources=None,
        model=asked.model,
        instructions=printed("instructions-value", asked.instructions),
        tools=printed("tools-value", asked.tools),
        settings=printed("settings-value", asked.settings),
    )


async def looked_up(
    context: RequestContext,
    tx: ReadTransaction,
    prints: Fingerprints,
    sharing: Sharing,
    asked: CacheCircumstances,
    stated: Stated,
) -> Circumstances:
    """The circumstances with what is kept here. Raises NotFound and Erased for a session's id, as every route does."""
    session = await find_session(context, tx, asked.session) if asked.session else None
    ids = {one for source in asked.sources or () if (one := as_uuid(source.id)) is not None}
    resources = await cache_resources.find(tx, ids | ({session.session_id} if session is not None else set()))
    resources = {key: one for key, one in resources.items() if context.reaches(one.session_id)}
    sources = {_name_of(source.id, resources): source.revision for source in asked.sources or ()}
    own = resources.get(session.session_id) if session is not None else None
    tags: list[Fingerprint] = list(source_tags(prints, list(sources)))
    if asked.session:
        tags.append(conversation_tag(prints, context.principal_id, own.session_id if own is not None else asked.session))
    used = [one for key, one in resources.items() if key in ids] + ([own] if own is not None else [])
    return Circumstances(
        replace(
            stated,
            conversation=_conversation(context, sharing, asked, own),
            sources=_sources(context, sharing, asked, sources, resources),
        ),
        Ties(own.session_id if own is not None else None, tuple(sorted({one.session_id for one in used})), tuple(tags)),
    )


def _conversation(context: RequestContext, sharing: Sharing, asked: CacheCircumstances, own: Resource | None) -> JsonValue:
    if asked.session == "":
        # A credential that is kept to some sessions has no business with what belongs to none.
        return NO_CONVERSATION if context.sessions is None else None
    if asked.session is None or asked.conversation_revision is None:
        return None
    if own is None:
        # A conversation that is not kept here, under the caller's own name for it.
        return {"name": asked.session, "stated": asked.conversation_revision} if _is_own(context, sharing) else None
    if not _reads_for_all(context, sharing, own.acl):
        return None
    return {"session": str(own.session_id), "stated": asked.conversation_revision, "own": own.revision}


def _sources(
    context: RequestContext,
    sharing: Sharing,
    asked: CacheCircumstances,
    sources: dict[str, str | None],
    resources: dict[UUID, Resource],
) -> JsonValue:
    if asked.sources is None or None in sources.values():
        return None
    if len(sources) != len(asked.sources):
        return None  # one source in two revisions: which of them the answer rests on is not known
    known: list[JsonValue] = []
    for name in sorted(sources):
        uuid = as_uuid(name)
        kept = resources.get(uuid) if uuid is not None else None
        if not sharing.is_private and (kept is None or not _reads_for_all(context, sharing, kept.acl)):
            return None
        known.append({"id": name, "stated": sources[name], "own": kept.revision if kept is not None else None})
    return known


def _is_own(context: RequestContext, sharing: Sharing) -> bool:
    return sharing.is_private and context.sessions is None


def _reads_for_all(context: RequestContext, sharing: Sharing, acl: Collection[str]) -> bool:
    """Whether everyone in the sharing scope reads what has this acl; the caller itself does already."""
    return sharing.is_private or PUBLIC in acl or sharing.acl_key(context.principal_id) in acl


def _name_of(source_id: str, resources: Collection[UUID]) -> str:
    """One spelling for each id of ours. Anybody else's is as it was written: what reads as one UUID may be two names."""
    uuid = as_uuid(source_id)
    return str(uuid) if uuid in resources else source_id


def spellings(source_id: str) -> list[str]:
    """What an entry may be tied to that rests on this source, whether it is kept here or not."""
    uuid = as_uuid(source_id)
    return [source_id] if uuid is None else [source_id, str(uuid)]


def as_uuid(text: str) -> UUID | None:
    """The UUID that is meant where one is, however it is written: what is kept here is to be known in any spelling."""
    try:
        return UUID(text)
    except ValueError:
        return None
