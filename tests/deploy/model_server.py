"""A small OpenAI-compatible server over real HTTP, which misbehaves as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class ModelServer:
    """What it answers. ``answers`` counts chat completions; from the ``fails_from``-th on they are as ``wrong`` says."""

    status: int = 200
    text: str | None = "An essay."
    finish_reason: str | None = "stop"
    takes_s: float = 0.2
    body: str | None = None
    """In the place of a chat completion."""
    wrong_from: int = 0
    """How many answers are right before those above count."""
    restarts_at: int | None = None
    """Tells of another start of the process from this answer on."""
    dies_at: int | None = None
    """Says that its engine is dead from this answer on."""
    tells_its_start: bool = True
    trickles: bool = False
    """``/health`` never ends its answer, and says a byte now and then."""
    models: str = json.dumps({"data": [{"id": "tiny"}]})
    answers: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self) -> int:
        with self.lock:
            self.answers += 1
            return self.answers

    @contextmanager
    def running(self) -> Iterator[ModelServer]:
        server = _Server(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield self
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has given up is no news here."""


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = server.answers
            if self.path == "/v1/models":
                self._answer(200, server.models)
            elif self.path == "/metrics" and server.tells_its_start:
                again = server.restarts_at is not None and now >= server.restarts_at
                self._answer(200, f"# HELP x y\nprocess_start_time_seconds {2.0 if again else 1.0}\n")
            elif self.path == "/health" and server.trickles:
                self._trickle()
            elif self.path == "/health":
                self._answer(503 if server.dies_at is not None and now >= server.dies_at else 200, "")
            else:
                self._answer(404, "")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            right = server.answered() <= server.wrong_from
            time.sleep(0.2 if right else server.takes_s)
            text, reason = ("An essay.", "stop") if right else (server.text, server.finish_reason)
            completion = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}]})
            self._answer(200 if right else server.status, completion if right or server.body is None else server.body)

        def _trickle(self) -> None:
            """The head of an answer, a byte at a time."""
            for char in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 600:
                self.wfile.write(bytes([char]))
                time.sleep(0.1)

        def _answer(self, status: int, body: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    return Handler
