"""Generated edits of a text: harmful ones, which change what it says, and shortenings that leave what it says.

The tables are written for these tests and not taken from the guard: what it does not know shows here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class Language:
    """The words that an editor of one language knows."""

    negations: str
    hedges: str
    modals: dict[str, str]
    """Each with one that says something else."""
    dates: str
    units: dict[str, str]
    names: str
    fillers: str
    courtesies: str
    stranger: str
    not_: str
    """A negation to put in."""


ENGLISH = Language(
    negations=r"\b(?:not|no|never|nothing|without|cannot|neither|nobody|none)\b|\w+n['’]t\b",
    hedges=r"\b(?:probably|perhaps|maybe|about|likely|almost|seems?|possibly|usually|I think|roughly|apparently|nearly)\b",
    modals={"may": "must", "must": "may", "should": "will", "can": "must", "could": "will", "will": "might", "would": "will"},
    dates=r"\b(?:Monday|Tuesday|Wednesday|Thursday|Friday|today|tomorrow|yesterday|November|December|\d{4}-\d\d-\d\d)\b",
    units={"minutes": "hours", "seconds": "minutes", "ms": "s", "hours": "days", "days": "weeks", "MB": "GB", "percent": "times"},
    names=r"(?<=[a-z,] )[A-Z][a-z]{2,}\b",
    fillers=r"\b(?:the|an?|really|very|just|please|also|now|quite|then|of|is|are|was|this|these|in|on|and|here|there|so|quickly|"
    r"carefully|myself|again|whole|simply)\b ?",
    courtesies=r"(?:Thanks|Thank you|Morning|Good|Great|Sure|OK|Fine|Yes)[.,!] ?",
    stranger="Also, the cluster was deleted by Mallory.",
    not_="not ",
)
RUSSIAN = Language(
    negations=r"\b(?:не|нет|ничего|никому|нельзя|без|вместо|никогда)\b",
    hedges=r"\b(?:возможно|кажется|примерно|вероятно|около|почти|предположительно|считает)\b",
    modals={"можно": "нужно", "нужно": "можно", "должно": "может", "придётся": "можно"},
    dates=r"\b(?:\d+ ноября|\d+ декабря|завтра|среды|ноября|декабря)\b",
    units={"минут": "часов", "минуту": "секунду", "секунд": "минут", "недели": "месяца", "%": "МБ"},
    names=r"\b(?:Анна|Борис|Ольга|Ольгу)\b",
    fillers=r"\b(?:очень|просто|уже|ещё|вот|это|так|тоже|там|ну|кстати|конечно|пожалуйста|действительно|была|"
    r"она|и|а|долго|лучше)\b ?",
    courtesies=r"(?:Спасибо, это очень хорошо\.|Вот так всё и сложилось\.|Конечно,|Ну вот,|Кстати,) ?",
    stranger="Кроме того, Пётр удалил базу.",
    not_="не ",
)
CHINESE = Language(
    negations=r"没有|不能|不要|不是|没|不|无效|除此之外|而不是",
    hedges=r"可能|大概|也许|大约|估计|几乎|觉得|认为",
    modals={"必须": "可以", "应该": "必须", "不能": "可以", "需要": "可以", "要": "会"},
    dates=r"11月18日|11月12日|12月3日|明天|周三|六点四十分",
    units={"分钟": "小时", "秒": "分钟", "周": "天", "次": "个", "%": "GB"},
    names=r"「orders」|timeout_s",
    fillers=r"已经|非常|了(?!解)|真的|的|也(?!许)|就|很|然后|这样|来说",
    courtesies=r"谢谢，这非常好。|事情就是这样的。|好的，",
    stranger="另外，数据库已经被王强删除。",
    not_="不",
)

_NUMBER = r"(?<![\w./:-])\d+(?:[.,:]\d+)*(?![\w/-])"
_IDENTIFIER = r"(?<![\w/])/[\w./-]+\w|\b\w+_\w+\b|\b\d+\.\d+\.\d+\b|\b[a-z]+-[a-z]+\b"
_QUOTED = r"«[^»]+»|`[^`]+`|\"[^\"]+\"|「[^」]+」"


def harmful(text: str, language: Language, chance: random.Random) -> tuple[str, str] | None:
    """One edit that changes what a text says, and its name; None where the text has no place for the kind that was drawn."""
    name, edit = chance.choice(_HARMFUL)
    changed = edit(text, language, chance)
    return None if changed is None or changed == text else (name, changed)


def shortened(text: str, language: Language, chance: random.Random) -> str | None:
    """A text without some of the words and courtesies that say nothing; None where there is nothing to leave out."""
    courtesies = _spans(language.courtesies, text)
    fillers = [span for span in _spans(f"(?i:{language.fillers})", text) if not any(a <= span[0] < b for a, b in courtesies)]
    spans = courtesies + fillers
    if not spans:
        return None
    for span in sorted(chance.sample(spans, chance.randint(1, min(4, len(spans)))), reverse=True):
        text = _without(text, span)
    return text


def _leaving_out(pattern: Callable[[Language], str]) -> Callable[[str, Language, random.Random], str | None]:
    def edit(text: str, language: Language, chance: random.Random) -> str | None:
        spans = _spans(pattern(language), text)
        return _without(text, chance.choice(spans)) if spans else None

    return edit


def _exchanging(pairs: Callable[[Language], dict[str, str]]) -> Callable[[str, Language, random.Random], str | None]:
    def edit(text: str, language: Language, chance: random.Random) -> str | None:
        table = pairs(language)
        spaced = language is not CHINESE
        words = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" if spaced else re.escape(word) for word in table)
        spans = _spans(words, text)
        if not spans:
            return None
        start, end = chance.choice(spans)
        return text[:start] + table[text[start:end]] + text[end:]

    return edit


def _without_a_unit(text: str, language: Language, chance: random.Random) -> str | None:
    units = "|".join(re.escape(unit) for unit in language.units)
    spans = [match.span(1) for match in re.finditer(rf"\d ?({units})(?![A-Za-zа-я])", text)]
    return _without(text, chance.choice(spans)) if spans else None


def _with_another_digit(text: str, language: Language, chance: random.Random) -> str | None:
    spans = _spans(r"\d", text)
    if not spans:
        return None
    start, end = chance.choice(spans)
    return text[:start] + str((int(text[start]) + chance.randint(1, 9)) % 10) + text[end:]


def _with_two_changed_about(pattern: str) -> Callable[[str, Language, random.Random], str | None]:
    def edit(text: str, language: Language, chance: random.Random) -> str | None:
        spans = _spans(pattern, text)
        if len(spans) < 2:
            return None
        (a, b), (c, d) = sorted(chance.sample(spans, 2))
        return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]

    return edit


def _with_a_letter_of_an_identifier_gone(text: str, language: Language, chance: random.Random) -> str | None:
    spans = _spans(_IDENTIFIER, text)
    if not spans:
        return None
    start, end = chance.choice(spans)
    place = chance.randrange(start, end)
    return text[:place] + text[place + 1 :]


def _with_a_sentence_more(text: str, language: Language, chance: random.Random) -> str | None:
    return f"{text} {language.stranger}"


def _negated(text: str, language: Language, chance: random.Random) -> str | None:
    places = [match.start(1) for match in re.finditer(r"[ ，、](\w)", text)]
    if not places:
        return None
    place = chance.choice(places)
    return text[:place] + language.not_ + text[place:]


def _unquoted(text: str, language: Language, chance: random.Random) -> str | None:
    spans = _spans(_QUOTED, text)
    if not spans:
        return None
    start, end = chance.choice(spans)
    return text[:start] + text[start + 1 : end - 1] + text[end:]


def _with_a_negation_of_another(text: str, language: Language, chance: random.Random) -> str | None:
    """What stands between a negation's neighbours goes: "A works, B does not" becomes "A does not"."""
    found = [match.span(1) for match in re.finditer(r"(?<=[\w])([^,，.。!！?？\n]{2,60}[,，])[^.。!！?？\n,，]{0,60}", text)]
    fitting = [span for span in found if re.search(language.negations, re.split(r"[,，.。:;]", text[span[1] :])[0])]
    return _without(text, chance.choice(fitting)) if fitting else None


