"""Whether the value under a name is a secret, by the name, the value's form, and how the text writes the two."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.setting import TYPES, Setting
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
from coatcheck.compaction.redaction.values import Value

_CALL_OR_INDEX = re.compile(r"[A-Za-z_$][\w$.]*(?:\(|\[|->|::|\?\.|\?\?|\|\|).*|[&*!][A-Za-z_$][\w$.]*|[+\-*/%<>=|&^~!]=?.{0,2}")
_MEMBER = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+")
_NUMBERS = re.compile(r"[0-9.,:/ -]+")
_TOKEN_LETTERS = re.compile(r"[\w+/=.~:@%,!$#*&^-]+")
_TAG = re.compile(r"[0-9a-f]{4,16}\Z")
_WORD_AND_NUMBER = re.compile(r"[a-z_]+[0-9]{1,2}\Z")
_MESSAGE_WORD = re.compile(
    r"(?i)\b(?:password|passphrase|secret|token|key|your|you|enter|please|must|should|required|invalid|incorrect|wrong|the|is|are|was|"
    r"not|for|with|to|of|and|or|this|that|new|confirm|forgot|reset|change|at least|characters?|cannot|can't|failed|error)\b"
)


def kind_of_secret(value: Value, setting: Setting) -> str | None:
    """The kind of secret that a value is under its name, or None when it is none."""
    name_class, kind = classify(setting.name)
    text = value.text
    if name_class is NameClass.NOTHING or is_placeholder(text) or setting.is_template or (_TAG.match(text) and setting.in_marker):
        return None
    if not value.quote and not setting.in_connection_string and is_code(text, setting):
        return None
    if name_class is NameClass.PASSWORD:
        return kind if _is_password(value, setting) else None
    if name_class is NameClass.SECRET:
        return kind if _is_made(value, setting) else None
    if setting.in_query and kind == "signature":
        return kind if len(text) >= 16 else None
    return kind if _is_opaque_key(value, setting) else None


def kind_under_key(key: str, text: str) -> str | None:
    """As ``kind_of_secret``, for the value of an object's key."""
    return kind_of_secret(Value(0, len(text), text, '"'), Setting(key))


def is_code(text: str, setting: Setting | None = None) -> bool:
    """Whether an unquoted value is an expression of code and not a literal."""
    wordy = word_share(text) >= 0.4
    from_shell = setting is not None and setting.is_environment
    if _CALL_OR_INDEX.fullmatch(text) and (wordy or not from_shell):
        return True
    if (_MEMBER.fullmatch(text) and wordy) or text.endswith(("(", "[", "{")):
        return True
    if text[:1] in "([{<" and not text.startswith("[REDACTED:"):
        return True
    return setting is not None and setting.ends_like_code and is_identifier(text) and not _has_digit(text)


def is_strong(text: str) -> bool:
    """Whether a value shows by its characters that it is no word of a language: letters beside digits or signs."""
    letters = sum(char.isalpha() for char in text)
    digits = sum(char.isdigit() for char in text)
    signs = len(text) - letters - digits - text.count("_") - text.count("-") - text.count(".") - text.count("/") - text.count(" ")
    if digits and letters:
        return not (_WORD_AND_NUMBER.match(text) and classify(text)[0] is not NameClass.NOTHING)
    if signs and (letters or digits >= 4):
        return not text.endswith((":", "?")) and (character_classes(text) >= 3 or digits >= 4)
    return is_opaque(text, 12)


def _is_password(value: Value, setting: Setting) -> bool:
    text = value.text
    vague_name = setting.name.lower().lstrip("-") in ("pass", "pw")
    if len(text) < 4 or is_path_or_url(text):
        return False
    if setting.separator in _NO_ASSIGNMENT:
        if not value.quote or " " in text or is_algorithm_or_number(text):
            return False
        return _says_password(setting.name) and _has_digit(text) and character_classes(text) >= 3
    if value.quote:
        return is_strong(text) if vague_name else _is_quoted_password(text)
    if setting.is_environment:
        return setting.is_upper or setting.in_query or not is_name(text)
    if text.isdigit():
        return not vague_name and (len(text) > 6 or not setting.is_quoted)
    if is_strong(text):
        could_be_a_variable = is_identifier(text) and (setting.spaced or setting.ends_like_code)
        return not could_be_a_variable or setting.ends_line or is_opaque(text, 8)
    if not (setting.at_line_start and setting.ends_line and len(text) >= 6):
        return False
    if text.lower() in TYPES or not text.islower() or is_name(text):
        return False
    return (setting.separator == ":" and not _MESSAGE_WORD.search(text)) or setting.in_section


