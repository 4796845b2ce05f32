"""Whether a line reads like an instruction to the agent: it then appears in a handoff by hash and role only.

Two measures. Anybody's line is judged by the shapes of prompt injection; a tool's line also by plain commands and by being
addressed to the reader, since nothing that a tool returns may tell the agent what to do. English, Russian, Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_START = r"^[\W_]{0,10}"
_SECRETS = (
    r"(?:system prompt|instructions|secrets?|passwords?|credentials?|api[ _-]?keys?|tokens?|conversation|private keys?|"
    r"env(?:ironment)? var)"
)
_VERBS = (
    "run|execute|call|invoke|use|open|visit|click|send|post|email|delete|remove|install|download|fetch|write|reply|respond|answer|"
    "say|tell|stop|continue|proceed|follow|transfer|approve|disable|enable|grant|copy|paste|go|navigate|browse|read|add|create|"
    "update|change|set|reset|push|merge|deploy|upload|forward|submit|sign|buy|pay|contact|ask|give|provide|include"
)


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_INJECTION = _any(
    (
        r"\b(?:ignore|disregard|forget|override|bypass|overrule)\b.{0,60}\b(?:previous|prior|above|earlier|preceding|all|any|"
        r"system|your|these|instructions?|prompts?|rules?|directions?|guidelines?)\b",
        r"\b(?:new|updated|real|actual|hidden|secret|additional|following)\s+(?:system\s+)?"
        r"(?:instructions?|prompts?|orders|directives?)\b",
        r"\bsystem\s*(?:prompt|message|override|instructions?|note)\b",
        r"\b(?:you are|you're) (?:now|an? (?:ai|assistant|agent|model|helpful)|the assistant)\b",
        r"\bfrom now on,? you\b|\bact as\b|\bpretend (?:to be|you|that you)\b|\brole-?play\b|\bjailbreak\b",
        r"\b(?:developer|dan) mode\b",
        r"\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|mention|mentioning|alert|alerting|notify|notifying)\b",
        r"(?<!never )(?<!not )(?<!n't )\b(?:reveal|leak|exfiltrate|disclose|print|repeat|output|show|send|post|email|upload|"
        r"forward)\b.{0,60}\b" + _SECRETS,
        r"<\s*/?\s*(?:system|assistant|user|human|instructions?|tool|function)\b|<\|[^|>]{0,40}\|>|\[/?inst\]|<<\s*/?sys\s*>>",
        _START + r"(?:system|assistant|human|user|developer)\s*:|\b(?:begin|end) (?:system|prompt|instructions?|of prompt)\b",
        r"\b(?:игнорируй|проигнорируй|забудь|отмени|не обращай внимани)\w{0,4}.{0,60}"
        r"(?:инструкц|указани|правил|предыдущ|выше|команд|всё|все)",
        r"\bты (?:теперь|отныне)\b|\bс этого момента ты\b|\bнов\w{1,3} (?:инструкц|указани)",
        r"\bсистемн\w{1,3} (?:промпт|сообщени|инструкц)|\bне (?:говори|сообщай|рассказывай|упоминай)\w{0,2}\b",
        r"\b(?:отправь|перешли|покажи|выведи|раскрой)\w{0,2}\b.{0,60}(?:парол|ключ|токен|секрет|инструкц|переписк)",
        r"(?:忽略|无视|忘记|忘掉|不要理会|无需遵守|不必遵守).{0,30}(?:指令|指示|提示|规则|要求|以上|之前|上述|上面|所有|一切)",
        r"你现在是|从现在起|从现在开始|扮演|系统提示|系统消息|新的?(?:指令|指示)|不要告诉|不要告知",
        r"(?:发送|泄露|输出|显示|告诉我).{0,20}(?:密码|密钥|令牌|凭据|系统提示|对话)",
    )
)

_ADDRESSED = _any(
    (
        r"\byou (?:must|should|shall|need to|have to|are required|are (?:asked|instructed|requested)|will now|can now)\b",
        r"\byour (?:task|job|goal|instructions?|next step|role|mission|objective)\b|\b(?:please|kindly)\b",
        r"\b(?:dear|attention|note to|hey|hello|hi),? (?:the )?"
        r"(?:ai|assistant|agent|model|llm|bot|claude|gpt|chatgpt|gemini|copilot)\b",
        r"\b(?:ai|assistant|agent|llm|model)s?\b.{0,20}\b(?:must|should|shall|need to|have to)\b",
        _START + r"(?:important|attention|urgent|instructions?|action required|notice)\b",
        _START + r"(?:always|never|do not|don't|must|make sure|be sure|remember to|ensure that)\b",
        _START
        + rf"(?:{_VERBS})\s+(?:(?:the|this|that|these|those|all|any|your|my|our|following|an?|to|it|them|every|each|with|back|"
        r"only|rm|curl|wget|sudo|git|bash|sh|npm|pip|python)\b|https?:|[`\"'/$])",
        r"\b(?:ты|вы) (?:должен|должна|должны|обязан\w{0,2})\b|\b(?:пожалуйста|обязательно)\b",
        _START + r"(?:выполни|запусти|отправь|удали|открой|скачай|перейди|вызови|напиши|ответь|скажи|установи|не )\w{0,2}\b",
        r"[你您](?:必须|应该|需要|得)|务必|" + _START + r"(?:不要|切勿|请)",
        r"请(?:你|您|立即|执行|运行|发送|删除|调用|访问|打开|点击|下载|安装|回复)",
    )
)


def reads_like_an_instruction(line: str, role: str) -> bool:
    """Whether a line may not be quoted in a handoff. ``line`` is cleaned: one line, no invisible characters."""
    return _INJECTION.search(line) is not None or (role == "tool" and _ADDRESSED.search(line) is not None)
