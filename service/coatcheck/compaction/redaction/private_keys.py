"""Private keys in PEM and their kin, whole, however a transcript bent them: escaped, numbered, quoted, cut off at either end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

Span = tuple[int, int]
MAX_KEY_CHARS = 40_000
_LABEL = r"(?:[A-Z0-9]{2,12} ){0,4}PRIVATE KEY(?: BLOCK)?"
_BEGIN = re.compile(rf"-{{2,}} ?BEGIN {_LABEL} ?-{{2,}}|PuTTY-User-Key-File-[0-9]")
_END = re.compile(rf"-{{2,}} ?END {_LABEL} ?-{{2,}}|Private-MAC: [0-9a-f]+")
_BARE_START = re.compile(
    # The first bytes of PKCS#8, PKCS#1, SEC 1, Ed25519 and OpenSSH private keys, in base64: a body whose BEGIN line is gone.
    r"(?:MII[A-Za-z0-9+/]{2,5}IBADANBgkqhkiG9w0BAQEFAASC|MII[A-Za-z0-9+/]{2,3}IBAAK[A-Za-z0-9+/]|MHcCAQEE|MIGkAgEBBD|MIHcAgEBBE"
    r"|MIGHAgEAMBMGByqGSM49|MIG2AgEAMBAGByqGSM49|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXktdjE)"
)
_BREAK = re.compile(r"\r?\n|\\+r\\+n|\\+n|\\+u000[aA]|\\+u000[dD]\\+u000[aA]")
_NOISE_BEFORE = re.compile(
    r"""\s*(?:[\w./-]{1,200}[:-](?=[0-9]))?(?:[0-9]{1,7}\s*[\t:|→│.)-]\s*|[0-9]{1,7}\s+)?(?:[+\-<>|#*]\s*)*["'`]?"""
)
_NOISE_AFTER = " \t\r\n\"'`,;+\\|)"
_BODY = re.compile(r"[A-Za-z0-9+/=]+(?:[ \t]+[A-Za-z0-9+/=]{4,})*\Z")
_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Encryption|Public-Lines|Private-Lines|Private-Hash|Key-Derivation"
    r"|Argon2-[A-Za-z]+|MessageID|Subject|X-[\w-]+): ?.*\Z"
)
_RUN = re.compile(r"[A-Za-z0-9+/]{16}")
_LEADING_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_FULL_LINE = 40
_MAX_LINES = 600


def find_private_keys(text: str) -> list[tuple[int, int]]:
    """The spans of the private keys in a text, in order, none inside another."""
    begins = [found.span() for found in _BEGIN.finditer(text)]
    ends = [found.span() for found in _END.finditer(text)]
    spans = _with_begin(text, begins, ends)
    spans += _with_end_alone(text, ends, spans)
    spans += _without_markers(text, spans)
    return sorted(spans)


def _with_begin(text: str, begins: list[Span], ends: list[Span]) -> list[Span]:
    """Keys that have their BEGIN line: to their END line, or as far as a key's lines go."""
    spans: list[Span] = []
    for number, (begin, body) in enumerate(begins):
        if spans and begin < spans[-1][1]:
            continue
        next_begin = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        at = bisect_left(ends, (body, 0))
        if at < len(ends) and ends[at][0] <= min(next_begin, body + MAX_KEY_CHARS):
            if _RUN.search(text, body, ends[at][0]):
                spans.append((begin, ends[at][1]))
        else:
            last = _last_of_body(text, body)
            if last:
                spans.append((begin, last))
    return spans


def _with_end_alone(text: str, ends: list[Span], spans: list[Span]) -> list[Span]:
    """Keys of which only the end is here."""
    found: list[Span] = []
    previous = 0
    for end, stop in ends:
        low, previous = max(previous, end - MAX_KEY_CHARS), stop
        if any(start <= end < reached for start, reached in spans):
            continue
        first = _first_of_body(text, low, end)
        if first is not None and _RUN.search(text, first, end):
            found.append((first, stop))
    return found


def _without_markers(text: str, spans: list[Span]) -> list[Span]:
    """Keys of which neither end is here, known by the first bytes of their body."""
    found: list[Span] = []
    for start in (match.start() for match in _BARE_START.finditer(text)):
        if any(low <= start < high for low, high in spans) or (found and start < found[-1][1]):
            continue
        last = _last_of_body(text, start)
        if last and last - start >= _FULL_LINE:
            found.append((start, last))
    return found


def _last_of_body(text: str, start: int) -> int | None:
    """Where the last line of the key's body ends that begins at ``start``; None when nothing of a key follows."""
    last = None
    blank = 0
    before = 0
    for number, (line_start, line_end) in enumerate(_lines(text, start, len(text), _MAX_LINES)):
        line, offset = _stripped(text, line_start, line_end)
        if not line:
            blank += 1
            if blank > 3:
                break
        elif _BODY.match(line) and _belongs(line, before):
            last, blank, before = offset + len(line), 0, 0 if line.endswith("=") else len(line)
        elif not _HEADER.match(line):
            run = _LEADING_RUN.match(line)
            if run and (before >= _FULL_LINE or number <= 1):
                last = offset + run.end()
            break
    return last


def _first_of_body(text: str, low: int, end: int) -> int | None:
    """Where the first line of the key's body begins that ends at ``end``."""
    first = None
    for line_start, line_end in reversed(list(_lines(text, low, end, MAX_KEY_CHARS))):
        line, offset = _stripped(text, line_start, line_end)
        if not line and first is None:
            continue
        if _BODY.match(line) and (len(line) >= _FULL_LINE or first is None or line_start == 0):
            first = offset
            continue
        head = len(line.rstrip(_BASE64))
        return offset + head if len(line) - head >= _FULL_LINE else first
    return first


def _belongs(line: str, before: int) -> bool:
    """Whether a line of base64 letters is one of a key's: a full one, or the short one that ends it."""
    if len(line) >= _FULL_LINE:
        return True
    is_word = line.isalpha() and (line.islower() or line.istitle())
    return before >= _FULL_LINE and not is_word and " " not in line


def _lines(text: str, start: int, stop: int, most: int) -> Iterator[Span]:
    position = start
    for _ in range(most):
        found = _BREAK.search(text, position, stop)
        yield position, found.start() if found else stop
        if not found:
            return
        position = found.end()


def _stripped(text: str, start: int, end: int) -> tuple[str, int]:
    """A line without what numbering, diffs, quotes and concatenation put around it, and where the rest begins."""
    line = text[start : min(end, start + MAX_KEY_CHARS)]
    noise = _NOISE_BEFORE.match(line)
    offset = noise.end() if noise else 0
    return line[offset:].rstrip(_NOISE_AFTER), start + offset
