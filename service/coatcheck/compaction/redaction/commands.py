"""Secrets on command lines and in the files that command lines read: flags, .netrc, .pgpass."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.assignments import is_code, is_strong
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque, is_path_or_url, is_placeholder
from coatcheck.compaction.redaction.values import Found, read, read_bare


def long_flag(text: str, start: int) -> Found:
    """``--password value``: what stands behind a flag's name and a space."""
    value = read(text, start)
    flag = _FLAG.search(text, max(0, start - 100), value.begins)
    if not flag or is_placeholder(value.text) or is_path_or_url(value.text) or (not value.quote and is_code(value.text)):
        return None
    name_class, kind = classify(flag[1])
    if name_class is NameClass.PASSWORD:
        counts = (value.quote and " " not in value.text) or is_strong(value.text)
        return (value, kind) if len(value.text) >= 4 and counts else None
    if name_class is NameClass.SECRET:
        return (value, kind) if is_opaque(value.text, 8) or is_hash_or_uuid(value.text) else None
    return None


def short_flag(text: str, start: int) -> Found:
    """``mysql -pvalue``, ``sshpass -p value``: the rule knows which command takes a password behind which letter."""
    value = read(text, start)
    if len(value.text) < 3 or is_placeholder(value.text) or value.text.isdigit() or is_path_or_url(value.text):
        return None
    return value, "password"


def user_flag(text: str, start: int) -> Found:
    """``curl -u user:password``: any value where the line speaks HTTP, else one that is no word."""
    value = read_bare(text, start)
    line = text[max(text.rfind("\n", max(0, start - 400), start), start - 400, 0) : start]
    if is_placeholder(value.text) or is_path_or_url(value.text) or value.text.isdigit():
        return None
    if _SPEAKS_HTTP.search(line):
        return (value, "password") if len(value.text) >= 3 else None
    return (value, "password") if len(value.text) >= 6 and is_strong(value.text) else None


def netrc(text: str, start: int) -> Found:
    """``login NAME password VALUE``; a user and a password told in a row need a value that is no word."""
    value = read(text, start)
    if len(value.text) < 3 or is_placeholder(value.text) or is_code(value.text):
        return None
    in_netrc = _NETRC.search(text[max(0, start - 160) : value.begins]) is not None
    return (value, "password") if in_netrc or (is_strong(value.text) and len(value.text) >= 6) else None


def pgpass(text: str, start: int) -> Found:
    """``host:port:database:user:password`` alone on its line."""
    value = read(text, start)
    line_start = max(text.rfind("\n", max(0, start - 300), start), start - 300, -1) + 1
    fields = text[line_start : value.begins].split(":")
    if len(fields) != 5 or not _HOST.fullmatch(fields[0]):
        return None
    if fields[2].isdigit() or fields[3].isdigit() or _HEX_PAIR.fullmatch(fields[2]):
        return None
    return (value, "password") if len(value.text) >= 4 and not is_placeholder(value.text) else None


_FLAG = re.compile(r"--?([\w-]+)[\"',]*[ \t]*\\*[\"']?\Z")
_SPEAKS_HTTP = re.compile(r"\b(?:curl|http|https|wget|xh|httpie|ab|siege|hey)\b")
_NETRC = re.compile(r"\blogin\s+(?!and\s|or\s)\S+\s+(?:account\s+\S+\s+)?password\s+[\"']?\Z")
_HOST = re.compile(r"[\w.*-]+")
_HEX_PAIR = re.compile(r"[0-9A-Fa-f]{2}")
