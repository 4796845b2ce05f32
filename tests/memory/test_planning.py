"""Planning off the event loop: what the board and the slots see of it while a model is asked, and once it has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from coatcheck.compaction.planner import Planner
from coatcheck.compaction.redaction import Redactor
from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import StageUnavailable
from coatcheck.memory.planning import Planning
from coatcheck.ops.progress import ProgressBoard, standard_stages
from coatcheck.ops.slots import FairSlots
from tests.compaction.making import prose, request, user


def planned_at_once(board: ProgressBoard) -> int:
    (report,) = [report for report in board.reports() if report.name == "plan"]
    return report.in_flight


@dataclass
class Watching:
    """A router that fails, and a counter of tokens that is asked after it: each notes how many plans the board shows."""

    board: ProgressBoard
    revision: str = "failing/1"
    name: str = "watching"
    seen: list[tuple[str, int]] = field(default_factory=list)

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        self.seen.append(("router", planned_at_once(self.board)))
        raise StageUnavailable("no answer")

    def count(self, texts: Sequence[str]) -> int:
        self.seen.append(("counter", planned_at_once(self.board)))
        return 1


async def test_a_plan_is_no_standstill_while_a_model_is_asked_and_is_watched_again_once_the_model_failed() -> None:
    board = ProgressBoard(standard_stages(60))
    models = Watching(board)
    planning = Planning(Planner(Redactor(), router=models, count_tokens=models), board, at_once=1)

    async with FairSlots(1).of(UUID(int=1)) as slot:
        plan = await planning(slot, request([user(prose(60))]))
    planning.close()

    assert models.seen == [("router", 0), ("counter", 1)]
    assert {entry.decision.reason for entry in plan.entries} == {"router:unavailable"}
    assert planned_at_once(board) == 0
