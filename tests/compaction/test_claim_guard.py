"""What a generated sentence claims has to be what its passage says: the values that turn about most easily are held here."""

from __future__ import annotations

import random
import re
import time

import pytest

from coatcheck.compaction.claim_guard import Objection, objection
from tests.compaction import edits, prose

_PARTS = re.compile(r"(?<=[.!?…])[\"'”’»)\]]{0,3}\s+|(?<=。)|\n+")

PORTS = "The staging service listens on port 8443 and the production service listens on port 9443. Alice owns both."


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        (PORTS, "The staging service listens on port 8443."),
        (PORTS, "Staging listens on 8443 and production listens on 9443."),
        (PORTS, "Alice owns both."),
        ("The service listens on 8443 and Alice owns it.", "Alice runs the service on 8443."),
        ("The cache works, the queue does not.", "The cache works."),
        ("The cache works, the queue does not.", "The queue does not."),
        ("The deploy of Monday failed because the disk was full.", "The deploy failed: the disk was full."),
        ("The leak probably comes from the new driver.", "The leak likely comes from the new driver."),
        ("Please move the staging service to port 8443.", "The user asked to move the staging service to port 8443."),
        ("Do not delete the old table.", "The old table must not be deleted."),
        ("Сервис слушает порт 8443, Анна отвечает за него.", "Сервис слушает порт 8443."),
        ("Развёртывание не удалось: диск заполнен.", "Развёртывание не удалось, диск заполнен."),
        ("服务监听端口 8443，队列不可用。", "队列不可用。"),
    ],
)
def test_what_the_passage_says_is_carried(passage: str, sentence: str) -> None:
    assert objection(passage, sentence) is None


@pytest.mark.parametrize(
    ("passage", "sentence", "why"),
    [
        ("The service listens on 8443 and Alice owns it.", "The service listens on 8444.", Objection.FACT),
        ("The service listens on 8443 and Alice owns it.", "Bob owns the service.", Objection.FACT),
        ("The file is 5 MB.", "The file is 5 GB.", Objection.FACT),
        ("The deploy did not finish.", "The deploy finished.", Objection.NEGATION),
        ("It is not true that the deploy finished.", "the deploy finished.", Objection.NEGATION),
        ("Nobody did not finish the deploy.", "Nobody finished the deploy.", Objection.NEGATION),
        ("Deploy runs only with green tests.", "Deploy runs", Objection.CONDITION),
        ("The deploy finished.", "The deploy never finished.", Objection.NEGATION),
        ("The cache works, the queue does not.", "The queue works.", Objection.NEGATION),
        ("Never restart the primary database.", "Restart of the primary database is planned.", Objection.NEGATION),
        ("The new driver probably causes the leak.", "The new driver causes the leak.", Objection.HEDGE),
        ("I think the disk of the primary is full.", "The disk of the primary is full.", Objection.HEDGE),
        ("Perhaps, the disk of the primary is full.", "The disk of the primary is full.", Objection.HEDGE),
        ("The limit may be raised by the team.", "The limit must be raised by the team.", Objection.MODAL),
        ("We will move the queue to the second cluster.", "The queue moves to the second cluster.", Objection.MODAL),
        ("The team raises the limit.", "The team must raise the limit.", Objection.MODAL),
        ("Never start it: a crash would leave rows behind.", "A crash will leave rows behind.", Objection.MODAL),
        ("If the queue is empty, the worker stops.", "The worker stops the queue.", Objection.CONDITION),
        ("Deploy runs only with green tests.", "Deploy runs with green tests.", Objection.CONDITION),
        ("Is the primary database down?", "The primary database is down.", Objection.QUESTION),
        ("Please move the staging service to port 8443.", "The staging service moved to port 8443.", Objection.REQUEST),
        ("Delete the old table of the staging service.", "The old table of the staging service is gone.", Objection.REQUEST),
        (PORTS, "The staging service listens on port 9443.", Objection.COMPANY),
        (PORTS, "The production service listens on port 8443.", Objection.COMPANY),
        ("staging uses 8443, production uses 9443", "staging uses 9443", Objection.COMPANY),
        ("The limit went from 5 to 10.", "The limit went from 10 to 5.", Objection.COMPANY),
        ("Reads took 5 ms and writes took 90 ms.", "Reads took 90 ms.", Objection.COMPANY),
        ("Alice blocked the review of Bob.", "Bob blocked the review of Alice.", Objection.ORDER),
        ("`alpha` depends on `beta` in this graph.", "`beta` depends on `alpha` in this graph.", Objection.ORDER),
        ("Alice owns the staging service.", "The garden is quiet in spring.", Objection.GROUND),
        ("Alice owns the staging service.", "It is so.", Objection.GROUND),
        ("Alice owns the staging service.", "Alice owns the garden, quiet winters and long painting stories.", Objection.GROUND),
        ("Der Cache ist voll.", "Der Cache ist nicht leer und die Platte ist voll.", Objection.UNREAD),
        ("Развёртывание не завершилось вовремя.", "Развёртывание завершилось вовремя.", Objection.NEGATION),
        ("Вероятно, диск основной базы заполнен.", "Диск основной базы заполнен.", Objection.HEDGE),
        ("队列不可用，缓存可用。", "队列可用。", Objection.NEGATION),
        ("主数据库可能已满。", "主数据库已满。", Objection.HEDGE),
    ],
)
def test_what_the_passage_does_not_say_is_not(passage: str, sentence: str, why: Objection) -> None:
    assert objection(passage, sentence) is why


_TURNS = {
    "negation dropped", "negation added", "negation of something else", "hedge dropped", "modal dropped", "modal exchanged",
    "unit exchanged", "digit changed", "numbers changed about", "identifier changed", "statement added",
}  # fmt: skip
"""Edits after which a sentence says something else; the others leave something out, or leave no sentence."""


@pytest.mark.parametrize(
    ("language", "texts", "least"),
    [(edits.ENGLISH, prose.english(), 0.97), (edits.RUSSIAN, prose.RUSSIAN, 0.97), (edits.CHINESE, prose.CHINESE, 0.8)],
    ids=["English", "Russian", "Chinese"],
)
def test_generated_edits_that_turn_a_sentence_are_objected_to_and_the_sentence_itself_never(
    language: edits.Language, texts: list[str], least: float
) -> None:
    chance = random.Random(5)
    tried = objected = 0
    while tried < 300:
        passage = chance.choice(texts)
        sentence = chance.choice([part for part in _PARTS.split(passage) if part and len(part) > 8])
        assert objection(passage, sentence) is None
        harm = edits.harmful(sentence, language, chance)
        if harm is not None and harm[0] in _TURNS:
            tried += 1
            objected += objection(passage, harm[1]) is not None

    assert objected >= least * tried, f"{objected} of {tried}"


@pytest.mark.parametrize("unit", ["a ", "not ", "不", "1 ", "a. ", "8443 and ", "A-", "? "])
def test_the_guard_is_linear_in_its_passage(unit: str) -> None:
    passage = unit * (40_000 // len(unit))
    started = time.thread_time()

    objection(passage, "The service listens on 8443 and Alice owns it, a not 不.")

    assert time.thread_time() - started < 5
