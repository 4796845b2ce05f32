"""Phrases that mark decisions, prohibitions, corrections, errors and what is left to do, in English, Russian and Chinese.

One automaton looks for all of them in one pass, so that a text costs the same however long the lists grow.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.values import value

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick


class Signal(StrEnum):
    """What a phrase marks."""

    PROHIBITION = "prohibition"
    DECISION = "decision"
    CORRECTION = "correction"
    ERROR = "error"
    OPEN = "open"
    """Something that is still to be done."""


@value
class Hit:
    """One phrase of the lexicon in a text, [start, end) in code points."""

    signal: Signal
    start: int
    end: int


_LATIN: dict[Signal, tuple[str, ...]] = {
    Signal.PROHIBITION: (
        "do not", "don't", "must not", "mustn't", "may not", "shall not", "should not", "shouldn't", "never", "not allowed",
        "not permitted", "forbidden", "prohibited", "disallowed", "under no circumstances", "off limits", "off-limits",
        "no longer allowed", "stop using", "avoid using", "refrain from", "hands off", "keep out of", "read only", "read-only",
    ),
    Signal.DECISION: (
        "decided", "decision", "decisions", "we decide", "agreed", "we agree", "approved", "settled on", "go with", "going with",
        "went with", "we will use", "we'll use", "we use", "will be using", "chose", "chosen", "we choose", "opted for", "opt for",
        "final answer", "signed off", "must", "always", "is required", "are required", "mandatory", "policy", "the plan is",
        "from now on", "standardize on", "standardise on", "the rule is", "deadline", "requirement", "requirements",
    ),
    Signal.CORRECTION: (
        "correction", "corrected", "actually,", "scratch that", "i was wrong", "that was wrong", "that's wrong", "was a mistake",
        "my mistake", "my bad", "i misspoke", "changed to", "change it to", "replaced by", "replaced with", "supersedes",
        "superseded", "no longer", "instead of", "rather than", "not anymore", "it should be", "should have been", "disregard",
        "update:", "erratum", "reverted", "rolled back", "revised",
    ),
    Signal.ERROR: (
        "failing", "fails", "fatal", "panic", "denied", "refused",
        "timed out", "crash", "crashed", "aborted", "unreachable", "segfault", "not found", "no such file", "cannot",
        "unable to", "killed", "exit code", "exit status", "broken pipe", "out of memory", "oomkilled", "rejected",
        "unauthorized", "forbidden by",
    ),
    Signal.OPEN: (
        "todo", "to do", "still need", "still to", "remaining", "next step", "next steps", "left to do", "not yet", "pending",
        "follow up", "follow-up", "outstanding", "blocked on", "blocked by", "waiting for", "unresolved", "open question",
        "open questions",
    ),
}  # fmt: skip

_ERROR_STEMS = ("error", "exception", "failed", "failure", "traceback", "errno")
"""Found as words of their own and inside longer ones: ``ValueError:``, ``test_failed``."""

_CYRILLIC: dict[Signal, tuple[str, ...]] = {
    Signal.PROHIBITION: (
        "нельзя", "запрещ", "запрет", "не надо", "не нужно", "не следует", "не должн", "никогда", "ни в коем случае", "не трога",
        "не использу", "не удаля", "не меня", "не дела", "не запуска", "не отправля", "не публику", "не допуска", "избега",
        "недопустим", "воздерж",
    ),
    Signal.DECISION: (
        "решили", "решено", "решение", "решил ", "решила ", "договорил", "выбрали", "выбрано", "выбираем", "утвержд", "утвердил",
        "согласов", "согласны", "остановились на", "будем использовать", "используем", "обязательно", "всегда", "должен быть",
        "должна быть", "должно быть", "должны", "требуется", "с этого момента", "правило",
    ),
    Signal.CORRECTION: (
        "исправлен", "поправка", "поправк", "на самом деле", "вместо", "ошибся", "ошиблась", "ошибочно", "точнее", "вернее",
        "отменя", "отмена", "больше не", "уже не", "заменить на", "заменили", "изменили на", "неверно", "неправильно", "уточнение",
    ),
    Signal.ERROR: (
        "ошибк", "сбой", "сбои", "исключение", "не удалось", "не найден", "отказано", "недоступ", "превышено время", "упал ",
        "упала", "упало", "не работает", "завершился с кодом", "отклонен", "отклонён",
    ),
    Signal.OPEN: ("осталось", "ещё нужно", "еще нужно", "предстоит", "следующий шаг", "не сделано", "ожидает", "ждём", "ждем"),
}  # fmt: skip

_CHINESE: dict[Signal, tuple[str, ...]] = {
    Signal.PROHIBITION: (
        "不要", "禁止", "不得", "不能", "切勿", "请勿", "勿", "不准", "不许", "不可以", "严禁", "不允许",
        "千万别", "绝不", "永远不", "避免",
    ),
    Signal.DECISION: (
        "决定", "确定", "同意", "采用", "选择", "选定", "选用", "批准", "必须", "务必", "约定",
        "定为", "统一使用", "一律", "方案是",
        "规定", "要求", "以后都", "改用",
    ),
    Signal.CORRECTION: (
        "更正", "纠正", "其实", "实际上", "改为", "改成", "而不是", "错了", "应该是", "应为", "修正", "取消",
        "不再", "作废",
        "替换为", "更新为", "搞错", "说错",
    ),
    Signal.ERROR: ("错误", "失败", "异常", "超时", "被拒绝", "崩溃", "找不到", "无法", "报错", "未找到", "不可用"),
    Signal.OPEN: ("待办", "尚未", "还需要", "还没", "剩余", "下一步", "未完成", "等待"),
}  # fmt: skip

_STRONG_CORRECTION = frozenset(
    (
        "correction", "corrected", "scratch that", "i was wrong", "that was wrong", "that's wrong", "was a mistake", "my mistake",
        "i misspoke", "supersedes", "superseded", "erratum", "поправка", "исправлен", "ошибся", "ошиблась", "更正", "纠正", "修正",
        "错了", "改为", "改成", "作废",
    )
)  # fmt: skip

_WORD_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789'-_")
_PUNCTUATION = "".join(chr(c) if chr(c) in _WORD_CHARACTERS else " " for c in range(128))


@value
class _Phrase:
    """What to look for, and whether it has to start and end with a word."""

    text: str
    signal: Signal
    starts_word: bool = False
    ends_word: bool = False
    first_word: str = ""
    """Must stand alone somewhere in the text: ``must-have`` alone holds no "must"."""


def _latin() -> list[_Phrase]:
    phrases = [
        _Phrase(text, signal, starts_word=True, ends_word=True, first_word=text.split()[0].rstrip(":,"))
        for signal, texts in _LATIN.items()
        for text in texts
    ]
    return sorted(phrases, key=lambda phrase: phrase.first_word)


def _of_script(table: dict[Signal, tuple[str, ...]], *, starts_word: bool = False) -> list[_Phrase]:
    return [_Phrase(text, signal, starts_word) for signal, texts in table.items() for text in texts]


_PHRASES = (
    *_latin(),
    *_of_script({Signal.ERROR: _ERROR_STEMS}),
    *_of_script(_CYRILLIC, starts_word=True),
    *_of_script(_CHINESE),
)


@cache
def _automaton() -> AhoCorasick:
    from ahocorasick_rs import AhoCorasick

    return AhoCorasick([phrase.text for phrase in _PHRASES])


def lower(text: str) -> str:
    """Lower case of the same length, so that places found in it hold in the text."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    return lowered if lowered.isascii() else lowered.replace("’", "'")


