"""What holds of a runner: each check passes for ours and fails for a runner with a fault that it is there to find."""

from __future__ import annotations

import threading

import torch

from coatcheck.domain.errors import GpuRefused
from tests.torch.gpu.encoders import Bench

LENGTHS = (256, 1, 63, 64, 129, 65, 255, 127, 128, 192, 64, 1)
"""Up and down, so that a short text follows a long one in the same bucket, and the other way round."""
BUCKET = {1: 64, 63: 64, 64: 64, 65: 128, 127: 128, 128: 128, 129: 192, 192: 192, 255: 256, 256: 256}


def every_length_equals_the_padded_eager_run(bench: Bench) -> None:
    for turn, length in enumerate(LENGTHS):
        ids, mask = bench.batch(length, seed=1_000 * turn)

        found = bench.runner.run(ids, mask)

        assert found.shape == (1, length, bench.encoder.config.d_model)
        assert bench.same(found, bench.padded_eager(ids, mask, BUCKET[length])), f"length {length}"


def an_answer_stays_what_it_was(bench: Bench) -> None:
    first, second = bench.batch(60), bench.batch(50)

    kept = bench.runner.run(*first)
    copy = kept.clone()
    bench.runner.run(*second)

    assert torch.equal(kept, copy)


def whoever_comes_second_is_refused_and_the_first_has_its_own_answer(bench: Bench) -> None:
    first, second = bench.batch(60, seed=1), bench.batch(60, seed=2)
    answers: list[torch.Tensor] = []
    refused = False

    serving = threading.Thread(target=lambda: answers.append(bench.runner.run(*first)))
    with bench.gate.holding():
        serving.start()
        assert bench.gate.reached.wait(30)
        try:
            bench.runner.run(*second)
        except GpuRefused:
            refused = True
    serving.join(30)

    assert bench.same(answers[0], bench.padded_eager(*first, 64))
    assert refused


CHECKS = (
    every_length_equals_the_padded_eager_run,
    an_answer_stays_what_it_was,
    whoever_comes_second_is_refused_and_the_first_has_its_own_answer,
)
