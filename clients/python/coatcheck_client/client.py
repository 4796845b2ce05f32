"""The clients: ``Coatcheck`` blocks, ``AsyncCoatcheck`` awaits. Both are thin; the operations are flows, written once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

import httpx

from coatcheck_client import caching, delegating, operations, receipts
from coatcheck_client.discovery import locate
from coatcheck_client.errors import CannotBeSent, ServiceUnreachable
from coatcheck_client.exporting import LastLine
from coatcheck_client.flows import Flow, Pause, RetryPolicy, Send, with_retries
from coatcheck_client.methods import Awaiting as _Awaiting
from coatcheck_client.methods import Blocking as _Blocking
from coatcheck_client.operating import AwaitingOperator, BlockingOperator

T = TypeVar("T")

CHUNK_BYTES = 256 * 1024
_TIMEOUT = httpx.Timeout(connect=10, read=operations.DEFAULT_DEADLINE_S + operations.DEADLINE_SLACK_S, write=60, pool=60)


class Coatcheck(BlockingOperator):
    """The blocking client. Without a URL and a key it finds the local service (``discovery.locate``). Safe to share by threads."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        data_dir: Path | None = None,
        retries: RetryPolicy | None = None,
    ) -> None:
        place = locate(url, api_key, directory=data_dir)
        self._retries = retries or RetryPolicy()
        self._http = httpx.Client(base_url=place.url, headers=_headers(place.api_key), transport=transport, timeout=_TIMEOUT)

    compact = _Blocking(operations.compact)
    recall = _Blocking(operations.recall)
    manifest = _Blocking(operations.manifest)
    entry_page = _Blocking(operations.entry_page)
    entries = _Blocking(operations.entries)
    window = _Blocking(operations.window)
    segment = _Blocking(operations.segment)
    session_page = _Blocking(operations.session_page)
    sessions = _Blocking(operations.sessions)
    session = _Blocking(operations.session)
    change_session = _Blocking(operations.change_session)
    erase_session = _Blocking(operations.erase_session)
    erase_manifest = _Blocking(operations.erase_manifest)
    erase_session_with_receipt = _Blocking(receipts.erase_session_with_receipt)
    erase_manifest_with_receipt = _Blocking(receipts.erase_manifest_with_receipt)
    erasure = _Blocking(receipts.erasure)
    verify_receipt = _Blocking(receipts.verify_receipt)
    import_file = _Blocking(operations.import_file)
    readiness = _Blocking(operations.readiness)
    is_alive = _Blocking(operations.is_alive)
    mcp_message = _Blocking(operations.mcp_message)
    delegate = _Blocking(delegating.delegate)
    delegations = _Blocking(delegating.delegations)
    revoke_delegation = _Blocking(delegating.revoke_delegation)
    cache_lookup = _Blocking(caching.cache_lookup)
    cache_store = _Blocking(caching.cache_store)
    cache_purge = _Blocking(caching.cache_purge)
    cache_stats = _Blocking(caching.cache_stats)

    def export(self, session_id: UUID | str) -> Iterator[bytes]:
        """A session's export (NDJSON) as it arrives, in chunks that need not end at a line's end. Raises ExportCutOff."""
        response = self.run(operations.export_session(session_id))
        try:
            last = LastLine()
            for chunk in _reachable(response.iter_bytes()):
                last.see(chunk)
                yield chunk
            last.require_whole()
        finally:
            response.close()

    def run(self, flow: Flow[T]) -> T:
        """Carries out a flow, blocking. Raises what the flow raises, and ServiceUnreachable."""
        steps = with_retries(flow, self._retries)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    response = self._send(step)
                except ServiceUnreachable as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Coatcheck:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _send(self, step: Send) -> httpx.Response:
        content = step.body if step.upload is None else _chunks_of(step.upload)
        request = _written(self._http, step, content)
        try:
            response = self._http.send(request, stream=step.stream)
            if step.stream and not response.is_success:
                response.read()
        except httpx.LocalProtocolError as error:
            raise CannotBeSent(f"the request cannot be written: {error}") from error
        except httpx.HTTPError as error:
            raise _unreachable(error) from error
        return response


