"""The words whose loss changes what a text says, in English, Russian and Chinese, by what they do; and those that say nothing.

English has its inflected forms listed, Russian is matched by stems, Chinese as substrings. Where a pattern takes in a word that
it should not (``неделя`` begins as a negation does), that costs a reduction, never a fact.
"""

from __future__ import annotations

import re
from enum import StrEnum


class FactKind(StrEnum):
    """What a fact is, as it is named in a reason."""

    PLACEHOLDER = "placeholder"
    NUMBER = "number"
    UNIT = "unit"
    DATE = "date"
    IDENTIFIER = "identifier"
    PATH = "path"
    ADDRESS = "address"
    NAME = "name"
    QUOTED = "quoted-name"
    NEGATION = "negation"
    HEDGE = "hedge"
    MODAL = "modal"
    CONDITION = "condition"
    QUANTITY = "quantity"
    RELATION = "relation"
    QUESTION = "question"
    CLAUSE = "clause"
    """What a fact is about: the words around it that say something."""
    WORD = "word"
    """Any other word: it may go, never come or move."""


NEGATIONS = frozenset(
    (
        "not", "no", "never", "none", "neither", "nor", "nothing", "nobody", "nowhere", "without", "cannot", "cant", "dont",
        "wont", "isnt", "arent", "didnt", "doesnt", "unable", "fail", "fails", "failed", "failing", "refuse", "refuses",
        "refused", "refusing", "deny", "denies", "denied", "denying", "except", "excluding", "excludes", "lack", "lacks",
        "lacking", "missing", "hardly", "barely", "rarely", "seldom", "scarcely", "stop", "stops", "stopped", "avoid", "avoids",
        "avoided", "forbid", "forbids", "forbidden", "prohibit", "prohibits", "prohibited", "instead", "unlike", "absent",
        "disabled", "disable", "disables", "prevent", "prevents", "prevented", "against", "impossible", "rather",
        "yet", "cease", "ceased", "quit",
    )
)  # fmt: skip

HEDGES = frozenset(
    (
        "maybe", "perhaps", "possibly", "possible", "probably", "probable", "likely", "unlikely", "seem", "seems", "seemed",
        "appear", "appears", "appeared", "apparently", "seemingly", "about", "approximately", "approx", "roughly", "around",
        "circa", "almost", "nearly", "sometimes", "usually", "often", "typically", "generally", "mostly", "partly", "partially",
        "assume", "assumes", "assumed", "assuming", "assumption", "think", "thinks", "thought", "believe", "believes",
        "believed", "guess", "guesses", "guessed", "suspect", "suspects", "suspected", "unsure", "uncertain", "unclear",
        "unconfirmed", "unverified", "estimate", "estimated", "estimates", "reportedly", "allegedly", "supposedly",
        "presumably", "potential", "potentially", "suggest", "suggests", "suggested", "hope", "hopes", "hopefully", "expected",
        "expects", "expect", "planned", "tentative", "tentatively", "supposed", "temporary", "temporarily", "try", "tries",
        "tried", "trying", "somewhat", "kinda", "sorta",
    )
)  # fmt: skip

MODALS = frozenset(
    (
        "might", "may", "could", "should", "would", "can", "must", "ought", "need", "needs", "needed", "required", "requires",
        "require", "optional", "optionally", "will", "shall", "we'll", "i'll", "you'll", "they'll", "it'll", "he'll", "she'll",
        "i'd", "we'd", "you'd", "they'd", "always", "want", "wants", "wanted", "wanting", "wish",
        "wishes", "allowed", "permitted", "going", "gonna", "gotta", "able", "used",
    )
)  # fmt: skip

CONDITIONS = frozenset(
    (
        "if", "unless", "until", "till", "only", "when", "whenever", "before", "after", "while", "because", "although",
        "though", "but", "however", "provided", "whether", "or", "either", "else", "otherwise", "once", "since", "during",
    )
)  # fmt: skip