def hits(lowered: str, signals: frozenset[Signal] = frozenset(Signal), *, limit: int = 64) -> list[Hit]:
    """The phrases that a text in lower case holds, at most ``limit`` places of each; always in the same order."""
    found: list[Hit] = []
    words: set[str] | None = None
    current, reach, left = -1, 0, 0
    for number, start, end in sorted(_automaton().find_matches_as_indexes(scalar_text(lowered), overlapping=True)):
        phrase = _PHRASES[number]
        if number != current:
            current, reach, left = number, 0, limit if phrase.signal in signals else 0
            if left and phrase.first_word and not _is_word(lowered, start, start + len(phrase.first_word)):
                words = _words(lowered) if words is None else words
                left = limit if phrase.first_word in words else 0
        if left and start >= reach:
            reach = end
            if _stands_as_word(lowered, phrase, start, end):
                left -= 1
                found.append(Hit(phrase.signal, start, end))
    return found


def states_a_rule(lowered: str) -> Signal | None:
    """The explicit decision, prohibition or correction that a text in lower case holds, if any."""
    found: Signal | None = None
    for hit in hits(lowered, frozenset((Signal.PROHIBITION, Signal.DECISION, Signal.CORRECTION)), limit=1):
        if hit.signal is Signal.CORRECTION and lowered[hit.start : hit.end] not in _STRONG_CORRECTION:
            continue
        if hit.signal is Signal.PROHIBITION:
            return hit.signal
        found = found or hit.signal
    return found


def _is_word(lowered: str, start: int, end: int) -> bool:
    return (start == 0 or lowered[start - 1] not in _WORD_CHARACTERS) and lowered[end : end + 1] not in _WORD_CHARACTERS


def _words(lowered: str) -> set[str]:
    """The words of the Latin script, hyphens and apostrophes being part of them."""
    latin = lowered if lowered.isascii() else lowered.encode("ascii", "replace").decode("ascii")
    return set(latin.translate(_PUNCTUATION).split())


def _stands_as_word(lowered: str, phrase: _Phrase, start: int, end: int) -> bool:
    starts = not phrase.starts_word or start == 0 or not lowered[start - 1].isalnum()
    return starts and (not phrase.ends_word or end == len(lowered) or not lowered[end].isalnum())
