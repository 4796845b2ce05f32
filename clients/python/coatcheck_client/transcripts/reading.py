"""Which reader a file needs, told by the shape of what is in it, never by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coatcheck_client.errors import TranscriptError
from coatcheck_client.transcripts import chat, claude_code, codex
from coatcheck_client.transcripts.transcript import Transcript


def read_transcript(path: Path | str) -> Transcript:
    """Reads a file. Raises TranscriptError, which names it, when it cannot be read or is of no known shape."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise TranscriptError(f"cannot read {path}: {error.strerror or type(error).__name__}") from error
    try:
        return parse_transcript(raw)
    except TranscriptError as error:
        raise TranscriptError(f"{path}: {error}") from error


def parse_transcript(raw: bytes) -> Transcript:
    """Reads a transcript from its bytes: one JSON document, or JSON lines. Raises TranscriptError."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TranscriptError("a transcript is JSON in UTF-8; this is not UTF-8") from error
    if not text.strip():
        raise TranscriptError("the file is empty")
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise TranscriptError("the JSON is nested too deeply") from error
    except ValueError:
        return _from_lines(text)
    # A log with a single line is a document and a line at the same time.
    if isinstance(document, dict) and (claude_code.is_record(document) or codex.is_record(document) or chat.is_message(document)):
        return _from_lines(text)
    return chat.from_document(document)


def _from_lines(text: str) -> Transcript:
    records, warnings = _lines(text)
    if any(claude_code.is_record(record) for record in records):
        return claude_code.from_records(records, warnings)
    if any(codex.is_record(record) for record in records):
        return codex.from_records(records, warnings)
    return chat.from_records(records, warnings)


def _lines(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    records: list[dict[str, Any]] = []
    # Not splitlines(): U+2028 and its like stand unescaped inside JSON strings.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    for position, (number, line) in enumerate(lines):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            if position == len(lines) - 1 and records:
                return records, [f"line {number}, the last, is cut off and was left out"]
            raise TranscriptError(f"neither one JSON document nor JSON lines: line {number} is no JSON") from error
        if not isinstance(record, dict):
            raise TranscriptError(f"line {number} holds no JSON object")
        records.append(record)
    return records, []
