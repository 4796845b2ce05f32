"""Pairs for a small model of inference: a text and a shortening (entailed), a text and a harmful edit of it (not entailed).

The texts are made from parts, so that there is no end of them; the edits are those that the fact guard is tested with, and a few
that it cannot know: a noun in another's place, a sentence of another text.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tests.compaction import edits

_THINGS = (
    "staging service", "nightly backup", "primary database", "login page", "search index", "message queue", "billing job",
    "payment gateway", "second cluster", "release branch", "retry handler", "image cache", "export script", "audit table",
    "metrics collector", "session store", "upload worker", "mail relay", "feature flag", "config loader", "reverse proxy",
    "old scheduler", "token parser", "report builder", "health check",
)  # fmt: skip
_PEOPLE = ("Alice", "Bob", "Maria", "Chen", "Olga", "Tom", "Priya", "Lukas", "Nadia", "Omar")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "tomorrow", "yesterday", "2026-11-18", "November 12")
_FILES = ("/etc/app/main.conf", "src/retry.py", "deploy_all.sh", "load_config", "handler.ts", "/var/log/app.log", "timeout_s")
_HEDGES = ("probably", "perhaps", "apparently", "likely", "possibly", "almost certainly", "I think", "it seems that")
_FILLERS = ("really", "just", "also", "quickly", "simply", "very carefully", "again", "now", "then", "quite")
_COURTESIES = ("Thanks.", "Thank you.", "Good.", "Great.", "OK.", "Fine.", "Sure.", "Yes.", "Morning.")
_SAYINGS = (
    "the {thing} listens on port {n}",
    "{who} owns the {thing} and reviews the {other}",
    "{hedge} the {thing} leaks memory in version {v}",
    "the {thing} did not finish before {day}",
    "the {thing} takes about {k} minutes and blocks the {other}",
    "nobody should restart the {thing} until the {other} is ready",
    "{who} moved the {thing} to the {other} on {day}",
    "the {thing} failed {k} times with code {n}",
    "do not change {file} without a review by {who}",
    "the {thing} {filler} reads {file} before the {other} starts",
    "the limit of the {thing} is {k} requests, not {n}",
    "{who} may raise the limit of the {thing} to {n}",
    "the {thing} must be rebuilt after the {other} is moved",
    "only the {thing} writes to {file}, the {other} never does",
    "the {thing} answers in {n} ms and the {other} in {k} seconds",
    "{who} found the reason in {file}: the {thing} never closed its connection",
    "the {thing} is {filler} slower than the {other} by {k} percent",
    "we will deploy the {thing} on {day} if the {other} works",
    "the {thing} cannot read the {other} because the disk is full",
    "{hedge} {who} fixed the {thing} {filler} on {day}",
    "the {thing} could lose up to {n} messages during a restart",
    "the tests of the {thing} pass, those of the {other} do not",
    'the name of the {thing} is "{file}" and of the {other} it is unknown',
    "the {thing} was down for {k} hours and is up again now",
)


@dataclass(frozen=True)
class Pair:
    """``what`` names the edit; ``entailed`` is the right answer."""

    premise: str
    hypothesis: str
    entailed: bool
    what: str


def text(chance: random.Random) -> str:
    """One to three sentences."""
    said = [_sentence(chance) for _ in range(chance.randint(1, 3))]
    if chance.random() < 0.4:
        said.insert(chance.randint(0, 1), chance.choice(_COURTESIES))
    return " ".join(said)


def pairs(chance: random.Random, count: int, texts: tuple[str, ...] = ()) -> list[Pair]:
    """Half of them entailed. Made of ``texts`` where there are some, else of texts that are made for each pair."""
    found: list[Pair] = []
    while len(found) < count:
        premise = chance.choice(texts) if texts else text(chance)
        made = _entailed(premise, chance) if len(found) % 2 else _not_entailed(premise, chance, made=not texts)
        if made is not None and made.hypothesis.strip() and made.hypothesis.split() != premise.split():
            found.append(made)
    return found


def _sentence(chance: random.Random) -> str:
    thing, other = chance.sample(_THINGS, 2)
    said = chance.choice(_SAYINGS).format(
        thing=thing, other=other, who=chance.choice(_PEOPLE), day=chance.choice(_DAYS), file=chance.choice(_FILES),
        n=chance.choice((8443, 9443, 250, 137, 500, 404, 1200, 6379, 75, 3000)), k=chance.randint(2, 60),
        v=f"{chance.randint(1, 9)}.{chance.randint(0, 20)}.{chance.randint(0, 9)}", hedge=chance.choice(_HEDGES),
        filler=chance.choice(_FILLERS),
    )  # fmt: skip
    if chance.random() < 0.3:
        words = said.split()
        words.insert(chance.randint(1, len(words) - 1), chance.choice(_FILLERS))
        said = " ".join(words)
    return said[0].upper() + said[1:] + "."


def _entailed(premise: str, chance: random.Random) -> Pair | None:
    shorter = edits.shortened(premise, edits.ENGLISH, chance)
    sentences = re.split(r"(?<=[.!?]) ", premise)
    if len(sentences) > 1 and chance.random() < 0.3:
        said = chance.choice([sentence for sentence in sentences if len(sentence) > 12] or sentences)
        return Pair(premise, said, True, "one sentence of it")
    return None if shorter is None else Pair(premise, shorter, True, "shortened")


def _not_entailed(premise: str, chance: random.Random, *, made: bool) -> Pair | None:
    drawn = chance.random()
    if drawn < 0.1 and made:
        return Pair(premise, text(chance), False, "another text")
    if drawn < 0.2:
        named = [thing for thing in _THINGS if thing in premise]
        if named:
            gone = chance.choice(named)
            other = chance.choice([thing for thing in _THINGS if thing != gone])
            return Pair(premise, premise.replace(gone, other), False, "another noun")
    harm = edits.harmful(premise, edits.ENGLISH, chance)
    if harm is None:
        return None
    what, edited = harm
    # Often with a harmless shortening besides, as a compressor makes them: a text may be told by what it lacks alone otherwise.
    shorter = edits.shortened(edited, edits.ENGLISH, chance) if chance.random() < 0.5 else None
    return Pair(premise, shorter or edited, False, what)
