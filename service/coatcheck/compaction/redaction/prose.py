"""Secrets told in sentences: what may be one, and what is only a word."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.assignments import is_code, is_strong
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.shapes import (
    character_classes,
    is_algorithm_or_number,
    is_hash_or_uuid,
    is_identifier,
    is_opaque,
    is_path_or_url,
    is_placeholder,
    word_share,
)
from coatcheck.compaction.redaction.values import Found, Value, read, read_bare

_NAME = re.compile(
    r"(?i)(pass(?:word|phrase|code|wd)s?|pwd|pw|tokens?|secrets?|credentials?|creds|logins?"
    r"|(?:api|access|secret|private|license|encryption|signing)[ _-]?(?:key|token|code|secret)s?)\b(?P<between>[^\n]{0,200})\Z"
)
_DIRECT = re.compile(r"[\"'`*]*\s*(?:is|are|was|=|:|->|=>|→|—|–|-)[\s\"'`*(]*")
"""Nothing between a name and its value but what says that it is: a hash behind anything more is a hash."""
_WEAK_CONNECTION = re.compile(r"(?i)\b(?:to|as|be)\s*[\"'`(*]*\Z")
_CHANGE = re.compile(r"(?i)\b(?:set|reset|changed|updated|rotated|use[ds]?|entered|typed)\b")


def told(text: str, start: int) -> Found:
    """``the password for staging is ...``, ``API key: ...``."""
    value = _read(text, start)
    name = _NAME.search(text, max(0, start - 260), start)
    if name is None or not _could_be_told(value.text):
        return None
    name_class, kind = classify(name[1].replace(" ", "_").rstrip("s"))
    between = name["between"]
    if between[:1] in ('"', "'") or text[max(0, name.start() - 2) : name.start()] == "::":
        return None  # an object's key: an assignment, and judged as one
    if is_hash_or_uuid(value.text) and not _DIRECT.fullmatch(between):
        return None
    if _WEAK_CONNECTION.search(between) and not (_CHANGE.search(text, max(0, start - 100), start) or is_opaque(value.text, 12)):
        return None
    if name_class is NameClass.PASSWORD or name[1].lower().startswith(("login", "cred")):
        direct = len(between.split()) <= 1
        return (value, kind or "password") if len(value.text) >= 5 and _is_told_password(value.text, direct=direct) else None
    return (value, kind or "secret") if is_opaque(value.text, 8) or is_hash_or_uuid(value.text) else None


def adjacent(text: str, start: int) -> Found:
    """``here is my key ...``: nothing says that it is one but its name and its form."""
    value = _read(text, start)
    if not _could_be_told(value.text) or is_hash_or_uuid(value.text) or not is_opaque(value.text, 16):
        return None
    return (value, "key") if any(is_opaque(piece, 10) for piece in _PIECES.split(value.text)) else None


def below(text: str, start: int) -> Found:
    """``Here is the password:`` and it alone on a line below; behind ``is``, ``was`` and ``to`` also at a line's beginning."""
    value = _read(text, start)
    name = _NAME.search(text[max(0, start - 260) : start].replace("\n", " "))
    if name is None or not _could_be_told(value.text) or is_hash_or_uuid(value.text):
        return None
    alone = _ALONE.match(text, value.end) is not None
    if not alone and not _SAID.search(name["between"]):
        return None
    name_class, kind = classify(name[1].replace(" ", "_").rstrip("s"))
    if name_class is NameClass.PASSWORD:
        varied = is_opaque(value.text, 8) or character_classes(value.text) >= 3
        return (value, kind) if len(value.text) >= 6 and varied and _is_told_password(value.text, direct=True) else None
    return (value, kind or "secret") if is_opaque(value.text, 12 if alone else 16) else None


def told_abroad(text: str, start: int) -> Found:
    """As ``told``, in a language in which the rule alone knows the name."""
    value = _read(text, start)
    if not _could_be_told(value.text):
        return None
    return (value, "password") if len(value.text) >= 4 and (is_strong(value.text) or is_opaque(value.text, 12)) else None


def told_before(text: str, start: int) -> Found:
    """``... is the admin password``."""
    value = _read(text, start)
    if len(value.text) < 6 or not _could_be_told(value.text):
        return None
    return (value, "password") if _is_told_password(value.text, direct=False) else None


def quoted(text: str, start: int) -> Found:
    """``the password is "swordfish"``: quotes make a word a value."""
    value = read(text, start)
    content = value.text
    if not value.quote or is_placeholder(content) or is_path_or_url(content) or " " in content or is_code(content):
        return None
    if is_identifier(content) and ("_" in content or not content.islower()) and not is_strong(content):
        return None
    return value, "password"


def passphrase(text: str, start: int) -> Found:
    """``passphrase: correct-horse-battery-staple``."""
    value = read_bare(text, start)
    return None if is_placeholder(value.text) or value.text.count("-") < 2 else (value, "passphrase")


def seed_phrase(text: str, start: int) -> Found:
    """Twelve words and more behind "seed phrase" or "mnemonic"."""
    found = re.compile(r"(?:[a-z]{3,8} +){11,23}[a-z]{3,8}").match(text, start)
    return (Value(start, found.end(), found[0]), "seed-phrase") if found else None


_ALONE = re.compile(r"[\"'`*.]*[ \t]*(?:\r?\n|\Z)")
_SAID = re.compile(r"(?i)\b(?:is|are|was|to)\s*[\"'`*]*\Z")
_PIECES = re.compile(r"[-_./]")


def _read(text: str, start: int) -> Value:
    value = read(text, start)
    if value.quote:
        return value
    trimmed = value.text.rstrip("*_.,:;)")
    return Value(value.start, value.start + len(trimmed), trimmed)


def _could_be_told(content: str) -> bool:
    return not (is_placeholder(content) or is_path_or_url(content) or is_code(content) or is_algorithm_or_number(content))


def _is_told_password(content: str, *, direct: bool) -> bool:
    if not is_strong(content):
        return False
    pieces = [piece for piece in re.split(r"[-_./]", content) if piece]
    looks_named = len(pieces) > 1 and all(piece.isdigit() or word_share(piece) >= 0.7 for piece in pieces)
    return not looks_named or (direct and not content.islower())
