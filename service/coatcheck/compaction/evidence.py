"""Text that must not be paraphrased: code, commands, paths, addresses, numbers with units, errors. Each kind has a name.

Every pattern is linear: it repeats within bounds. Where it can, it starts with a literal and looks back from there, since the
re module skips to a literal or a set of characters fast and crawls otherwise.
"""

from __future__ import annotations

import re

_URL = re.compile(r"://(?<=[A-Za-z0-9]://)\S")
_SHELL_PROMPT = re.compile(r"^[ \t]{0,8}(?:[$>%]|[\w.-]{1,40}@[\w.-]{1,60}[:~][^\n$#]{0,80}[$#])[ \t]+\S", re.MULTILINE)
_COMMAND = re.compile(
    r"(?:^[ \t]{0,8}|`)(?:sudo|git|docker|kubectl|helm|npm|npx|pnpm|yarn|pip3?|uv|python3?|node|cargo|go|make|cmake|curl|wget|ssh|"
    r"scp|rsync|cd|ls|cat|grep|rg|find|sed|awk|rm|cp|mv|mkdir|chmod|chown|tar|systemctl|journalctl|psql|mysql|redis-cli|aws|gcloud|"
    r"az|terraform|ansible(?:-playbook)?|pytest|ruff|mypy|apt(?:-get)?|brew|export|source|echo|bash|sh|java|mvn|gradle)[ \t]+\S",
    re.MULTILINE,
)
_FLAG = re.compile(r"-(?<!\S-)-?[A-Za-z][\w-]{1,40}")
_PATH = re.compile(r"/(?:[\w.@+-]{1,255}/[\w.@+-]|[\w@+-]{1,80}\.\w{1,8}\b|(?<![\w<]/)[\w.])|:\\(?<=[A-Za-z]:\\)[\w.-]")
_FILE = re.compile(
    r"\.(?<=\w\.)(?:pyi?|ipynb|[mc]?js|tsx?|jsx|jsonl?|ya?ml|toml|ini|cfg|conf|env|lock|md|rst|txt|[ct]sv|sql|sh|bash|go|rs|c|h|"
    r"cc|[ch]pp|java|kt|rb|php|swift|cs|html?|s?css|xml|log|pem|crt|zip|t?gz|tar|whl|so|dll|exe|png|jpe?g|svg|pdf|db|sqlite|"
    r"parquet|proto|tf|gradle)\b"
)
_HASH = re.compile(r"[0-9a-f](?<!\w[0-9a-f])(?:(?<=[0-9])|(?=[a-f]{0,39}[0-9]))[0-9a-f]{6,127}\b")
_UUID = re.compile(r"-(?<=[0-9a-f]{8}-)[0-9a-f]{4}-")
_IPV4 = re.compile(r"\.(?<=\d\.)\d{1,3}\.\d{1,3}\.\d{1,3}(?!\w)")
_IPV6 = re.compile(r":[0-9a-f]{0,4}:[0-9a-f]{0,4}:[0-9a-f]{0,4}(?<=[0-9a-f:])|::1\b")
_PORT = re.compile(r":(?<=[A-Za-z0-9\]]:)\d{2,5}\b")
_PORT_WORD = re.compile(r"(?:ports?\b|порт|端口)\D{0,12}\d{2,5}")
_EMAIL = re.compile(r"@(?<=[\w.+-]@)[\w-]{1,63}\.[A-Za-z]")
_VERSION = re.compile(r"\.(?<=\d\.)\d{1,6}\.\d|v(?:(?<!\wv)\d{1,4}\b|ersions?\W{0,3}v?\d)|верси\w{1,2}\W{0,3}v?\d|版本\W{0,3}v?\d")
_UNIT = re.compile(
    r"[\d$€£¥₽](?:(?<=\d)(?!\d)[ \u00a0]?(?![\s!-$&-/:-@\[-`{-~])"  # most digits stand before a sign, and no unit begins with one
    r"(?:%|‰|°|[kmgtp]i?b(?:/s|ps|it)?\b|bytes?\b|[mnµu]?s\b|sec(?:onds?)?\b|"
    r"min(?:utes?)?\b|h(?:ours?|rs?)?\b|"
    r"days?\b|weeks?\b|months?\b|years?\b|[mkg]?hz\b|fps\b|rpm\b|rps\b|qps\b|px\b|[cmk]?m\b|k?g\b|k?w\b|v\b|tokens?\b|"
    r"requests?\b|users?\b|usd\b|eur\b|rub\b|"
    r"сек|мин|час|д(?:ень|ня|ней)|недел|месяц|год|лет\b|руб|байт|[кмг]б\b|мс\b|шт\b|процент|"
    r"秒|分钟|小时|天|周|个月|年|月|日|元|块|个|次|台|条|字节|兆|人|万|亿|千|毫秒|米|公里|公斤)"
    r"|(?<=[$€£¥₽])\s?\d)",
)
_NUMBERED_ID = re.compile(r"#(?<!\w#)\d|-(?<=[a-z][a-z]-)\d|№\s?\d")
_STACK = re.compile(r"^(?:[ \t]{1,12}(?:at [\w.$<]|File \"|\.\.\. \d)|Traceback \(|(?:E|ERROR|FATAL|PANIC)[ :\[])", re.MULTILINE)
_ERROR_STEMS = (
    "error", "fail", "exception", "fatal", "denied", "refused", "timeout", "timed out", "crash", "errno", "exit code",
    "exit status", "panic", "segmentation fault",
)  # fmt: skip
_OTHER_ERROR_STEMS = (
    "ошибк", "сбой", "сбоя", "не удалось", "исключени", "错误", "失败", "异常", "超时", "崩溃", "报错",
)  # fmt: skip
_NAME_IN_CODE = re.compile(r"_(?<=[A-Za-z0-9]_)[A-Za-z0-9]|\(\)(?<=\w\(\))")
_DATE = re.compile(r"[-./](?<=\d[-./])\d{1,2}[-./]\d\d")
_NUMBER = re.compile(r"\d")

