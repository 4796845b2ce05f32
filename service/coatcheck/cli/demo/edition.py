"""The name of the demo's session, one for each edition of what decides: a folder that another one filled has nothing to replay."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import coatcheck
import coatcheck_client

_STORY = "demo/staging-incident"
_DIGITS = 8
_COMPILED = "__pycache__"


def session_name(revisions: Mapping[str, str]) -> str:
    """The same for the same code and the same ``revisions`` (``Planner.revisions``).

    The embedder is none of it: it finds texts and decides none, so that the handoff stays what it was under another one.
    """
    packages = [Path(place) for package in (coatcheck, coatcheck_client) for place in package.__path__]
    decided = json.dumps([digest_of(packages), dict(revisions)], sort_keys=True)
    return f"{_STORY}-{hashlib.sha256(decided.encode()).hexdigest()[:_DIGITS]}"


def digest_of(folders: list[Path]) -> str:
    """Of every file's place and bytes, without what Python compiled from them."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(file for file in folder.rglob("*") if file.is_file() and _COMPILED not in file.parts):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
