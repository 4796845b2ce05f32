"""The operator's own rules: a file in kingfisher's YAML, read once, and refused at the start where a rule of it would do nothing.

What such a rule matches is a secret: it is taken at its word, and judged by nobody.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from coatcheck.compaction import strict_yaml
from coatcheck.compaction.strict_yaml import NotYaml
from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops import ordinary_files

MOST_BYTES = 16 * 1024 * 1024
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
"""What an id may look like: it becomes the placeholder's kind."""
_TAKEN = ("coatcheck.", "betterleaks.", "veles.", "kingfisher.")
"""Ids that mean something else to this redactor."""


def read(path: Path) -> bytes:
    """The file's content, once every rule in it is known to work. Raises RefusedToStart, naming the rule."""
    try:
        content = ordinary_files.read(path, MOST_BYTES)
        document = strict_yaml.load(content)
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})") from error
    except NotYaml as error:
        raise _refused(path, str(error)) from error
    rules = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) for rule in rules):
        raise _refused(path, "holds no list of rules")
    for name, times in Counter(str(rule.get("id")) for rule in rules).items():
        if not _ID.fullmatch(name) or name.startswith(_TAKEN):
            raise _refused(path, f"holds a rule whose id is not one for a rule of yours: {name[:60]!r}")
        if times > 1:
            raise _refused(path, f"holds the rule {name} more than once")
    _try(path, [str(rule["id"]) for rule in rules])
    return content


def _try(path: Path, ids: list[str]) -> None:
    """Compiles the rules by themselves, which takes milliseconds."""
    from kingfisher_sdk import Rules, Scanner

    try:
        loaded = Rules([path], builtins=False, cache=False)
        Scanner(loaded)
    except (RuntimeError, ValueError, OSError) as error:
        raise _refused(path, f"does not compile: {str(error)[:200]}") from error
    idle = set(ids) - {str(rule["id"]) for rule in loaded.metadata() if rule["visible"]}
    if idle:
        raise _refused(
            path, f"holds rules that would find nothing (too low a confidence, or not visible): {', '.join(sorted(idle))}"
        )


def _refused(path: Path, what: str) -> RefusedToStart:
    return RefusedToStart(f"COATCHECK_REDACTION_RULES: {path} {what}.")
