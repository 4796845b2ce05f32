"""Assignments in texts: ``name = value`` in all the ways in which files, code and documents write it."""

from __future__ import annotations

import re
from dataclasses import replace

from coatcheck.compaction.redaction.assignments import is_strong, kind_of_secret
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.setting import Setting, setting_before, typed_value_at
from coatcheck.compaction.redaction.shapes import (
    is_algorithm_or_number,
    is_hash_or_uuid,
    is_path_or_url,
    is_placeholder,
    word_share,
)
from coatcheck.compaction.redaction.values import Found, Value, read


def assigned(text: str, start: int) -> Found:
    """A value behind a name and a sign, also behind a type (``password: str = "..."``) and inside a pair (``auth: token=...``)."""
    value = read(text, start)
    for _ in range(_DEEPEST):
        setting = setting_before(text, value)
        if setting is None:
            return None
        kind = kind_of_secret(value, setting)
        if kind:
            return value, kind
        typed = typed_value_at(text, value)
        if typed is not None:
            value = read(text, typed)
            kind = kind_of_secret(value, replace(setting, separator="=", end=value.end))
            return (value, kind) if kind else None
        inner = _PAIR_INSIDE.match(value.text)
        if inner is None or value.quote:
            return None
        value = read(text, value.start + inner.end())
    return None


def named(text: str, start: int) -> Found:
    """``name: DB_PASSWORD, value: ...``: the name is a value itself."""
    names = _NAME_FIELD.findall(text, max(0, start - 200), start)
    value = read(text, start)
    kind = kind_of_secret(value, Setting(names[-1])) if names else None
    return (value, kind) if kind else None


def named_after(text: str, start: int) -> Found:
    """``value: ..., name: DB_PASSWORD``: the name follows. Not where a name stands before the value already."""
    value = read(text, start)
    name = _NAME_AFTER.match(text, value.end)
    if name is None or _NAMED_BEFORE.search(text, max(0, start - 200), start):
        return None
    kind = kind_of_secret(value, Setting(name[1]))
    return (value, kind) if kind else None


def form_input(text: str, start: int) -> Found:
    """``<input type="password" value="...">``, whatever stands first."""
    value = read(text, start)
    opening = text.rfind("<", max(0, start - 400), start)
    closing = text.find(">", value.end, value.end + 400)
    if opening < 0 or not value.quote or not _OF_PASSWORDS.search(text[opening:start] + text[value.end : max(closing, value.end)]):
        return None
    return (value, "password") if len(value.text) >= 4 and not is_placeholder(value.text) and " " not in value.text else None


def variable(text: str, start: int) -> Found:
    """``variable "db_password" { default = "..." }``."""
    return _under_name(text, start, _VARIABLE, '"')


def plist(text: str, start: int) -> Found:
    """``<key>password</key> <string>...</string>``."""
    return _under_name(text, start, _PLIST_KEY, "<")


def element(text: str, start: int) -> Found:
    """``<password>...</password>``."""
    opening = _ELEMENT.search(text, max(0, start - 300), start)
    end = text.find("]]>" if text.startswith(_CDATA, start - len(_CDATA)) else "<", start, start + 5_000)
    if not opening or end < 0:
        return None
    content = text[start:end].rstrip()
    kind = kind_of_secret(Value(start, start + len(content), content, '"'), Setting(opening[1]))
    return (Value(start, start + len(content), content), kind) if kind and "\n" not in content else None


def directive(text: str, start: int) -> Found:
    """``requirepass ...``, ``ENV API_TOKEN ...``: a name and a value with a space between them."""
    value = read(text, start)
    words = _DIRECTIVE.search(text, max(0, start - 120), value.begins)
    if not words or is_placeholder(value.text) or is_path_or_url(value.text):
        return None
    name_class, kind = classify(words["name"])
    if words["name"].isupper() and name_class in (NameClass.PASSWORD, NameClass.SECRET):
        return (value, kind) if len(value.text) >= 5 else None
    if len(value.text) < 6 or word_share(value.text) >= 0.85 or is_hash_or_uuid(value.text) or is_algorithm_or_number(value.text):
        return None
    return (value, kind or "password") if is_strong(value.text) else None


def in_sql(text: str, start: int) -> Found:
    """``IDENTIFIED BY '...'``."""
    value = read(text, start)
    if not value.quote or len(value.text) < 4 or " " in value.text or is_placeholder(value.text):
        return None
    return value, "password"


def of_sql_user(text: str, start: int) -> Found:
    """``CREATE USER ... IDENTIFIED BY word``, which Oracle takes without quotes."""
    value = read(text, start)
    if len(value.text) < 3 or is_placeholder(value.text) or value.text.lower() in ("values", "externally", "globally", "password"):
        return None
    return value, "password"


def json_web_key(text: str, start: int) -> Found:
    """The private part of a JSON web key."""
    value = read(text, start)
    return (value, "private-key") if len(value.text) >= 32 else None


def _under_name(text: str, start: int, name: re.Pattern[str], closing: str) -> Found:
    """A value up to its closing sign, under the last name before it."""
    names = name.findall(text, max(0, start - 600), start)
    end = text.find(closing, start, start + 5_000)
    if not names or end < 0:
        return None
    content = text[start:end].rstrip("\\ \t\r\n")
    kind = kind_of_secret(Value(start, start + len(content), content, '"'), Setting(names[-1])) if "\n" not in content else None
    return (Value(start, start + len(content), content), kind) if kind else None


_DEEPEST = 4
_CDATA = "<![CDATA["
_PAIR_INSIDE = re.compile(r"[\w.-]{1,60}[=:][\"']?(?=\S)")
_NAME_FIELD = re.compile(r"(?:[Nn]ame|[Kk]ey|NAME|KEY)\\*[\"']?\s*[:=]\s*\\*[\"']?([\w.:-]+)")
_NAME_AFTER = re.compile(r"\\*[\"']?[\s,]+\\*[\"']?(?:[Nn]ame|[Kk]ey|NAME|KEY)\\*[\"']?\s*[:=]\s*\\*[\"']?([\w.:-]+)")
_NAMED_BEFORE = re.compile(
    r"(?:[Nn]ame|[Kk]ey|NAME|KEY)\\*[\"']?\s*[:=]\s*\\*[\"']?[\w.:-]+\\*[\"']?[\s,]+\\*[\"']?[Vv](?:alue|ALUE)\\*[\"']?\s*[:=]\s*\\*[\"']?\Z"
)
_OF_PASSWORDS = re.compile(r"(?i)\btype\s*=\s*\\*[\"']?password\b")
_VARIABLE = re.compile(r"\bvariable[ \t]+\\*\"([\w-]+)")
_PLIST_KEY = re.compile(r"<key>([\w .:-]+)</key>")
_ELEMENT = re.compile(r"<([\w:.-]+)(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?\Z")
_DIRECTIVE = re.compile(r"(?P<name>[\w.-]+)(?:[ \t]+[0-9])?[ \t]+\\*[\"']?\Z")
