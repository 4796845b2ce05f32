"""The words of a correction in English, Russian and Chinese: the policy list behind ``superseded_by``.

``OLD`` stands for what a pattern says is no longer so, ``VALUE`` for one value of that kind: a number, an identifier, a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OLD = r"(?P<old>(?:[^,;:，；：。、\n]|[,;:](?=\S)){1,80}?)"
_VALUE = r"(?P<old>\S{1,80}?)"
_END = r"(?=[.!?]*$|[,;:](?:\s|$)|[，；：。、]| (?:and|but|so|because|since|и|но)\b)"
_START = r"(?:^|(?<=[,;:]\s)|(?<=[，；：。、]))"


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to say it. Only a sentence that holds one of the cues, in lower case, can fit."""

    cues: tuple[str, ...]
    pattern: re.Pattern[str]


def _said(cues: str, pattern: str) -> Wording:
    """``cues`` are divided by bars."""
    for name, filled in (("OLD", _OLD), ("VALUE", _VALUE), ("START", _START), ("END", _END)):
        pattern = pattern.replace(name, filled)
    return Wording(tuple(cues.split("|")), re.compile(pattern, re.IGNORECASE))


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


TAKES_BACK = (
    _said("instead of", r"\binstead of OLDEND"),
    _said("no longer", r"\bno longer OLDEND"),
    _said("replaces |supersedes ", r"\b(?:replaces|supersedes) OLDEND"),
    _said(", not ", r", not (?:by |in |on |at |from |for |to |with )?VALUEEND"),
    _said(
        " from ",
        r"\b(?:chang|mov|switch|rais|lower|bump|renam|migrat|extend|postpon|shift|increas|reduc)\w*\b[^,;]*?\bfrom OLD to\b",
    ),
    _said("any more|anymore|any longer", r"STARTOLD any ?(?:more|longer)\b"),
    _said(
        "retired|supersede|obsolete|outdated|cancel|dropped|removed|replaced|decommission|revoked|withdrawn|wrong|incorrect|reverted"
        "|overruled|abandoned|switched off|no longer",
        r"STARTOLD (?:is|was|are|were|has been|have been) (?:now )?"
        r"(?:retired|superseded|obsolete|outdated|cancell?ed|dropped|removed|replaced|decommissioned|revoked"
        r"|withdrawn|wrong|incorrect|reverted|overruled|abandoned|switched off"
        r"|no longer (?:used|valid|needed|true|correct|in use))\b",
    ),
    _said(
        "disregard |scratch |forget about |ignore ", r"\b(?:disregard|scratch|forget about|ignore (?:what I said about|my)) OLDEND"
    ),
    #
    _said("вместо ", r"\bвместо OLDEND"),
    _said("больше не |уже не ", r"\b(?:больше|уже) не OLDEND"),
    _said(", а не ", r", а не VALUEEND"),
    _said(
        " с | со ",
        r"\b(?:измен|перен|смен|замен|подня|сниз|переключ|увелич|уменьш|перев|обнов|продл)\w*\b[^,;]*?\bсо? OLD на\b",
    ),
    _said(
        "отмен|устаре|удал|закры|замен|неверн|неактуальн|недейств|выключ|отключ|больше не",
        r"STARTOLD (?:отмен|устарел|удал[её]н|закры|замен[её]н|заменили|неверн|неактуальн|недействительн|выключ|отключ"
        r"|больше не (?:использ|примен|нуж|действ))",
    ),
    _said("забудь", r"\bзабудь(?:те)? (?:про|об?) OLDEND"),
    _said("забудь", r"\bпро OLD забудь"),
    #
    _said("不是|不用|不再|已不|已经不|取代|代替|替换", r"(?:而不是|不是|不用|不再由?|已经?不|取代了?|代替了?|替换了?)OLDEND"),
    _said("从|由", r"[从由]OLD已?(?:调整|修改|更改|变更|推迟|提前|延长|缩短|迁移|升级|增加|减少|改|换|升|降|移)[为成到至]"),
    _said(
        "停用|废弃|作废|取消|失效|弃用|不用|不再使用", r"STARTOLD(?:已经?|都|就)?(?:不再使用|停用|废弃|作废|取消|失效|弃用|不用了)"
    ),
    _said("别再", r"START(?P<old>[^，；。]{0,40}别再用[^，；。]{0,20})"),
    _said("忽略", r"(?:前面|之前|刚才)(?:说|提到)?的?OLD请?忽略"),
)

