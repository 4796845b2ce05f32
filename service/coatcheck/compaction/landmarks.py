"""The files and the programs that a window is about, by name, the ones most worth naming first.

What the assistant's calls name, and what users and assistants write; a tool's output names nothing here. A name is one word:
whatever reads like an instruction when its parts are taken for words is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from coatcheck.compaction import calls
from coatcheck.compaction.instructions import reads_like_an_instruction
from coatcheck.compaction.quotable import Quotable
from coatcheck.compaction.quoting import one_line
from coatcheck.domain.messages import PartKind
from coatcheck.domain.values import value

_CHANGES = re.compile(r"edit|write|create|patch|replace|insert|update|apply|save", re.IGNORECASE)
_CHANGE_VERBS = frozenset(("create", "str_replace", "insert", "write", "edit"))
"""Of tools that read and write: what their command says that it does, and is no program."""
_VERBS = _CHANGE_VERBS | {"view", "undo_edit", "read"}
_CHANGED = 100
"""A file that was changed is worth more than any that was only named, however often."""
_LOOKING = frozenset(
    ("ls", "cat", "head", "tail", "grep", "rg", "find", "sed", "awk", "wc", "pwd", "which", "tree", "less", "file", "stat")
)
_PASSED_OVER = frozenset(("cd", "export", "set", "source", ".", "#", "sleep", "echo", "true"))
_TEXT_CHARS = 4_000
_COMMAND_CHARS = 400
_LONGEST_NAME = 60
_ENDINGS = (
    "py", "pyi", "ipynb", "js", "mjs", "cjs", "ts", "tsx", "jsx", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf",
    "env", "lock", "md", "rst", "txt", "csv", "tsv", "sql", "sh", "bash", "go", "rs", "c", "h", "cc", "cpp", "hpp", "java",
    "kt", "rb", "php", "swift", "cs", "html", "htm", "css", "scss", "xml", "log", "proto", "tf", "gradle", "ex", "exs", "heex",
    "erl", "hs", "lua", "pl", "r", "scala", "vue", "svelte", "patch", "diff", "pdf", "png", "jpg", "svg", "db", "sqlite",
    "parquet",
)  # fmt: skip
_ENDING = re.compile(r"\.(?<=[\w-]\.)(?:" + "|".join(_ENDINGS) + r")(?![\w/-]|\.\w)")
_BEFORE_ENDING = re.compile(r"[\w@+.-]{1,60}\Z")
_SETTING = re.compile(r"[A-Z_]{2,40}=\S*")
_ARGUMENT = re.compile(r"[a-z][\w:.-]{1,24}")
_PROGRAM = re.compile(r"[\w.+-]{1,30}(?: [\w:.-]{1,25})?")


@value
class Landmark:
    """A file or a program by its name, and a segment that names it."""

    name: str
    sha256: str


def files(quotables: Sequence[Quotable]) -> list[Landmark]:
    """Those that were changed first, then those named most often, then the newest."""
    weight: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for place, quotable in enumerate(quotables):
        for path, worth in _paths(quotable):
            name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
            weight[name] += worth
            newest[name] = place
    ranked = sorted(weight, key=lambda name: (-weight[name], -newest[name], name))
    return [Landmark(name, quotables[newest[name]].sha256) for name in ranked if _is_name(name)]


def programs(quotables: Sequence[Quotable]) -> list[Landmark]:
    """By their first two words: what only looks at files last, those run most often first, then the newest."""
    count: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for place, quotable in enumerate(quotables):
        if quotable.kind is not PartKind.TOOL_CALL:
            continue
        for argument in calls.arguments(quotable.text):
            program = _program(argument.value) if argument.name in calls.COMMANDS and argument.value not in _VERBS else ""
            if program:
                count[program] += 1
                newest[program] = place
    ranked = sorted(count, key=lambda name: (name.split()[0] in _LOOKING, -count[name], -newest[name], name))
    return [Landmark(name, quotables[newest[name]].sha256) for name in ranked]


def _paths(quotable: Quotable) -> Iterator[tuple[str, int]]:
    """The paths that a segment names, each with its worth."""
    if quotable.kind is PartKind.TOOL_CALL:
        told = list(calls.arguments(quotable.text))
        changes = _CHANGES.search(quotable.source or "") is not None or any(argument.value in _CHANGE_VERBS for argument in told)
        for argument in told:
            if argument.name in calls.COMMANDS:
                yield from ((path, 1) for path in _named(argument.value))
            elif argument.name in calls.FILES:
                yield argument.value, _CHANGED if changes or argument.name == "patch" else 1
    elif quotable.role in ("user", "assistant"):
        yield from ((path, 1) for path in _named(quotable.text[:_TEXT_CHARS]))


def _named(text: str) -> Iterator[str]:
    """The names of files that a text holds: from the ending back, since an ending is rare and a name may be anything."""
    for match in _ENDING.finditer(text):
        before = _BEFORE_ENDING.search(text, max(0, match.start() - _LONGEST_NAME), match.start())
        if before is not None:
            yield before[0] + match[0]


def _is_name(name: str) -> bool:
    return (
        0 < len(name) <= _LONGEST_NAME
        and one_line(name) == name
        and " " not in name
        and "[" not in name
        and "." in name.strip(".")
        and not reads_like_an_instruction(re.sub(r"[\W_]+", " ", name), "tool")
    )


def _program(command: str) -> str:
    """The first program that a command runs, with its first argument where that is a word."""
    for part in re.split(r"&&|;|\n", command[:_COMMAND_CHARS]):
        words = [word for word in part.split() if not _SETTING.fullmatch(word)]
        if not words or words[0] in _PASSED_OVER:
            continue
        argument = words[1] if len(words) > 1 and _ARGUMENT.fullmatch(words[1]) else ""
        said = f"{words[0].rsplit('/', 1)[-1]} {argument}".strip()
        return said if _PROGRAM.fullmatch(said) and not reads_like_an_instruction(said, "tool") else ""
    return ""
