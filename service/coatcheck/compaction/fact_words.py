"""The words whose loss changes what a text says: negations, hedges and conditions, number words; English, Russian, Chinese."""

from __future__ import annotations

import re

NEGATIONS = frozenset(
    (
        "not", "no", "never", "none", "neither", "nor", "nothing", "nobody", "nowhere", "without", "cannot", "cant", "dont",
        "wont", "isnt", "arent", "didnt", "doesnt", "unable", "fail", "fails", "failed", "failing", "refuse", "refuses",
        "refused", "deny", "denies", "denied", "except", "excluding", "lack", "lacks", "lacking", "missing", "hardly", "barely",
        "rarely", "seldom", "scarcely", "stop", "stopped", "avoid", "avoids", "forbid", "forbids", "forbidden", "prohibit",
        "prohibits", "prohibited", "instead", "unlike", "absent", "disabled", "disable", "prevent", "prevents", "prevented",
        "against", "impossible", "нет", "без", "кроме", "нельзя", "отказ", "отказано", "запрещено", "запрещён", "запрещен",
        "вместо", "против", "отсутствует", "отсутствуют", "исключая", "помимо", "nicht", "kein", "keine", "keinen", "nie",
        "niemals", "ohne", "ne", "pas", "jamais", "sans", "aucun", "aucune", "nunca", "sin", "ningún", "ninguna", "tampoco",
        "non", "senza", "mai", "não", "nem", "sem",
    )
)  # fmt: skip

HEDGES = frozenset(
    (
        "maybe", "perhaps", "possibly", "possible", "probably", "probable", "likely", "unlikely", "might", "may", "could",
        "should", "would", "can", "seem", "seems", "seemed", "appear", "appears", "appeared", "apparently", "seemingly",
        "about", "approximately", "approx", "roughly", "around", "circa", "almost", "nearly", "some", "sometimes", "usually",
        "often", "typically", "generally", "mostly", "partly", "partially", "assume", "assumes", "assumed", "assuming",
        "assumption", "think", "thinks", "thought", "believe", "believes", "believed", "guess", "guesses", "guessed", "suspect",
        "suspects", "suspected", "unsure", "uncertain", "unclear", "unconfirmed", "unverified", "estimate", "estimated",
        "estimates", "reportedly", "allegedly", "supposedly", "presumably", "potential", "potentially", "suggest", "suggests",
        "suggested", "hope", "hopefully", "expected", "expects", "expect", "planned", "tentative", "tentatively", "if",
        "unless", "until", "till", "only", "when", "whenever", "before", "after", "while", "because", "although", "though",
        "but", "however", "provided", "whether", "or", "either", "else", "otherwise", "than", "more", "less", "fewer", "most",
        "least", "every", "all", "any", "each", "few", "many", "several", "both", "always", "must", "ought", "supposed", "need",
        "needs", "required", "optional", "optionally", "except", "maximum", "minimum", "max", "min", "возможно", "может",
        "могут", "можно", "вероятно", "наверное", "наверно", "кажется", "похоже", "видимо", "примерно", "около", "почти",
        "приблизительно", "если", "пока", "думаю", "думаем", "полагаю", "считаю", "предположительно", "якобы", "вроде",
        "должен", "должна", "должно", "должны", "иногда", "обычно", "часто", "редко", "только", "лишь", "когда", "после", "до",
        "перед", "или", "либо", "но", "однако", "хотя", "больше", "меньше", "более", "менее", "каждый", "каждая", "каждое",
        "все", "всё", "весь", "любой", "любая", "несколько", "нужно", "надо", "обязательно", "всегда", "бы", "ли", "чем",
        "максимум", "минимум", "скорее",
    )
)  # fmt: skip

NUMBER_WORDS = frozenset(
    (
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty",
        "seventy", "eighty", "ninety", "hundred", "hundreds", "thousand", "thousands", "million", "millions", "billion",
        "billions", "trillion", "dozen", "dozens", "half", "third", "thirds", "quarter", "quarters", "first", "second",
        "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "last", "once", "twice", "thrice", "double",
        "triple", "single", "pair", "couple", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
        "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
        "today", "tomorrow", "yesterday", "tonight", "daily", "weekly", "monthly", "yearly", "hourly", "noon", "midnight",
        "ноль", "один", "одна", "одно", "одного", "одной", "два", "две", "двух", "три", "трёх", "трех", "четыре", "четырёх",
        "четырех", "пять", "пяти", "шесть", "шести", "семь", "семи", "восемь", "восьми", "девять", "девяти", "десять", "десяти",
        "двадцать", "тридцать", "сорок", "пятьдесят", "шестьдесят", "семьдесят", "восемьдесят", "девяносто", "сто", "двести",
        "триста", "тысяча", "тысячи", "тысяч", "миллион", "миллиона", "миллионов", "миллиард", "половина", "половину", "пол",
        "треть", "четверть", "первый", "первая", "второй", "вторая", "третий", "последний", "последняя", "дважды", "однажды",
        "пара", "пару", "десяток", "понедельник", "вторник", "среда", "среду", "четверг", "пятница", "пятницу", "суббота",
        "субботу", "воскресенье", "сегодня", "завтра", "вчера", "января", "февраля", "марта", "апреля", "мая", "июня", "июля",
        "августа", "сентября", "октября", "ноября", "декабря",
    )
)  # fmt: skip

COMMON = frozenset(
    (
        "a", "an", "the", "this", "that", "these", "those", "it", "its", "we", "i", "you", "he", "she", "they", "our", "my",
        "your", "his", "her", "their", "is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did",
        "will", "there", "here", "and", "so", "then", "also", "as", "at", "by", "for", "from", "in", "of", "on", "to", "with",
        "into", "over", "well", "now", "just", "very", "really", "quite", "yes", "ok", "okay", "hi", "hello", "thanks",
        "please", "let", "lets", "let's", "it's", "that's", "i'm", "we're", "what", "which", "who", "where", "why", "how",
        "basically", "overall", "generally", "additionally", "furthermore", "moreover", "anyway", "sure", "great", "good", "и",
        "а", "в", "во", "на", "с", "со", "к", "по", "из", "за", "о", "об", "от", "у", "это", "этот", "эта", "эти", "мы", "я",
        "вы", "он", "она", "они", "оно", "так", "то", "же", "уже", "ещё", "еще", "вот", "как", "что", "для", "при", "также",
        "тоже", "ну", "да", "просто", "очень", "наш", "мой", "ваш", "был", "была", "было", "были", "есть", "будет", "привет",
        "спасибо",
    )
)  # fmt: skip
"""Words that say nothing by themselves: no name when capitalised, and skipped when a negation looks for what it negates."""

CYRILLIC_NEGATION = re.compile(r"н[еи]\w*")
"""``не``, ``ни`` and everything that begins so: ``недоступен``, ``никто``; and ``неделя``, which costs a reduction, not a fact."""

CHINESE = re.compile(
    r"不|没|無|无|未|非|别|勿|莫|禁止|否|拒绝|除了|除非|而不是|失败|可能|也许|或许|大概|大约|约|似乎|好像|应该|应当|估计|如果|假如|若|据说|几乎|左右|"
    r"通常|有时|怀疑|或者|或|只有|只|仅|必须|之前|之后|以前|以后|直到|超过|少于|多于|至少|至多|最多|最少|所有|每|全部|部分|一些|但是|但|然而|"
    r"[零一二两三四五六七八九十百千万亿半]+|吗|呢"
)