def _is_quoted_password(text: str) -> bool:
    if " " in text.strip():
        return not _MESSAGE_WORD.search(text) and len(text) <= 100 and not text.endswith((".", ":", "?"))
    if is_strong(text):
        return True
    return not (text.istitle() or is_name(text))


def _is_made(value: Value, setting: Setting) -> bool:
    text = value.text
    if is_path_or_url(text) or (_NUMBERS.fullmatch(text) and len(text) < 24) or not _TOKEN_LETTERS.fullmatch(text):
        return False
    if setting.separator in _NO_ASSIGNMENT:
        return (
            bool(value.quote) and _has_digit(text) and (is_opaque(text, 12) or (is_hash_or_uuid(text) and setting.separator != "("))
        )
    if setting.is_environment and setting.is_upper:
        if len(text) < 6 or (text.isupper() and is_identifier(text) and not is_opaque(text, 10)):
            return False
        return text.isalnum() or is_opaque(text, 8) or (is_strong(text) and word_share(text) < 0.5)
    if len(text) < 8:
        return False
    if is_opaque(text, 8) or is_hash_or_uuid(text):
        return not (is_identifier(text) and not value.quote and word_share(text) >= 0.7)
    if value.quote or (setting.at_line_start and setting.ends_line):
        return is_strong(text) and word_share(text) < 0.85 and not _looks_numbered(text)
    return False


def _is_opaque_key(value: Value, setting: Setting) -> bool:
    text = value.text
    if (
        setting.separator in _NO_ASSIGNMENT
        or (is_hash_or_uuid(text) and not _is_sessions(value, setting))
        or is_path_or_url(text)
        or not _TOKEN_LETTERS.fullmatch(text)
        or _NUMBERS.fullmatch(text)
    ):
        return False
    if setting.is_environment and setting.is_upper:
        return is_opaque(text, 10) and (_has_digit(text) or word_share(text) < 0.3)
    if setting.in_query or _is_sessions(value, setting):
        return is_opaque(text, 12)
    if not is_opaque(text, 16) or _looks_numbered(text) or not any(is_opaque(piece, 8) for piece in _PIECES.split(text)):
        return False
    return bool(value.quote) or not is_identifier(text) or setting.ends_line


def _is_sessions(value: Value, setting: Setting) -> bool:
    """``sessionid=`` and hex digits, as cookies are written; a UUID is what logs call a session by."""
    return classify(setting.name)[1] == "session-id" and setting.separator == "=" and not setting.spaced and "-" not in value.text


def is_name(text: str) -> bool:
    """A word, or words run together, that name a secret instead of being one: ``user_password``, ``challengePassword``."""
    return word_share(text) >= 0.7 and classify(text)[0] in (NameClass.PASSWORD, NameClass.SECRET) and len(text) > 3


def _has_digit(text: str) -> bool:
    return any(char.isdigit() for char in text)


def _says_password(name: str) -> bool:
    return re.search(r"(?i)passw(?:or)?d|passphrase|pwd", name) is not None


def _looks_numbered(text: str) -> bool:
    """A name with a number in it (``my-service-v2``, ``sha256_of_file``), a version, a date."""
    pieces = [piece for piece in _PIECES.split(text) if piece]
    return len(pieces) > 1 and sum(piece.isdigit() or word_share(piece) >= 0.7 for piece in pieces) * 3 >= len(pieces) * 2


_NO_ASSIGNMENT = ("==", "===", "!=", ",", "(")
_PIECES = re.compile(r"[_./:@-]")