QUANTITIES = frozenset(
    (
        "than", "more", "less", "fewer", "most", "least", "every", "all", "any", "each", "few", "many", "several", "both",
        "some", "maximum", "minimum", "max", "min", "above", "below", "over", "under", "within", "per", "too", "enough",
        "other", "another", "same", "different",
    )
)  # fmt: skip

RELATIONS = frozenset(("by", "from", "от", "из"))
"""Who does it to whom, and which way it goes: ``blocked by Alice`` is not ``blocked Alice``."""

NUMBER_WORDS = frozenset(
    (
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty",
        "seventy", "eighty", "ninety", "hundred", "hundreds", "thousand", "thousands", "million", "millions", "billion",
        "billions", "trillion", "dozen", "dozens", "half", "third", "thirds", "quarter", "quarters", "first", "second",
        "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "last", "twice", "thrice", "double", "triple",
        "single", "pair", "couple",
    )
)  # fmt: skip

DATE_WORDS = frozenset(
    (
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march", "april",
        "june", "july", "august", "september", "october", "november", "december", "today", "tomorrow", "yesterday", "tonight",
        "daily", "weekly", "monthly", "yearly", "hourly", "noon", "midnight", "ago", "next", "previous", "previously", "earlier",
        "later", "soon", "recently", "current", "currently", "former", "formerly", "new", "old", "latest",
    )
)  # fmt: skip

UNITS = frozenset(
    (
        "ms", "sec", "secs", "seconds", "minute", "minutes", "mins", "hour", "hours", "hrs", "day", "days", "week", "weeks",
        "month", "months", "year", "years", "bit", "bits", "byte", "bytes", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib",
        "hz", "khz", "mhz", "ghz", "px", "fps", "rps", "qps", "rpm", "percent", "degrees", "meters", "metres", "km", "kg",
        "grams", "usd", "eur", "gbp", "dollars", "euros", "cents", "tokens",
    )
)  # fmt: skip

_CYRILLIC: tuple[tuple[FactKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(f"(?:{stems})"))
    for kind, stems in (
        (
            FactKind.NEGATION,
            r"н[еи]\w*|без|кроме|отказ\w*|запре[тщ]\w*|вместо|против|отсутств\w*|исключ\w*|помимо|нет|отключ\w*|прекра[тщ]\w*|"
            r"избега\w*|перест\w*",
        ),
        (
            FactKind.MODAL,
            r"мо[гж]\w*|смо[гж]\w*|должн?\w*|долж[ен]н?\w*|нужн\w*|надо|обязан\w*|обязательн\w*|следует|стоит|прид[её]тся|"
            r"буд(?:ет|ут|у|ем|ете|ешь)|требу\w*|разреш\w*|всегда|хо[тч]\w*|бы|станет|станут|"
            r"приход\w*|приш[лё]\w*|собира\w*|намер\w*|готов\w*",
        ),
        (
            FactKind.HEDGE,
            r"возможн\w*|вероятн\w*|наверн\w*|кажется|казал\w*|похоже|видимо|примерн\w*|около|почти|приблизительн\w*|дума\w*|"
            r"полага\w*|счита\w*|предпол\w*|якобы|вроде|иногда|обычно|часто|редко|скорее|ожида\w*|план\w*|подозр\w*|оцен\w*|"
            r"временн\w*|отчасти|частично|пыта\w*|надею\w*|надеем\w*",
        ),
        (
            FactKind.CONDITION,
            r"если|пока|только|лишь|когда|после|до|перед|или|либо|но|однако|хотя|ли|иначе|поскольку|потому|чтобы|прежде|раньше|"
            r"позже",
        ),
        (
            FactKind.QUANTITY,
            r"больше|меньше|более|менее|кажд\w*|все|всё|весь|вся|всех|всем|люб(?:ой|ая|ое|ые|ого|ому|ым|ых)|нескольк\w*|чем|"
            r"максим\w*|миним\w*|выше|ниже|свыше|об[ае]|обоих|часть|некотор\w*|многи\w*|много|мало|друг\w*|ин(?:ой|ая|ое|ые|ых|ым)|"
            r"сам(?:ый|ая|ое|ые|ого|ую)|слишком|достаточн\w*",
        ),
        (
            FactKind.NUMBER,
            r"ноль|нуля|одн\w*|один|дв(?:а|е|ух|ум|умя|ое)|тр(?:и|[её]х|[её]м|ое|емя)|четыр\w*|четвер[ыо]\w*|четверт\w*|пят\w*|"
            r"шест\w*|сем[ьи]|седьм\w*|восем\w*|восьм\w*|девят\w*|десят\w*|\w+надцат\w*|двадцат\w*|тридцат\w*|сорок\w*|ст[оа]|"
            r"двест\w*|трист\w*|тысяч\w*|миллион\w*|миллиард\w*|полови\w*|пол|полтор\w*|треть\w*|перв\w*|втор\w*|последн\w*|"
            r"дважды|однажды|пар[ауы]|десяток",
        ),
        (
            FactKind.DATE,
            r"понедельник\w*|вторник\w*|сред[аыуе]|четверг\w*|пятниц\w*|суббот\w*|воскресень\w*|январ\w*|феврал\w*|март\w*|"
            r"апрел\w*|ма[яе]|июн\w*|июл\w*|август\w*|сентябр\w*|октябр\w*|ноябр\w*|декабр\w*|сегодня\w*|завтра\w*|вчера\w*|"
            r"полночь|полдень|назад|следующ\w*|прошл\w*|предыдущ\w*|недавно|скоро|нов\w*|стар\w*|прежн\w*",
        ),
        (
            FactKind.UNIT,
            r"секунд\w*|минут\w*|час(?:а|ов|у|ам|ы)?|дн(?:я|ей|и)|день|недел\w*|месяц\w*|год(?:а|у|ов|ы)?|лет|байт\w*|"
            r"процент\w*|руб\w*|доллар\w*|метр\w*|километр\w*|килограмм\w*|км|кг|мс|мин|сек|гб|мб|кб|шт",
        ),
    )
)  # fmt: skip

