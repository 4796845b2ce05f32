"""The statistics the benchmarks share: quantiles, retrieval measures, bootstrap intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import fmean, median
from time import perf_counter


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie, linearly interpolated. Raises ValueError on no values."""
    if not values:
        raise ValueError("a quantile needs at least one value")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def evidence_recall(found: Sequence[Collection[str]], designated: Collection[str], k: int) -> float:
    """Found / designated among the first ``k`` hits; each hit names the designated things it holds (mostly one)."""
    held = {name for hit in found[:k] for name in hit}
    return len(held & set(designated)) / len(set(designated))


def ndcg(found: Sequence[Collection[str]], designated: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain at ``k`` with binary gains (Jaervelin and Kekaelaeinen 2002, log base 2).

    A designated thing gains once, where it is first found; a hit that holds several gains for each.
    """
    open_ones = set(designated)
    gain = 0.0
    for rank, hit in enumerate(found[:k], start=1):
        new = open_ones & set(hit)
        gain += len(new) / math.log2(rank + 1)
        open_ones -= new
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(set(designated)), k) + 1))
    return gain / best


def bootstrap_interval(values: Sequence[float], seed: int, draws: int = 2_000, share: float = 0.95) -> tuple[float, float]:
    """The percentile interval of the mean under resampling (Efron 1979)."""
    generator = random.Random(seed)
    means = [fmean(generator.choices(values, k=len(values))) for _ in range(draws)]
    return quantile(means, (1 - share) / 2), quantile(means, 1 - (1 - share) / 2)


def interleaved_seconds(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Runs every side once a round, the order turned by one each round, and returns each side's seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = perf_counter()
            sides[name]()
            seconds[name].append(perf_counter() - start)
    return seconds


def middle(values: Iterable[float]) -> float:
    """The median."""
    return median(values)
