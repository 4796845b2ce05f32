"""What a text takes back: its sentences with an explicit correction, in English, Russian and Chinese.

A correction is *announced* ("I was wrong about ..."), or *takes back* what it names ("9443 instead of 8443"), or says only that
something is otherwise ("actually ..."). What is asked, supposed, planned, quoted, denied or told of former times takes nothing
back. The words are those of ``correction_words``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from coatcheck.memory.correction_words import ANNOUNCES, CHANGES, TAKES_BACK, TAKES_NOTHING_BACK, Wording

READ_CHARS = 2_000
"""A correction and its subject stand near each other; the rest of a long segment would only add words to share."""
SENTENCE_CHARS = 400
"""Of a sentence that has no end; a log's line, mostly."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|「[^」\n]*」|^\s*>.*')
_CUES = {cue for wording in (*TAKES_BACK, *ANNOUNCES, *CHANGES) for cue in wording.cues}
_ASCII_CUES = tuple(sorted(cue for cue in _CUES if cue.isascii()))
_OTHER_CUES = tuple(sorted(cue for cue in _CUES if not cue.isascii()))


@dataclass(frozen=True, slots=True)
class Correction:
    """One sentence that corrects, with its neighbours."""

    sentence: str
    near: str
    taken_back: tuple[str, ...]
    """What it names as no longer so."""
    announced: bool
    """Whether it says in so many words that it corrects."""


def sentences_of(text: str) -> list[str]:
    """The sentences of a text's head, each with no more than its beginning."""
    return [sentence[:SENTENCE_CHARS] for sentence in _SENTENCE_END.split(text[:READ_CHARS]) if sentence.strip()]


def corrections(text: str) -> list[Correction]:
    """Those of a text's head, in its order."""
    if not _has_cue(text[:READ_CHARS].lower()):
        return []
    sentences = sentences_of(text)
    found = []
    for at, sentence in enumerate(sentences):
        lowered = sentence.lower()
        if not _has_cue(lowered):
            continue
        own = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), sentence)
        places = (place for wording in _fitting(TAKES_BACK, lowered) for place in wording.pattern.finditer(own))
        taken_back = tuple(sentence[slice(*place.span("old"))] for place in places)
        announced = _says_any(ANNOUNCES, lowered, own)
        if (taken_back or announced or _says_any(CHANGES, lowered, own)) and not TAKES_NOTHING_BACK.search(own):
            found.append(Correction(sentence, " ".join(sentences[max(0, at - 1) : at + 2]), taken_back, announced))
    return found


def _has_cue(lowered: str) -> bool:
    return any(cue in lowered for cue in _ASCII_CUES) or (not lowered.isascii() and any(cue in lowered for cue in _OTHER_CUES))


def _fitting(wordings: Iterable[Wording], lowered: str) -> Iterable[Wording]:
    return (wording for wording in wordings if any(cue in lowered for cue in wording.cues))


def _says_any(wordings: Iterable[Wording], lowered: str, own: str) -> bool:
    return any(wording.pattern.search(own) for wording in _fitting(wordings, lowered))