_CHINESE: tuple[tuple[FactKind, str], ...] = (
    (
        FactKind.DATE,
        r"昨天|今天|明天|后天|前天|昨日|今日|明日|周[一二三四五六日末]|星期[一二三四五六日天]|上周|下周|本周|今年|去年|明年",
    ),
    (
        FactKind.NEGATION,
        r"不|没|沒|無|无|未|非(?!常)|别|別|勿|莫|禁止|否|拒绝|拒絕|除了|除非|而不是|失败|失敗|停止|避免|缺|禁用|取消|代替|反对|反對",
    ),
    (
        FactKind.HEDGE,
        r"可能|也许|也許|或许|或許|大概|大约|大約|约|約|似乎|好像|估计|估計|据说|據說|几乎|幾乎|左右|通常|有时|有時|怀疑|懷疑|预计|預計|"
        r"看来|看來|计划|計劃|暂时|暫時|觉得|认为|猜|尝试|上下|希望",
    ),
    (FactKind.MODAL, r"应该|應該|应当|應當|应|應|必须|必須|可以|能|会|會|将|將|要|需|该|該|总是|一律|务必|允许|准备|想|打算|愿意"),
    (
        FactKind.CONDITION,
        r"如果|假如|若|或者|或|只有|只|仅|僅|之前|之后|之後|以前|以后|以後|直到|但是|但|然而|因为|因為|所以|时候|当|當|虽然|雖然|否则|一旦|先|再",
    ),
    (
        FactKind.QUANTITY,
        r"超过|超過|少于|少於|多于|多於|至少|至多|最多|最少|所有|每|全部|部分|一些|以上|以下|以内|高于|低于|最大|最小|都|几|幾|两者|多|少",
    ),
    (
        FactKind.UNIT,
        r"毫秒|分钟|分鐘|小时|小時|秒|公里|公斤|千克|米|元|美元|字节|兆|百分之|个月|個月|年|月|日|天|周|台|条|次|块",
    ),
    (FactKind.NUMBER, r"[零〇一二两三四五六七八九十百千万亿半兩萬億]+|第|首|双|倍"),
    (FactKind.QUESTION, r"吗|嗎|呢|谁|誰|什么|哪|为何|怎么|几时|是否"),
)
CHINESE = re.compile("|".join(f"(?P<k{number}>{words})" for number, (_, words) in enumerate(_CHINESE)))

