"""Whether the value under a name is a secret, by the name, the value's form, and how the text writes the two."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
from coatcheck.compaction.redaction.values import Value
from coatcheck.compaction.redaction.wordlists import words

LOOK_BACK = 160
_NAME_BACKWARDS = re.compile(r"[\w.$\[\]-]+")
_SPACED_NAME_BACKWARDS = re.compile(r"(?i)(?:yek|nekot|terces|drowssap) [\w.-]+")
_SEPARATORS = ("=>", ":=", "===", "==", "!=", "::", "=", ":", ",", "(")
_BLOCK_SCALAR = re.compile(r":[ \t]*[|>][+-]?[ \t]*\r?\n[ \t]*\Z")
_OPENING = re.compile(r"""[A-Za-z@$]{0,2}\\*["'`]\Z""")
_LINE_START = re.compile(
    r"""(?:\A|\n|\\n)[ \t]*(?:[+\-*>#;]\s*|\d+[\t:|]\s*)*(?:export\s+|-\s+|-e\s+|ENV\s+|ARG\s+|set\s+)?["'`]?\Z"""
)
_LINE_REST = re.compile(r"[ \t]*(?:\r?\n|\\n|\Z|#|//)")
_TYPE_THEN_VALUE = re.compile(r"[&\w.\[\]<>| ?]{0,40}?[ \t]*=[ \t]*(?:[A-Za-z@$]{0,2}\\*[\"'`])?(?=\S)")
_INI_SECTION = re.compile(r"(?:\A|\n)\s*\[[\w .:/-]{1,60}\]\s*\n(?:[^\n\[]*\n){0,12}\Z")
_CALL_OR_INDEX = re.compile(r"[A-Za-z_$][\w$.]*(?:\(|\[|->|::|\?\.|\?\?|\|\|).*|[&*!][A-Za-z_$][\w$.]*|[+\-*/%<>=|&^~!]=?.{0,2}")
_MEMBER = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+")
_NUMBERS = re.compile(r"[0-9.,:/ -]+")
_TOKEN_LETTERS = re.compile(r"[\w+/=.~:@%,!$#*&^-]+")
_CONNECTION_STRING = re.compile(
    r"(?i)\b(?:server|data source|host|user id|uid|user|database|initial catalog|endpoint|driver|dsn)[ \t]*=[^;\n]*;[^\n]*\Z"
)
_TAG = re.compile(r"[0-9a-f]{4,16}\Z")
_TYPES = words(
    """
    str string bytes int float bool boolean number any unknown never void object optional union list dict tuple set
    map array secretstr char varchar text json uuid date datetime nil type literal required nullable readonly none
    null true false
    """
)
_WORD_AND_NUMBER = re.compile(r"[a-z_]+[0-9]{1,2}\Z")
_MESSAGE_WORD = re.compile(
    r"(?i)\b(?:password|passphrase|secret|token|key|your|you|enter|please|must|should|required|invalid|incorrect|wrong|the|is|are|was|"
    r"not|for|with|to|of|and|or|this|that|new|confirm|forgot|reset|change|at least|characters?|cannot|can't|failed|error)\b"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """How a text writes a name and its value. ``text`` is all of it; the name begins at ``at``, the value ends at ``end``."""

    name: str
    separator: str = ":"
    spaced: bool = False
    """White space before the separator: code and INI files, never shells."""
    is_template: bool = False
    text: str = "\n"
    at: int = 0
    end: int = 0

    @property
    def is_quoted(self) -> bool:
        """A name in quotes, as an object's key."""
        return self.text[max(0, self.at - 1) : self.at] in ('"', "'")

    @property
    def in_query(self) -> bool:
        """A pair of a query or of a form's body."""
        before = self.text[max(0, self.at - 5) : self.at]
        return before.endswith(("?", "&", "&amp;", "="))

    @property
    def in_connection_string(self) -> bool:
        """``Server=...;User Id=...;Password=...;``."""
        return bool(_CONNECTION_STRING.search(self.text[max(0, self.at - 200) : self.at]))

    @property
    def at_line_start(self) -> bool:
        start = max(0, self.at - LOOK_BACK)
        return bool(_LINE_START.search(self.text[max(start, self.text.rfind("\n", start, self.at)) : self.at]))

    @property
    def ends_line(self) -> bool:
        return bool(_LINE_REST.match(self.text, self.end))

    @property
    def ends_like_code(self) -> bool:
        return self.text[self.end : self.end + 1] in (",", ")", ";", "[", "(", "}") and self.separator in ("=", ":")

    @property
    def in_section(self) -> bool:
        """Under an INI file's section."""
        return self.spaced and bool(_INI_SECTION.search(self.text[max(0, self.at - 600) : self.at]))

    @property
    def in_marker(self) -> bool:
        """Inside another redactor's ``[REDACTED:kind:tag]``."""
        opening = self.text.rfind("[REDACTED:", max(0, self.at - 60), self.end)
        return opening >= 0 and self.text.find("]", opening, self.end) < 0

    @property
    def is_upper(self) -> bool:
        return self.name.upper() == self.name

    @property
    def is_environment(self) -> bool:
        """``NAME=value`` as in a shell, an environment file, a Dockerfile, a form."""
        if self.separator != "=" or self.spaced:
            return False
        return self.is_upper or self.in_query or self.in_connection_string or (self.at_line_start and self.ends_line)


def setting_before(text: str, value: Value) -> Setting | None:
    """What stands before a value that an assignment rule found; None when it is no assignment after all."""
    low = max(0, value.begins - LOOK_BACK)
    head = text[low : value.begins]
    opening = _OPENING.search(head[-16:])
    literal = opening[0].rstrip("\\\"'`").lower() if opening else ""
    if opening:
        head = head[: len(head) - len(opening[0])]
    block = _BLOCK_SCALAR.search(head[-100:]) if head[-1:] in (" ", "\t", "\n") else None
    head = head[: len(head) - len(block[0]) + 1] if block else head.rstrip(" \t*")
    separator = next((mark for mark in _SEPARATORS if head.endswith(mark)), None)
    if separator is None:
        return None
    head = head[: -len(separator)]
    bare = head.rstrip(" \t")
    spaced = len(bare) < len(head)
    head = bare.rstrip("*")
    bracketed = head.endswith("]")
    unquoted = head[:-1].rstrip("\"'`") if bracketed else head.rstrip("\"'`")
    quoted = len(unquoted) < len(head) - bracketed
    if bracketed and not quoted:
        unquoted = head
    head = unquoted.rstrip("\\")
    backwards = head[::-1]
    found = _SPACED_NAME_BACKWARDS.match(backwards) or _NAME_BACKWARDS.match(backwards)
    if not found:
        return None
    name = found[0][::-1]
    at = low + len(head) - len(name)
    is_index = name.count("[") != name.count("]") or (bracketed and not quoted and ("[" not in name or spaced))
    if is_index or text[max(0, at - 2) : at] == "::":
        return None  # an index into something (rows[pw] = ...), a type's name
    is_template = "{" in value.text and literal in ("f", "rf", "fr", "$")
    return Setting(name, separator, spaced, is_template, text, at, value.end)


def typed_value_at(text: str, value: Value) -> int | None:
    """Where the value begins when what stands behind the colon is a type: ``password: str = "..."``."""
    if value.quote or value.text.lower().strip("&*?[]<>()") not in _TYPES:
        return None
    found = _TYPE_THEN_VALUE.match(text, value.end)
    return found.end() if found else None


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
    if text.lower() in _TYPES or not text.islower() or is_name(text):
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
    if setting.separator in _NO_ASSIGNMENT:
        return False
    if is_hash_or_uuid(text) or is_path_or_url(text) or not _TOKEN_LETTERS.fullmatch(text) or _NUMBERS.fullmatch(text):
        return False
    if setting.is_environment and setting.is_upper:
        return is_opaque(text, 10) and _has_digit(text)
    if setting.in_query:
        return is_opaque(text, 12)
    if not is_opaque(text, 16) or _looks_numbered(text) or not any(is_opaque(piece, 8) for piece in _PIECES.split(text)):
        return False
    return bool(value.quote) or not is_identifier(text) or setting.ends_line


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
