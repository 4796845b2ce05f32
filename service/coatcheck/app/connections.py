"""Connections that cost something and bring nothing are ended: heads that do not arrive, answers that nobody reads.

Neither is seen by the app: the one has no request yet, and the other's request is answered as far as the app knows.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with an end to waiting. Times in seconds."""

    head_s: ClassVar[float] = 20.0
    """How long a request's head may take, from the connection's first moment or the end of the answer before."""
    reading_pause_s: ClassVar[float] = 30.0
    """How long a client may take for what ``reading_bytes_per_s`` gives it in that time."""
    reading_bytes_per_s: ClassVar[float] = 8 * 1024

    _head_timer: TimerHandle | None = None
    _reading_timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look_for_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look_for_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_awaiting()
        self._stop_watching()
        super().connection_lost(exc)

    def _look_for_request(self) -> None:
        if self._is_between_requests():
            self._await_head()
        else:
            self._stop_awaiting()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._give_up_head)

    def _give_up_head(self) -> None:
        self._head_timer = None
        if self._is_between_requests():
            self.transport.close()

    def _watch_reading(self) -> None:
        self._stop_watching()
        unread = self.transport.get_write_buffer_size()
        self._reading_timer = self.loop.call_later(self.reading_pause_s, self._give_up_reading, unread)

    def _give_up_reading(self, unread_before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread_before - unread < min(unread_before, self.reading_pause_s * self.reading_bytes_per_s):
            self.transport.abort()  # ``close`` would wait for the client, and keep what it does not read
        else:
            self._watch_reading()

    def _stop_awaiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_watching(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None
