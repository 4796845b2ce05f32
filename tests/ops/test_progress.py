"""The progress board tells a stage that moves slowly from one that does not move."""

from __future__ import annotations

import threading

import pytest

from coatcheck.ops.progress import LOADING_LIMIT_S, ProgressBoard, Stage, standard_stages
from tests.clocks import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> ProgressBoard:
    return ProgressBoard([Stage("plan", True, 10), Stage("embed", False, 10)], clock)


def test_a_piece_counts_while_its_block_runs_and_as_a_completion_after(board: ProgressBoard, clock: Clock) -> None:
    with board.stage("plan"):
        clock.now += 3
        during = board.reports()[0]
    after = board.reports()[0]

    assert (during.in_flight, during.oldest_age_s, during.completions) == (1, 3, 0)
    assert (after.in_flight, after.oldest_age_s, after.completions, after.last_completion_age_s) == (0, None, 1, 0)


def test_a_piece_that_fails_is_completed_too(board: ProgressBoard) -> None:
    with pytest.raises(ZeroDivisionError), board.stage("plan"):
        raise ZeroDivisionError

    assert board.reports()[0].completions == 1


def test_a_stage_is_stuck_once_its_oldest_piece_outlives_the_limit_and_nothing_moved(board: ProgressBoard, clock: Clock) -> None:
    board.begin("plan")
    clock.now += 10
    at_the_limit = board.stuck(vital=True)
    clock.now += 1

    assert at_the_limit == ()
    assert board.stuck(vital=True) == ("plan",)
    assert board.stuck(vital=False) == ()
    assert not board.accepts("plan")
    assert board.accepts("embed")


def test_a_stage_whose_other_pieces_complete_is_not_stuck(board: ProgressBoard, clock: Clock) -> None:
    board.begin("plan")
    clock.now += 9
    with board.stage("plan"):
        pass
    clock.now += 5

    assert board.stuck(vital=True) == ()


def test_a_piece_that_advances_is_not_stuck_however_old(board: ProgressBoard, clock: Clock) -> None:
    piece = board.begin("plan")

    for _ in range(5):
        clock.now += 9
        piece.advance()

    assert board.stuck(vital=True) == ()
    assert board.reports()[0].oldest_age_s == 45


def test_a_stuck_stage_takes_work_again_when_its_piece_ends(board: ProgressBoard, clock: Clock) -> None:
    piece = board.begin("embed")
    clock.now += 11
    was_stuck = not board.accepts("embed")

    piece.done()
    piece.done()

    assert was_stuck
    assert board.accepts("embed")
    assert board.reports()[1].completions == 1


def test_an_idle_stage_is_never_stuck(board: ProgressBoard, clock: Clock) -> None:
    clock.now += 1_000_000

    assert board.stuck(vital=True) == ()


def test_pieces_from_many_threads_are_all_counted() -> None:
    board = ProgressBoard(standard_stages(60))

    def work() -> None:
        for _ in range(500):
            with board.stage("persist"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    report = next(r for r in board.reports() if r.name == "persist")
    assert (report.in_flight, report.completions) == (0, 2_000)


def test_a_withdrawn_piece_is_no_completion_and_does_not_hide_that_the_stage_stands(board: ProgressBoard, clock: Clock) -> None:
    board.begin("embed")
    clock.now += 9
    board.begin("embed").withdraw()
    clock.now += 2

    (report,) = [one for one in board.reports() if one.name == "embed"]
    assert (report.in_flight, report.completions, report.stuck) == (1, 0, True)


def test_a_stage_that_loads_its_model_is_not_stuck_and_takes_nothing_on_and_has_its_whole_limit_after_it(
    board: ProgressBoard, clock: Clock
) -> None:
    board.begin("embed")
    with board.loading("embed"):
        clock.now += 5
        at_first = board.accepts("embed"), board.loading_long()
        clock.now += 6
        later = board.accepts("embed"), board.loading_long(), board.stuck(vital=False)
    clock.now += 9
    loaded = board.accepts("embed"), board.loading_long()
    clock.now += 2

    assert at_first == (True, ())
    assert later == (False, ("embed",), ())
    assert loaded == (True, ())
    assert board.stuck(vital=False) == ("embed",)


def test_loading_without_an_end_is_a_standstill(board: ProgressBoard, clock: Clock) -> None:
    board.begin("embed")
    with board.loading("embed"):
        clock.now += LOADING_LIMIT_S + 1

        assert board.stuck(vital=False) == ("embed",)


def test_a_piece_that_waited_aside_is_as_old_as_its_work_since_then(board: ProgressBoard, clock: Clock) -> None:
    with board.stage("plan") as piece:
        with piece.aside():
            clock.now += 11
            waiting = board.reports()[0]
        clock.now += 9
        young = board.stuck(vital=True)
        clock.now += 2
        old = board.stuck(vital=True)

    assert (waiting.in_flight, waiting.stuck) == (0, False)
    assert (young, old) == ((), ("plan",))
    assert (board.reports()[0].in_flight, board.reports()[0].completions) == (0, 1)