_ANYWHERE = (
    ("url", _URL),
    ("path", _PATH),
    ("path", _FILE),
    ("address", _EMAIL),
    ("command", _FLAG),
    ("identifier", _NAME_IN_CODE),
    ("stack-trace", _STACK),
    ("command", _COMMAND),
    ("command", _SHELL_PROMPT),
)
_WITH_DIGITS = (
    ("number-with-unit", _UNIT),
    ("address", _IPV4),
    ("address", _PORT),
    ("address", _PORT_WORD),
    ("address", _IPV6),
    ("date", _DATE),
    ("version", _VERSION),
    ("identifier", _NUMBERED_ID),
    ("hash", _UUID),
    ("hash", _HASH),
)

_IDENTIFIERS = (("@", _EMAIL), ("://", _URL), (".", _FILE), ("", _PATH))
"""Each with what a text must hold for a match, where that is one thing: looking for it costs a fifth of a search."""
_IDENTIFIERS_WITH_DIGITS = (
    ("", _PORT_WORD),
    (":", _IPV6),
    (".", _IPV4),
    (":", _PORT),
    ("", _VERSION),
    ("", _NUMBERED_ID),
    ("", _DATE),
    ("-", _UUID),
    *_IDENTIFIERS,
    ("", _HASH),
    ("", _UNIT),
)
"""The cheapest and rarest first: a line that cannot have enough of them is given up early."""


NAMES = frozenset({"code-fence", "error", *(name for name, _ in _ANYWHERE), *(name for name, _ in _WITH_DIGITS)})
"""Every name that ``find`` gives: machine names, in lower case with dashes."""


def find(text: str, lowered: str, names: frozenset[str] = NAMES) -> str | None:
    """The name of the first kind of evidence in a text, of those that are asked for; None where there is none.

    ``lowered`` is the text in lower case.
    """
    if "code-fence" in names and ("```" in text or "~~~" in text):
        return "code-fence"
    if "error" in names and any(stem in lowered for stem in _ERROR_STEMS):
        return "error"
    for name, pattern in _ANYWHERE:
        if name in names and pattern.search(text):
            return name
    if _NUMBER.search(text):
        for name, pattern in _WITH_DIGITS:
            if name in names and pattern.search(lowered):
                return name
    if "error" in names and not lowered.isascii() and any(stem in lowered for stem in _OTHER_ERROR_STEMS):
        return "error"
    return None


def identifiers(line: str, least: int = 0) -> int:
    """How many kinds of identifiers a line holds that somebody may ask for later: addresses, hashes, versions, paths, ids.

    Where there are fewer than ``least``, that is not counted to its end, and 0.
    """
    lowered = line.lower()
    kinds = _IDENTIFIERS_WITH_DIGITS if _NUMBER.search(line) else _IDENTIFIERS
    possible = [pattern for sign, pattern in kinds if sign in lowered]
    to_spare = len(possible) - least
    for pattern in possible:
        if to_spare < 0:
            return 0
        if not pattern.search(lowered):
            to_spare -= 1
    return least + to_spare
