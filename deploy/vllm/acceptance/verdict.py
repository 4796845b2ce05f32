"""What the run found, and whether it passed: as values for a file, and as lines for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from deploy.vllm.acceptance.rounds import Load, Round
from deploy.vllm.acceptance.watching import Watched


def findings(load: Load, rounds: Sequence[Round], seen: Watched) -> list[str]:
    """All that keeps the run from passing. None: passed."""
    found = []
    for one in rounds:
        for problem, times in Counter(one.problems).items():
            found.append(f"round {one.number}: {times} of {load.at_once}: {problem}")
        if one.in_flight < load.at_once:
            found.append(
                f"round {one.number}: {one.in_flight} of {load.at_once} requests overlapped: the load was not the one meant"
            )
    if seen.restarts:
        found.append(f"the server was started {seen.restarts} times more")
    if seen.away:
        found.append(f"at {seen.away} of {seen.looks} looks the server was away, or its engine dead")
    return found


def as_values(load: Load, rounds: Sequence[Round], seen: Watched) -> dict[str, object]:
    """The whole run, in JSON's own types."""
    found = findings(load, rounds, seen)
    return {
        "passed": not found,
        "findings": found,
        "load": {
            "model": load.model, "rounds": load.rounds, "at_once": load.at_once, "max_tokens": load.max_tokens,
            "temperature": load.temperature, "limit_s": load.limit_s,
        },
        "rounds": [
            {
                "number": one.number,
                "answered": sum(answer.problem is None for answer in one.answers),
                "in_flight": one.in_flight,
                "finish_reasons": dict(Counter(answer.finish_reason or "none" for answer in one.answers)),
                "seconds": round(max(answer.ended_s for answer in one.answers) - min(answer.began_s for answer in one.answers), 2),
                "chars": [answer.chars for answer in one.answers],
            }
            for one in rounds
        ],
        "memory": {"samples": seen.memory_samples, "most_used_mib": seen.used_mib, "least_free_mib": seen.free_mib},
        "server": {"looks": seen.looks, "away": seen.away, "slow": seen.slow, "restarts": seen.restarts},
    }  # fmt: skip


def as_lines(load: Load, rounds: Sequence[Round], seen: Watched) -> Iterator[str]:
    """The same for a person, and what was not seen at all."""
    for one in rounds:
        answered = sum(answer.problem is None for answer in one.answers)
        yield f"round {one.number}: {answered} of {load.at_once} answered, {one.in_flight} in flight at once"
    if seen.used_mib:
        for device, used in seen.used_mib.items():
            samples = f"of {seen.memory_samples} samples"
            yield f"device {device}: {used:,} MiB used at most, {seen.free_mib[device]:,} MiB free at least, {samples}"
    else:
        yield "device memory: not sampled, the command for it is not here or fails"
    if seen.restarts is None:
        yield "restarts: not counted, neither a container nor process_start_time_seconds tells one start from another"
    else:
        yield f"restarts: {seen.restarts}"
    found = findings(load, rounds, seen)
    yield from (f"FAILED: {problem}" for problem in found)
    if not found:
        yield "passed"