ANNOUNCES = (
    _said("correction", r"^\W*correction\b|\bcorrection:"),
    _said(" wrong| mistaken", r"\bI(?: was|'m| am) (?:wrong|mistaken) (?:about|on|in)\b"),
    _said("i mis|i mixed|i confused", r"\bI (?:misread|mixed up|misspoke|misremembered|confused)\b"),
    _said("my ", r"\bmy (?:earlier|previous|first|last)\b[^.;]*\b(?:was|were) (?:wrong|incorrect|mistaken)\b"),
    _said("as i ", r"\bnot\b[^.;]*\bas I (?:suggested|said|wrote|claimed)\b"),
    _said("scratch ", r"\bscratch (?:that|the|my)\b"),
    _said("decision", r"\brevised\b[^.;]*\bdecision\b|\bdecision\b[^.;]*\b(?:revised|reversed|overruled)\b"),
    _said("revised to", r"\b(?:is|was|has been|are|were) revised to\b"),
    #
    _said("исправл", r"^\W*исправл(?:ение|яюсь)\b|\bисправление:"),
    _said("поправ", r"^\W*поправ(?:ка|очка|лю|ляюсь)\b|\bпоправка:"),
    _said("я ", r"\bя (?:ошиб(?:ся|лась)|перепутала?|неверно|неправильно)\b"),
    _said("неверно |неправильно ", r"\b(?:я|раньше|ранее) (?:\w+ )?(?:неверно|неправильно) (?:прочита|поня|указа|написа|сказа)"),
    _said("неверн", r"\bмо[йяеи]\w* прежн\w+[^.;]*\bневерн"),
    _said("решение", r"\bрешение\b[^.;]*\b(?:пересмотре|отмен|измен)"),
    _said("как я ", r"\bне\b[^.;]*\bкак я (?:советовал|говорил|писал)"),
    #
    _said("更正|纠正|修正", r"更正[：:一]|更正$|纠正一下|修正一下"),
    _said("错了", r"(?:说|看|搞|弄|读|写|记)错了"),
    _said("有误|不对|错了|错的|不准确", r"(?:之前|此前|前面|原来)[^，。]*(?:有误|不对|错了|是错的|不准确)"),
    _said("不要像", r"不要像我?(?:之前|前面)说"),
    _said("决定", r"决定[^，。]*(?:取消|推翻|作废)"),
)
"""Says in so many words that it corrects."""

CHANGES = (
    _said("actually|turns out", r"^\W*actually\b|\bturns out\b"),
    _said("на самом деле", r"\bна самом деле\b"),
    _said("实际上", r"实际上"),
    _said("改|换|变更", r"(?:改|换|变更)[为成用]"),
)
"""Says only that something is otherwise: the other value has to be seen."""

TAKES_NOTHING_BACK = _any(
    # asked or proposed
    r"[?？]",
    r"\b(?:should|shall|could|might|may) (?:we|I|it|be)\b|\b(?:asked|whether|maybe|perhaps|propose|suggest(?:s|ion)|wonder)\b",
    r"\b(?:может|возможно|нельзя ли|стоит ли|спросил\w*|спрашива\w+|предлага\w+)\b",
    r"要不要|能不能|是否|可否|吗|建议|问",
    # supposed or planned
    r"\b(?:if|would|could|unless|once|planned|until then|in case|pending)\b",
    r"\b(?:если|бы|планиру\w+|до тех пор)\b|\bпока нич",
    r"如果|假如|要是|打算|计划|还没|在那之前",
    # denied, or left as it was
    r"\bno (?:\w+ )?(?:correction|change|revision)s?\b|\bas before\b|\bunchanged\b|\bleft\b",
    r"\bне (?:нужно|надо|требуется|меня\w+)\b|\bнужды нет\b|\bпо-прежнему\b|\bбез изменений\b|\bоставил\w*",
    r"不需要|无需|没有变|照旧|仍然|还是",
    # confirmed
    r"\b(?:yes|confirmed|right after all)\b",
    r"\b(?:верно|подтвержда\w+|подтвердил\w*)\b",
    r"没错|确认",
    # of the form alone
    r"\b(?:typos?|spelling|comments?|wording|formatting|grammar)\b",
    r"\b(?:опечат\w+|орфограф\w+|комментари\w+|формулировк\w+)",
    r"错别字|拼写|注释|措辞",
    # of former times
    r"\b(?:back in|for the record|at the time|used to)\b",
    r"\bдля истории\b|\bещ[её] в\b|\bв своё время\b",
    r"早在|当时",
)

PLACES = (
    (
        _any(r"\bstaging\b", r"\bstg\b", r"\bстейдж", "预发"),
        _any(r"\bproduction\b", r"\bprod\b", r"\bпрод(?:е|а|у|акшн\w*)?\b", "生产", "线上"),
    ),
    (_any(r"\bmobile\b", r"\bмобильн", "移动端", "手机"), _any(r"\bweb\b", r"\bвеб", "网页")),
    (_any(r"\bandroid\b"), _any(r"\bios\b")),
    (_any(r"\bfront-?end\b", r"\bфронтенд", "前端"), _any(r"\bback-?end\b", r"\bбэкенд", "后端")),
)
"""Where the same thing may stand otherwise: what is said of one corrects nothing that is said of the other."""
