"""Text to lexical terms: stemmed words, character pairs where a script has no spaces, identifiers whole and in parts.

One function for documents and queries, with no model and no state but a cache of single words. A change here that moves a
term is a new ``lexical.ANALYSER_REVISION``.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from py_rust_stemmers import SnowballStemmer

from coatcheck.domain.canonical import scalar_text
from coatcheck.index.stopwords import CONTRACTIONS, ENGLISH, RUSSIAN

# Scripts written without spaces (Thai, Lao, Myanmar, Khmer, kana, Han, bopomofo) and Hangul, whose particles hang on the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0980-\u0dff\u0f18-\u0fbc"
)
_JOINTS = r"[.:/@+~\\'’-]{1,3}|,(?=\d)"
_LANGUAGE_NAME = r"\b[A-Za-z](?:\+\+|\#)(?!\w)"

_ASCII_CHUNK = re.compile(rf"{_LANGUAGE_NAME}|\w+(?:(?:{_JOINTS})\w+)*", re.ASCII)
_ANY_CHUNK = re.compile(
    rf"{_LANGUAGE_NAME}|[^\W{_UNSPACED}]+(?:(?:{_JOINTS}|[{_MARKS}]+)[^\W{_UNSPACED}]+)*[{_MARKS}]*|[{_UNSPACED}]+"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_FOLDED = re.compile("[\u0000-\u03ff\u0590-\u06ff\u1e00-\u1fff]")
_OUTER_JOINT = re.compile(r"[/\\:@~+]+")
_INNER_JOINT = re.compile(r"[.\-_,'’]+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HUMP_BORDER = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LONG_HEX = re.compile(r"[0-9a-f]{20,128}")
_HASH_PREFIXES = (7, 8, 10, 12, 16)
_CACHED_CHARS = 64

_LATIN = SnowballStemmer("english")
_CYRILLIC = SnowballStemmer("russian")
_ARABIC = SnowballStemmer("arabic")
_GREEK = SnowballStemmer("greek")


class Terms(NamedTuple):
    """The terms of one chunk of text, hashed: those it stands for, and the parts by which it may be found as well."""

    whole: tuple[int, ...]
    parts: tuple[int, ...]


def chunks(text: str) -> Counter[str]:
    """The text cut into words, identifiers and runs of unspaced script, each with how often it occurs."""
    if text.isascii():
        return Counter(_ASCII_CHUNK.findall(text))
    return Counter(_ANY_CHUNK.findall(unicodedata.normalize("NFKC", scalar_text(text))))


def terms_of(chunk: str) -> Terms:
    """The terms of one chunk."""
    return _terms_cached(chunk) if len(chunk) <= _CACHED_CHARS else _terms(chunk)


def term_id(term: str) -> int:
    """The sparse dimension of a term: CRC-32 of its UTF-8, stable everywhere."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=100_000)
def _terms_cached(chunk: str) -> Terms:
    return _terms(chunk)


def _terms(chunk: str) -> Terms:
    if _UNSPACED_RUN.match(chunk):
        return _pairs(chunk)
    if _is_word(chunk):
        word = _word(chunk)
        return Terms((term_id(word),) if word else (), ())
    return _identifier(chunk)


def _is_word(chunk: str) -> bool:
    """Letters and their marks alone, and no CamelCase."""
    if chunk.isalpha():
        return not _HUMP_BORDER.search(chunk)
    return not chunk.isascii() and all(char.isalpha() or unicodedata.category(char)[0] == "M" for char in chunk)


def _pairs(run: str) -> Terms:
    """Every two neighbouring characters; a single Han character may be a word, so it is a part."""
    if len(run) == 1:
        return Terms((term_id(run),), ())
    pairs = tuple(term_id(run[at : at + 2]) for at in range(len(run) - 1))
    return Terms(pairs, tuple(term_id(char) for char in run if _HAN.match(char)))


def _identifier(chunk: str) -> Terms:
    lowered = chunk.casefold().replace("’", "'")
    if "'" in lowered:
        word = _without_contraction(lowered)
        if word.isalpha():
            stem = _word(word)
            return Terms((term_id(stem),) if stem else (), ())
    if _THOUSANDS.fullmatch(chunk):
        return Terms((term_id(chunk.replace(",", "")),), ())
    if chunk.isdigit():
        return Terms((term_id(lowered),), ())
    whole = fold(lowered)
    parts = dict.fromkeys(_parts(chunk))
    parts.pop(whole, None)
    return Terms((term_id(whole),), tuple(term_id(part) for part in parts))


def _parts(chunk: str) -> Iterator[str]:
    """Path components, then what dots, dashes and underscores divide, then the humps of CamelCase, then hash prefixes."""
    for component in _OUTER_JOINT.split(chunk):
        pieces = [piece for piece in _INNER_JOINT.split(component) if piece]
        if len(pieces) > 1:
            yield fold(component.casefold())
        if component[:1] in "vV" and component[1:2].isdigit():
            yield component[1:].casefold()
        for piece in pieces:
            yield from _piece(piece)


def _piece(piece: str) -> Iterator[str]:
    word = _word(piece) if piece.isalpha() else piece.casefold()
    if word:
        yield word
    if _LONG_HEX.fullmatch(word):
        yield from (word[:length] for length in _HASH_PREFIXES)
        return
    humps = _HUMPS.findall(piece) if piece.isascii() else []
    if len(humps) == 2 or (len(humps) > 2 and len(piece) >= 2.5 * len(humps)):
        for hump in humps:
            stem = _word(hump) if hump.isalpha() else hump
            if len(stem) > 1 or stem.isdigit():
                yield stem


def _word(word: str) -> str:
    """The stem of a word by its script, or nothing for a stop word."""
    lowered = fold(word.casefold())
    first = lowered[:1]
    if first <= "\u024f":
        return "" if lowered in ENGLISH else str(_LATIN.stem_word(lowered))
    if "\u0400" <= first <= "\u052f":
        lowered = lowered.replace("ё", "е")
        return "" if lowered in RUSSIAN else str(_CYRILLIC.stem_word(lowered))
    if "\u0600" <= first <= "\u06ff":
        return str(_ARABIC.stem_word(lowered))
    return str(_GREEK.stem_word(lowered)) if "\u0370" <= first <= "\u03ff" else lowered


def _without_contraction(word: str) -> str:
    """The word before its English ending; of a negation, the negation."""
    for ending in CONTRACTIONS:
        if word.endswith(ending):
            return word[: -len(ending)]
    return "not" if word.endswith("n't") else word


def fold(word: str) -> str:
    """Latin and Greek letters without their accents, Arabic and Hebrew without their points; other scripts as they are."""
    if word.isascii() or not _FOLDED.match(word):
        return word
    bare = "".join(char for char in unicodedata.normalize("NFD", word) if unicodedata.category(char) != "Mn")
    return bare or word
