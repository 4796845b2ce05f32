"""What the lexical leg finds, in which scripts, and how much context may count."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.passages import SparseVector
from coatcheck.index.lexical import CONTEXT_WEIGHT, analyse_document, analyse_query


def match(query: str, text: str, context: str = "") -> float:
    """The score without any IDF: the engine's part left out."""
    document = analyse_document(text, context)
    weights = dict(zip(document.indices, document.values, strict=True))
    asked = analyse_query(query)
    return sum(weight * weights.get(term, 0.0) for term, weight in zip(asked.indices, asked.values, strict=True))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("database decisions", "We decided: the databases stay."),
        ("сервер", "Серверы перезапустили вчера."),
        ("еще пароли", "Пароль ещё не записан."),
        ("数据库迁移", "昨天讨论了数据库的迁移计划。"),
        ("猫", "一只猫在桌子上"),
        ("再起動", "データベースを再起動する"),
        ("サーバー", "新しいサーバーの名前はアオイ"),
        ("서버", "서버를 다시 시작했다"),
        ("خادم", "أعد تشغيل الخادم الآن"),
        ("كلمة المرور", "لا أحد يعرف كَلِمَةَ المُرُورِ"),
        ("ฐานข้อมูล", "เราย้ายฐานข้อมูลเมื่อวาน"),
        ("διακομιστή", "Ο διακομιστής σταμάτησε."),
        ("हिन्दी", "यह हिन्दी में है"),
        ("cafe strasse", "Café in der Straße"),
        ("10.2.0.7:8443", "listen on 10.2.0.7:8443, not on 80"),
        ("port 8443", "listen on 10.2.0.7:8443"),
        ("10.2.0.7", "listen on 10.2.0.7:8443"),
        ("restart_the_db", "run restart_the_db --now"),
        ("restart db", "run restart_the_db"),
        ("HttpServer", "class HttpServer(Base):"),
        ("http server", "class HttpServer(Base):"),
        ("app.log", "tail -f /var/log/app.log"),
        ("/var/log/app.log", "tail -f /var/log/app.log"),
        ("1.2.3", "release v1.2.3 is out"),
        ("ORA-00942", "it failed with ORA-00942: table or view"),
        ("E0308", "error[E0308]: mismatched types"),
        ("9f3ab21", "fixed in 9f3ab21c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a"),
        ("9f3ab21c0d1e", "fixed in 9f3ab21c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a"),
        ("1900 characters", "at most 1,900 characters"),
        ("C++", "written in C++, mostly"),
        ("caroline", "Caroline's dog"),
        ("部署docker", "我们在8443端口部署docker容器"),
        ("８４４３", "port 8443"),
        ("re\u0301sume\u0301", "her r\u00e9sum\u00e9 is here"),
        ("GPT 4", "ask GPT4 about it"),
    ],
)
def test_a_query_finds_the_text(query: str, text: str) -> None:
    assert match(query, text) > 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("the of and", "the cat of the house"),
        ("и не что", "и что это"),
        ("port", "porter"),
        ("", "anything"),
        ("?!", "?!"),
    ],
)
def test_a_query_that_says_nothing_finds_nothing(query: str, text: str) -> None:
    assert match(query, text) == 0


def test_a_whole_identifier_outweighs_its_parts() -> None:
    assert match("10.2.0.7:8443", "10.2.0.7:8443") > match("10.2.0.7:8443", "10.2.0.7 and 8443 and 10 2 0 7")


def test_a_negation_is_a_word() -> None:
    assert match("not", "you don't run it there") > 0


def test_a_repeated_word_counts_more_but_less_each_time() -> None:
    scores = [match("alpha", " ".join(["alpha"] * n) + " beta" * (8 - n)) for n in (1, 2, 3, 4)]
    gains = [after - before for before, after in pairwise(scores)]

    assert scores == sorted(scores)
    assert gains == sorted(gains, reverse=True)


def test_a_word_counts_less_in_a_longer_text() -> None:
    assert match("alpha", "alpha beta") > match("alpha", "alpha " + "beta gamma " * 200)


def test_a_word_of_the_context_alone_can_be_found_but_counts_less() -> None:
    said = match("osprey", "the osprey came back")
    around = match("osprey", "it came back", "we saw an osprey")

    assert 0 < around <= said * (CONTEXT_WEIGHT + 0.01)


def test_context_takes_nothing_from_what_the_text_says() -> None:
    """Otherwise the exact line that a query quotes sinks below its neighbours."""
    text = "the port is 8443"

    alone, among_others = analyse_document(text), analyse_document(text, "some quite different words " * 50)

    weights = dict(zip(among_others.indices, among_others.values, strict=True))
    assert all(weights[term] == weight for term, weight in zip(alone.indices, alone.values, strict=True))


def test_documents_and_queries_agree_whatever_the_form_of_the_text() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"

    assert analyse_query(composed) == analyse_query(decomposed)


def test_terms_are_stable_numbers() -> None:
    """A term is a sparse dimension in stored points: it may not move without a new analyser revision."""
    assert analyse_query("restart_the_db 数据").indices == (964305934, 1734835005, 2507782355, 3824466984, 3891864071, 3983351273)


@given(st.text(), st.text(max_size=50))
def test_any_text_yields_an_ordered_vector_of_positive_weights(text: str, context: str) -> None:
    for vector in (analyse_document(text, context), analyse_query(text)):
        assert isinstance(vector, SparseVector)
        assert list(vector.indices) == sorted(set(vector.indices))
        assert len(vector.indices) == len(vector.values)
        assert all(0 <= index < 2**32 for index in vector.indices)
        assert all(value > 0 for value in vector.values)


def test_a_lone_surrogate_is_no_obstacle() -> None:
    assert match("alpha", "alpha\ud800 beta\udfff") > 0


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a-" * 100_000, "-" * 200_000, "aB1" * 70_000, "字" * 200_000, "e\u0301" * 100_000]
)
def test_a_hostile_text_takes_time_in_proportion(text: str) -> None:
    started = time.thread_time()

    analyse_document(text)

    assert time.thread_time() - started < 2


def test_ordinary_text_is_analysed_at_megabytes_a_second() -> None:
    """5 to 6 MB/s on the machine this was written on; the bound leaves room for a busy one."""
    line = "2026-05-07 12:00:01 worker-{n} finished job {n} in /srv/app/queue_{n}.py, nothing was left to decide or to repair\n"
    texts = ["".join(line.format(n=n * 40 + k) for k in range(30)) for n in range(100)]
    size = sum(map(len, texts))

    def seconds() -> float:
        started = time.thread_time()
        for text in texts:
            analyse_document(text)
        return time.thread_time() - started

    assert size / min(seconds() for _ in range(3)) > 1_000_000
