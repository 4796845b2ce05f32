"""The budget against the article's six configurations, of which one held."""

from __future__ import annotations

import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.budget import GIB, Device, Launch, ModelNeeds, Problem, budget

MIB = 1024**2
TOTAL = (92_712 + 4_537) * MIB
"""The article's highest sample and what was free beside it."""
STATE = 36 * 3_207_168
PER_TOKEN = 29_437
"""Of its 6.85 GiB for 245,760 tokens and its 243,936 tokens in 6.79 GiB, with one sequence's state in each."""
FIXED = int(0.948 * TOTAL) - (243_936 * PER_TOKEN + STATE)
MODEL = ModelNeeds(weights=FIXED - 2 * GIB, workspaces=GIB, graphs=GIB, cache_per_token=PER_TOKEN, state_per_sequence=STATE)


@pytest.mark.parametrize("others_gib", [0.0, 1.0, 3.0], ids=lambda size: f"others hold {size:g} GiB")
@pytest.mark.parametrize(
    ("launch", "problems"),
    [
        (Launch(245_760, 64, 0.948), {Problem.CACHE, Problem.MARGIN}),
        (Launch(245_760, 64, 0.96), {Problem.MARGIN}),
        (Launch(240_000, 64, 0.948), {Problem.MARGIN}),
        (Launch(200_000, 32, 0.94, expandable_segments=True, offload_worker=True), {Problem.MARGIN, Problem.ALLOCATOR}),
        (Launch(200_000, 32, 0.94, offload_worker=True), {Problem.MARGIN}),
        (Launch(131_072, 16, 0.92, offload_worker=True), set()),
    ],
    ids=["245,760 at 0.948", "245,760 at 0.96", "240,000 at 0.948", "expandable segments", "32 at once", "131,072 at 0.92"],
)
def test_the_six_configurations_of_the_article(launch: Launch, problems: set[Problem], others_gib: float) -> None:
    """The article does not say what others held of the device: for 0 to 3 GiB the answers are the same."""
    found = budget(MODEL, Device(TOTAL, int(others_gib * GIB)), launch)

    assert {finding.problem for finding in found.findings} == problems
    assert found.fits is (not problems)


def test_the_figures_of_the_first_are_the_articles() -> None:
    found = budget(MODEL, Device(TOTAL, 0), Launch(245_760, 64, 0.948))

    assert found.pool_needed / GIB == pytest.approx(6.85, abs=0.006)
    assert found.pool / GIB == pytest.approx(6.79, abs=0.006)
    assert found.longest == 243_936
    assert "243,936 tokens at most" in found.findings[0].detail


def test_how_many_sequences_of_full_length_fit_at_once_is_said() -> None:
    needs = ModelNeeds(weights=GIB, workspaces=0, graphs=0, cache_per_token=1_024, state_per_sequence=0)
    device = Device(4 * GIB, 0)

    found = budget(needs, device, Launch(max_length=1_024 * 1_024, max_sequences=8, utilisation=0.75))

    assert (found.pool, found.sequences_of_full_length, found.fits) == (2 * GIB, 2, True)


def test_weights_that_do_not_fit_leave_no_pool() -> None:
    needs = ModelNeeds(weights=5 * GIB, workspaces=0, graphs=0, cache_per_token=1, state_per_sequence=0)

    found = budget(needs, Device(4 * GIB, 0), Launch(1, 1, 0.9))

    assert (found.pool, found.longest, [finding.problem for finding in found.findings]) == (0, 0, [Problem.CACHE])


@pytest.mark.parametrize("launch", [Launch(0, 1, 0.9), Launch(1, 0, 0.9), Launch(1, 1, 0.0), Launch(1, 1, 1.01)])
def test_a_launch_that_is_none_is_refused(launch: Launch) -> None:
    with pytest.raises(GpuRefused):
        budget(MODEL, Device(TOTAL, 0), launch)
