"""A web server on this machine for tests: answers with what it is told, and counts."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(slots=True)
class WebServer:
    """``answer`` is sent whole, head included, for each request; ``pause_s`` before it."""

    port: int = 0
    answer: bytes = b""
    pause_s: float = 0.0
    requests: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jwks"

    def says(self, body: bytes, status: str = "200 OK", **headers: str) -> None:
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.answer = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{head}\r\n".encode() + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            self.asked.set()
            await asyncio.sleep(self.pause_s)
            writer.write(self.answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def certificate(folder: Path) -> Path:
    """A certificate of 127.0.0.1 and its key, in one file; signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    address, now = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), datetime.now(UTC)
    begins, ends = now - timedelta(days=1), now + timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begins, ends)
    signed = made.add_extension(address, critical=True).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    file = folder / "certificate.pem"
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


@asynccontextmanager
async def web_server(secure: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    made = WebServer()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=secure)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
