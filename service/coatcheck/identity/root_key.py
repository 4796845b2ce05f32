"""The root key: 32 bytes that every other key is derived from. Never in the database, an export or a log."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from pathlib import Path

from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity import private_file
from coatcheck.ops.folders import sync_folder

ROOT_KEY_BYTES = 32
RETIRED = ".retired-"
"""What the names of earlier keys' files end in, before some digits of their hash."""
NEXT = ".next"


def parse(text: str) -> bytes:
    """A root key written as 64 hex digits, or in base64 (either alphabet, padded or not).

    Raises RefusedToStart, without repeating the text.
    """
    compact = text.strip()
    key = bytes.fromhex(compact) if re.fullmatch(r"[0-9a-fA-F]{64}", compact) else _from_base64(compact)
    if len(key) != ROOT_KEY_BYTES:
        raise RefusedToStart("The root key is not 32 bytes in hex or base64.")
    return key


def load(path: Path) -> bytes:
    """The key in a file. Raises RefusedToStart when the file is missing, holds no key, or others can read it."""
    try:
        text = private_file.read(path).decode("ascii")
    except UnicodeDecodeError as error:
        raise RefusedToStart(f"The file {path} holds no root key.") from error
    return parse(text)


def load_or_create(path: Path) -> bytes:
    """The key in a file, drawn at random and written (mode 0600) when there is no such file yet."""
    if not path.exists():
        private_file.create(path, secrets.token_hex(ROOT_KEY_BYTES).encode() + b"\n")
    return load(path)


def replace(path: Path) -> None:
    """A new key in the place of a file's. The old one is kept beside it first, under a name of its own; then the new one counts.

    A crash in between leaves the old key where it was, and perhaps a new one that the next call puts in its place.
    """
    old = load(path)
    private_file.create(path.with_name(f"{path.name}{RETIRED}{hashlib.sha256(old).hexdigest()[:16]}"), old.hex().encode() + b"\n")
    following = path.with_name(f"{path.name}{NEXT}")
    load_or_create(following)
    following.replace(path)
    sync_folder(path.parent)


def _from_base64(text: str) -> bytes:
    padded = text.rstrip("=")
    padded += "=" * (-len(padded) % 4)
    try:
        return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedToStart("The root key is not 32 bytes in hex or base64.") from error
