"""Weighing late changes no order: the ranking gives what weighing everything and sorting gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.compaction.candidates import Candidate, by_signal
from coatcheck.compaction.quotable import Quotable
from coatcheck.compaction.ranking import Ranking
from coatcheck.domain.messages import PartKind, Role

_LINES = (
    "do not restart the database", "we decided to use port 8443", "ERROR: connection refused", "def fails(): raise ValueError",
    "correction: it is 10.2.0.7", "nothing here", "todo: still need the certificate", "нельзя удалять журнал", "必须使用端口 8443",
    "HTTP 503 from /health", "the probe failed with exit code 1",
)  # fmt: skip
_TEXTS = st.lists(st.sampled_from(_LINES), min_size=1, max_size=6).map("\n".join)
_ROLES: st.SearchStrategy[Role] = st.sampled_from(("user", "assistant", "tool"))
_KINDS = st.sampled_from((PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT))


def quotable(position: int, text: str, role: Role, kind: PartKind) -> Quotable:
    return Quotable(
        sha256=f"{position:064x}", text=text, role=role, kind=kind, position=position, begins_message=True, source=None,
        answered=False, in_last_turn=True,
    )  # fmt: skip


def sorted_whole(quotables: list[Quotable], focus: str | None) -> list[Candidate]:
    weighed = [mark.weighed() for mark in by_signal(quotables, focus)]
    return sorted(weighed, key=lambda one: (-one.score, -one.quotable.position, one.start))


@given(st.lists(st.tuples(_TEXTS, _ROLES, _KINDS), max_size=12), st.sampled_from((None, "port 8443", "database")))
def test_weighing_late_gives_the_order_of_weighing_everything(made: list[tuple[str, Role, PartKind]], focus: str | None) -> None:
    quotables = [quotable(position, *one) for position, one in enumerate(made)]

    ranking = Ranking(by_signal(quotables, focus), lambda _: True)

    assert [*ranking.down_to(50), *ranking.down_to(0)] == sorted_whole(quotables, focus)


@given(st.lists(st.tuples(_TEXTS, _ROLES, _KINDS), min_size=1, max_size=12))
def test_what_is_no_longer_wanted_is_passed_over(made: list[tuple[str, Role, PartKind]]) -> None:
    quotables = [quotable(position, *one) for position, one in enumerate(made)]
    taken: set[int] = set()

    found = []
    for candidate in Ranking(by_signal(quotables, None), lambda one: one.position not in taken).down_to(0):
        found.append(candidate)
        taken.add(candidate.quotable.position)

    best: dict[int, Candidate] = {}
    for candidate in sorted_whole(quotables, None):
        best.setdefault(candidate.quotable.position, candidate)
    assert found == list(best.values())


def test_what_was_weighed_elsewhere_joins_in_its_place() -> None:
    quotables = [quotable(0, "we decided to use port 8443", "user", PartKind.TEXT), quotable(1, "a.txt", "tool", PartKind.TEXT)]
    ranking = Ranking(by_signal(quotables[:1], None), lambda _: True)

    ranking.add(
        [
            Candidate(20.0, quotables[1], 0, 5, 0, 0, state_matters=True),
            Candidate(999.0, quotables[1], 0, 5, 0, 0, state_matters=True),
        ]
    )

    assert [candidate.quotable.position for candidate in ranking.down_to(0)] == [1, 0, 1]
