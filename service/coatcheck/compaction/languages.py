"""Whether a text is in a language whose negations and hedges the fact guard knows: English, Russian and Chinese.

Another script is told by its letters, another language in a known script by its small words. A text that reads like neither is
not understood, and what is not understood is never shortened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from coatcheck.compaction.fact_tokens import Token
from coatcheck.compaction.fact_words import COMMON, KNOWN, kind_of_word

_OTHER_SCRIPT = re.compile(r"[\u0370-\u03ff\u0530-\u1dff\u2c00-\u2dff\u3040-\u30ff\u3130-\u318f\ua000-\ud7ff]")
"""Greek, Armenian to Georgian and everything between, kana, Hangul: scripts other than Latin, Cyrillic and Han."""
_OTHER_CYRILLIC = re.compile(r"[\u0400\u0402-\u040f\u0450\u0452-\u052f]|[а-яё]ъ(?![еёюя])", re.IGNORECASE)
"""Letters that Ukrainian, Belarusian, Serbian, Macedonian have and Russian has not; and the hard sign as Bulgarian sets it."""
_OTHER_LATIN = frozenset(
    (
        "der", "das", "und", "ist", "nicht", "ein", "eine", "den", "dem", "mit", "auf", "für", "kein", "keine", "wird", "sich",
        "le", "la", "les", "des", "du", "et", "est", "une", "un", "pas", "ne", "que", "qui", "pour", "dans", "sur", "avec",
        "el", "los", "las", "en", "es", "y", "por", "con", "para", "una", "del", "al", "il", "lo", "gli", "che", "di", "non",
        "della", "sono", "è", "não", "em", "uma", "os", "é", "com", "het", "een", "niet", "van", "de", "dat", "geen", "zijn",
        "och", "att", "det", "är", "inte", "som", "av", "ikke", "og", "til", "på", "er", "ei", "ja", "että", "nie", "się",
        "jest", "na", "je", "se", "není", "nem", "hogy", "az", "nu", "este", "și", "bir", "ve", "değil", "için",
        "không", "của", "và", "là", "yang", "tidak", "dan", "untuk", "ini",
    )
)  # fmt: skip
_WORD = re.compile(r"[a-zß-ÿа-яё]+(?:['’][a-z]+)?")
_LEAST_WORDS = 5
_LEAST_SHARE = 0.15
"""Of the words of a text, small words of its language: English prose has about half, German read as English a tenth at most."""


def understood(text: str, read: Sequence[Token]) -> bool:
    """Whether nothing in a text says that it is in another language; ``read`` are its tokens."""
    if _OTHER_SCRIPT.search(text) or _OTHER_CYRILLIC.search(text):
        return False
    words = [lowered for token in read if _WORD.fullmatch(lowered := token.text.lower().replace("’", "'"))]
    latin = [word for word in words if word[0] < "\u0400"]
    cyrillic = [word for word in words if word[0] >= "\u0400"]
    foreign = sum(1 for word in latin if word in _OTHER_LATIN)
    return not 2 * foreign > _small(latin) and _reads_as_known(latin, cyrillic) and _reads_as_known(cyrillic, latin)


def _reads_as_known(words: Sequence[str], others: Sequence[str]) -> bool:
    """A few words of another script are terms; a text in them has to show some of its small words."""
    if len(words) < _LEAST_WORDS or len(words) < len(others):
        return True
    return _small(words) >= _LEAST_SHARE * len(words)


def _small(words: Sequence[str]) -> int:
    return sum(1 for word in words if word in COMMON or word in KNOWN or kind_of_word(word) is not None)