_HARMFUL: Sequence[tuple[str, Callable[[str, Language, random.Random], str | None]]] = (
    ("negation dropped", _leaving_out(lambda language: language.negations)),
    ("negation added", _negated),
    ("negation of something else", _with_a_negation_of_another),
    ("hedge dropped", _leaving_out(lambda language: language.hedges)),
    ("modal dropped", _leaving_out(lambda language: "|".join(rf"(?<![a-zа-я]){word}(?![a-zа-я])" for word in language.modals))),
    ("modal exchanged", _exchanging(lambda language: language.modals)),
    ("date dropped", _leaving_out(lambda language: language.dates)),
    ("unit dropped", _without_a_unit),
    ("unit exchanged", _exchanging(lambda language: language.units)),
    ("number dropped", _leaving_out(lambda language: _NUMBER)),
    ("digit changed", _with_another_digit),
    ("numbers changed about", _with_two_changed_about(_NUMBER)),
    ("identifier dropped", _leaving_out(lambda language: _IDENTIFIER)),
    ("identifier changed", _with_a_letter_of_an_identifier_gone),
    ("name dropped", _leaving_out(lambda language: language.names)),
    ("quotes dropped", _unquoted),
    ("statement added", _with_a_sentence_more),
)


def _spans(pattern: str, text: str) -> list[Span]:
    return [match.span() for match in re.finditer(pattern, text)]


def _without(text: str, span: Span) -> str:
    return text[: span[0]] + text[span[1] :]


def rounds(
    texts: Sequence[str], language: Language, chance: random.Random
) -> Iterator[tuple[str, tuple[str, str] | None, str | None]]:
    """Without end: a text, a harmful edit of it and a shortening, either of which it may not admit."""
    while True:
        text = chance.choice(texts)
        yield text, harmful(text, language, chance), shortened(text, language, chance)
