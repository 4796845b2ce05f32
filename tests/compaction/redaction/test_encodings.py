"""Secrets inside of encodings: escapes of every notation, Base64 that is wrapped, unpadded or twice over, hex digits."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import textwrap

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes, left_of

FAKES = Fakes(81)
GITHUB, PASSWORD, OPAQUE = FAKES.github(), FAKES.password(14), FAKES.opaque(40)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def url_b64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def escaped(text: str, form: str) -> str:
    return "".join(form.format(ord(char)) for char in text)


FILE = f"# settings of the first stage\nhost = db.example\npassword = {PASSWORD}\nport = 5432\npool = 16\nretries = 3\n"
DOCUMENT = json.dumps({"user": "app", "password": PASSWORD})
MAP = {"version": 3, "sources": ["a.ts"], "mappings": "AAAA"}
BYTES = ", ".join(f"0x{ord(char):02x}" for char in GITHUB)
CODES = ",".join(str(ord(char)) for char in GITHUB)
ENCODED = {
    "octal": (f"printf '{escaped(GITHUB, chr(92) + '{:03o}')}'", escaped(GITHUB, "\\{:03o}")),
    "octal of a name and a value": (f"$'{escaped('DB_PASSWORD=' + PASSWORD, chr(92) + '{:03o}')}'", escaped(PASSWORD, "\\{:03o}")),
    "hex escapes": (f"b'{escaped(GITHUB, chr(92) + 'x{:02x}')}'", escaped(GITHUB, "\\x{:02x}")),
    "hex escapes, doubled": (json.dumps(f"b'{escaped(GITHUB, chr(92) + 'x{:02x}')}'"), escaped(GITHUB, "\\\\x{:02x}")),
    "unicode escapes": (f'"{escaped("password=" + PASSWORD, chr(92) + "u{:04x}")}"', escaped(PASSWORD, "\\u{:04x}")),
    "unicode escapes in braces": (f"`{escaped(GITHUB, chr(92) + 'u{{{:x}}}')}`", escaped(GITHUB, "\\u{{{:x}}}")),
    "long unicode escapes": (f"'{escaped(GITHUB, chr(92) + 'U{:08x}')}'", escaped(GITHUB, "\\U{:08x}")),
    "percent": (f"?p={escaped('token=' + GITHUB, '%{:02x}')}", escaped(GITHUB, "%{:02x}")),
    "percent u": (f"escape: {escaped(GITHUB, '%u{:04x}')}", escaped(GITHUB, "%u{:04x}")),
    "hex digits": (f"payload {GITHUB.encode().hex()} sent", GITHUB.encode().hex()),
    "hex digits of a variable": (f"0x{f'API_TOKEN={OPAQUE}'.encode().hex()}", OPAQUE.encode().hex()),
    "hex digits of a password": (f"xxd -p: {f'password={PASSWORD}'.encode().hex()}", PASSWORD.encode().hex()),
    "bytes with spaces": (f"dump {f'password={PASSWORD}'.encode().hex(' ')} end", PASSWORD.encode().hex(" ")),
    "bytes with colons": (f"token:\n{GITHUB.encode().hex(':')}", GITHUB.encode().hex(":")),
    "bytes of C": (f"{{{BYTES}}};", BYTES),
    "codes of characters": (f"String.fromCharCode({CODES})", CODES),
    "base64 without padding": (f"x {b64(f'API_TOKEN={OPAQUE}x').rstrip('=')} y", b64(f"API_TOKEN={OPAQUE}x").rstrip("=")[16:]),
    "base64 of a password": (f"echo {b64(f'DB_PASSWORD={PASSWORD}')} | base64 -d", b64(f"DB_PASSWORD={PASSWORD}")[16:]),
    "base64 for URLs": (f"state={url_b64(f'password: {PASSWORD}')}", url_b64(f"password: {PASSWORD}")[16:]),
    "base64 for URLs without padding": (f"/cb/{url_b64(f'?~?>token={GITHUB}')}/x", url_b64(f"?~?>token={GITHUB}")[16:]),
    "base64 twice": (f"blob: {b64(b64(f'GITHUB_TOKEN={GITHUB}'))}", b64(b64(f"GITHUB_TOKEN={GITHUB}"))[30:]),
    "base64 three times": (f"blob: {b64(b64(b64(GITHUB)))}", b64(b64(b64(GITHUB)))[30:]),
    "base64 of hex": (f"blob: {b64(GITHUB.encode().hex())}", b64(GITHUB.encode().hex())[30:]),
    "hex of base64": (f"blob: {b64(f'password={PASSWORD}').encode().hex()}", b64(f"password={PASSWORD}").encode().hex()[30:]),
    "base64 of a whole file, wrapped at 76": ("\n".join(textwrap.wrap(b64(FILE), 76)), b64(FILE)[76:140]),
    "base64 of a whole file, wrapped at 64 and indented": (
        "data:\n" + textwrap.indent("\n".join(textwrap.wrap(b64(FILE), 64)), "    "),
        b64(FILE)[64:120],
    ),
    "base64 wrapped inside of JSON": (json.dumps({"out": "\n".join(textwrap.wrap(b64(FILE), 76))}), b64(FILE)[76:140]),
    "base64 of JSON": (f"cfg={b64(DOCUMENT)}", b64(DOCUMENT)[40:56]),
    "base64 in a query": (f"?b={b64(f'password={PASSWORD}').replace('=', '%3D')}", b64(f"password={PASSWORD}").rstrip("=")[16:]),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCODED)
def test_an_encoded_secret_goes(redactor: Redactor, name: str) -> None:
    text, secret = ENCODED[name]
    assert secret in text

    redacted = redactor.redact_text(text, KEYS).text

    assert left_of(secret, redacted) <= max(8, len(secret) // 4)
    assert redactor.redact_text(redacted, KEYS).text == redacted


RNG = random.Random(82)
NOTES = "The build was started again and nothing in its output told why it had stopped; see the runbook of the team. " * 3
PLAIN = {
    "a picture": f"data:image/png;base64,{base64.b64encode(RNG.randbytes(600)).decode()}",
    "base64 of notes": f"body: {b64(NOTES)}",
    "base64 of notes, wrapped": "\n".join(textwrap.wrap(b64(NOTES), 76)),
    "base64 of code": b64("def login(user, password):\n    token = get_token(user)\n    return token\n"),
    "base64 of a manifest": b64("apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: ${DB_PASSWORD}\n"),
    "base64 of a placeholder": b64("API_KEY=your-api-key-here"),
    "base64 of an id": b64("User:0183ab6e-9d1c-7000-8000-5ad2c1f0e9b7"),
    "a cursor": "next: " + b64("cursor:v2:2026-11-29T20:15:00Z"),
    "a commit in base64": b64(f"commit {hashlib.sha1(b'x').hexdigest()}"),
    "hex of notes": NOTES.encode().hex(),
    "hex of a path": b"/usr/share/doc/openssl/changelog.gz".hex(),
    "hashes": "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(60)),
    "long decimal numbers": "232323232323232323232323 4242424242424242424242424242",
    "a hex dump": "\n".join(f"{n * 16:08x}  {RNG.randbytes(16).hex(' ')}" for n in range(8)),
    "a MAC and a fingerprint": "00:1b:44:11:3a:b7 SHA256 43:51:43:a1:b5:fc:8b:b7:0a:3a:a9:b1:0f:66:73:a8:43:51:43:a1",
    "numbers": "[48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74] and 100, 101, 102, 103",
    "bytes of notes": NOTES[:80].encode().hex(" "),
    "a palette": ", ".join(f"0x{n:02x}" for n in range(0x20, 0x60)),
    "octal modes": r"chmod 0755 \1 \2 sed 's/\(a\)\(b\)/\2\1/' \101",
    "windows paths": r"C:\x64\101\u00 C:\Users\bob\151\token.txt",
    "a regular expression": r"^\x1b\[[0-9;]*m|\u{1F600}|[\x20-\x7e]+$",
    "a long identifier": "TheQuickBrownFoxJumpsOverTheLazyDogAndReturnsTheTokenizedInputSequenceWithoutSpecialTokens",
    "an ssh public key": "ssh-rsa " + base64.b64encode(b"\0\0\0\7ssh-rsa" + RNG.randbytes(260)).decode() + " bob@host",
    "integrity": "sha512-" + base64.b64encode(RNG.randbytes(64)).decode(),
    "a source map": "//# sourceMappingURL=data:application/json;base64," + b64(json.dumps(MAP)),
    "a query of GraphQL": b64("query { viewer { login repositories(first: 10) { nodes { name } } } }"),
    "a protobuf": base64.b64encode(b"\x0a\x05hello\x12\x07world12" + RNG.randbytes(40)).decode(),
    "entities": "a &amp; b &lt;password&gt; &#65;&#66; 100%25 %20",
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_encoded_and_no_secret_stays(redactor: Redactor, name: str) -> None:
    assert redactor.redact_text(PLAIN[name], KEYS).text == PLAIN[name]
