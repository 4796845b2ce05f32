"""Whether a line asks for something: such a line is marked open or closed when it is quoted, so that nobody does it twice."""

from __future__ import annotations

import re

_VERBS = """
add analyse analyze apply ask build bump change check clean close commit compare compile configure continue convert copy
correct create debug delete deploy describe design disable document download drop edit enable ensure execute explain
extend extract fetch find finish fix format generate get give implement improve insert inspect install investigate keep
list load look make merge migrate modify monitor move open optimise optimize order pay plan prepare print publish push
put read rebase rebuild refactor release remove rename replace report reproduce restart restore retry revert review
rewrite rotate run save scan search send set ship show solve start stop submit summarise summarize switch sync tell test
translate try turn undo uninstall update upgrade upload use validate verify wait wire write
"""
_REQUEST = re.compile(
    r"[?？](?:\W|$)|\b(?:please|pls|can you|could you|would you|will you|let's|let us|i (?:need|want|would like)|i'd like|"
    r"we (?:need|should|want)|you (?:should|need to|must)|make sure|help me|go ahead|your task|todo)\b"
    r"|^[\W_]{0,6}(?:now |then |next,? |also,? |first,? |and )?(?:" + "|".join(_VERBS.split()) + r")\s+[^\W\d]"
    r"|\b(?:пожалуйста|можешь|можете|нужно|надо|хочу|помоги|давай)\b|^[\W_]{0,6}(?:[а-яё]+(?:й|йте|и|ите|ь|ьте))\s"
    r"|请|帮我|帮忙|能否|能不能|可以.{0,30}吗|我想|我要|需要你|麻烦",
    re.IGNORECASE,
)


def asks(line: str) -> bool:
    """English, Russian, Chinese; in doubt it asks."""
    return _REQUEST.search(line) is not None