class AsyncCoatcheck(AwaitingOperator):
    """The awaiting client. Without a URL and a key it finds the local service (``discovery.locate``)."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        data_dir: Path | None = None,
        retries: RetryPolicy | None = None,
    ) -> None:
        place = locate(url, api_key, directory=data_dir)
        self._retries = retries or RetryPolicy()
        self._http = httpx.AsyncClient(base_url=place.url, headers=_headers(place.api_key), transport=transport, timeout=_TIMEOUT)

    compact = _Awaiting(operations.compact)
    recall = _Awaiting(operations.recall)
    manifest = _Awaiting(operations.manifest)
    entry_page = _Awaiting(operations.entry_page)
    entries = _Awaiting(operations.entries)
    window = _Awaiting(operations.window)
    segment = _Awaiting(operations.segment)
    session_page = _Awaiting(operations.session_page)
    sessions = _Awaiting(operations.sessions)
    session = _Awaiting(operations.session)
    change_session = _Awaiting(operations.change_session)
    erase_session = _Awaiting(operations.erase_session)
    erase_manifest = _Awaiting(operations.erase_manifest)
    erase_session_with_receipt = _Awaiting(receipts.erase_session_with_receipt)
    erase_manifest_with_receipt = _Awaiting(receipts.erase_manifest_with_receipt)
    erasure = _Awaiting(receipts.erasure)
    verify_receipt = _Awaiting(receipts.verify_receipt)
    import_file = _Awaiting(operations.import_file)
    readiness = _Awaiting(operations.readiness)
    is_alive = _Awaiting(operations.is_alive)
    mcp_message = _Awaiting(operations.mcp_message)
    delegate = _Awaiting(delegating.delegate)
    delegations = _Awaiting(delegating.delegations)
    revoke_delegation = _Awaiting(delegating.revoke_delegation)
    cache_lookup = _Awaiting(caching.cache_lookup)
    cache_store = _Awaiting(caching.cache_store)
    cache_purge = _Awaiting(caching.cache_purge)
    cache_stats = _Awaiting(caching.cache_stats)

    async def export(self, session_id: UUID | str) -> AsyncIterator[bytes]:
        """A session's export (NDJSON) as it arrives, in chunks that need not end at a line's end. Raises ExportCutOff."""
        response = await self.run(operations.export_session(session_id))
        try:
            last = LastLine()
            async for chunk in response.aiter_bytes():
                last.see(chunk)
                yield chunk
            last.require_whole()
        except httpx.HTTPError as error:
            raise _unreachable(error) from error
        finally:
            await response.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Carries out a flow. Raises what the flow raises, and ServiceUnreachable."""
        steps = with_retries(flow, self._retries)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    response = await self._send(step)
                except ServiceUnreachable as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncCoatcheck:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def _send(self, step: Send) -> httpx.Response:
        content = step.body if step.upload is None else _chunks_awaited(step.upload)
        request = _written(self._http, step, content)
        try:
            response = await self._http.send(request, stream=step.stream)
            if step.stream and not response.is_success:
                await response.aread()
        except httpx.LocalProtocolError as error:
            raise CannotBeSent(f"the request cannot be written: {error}") from error
        except httpx.HTTPError as error:
            raise _unreachable(error) from error
        return response


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Accept": "application/json", **({"Authorization": f"Bearer {api_key}"} if api_key else {})}


def _written(http: httpx.Client | httpx.AsyncClient, step: Send, content: Any) -> httpx.Request:
    """The step as a request. Raises CannotBeSent."""
    try:
        return http.build_request(step.method, step.path, content=content, **_options(step))
    except (UnicodeError, httpx.InvalidURL) as error:
        raise CannotBeSent(f"the request cannot be written: {_without_its_words(error)}") from error


def _without_its_words(error: Exception) -> str:
    """What is wrong, without what it is about: an address that cannot be written may be megabytes long."""
    return error.reason if isinstance(error, UnicodeEncodeError) else str(error)[:200]


def _options(step: Send) -> dict[str, Any]:
    timeout = _TIMEOUT.as_dict() | ({} if step.read_timeout_s is None else {"read": step.read_timeout_s})
    return {"params": dict(step.params) or None, "headers": dict(step.headers), "timeout": httpx.Timeout(**timeout)}


def _unreachable(error: httpx.HTTPError) -> ServiceUnreachable:
    # The message of an httpx error names the cause, never a header or a body.
    url = error.request.url
    where = f"{url.scheme}://{url.netloc.decode('ascii')}"  # without a user's name and password
    hint = "; is it running, and is this its address?" if isinstance(error, httpx.ConnectError) else ""
    return ServiceUnreachable(f"the service at {where} did not answer: {error or type(error).__name__}{hint}")


def _reachable(chunks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from chunks
    except httpx.HTTPError as error:
        raise _unreachable(error) from error


def _chunks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


async def _chunks_awaited(path: Path) -> AsyncIterator[bytes]:
    chunks = _chunks_of(path)
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
