"""Secrets in HTTP headers, cookies and URLs."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.assignments import is_code, is_strong
from coatcheck.compaction.redaction.base64_text import decoded_base64
from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque, is_path_or_url, is_placeholder, word_share
from coatcheck.compaction.redaction.values import Found, Value, apart_from_placeholders, past_placeholders, read_bare, read_line
from coatcheck.domain.placeholders import PLACEHOLDER


def authorization(text: str, start: int) -> Found:
    """The credential of an ``Authorization`` header, behind its scheme."""
    value = apart_from_placeholders(read_line(text, start))
    scheme_name = _SCHEME.match(value.text)
    if scheme_name:
        value = value.part(scheme_name.end(), len(value.text))
        if scheme_name[1].lower() not in _SCHEMES_OF_PAIRS:
            value = value.part(0, len(value.text.split(maxsplit=1)[0]) if value.text.strip() else 0)
    elif " " in value.text:
        return None
    return _credential(value)


def scheme(text: str, start: int) -> Found:
    """The credential behind ``Bearer`` or ``Basic`` where no header's name stands before it."""
    value = read_bare(text, start)
    word = text[max(0, value.begins - 12) : value.begins].rstrip().lower()
    if word.endswith("basic"):
        return (value, "basic-auth") if _is_basic(value.text) else None
    if is_hash_or_uuid(value.text):
        return _credential(value) if word.endswith("bearer") else None
    if not is_opaque(value.text, 12):
        return None
    return _credential(value)


def cookie(text: str, start: int) -> Found:
    """All cookies of a header, when one of them holds more than a preference."""
    value = read_line(text, start)
    for pair in value.text.split(";", _MOST_COOKIES)[:_MOST_COOKIES]:
        content = PLACEHOLDER.sub("", pair.partition("=")[2]).strip()
        if len(content) >= 6 and not is_placeholder(content) and not is_code(content) and word_share(content) < 0.85:
            return value, "cookie"
    return None


def of_jar(text: str, start: int) -> Found:
    """The value of a cookie in a browser's or curl's file."""
    value = read_bare(text, start)
    telling = is_opaque(value.text, 16) or is_hash_or_uuid(value.text)
    return (value, "cookie") if telling and not is_placeholder(value.text) else None


def url_password(text: str, start: int) -> Found:
    """The password of ``scheme://user:password@host``, which may hold an ``@`` itself."""
    user = text[text.rfind("://", max(0, start - 300), start) + 3 : start - 1]
    start = past_placeholders(text, start)
    found = _AUTHORITY.match(text, start, start + 4_096)
    authority = found[0] if found else ""
    before_path = authority.partition("/")[0]
    end = before_path.rfind("@") if "@" in before_path else authority.find("@")
    password = authority[: max(end, 0)]
    if len(password) < 3 or not _ALNUM.search(password) or is_placeholder(password) or (password == user and len(password) < 5):
        return None
    if _PORT.match(password) or (_TEMPLATE.search(password) and not is_strong(_TEMPLATE.split(password)[0])):
        return None
    return Value(start, start + len(password), password), "url-password"


def oracle_password(text: str, start: int) -> Found:
    """``jdbc:oracle:thin:user/password@host``, ``connect user/password@name``."""
    found = _UP_TO_HOST.match(text, start, start + 400)
    if found is None:
        return None
    password = found[1].strip('\\"')
    begins = start + found[1].find(password)
    return (Value(begins, begins + len(password), password), "url-password") if not is_placeholder(password) else None


def url_user(text: str, start: int) -> Found:
    """A token in the place of a URL's user."""
    end = text.find("@", start)
    user = text[start:end]
    return (Value(start, end, user), "url-token") if is_opaque(user, 16) and not is_placeholder(user) else None


def url_parameter(text: str, start: int) -> Found:
    """A signature, or an opaque value under one of the names that queries give their credentials."""
    value = read_bare(text, start)
    name = _PARAMETER_NAME.search(text, max(0, start - 40), value.begins)
    key = name[1].lower() if name else ""
    if is_placeholder(value.text) or is_code(value.text):
        return None
    if key in _SIGNATURES:
        return (value, "signature") if len(value.text) >= 16 else None
    needed = 10 if key in _CREDENTIALS else 16
    return (value, "url-parameter") if is_opaque(value.text, needed) and not is_hash_or_uuid(value.text) else None


_SCHEME = re.compile(
    r"(?i)(bearer|basic|token|digest|api-?key|bot|negotiate|hawk|oauth|signature|ssws|genie-?key|aws4-hmac-sha256|splunk|discordbot|key)"
    r"[ \t]+(?:token[= ]+|credential=|key=)?[\"']?"
)
_SCHEMES_OF_PAIRS = frozenset(("digest", "aws4-hmac-sha256", "hawk", "oauth", "signature", "negotiate"))
_MOST_COOKIES = 64
_AUTHORITY = re.compile(r"(?:(?!\[REDACTED:)[^\s\"'`<>])*")
_UP_TO_HOST = re.compile(r"((?:[^\s\"'`<>@/]|@(?=[^\s\"'`<>@]*@)){3,})@(?=[\w(/])")
_ALNUM = re.compile(r"[^\W_]")
_PORT = re.compile(r"\d{1,5}(?:/|\Z)")
_TEMPLATE = re.compile(r"[{}$()\[\]]")
_PARAMETER_NAME = re.compile(r"([\w-]+)=\Z")
_SIGNATURES = frozenset(("sig", "signature", "hmac", "x-amz-signature", "x-goog-signature", "x-amz-security-token"))
_CREDENTIALS = frozenset(("key", "code", "auth", "secret", "jwt", "sas", "token", "pw"))
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def _credential(value: Value) -> Found:
    value = value.part(0, len(value.text.rstrip(",;)}]>\"'")))
    text = value.text
    if len(text) < 8 or is_placeholder(text) or is_code(text) or is_path_or_url(text):
        return None
    if not (is_strong(text) or is_opaque(text, 16)) or word_share(text) > 0.85:
        return None
    return value, "basic-auth" if _is_basic(text) else "authorization"


def _is_basic(text: str) -> bool:
    return len(text) >= 8 and _BASE64.fullmatch(text) is not None and ":" in decoded_base64(text)