CHINESE_FILLERS = re.compile(
    r"^谢谢(?:大家)?$|^好的$|已经|非常|(?<![认天逼当])真的|(?<!目)的确(?![定认切])|(?<![当虽自既必突忽仍显竟])然后|那么|(?<![我你他她它们])的话|"
    r"(?<![目标似有])的|了(?![解结不])|啊|(?<![酒网贴])吧|呀|嘛|哦|嗯|(?<![成将迁屈])就(?![绪业职任近地座算医读诊])|也(?!许)|很"
)
"""What may go from within a Chinese clause. It has no spaces, so that any other character that goes may leave another word; and
these go only where they are no part of one (``了`` of ``了解``) and say nothing (``好的`` as an answer, not in ``更好的方案``)."""

COMMON = frozenset(
    (
        "a", "an", "the", "this", "that", "these", "those", "it", "its", "we", "i", "you", "he", "she", "they", "our", "my",
        "your", "his", "her", "their", "is", "are", "was", "were", "be", "been", "being", "am", "has", "have", "had", "do",
        "does", "did", "there", "here", "and", "so", "then", "also", "as", "at", "for", "in", "of", "on", "to", "with", "into",
        "well", "now", "just", "very", "really", "quite", "yes", "ok", "okay", "hi", "hello", "thanks", "thank", "please",
        "let", "lets", "let's", "it's", "that's", "i'm", "we're", "you're", "they're", "i've", "we've", "what", "which", "who",
        "where", "why", "how", "basically", "overall", "additionally", "furthermore", "moreover", "anyway", "sure", "great",
        "good", "morning", "indeed", "simply", "certainly", "obviously", "clearly", "alright", "и", "а", "в", "во", "на",
        "с", "со", "к", "по", "за", "о", "об", "у", "это", "этот", "эта", "эти", "мы", "я", "вы", "он", "она", "они", "оно",
        "так", "то", "же", "уже", "ещё", "еще", "вот", "как", "что", "для", "при", "также", "тоже", "ну", "да", "просто",
        "очень", "наш", "мой", "ваш", "был", "была", "было", "были", "есть", "привет", "спасибо", "пожалуйста", "конечно",
        "действительно", "собственно", "кстати", "итак", "затем", "потом", "нам", "нас", "их", "его", "её", "ее", "который",
        "которая", "которое", "которые", "здесь", "там", "тут", "сейчас", "теперь",
    )
)  # fmt: skip
"""Words that say nothing by themselves: no name when capitalised, and free to go from the clause of a fact."""

_CONTRACTED_NOT = re.compile(r"\w*n't")
_ENGLISH: tuple[tuple[FactKind, frozenset[str]], ...] = (
    (FactKind.NEGATION, NEGATIONS),
    (FactKind.HEDGE, HEDGES),
    (FactKind.MODAL, MODALS),
    (FactKind.CONDITION, CONDITIONS),
    (FactKind.QUANTITY, QUANTITIES),
    (FactKind.RELATION, RELATIONS),
    (FactKind.NUMBER, NUMBER_WORDS),
    (FactKind.DATE, DATE_WORDS),
    (FactKind.UNIT, UNITS),
)
KNOWN = {word: kind for kind, words in reversed(_ENGLISH) for word in words}


def kind_of_word(word: str) -> FactKind | None:
    """What an English or Russian word in lower case does; None for a word that does none of these things."""
    known = KNOWN.get(word)
    if known is not None:
        return known
    if word.isascii():
        return FactKind.NEGATION if _CONTRACTED_NOT.fullmatch(word) else None
    if "а" <= word[0] <= "ё" and word not in COMMON:
        return next((kind for kind, stems in _CYRILLIC if stems.fullmatch(word)), None)
    return None


def kind_of_chinese(match: re.Match[str]) -> FactKind:
    """What a match of ``CHINESE`` does."""
    return _CHINESE[int((match.lastgroup or "k0")[1:])][0]
