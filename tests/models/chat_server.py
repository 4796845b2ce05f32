"""A chat endpoint on this machine for tests: it answers what it is told, as it is told, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class ChatServer:
    """``chunk_pause_s`` is slept between single bytes of the body."""

    url: str = ""
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    chunk_pause_s: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The questions as they came: path, headers in lower case, document."""

    def says(self, text: str, finish_reason: str = "stop") -> None:
        message = {"role": "assistant", "content": text}
        self.body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}).encode()


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    made = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            document = json.loads(self.rfile.read(length))
            headers = {name.lower(): value for name, value in self.headers.items()}
            made.asked.append({"path": self.path, "headers": headers, "document": document})
            time.sleep(made.pause_s)
            with suppress(OSError):  # the client may have gone
                self._answer()

        def _answer(self) -> None:
            self.send_response(made.status)
            for name, value in {"Content-Length": str(len(made.body)), **made.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if not made.chunk_pause_s:
                self.wfile.write(made.body)
                return
            for byte in made.body:
                self.wfile.write(bytes((byte,)))
                self.wfile.flush()
                time.sleep(made.chunk_pause_s)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
