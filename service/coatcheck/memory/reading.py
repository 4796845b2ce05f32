"""Read by manifest and by hash: the run, its entries in the window's order, the window itself, one segment."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from uuid import UUID

from coatcheck.compaction.window import rebuild
from coatcheck.domain.canonical import decode
from coatcheck.domain.entries import Entry
from coatcheck.domain.errors import Erased, InvalidRequest, NotFound
from coatcheck.domain.runs import Run
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.access import run_by_id, was_erased
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.presenting import Presenter
from coatcheck.memory.responses import entry_response, manifest_response
from coatcheck.store import entries, runs, segments
from coatcheck.store.database import ReadTransaction
from coatcheck.store.segments import StoredSegment
from coatcheck_client.wire import EntryPage, ManifestOut, SegmentOut, WindowOut

SHA256_DIGITS = 64
MIN_PREFIX_DIGITS = 12
_HEX = re.compile(r"[0-9a-f]+")


class Reading:
    """The use cases behind ``/v1/manifests`` and ``/v1/segments``. Unknown and foreign are one answer."""

    def __init__(self, parts: Collaborators, presenter: Presenter) -> None:
        self._parts = parts
        self._presenter = presenter

    async def manifest(self, context: RequestContext, manifest_id: UUID) -> ManifestOut:
        context.require(Operation.READ)
        run, session = await self._parts.database.read(context.scope, lambda tx: run_by_id(context, tx, manifest_id))
        return manifest_response(await self._presenter.run(context, run), session.name)

    async def entries(
        self, context: RequestContext, manifest_id: UUID, page_size: int, page_token: str | None, with_text: bool
    ) -> EntryPage:
        context.require(Operation.READ)
        cursor = self._parts.keyring.cursor(context.tenant_id)
        after = int(cursor.open("entries", str(manifest_id), page_token)) if page_token else -1

        async def work(tx: ReadTransaction) -> tuple[Run, list[Entry], dict[str, StoredSegment]]:
            run, _ = await run_by_id(context, tx, manifest_id)
            page = await entries.page(tx, manifest_id, after, page_size + 1)
            shas = list({entry.segment_sha256 for entry in page if entry.segment_sha256})
            return run, page, await segments.find(tx, run.session_id, shas)

        run, page, stored = await self._parts.database.read(context.scope, work)
        more = len(page) > page_size
        page = page[:page_size]
        out = []
        for entry in page:
            row = stored.get(entry.segment_sha256 or "")
            shown = with_text and row is not None and row.is_whole
            text = (await self._presenter.present(context, row, run.session_id)).text if shown and row else None
            out.append(entry_response(await self._presenter.entry(context, run, entry), row.reduction if row else None, text))
        token = cursor.seal("entries", str(manifest_id), str(page[-1].ordinal)) if more else None
        return EntryPage(entries=out, next_page_token=token)

    async def window(self, context: RequestContext, manifest_id: UUID) -> WindowOut:
        """The redacted window rebuilt; text that the run dropped is marked, an erased handoff too."""
        context.require(Operation.READ)
        run, rows, texts = await self._parts.database.read(context.scope, lambda tx: self._window(context, tx, manifest_id))
        shown: dict[str, str] = dict(texts.blobs)
        shown |= {sha: decode(row.segment.raw) for sha, row in texts.stored.items() if row.is_whole}
        for earlier in texts.earlier:
            shown[str(earlier.manifest_id)] = (await self._presenter.run(context, earlier)).handoff.text
        system, messages = await asyncio.to_thread(rebuild, rows, lambda entry: _text_of(entry, shown))
        system, messages = await self._presenter.window(context, run, system, messages)
        return WindowOut(format=run.window_format, system=system, messages=messages)

    async def segment(self, context: RequestContext, digits: str) -> SegmentOut:
        """By the whole hash, or by 12 or more of its first digits where they name one segment of all the caller may read."""
        context.require(Operation.READ)
        digits = digits.lower()
        if not _HEX.fullmatch(digits) or not MIN_PREFIX_DIGITS <= len(digits) <= SHA256_DIGITS:
            raise NotFound
        keys = await self._parts.database.read(context.scope, lambda tx: segments.by_prefix(tx, digits, context.sessions))
        if len({sha for _, sha in keys}) > 1:
            raise InvalidRequest("These digits name more than one segment: give more of them.")

        async def work(tx: ReadTransaction) -> SegmentOut:
            found = await segments.find_keys(tx, keys)
            newest = await entries.newest_for(tx, keys)
            candidates = [(newest[key], found[key], key) for key in keys if key in found and found[key].is_whole and key in newest]
            if not candidates:
                raise Erased if await self._was_erased(context, tx, digits) else NotFound
            entry, row, key = max(candidates, key=lambda one: one[1].stored_at)
            shown = await self._presenter.present(context, row, key[0])
            reduced = await self._presenter.present(context, row, key[0], "reduced") if row.reduction else None
            return SegmentOut(
                sha256=row.segment.sha256,
                text=shown.text,
                chars=row.segment.chars,
                session_id=key[0],
                manifest_id=entry.manifest_id,
                ordinal=entry.ordinal,
                role=entry.role,
                kind=entry.kind.value,
                reduced_sha256=row.reduction.sha256 if row.reduction else None,
                reduced_text=reduced.text if reduced else None,
                stored_at=row.stored_at,
            )

        return await self._parts.database.read(context.scope, work)

    async def _was_erased(self, context: RequestContext, tx: ReadTransaction, digits: str) -> bool:
        """Whether the whole hash names what was erased from a session that the caller could read."""
        for version in self._parts.keyring.versions:
            if await was_erased(context, tx, "segment", self._parts.keyring.segment_tag(context.tenant_id, digits, version)):
                return True
        return False

    async def _window(self, context: RequestContext, tx: ReadTransaction, manifest_id: UUID) -> tuple[Run, list[Entry], _Texts]:
        run, _ = await run_by_id(context, tx, manifest_id)
        rows = await entries.all(tx, manifest_id)
        stored = await segments.find(tx, run.session_id, list({e.segment_sha256 for e in rows if e.segment_sha256}))
        blobs = await segments.blob_texts(tx, run.session_id, list({e.blob_sha256 for e in rows if e.blob_sha256}))
        manifests = {e.handoff_manifest_id for e in rows if e.handoff_manifest_id}
        earlier = [found for manifest in manifests if (found := await runs.find(tx, manifest)) is not None]
        return run, rows, _Texts(stored, {sha: decode(raw) for sha, raw in blobs.items()}, earlier)


@dataclass(frozen=True, slots=True)
class _Texts:
    """What a window's entries refer to: segments and blobs by hash, earlier handoffs by their runs."""

    stored: dict[str, StoredSegment]
    blobs: dict[str, str]
    earlier: list[Run]


def _text_of(entry: Entry, shown: dict[str, str]) -> str | None:
    key = entry.segment_sha256 or entry.blob_sha256 or (str(entry.handoff_manifest_id) if entry.handoff_manifest_id else None)
    return shown.get(key) if key else None
