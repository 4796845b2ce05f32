"""Graph buckets over a real mT5 encoder: what a runner answers, and that each planted fault is found."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from coatcheck.domain.errors import GpuRefused, GpuUnsupported, Overloaded
from coatcheck.gpu.graphs import Buckets, GraphRunner, RunnerPool, Shape
from coatcheck.gpu.graphs.cuda import CudaGraphs
from coatcheck.gpu.graphs.encoder import graphed
from coatcheck.gpu.graphs.recording import RecordingGraphs
from tests.torch.gpu import encoders, graph_checks
from tests.torch.gpu.conftest import NO_GPU
from tests.torch.gpu.encoders import Bench
from tests.torch.gpu.graph_faults import FAULTS, BiasOfAnotherGraph

BUCKETS = Buckets.of(most_tokens=1_024)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return encoders.gliclass(tmp_path_factory.mktemp("gliclass"))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Where graphs are recorded, or captured."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    return str(request.param)


@pytest.fixture
def encoder(model: tuple[Any, Any], device: str) -> Any:
    return model[0].model.encoder_model.to(device)


@pytest.mark.parametrize("check", graph_checks.CHECKS)
def test_what_holds_of_a_runner(encoder: Any, device: str, check: Callable[[Bench], None]) -> None:
    check(Bench(encoder, device, BUCKETS))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found(model: tuple[Any, Any], fault: type[GraphRunner]) -> None:
    encoder = model[0].model.encoder_model.to("cpu")
    made: Any = fault
    if issubclass(fault, BiasOfAnotherGraph):
        made = functools.partial(fault, attention=encoders.attention_of(encoder))
    failed = []

    for check in graph_checks.CHECKS:
        try:
            check(Bench(encoder, "cpu", BUCKETS, made))
        except (AssertionError, GpuRefused):
            failed.append(check.__name__)

    assert failed


def test_what_is_longer_than_every_bucket_runs_without_a_graph(encoder: Any, device: str) -> None:
    bench = Bench(encoder, device, BUCKETS)
    captured = bench.calls

    bench.runner.run(*bench.batch(256))
    assert bench.calls == captured

    for length in (257, 300):
        ids, mask = bench.batch(length)
        assert bench.same(bench.runner.run(ids, mask), bench.padded_eager(ids, mask, length))
    assert bench.calls == captured + 2


def test_an_answer_is_that_of_the_text_without_padding(encoder: Any, device: str) -> None:
    bench = Bench(encoder, device, BUCKETS)

    for length in (1, 65, 200):
        ids, mask = bench.batch(length)
        assert torch.allclose(bench.runner.run(ids, mask), bench.padded_eager(ids, mask, length), atol=1e-4)


def test_rows_of_a_batch_have_their_own_lengths_and_what_pads_them_changes_nothing(encoder: Any, device: str) -> None:
    bench = Bench(encoder, device, Buckets.of([64, 128], most_tokens=128, rows=[1, 4]))
    ids, mask = bench.batch(70, 3, 64)

    three = bench.runner.run(ids, mask)
    four = bench.runner.run(*bench.batch(128, 128, 128, 128))
    again = bench.runner.run(ids, mask)
    beside = bench.runner.run(torch.cat([ids[:1], ids[:1]]), torch.cat([mask[:1], mask[:1]]))

    assert bench.same(three, bench.padded_eager(ids, mask, 128, rows=4))
    assert torch.isfinite(four).all()
    assert torch.equal(again, three)
    assert torch.equal(beside[0], three[0])


def test_more_rows_than_every_bucket_has_run_without_a_graph(encoder: Any, device: str) -> None:
    bench = Bench(encoder, device, Buckets.of([64], most_tokens=64))
    ids, mask = bench.batch(5, 9)

    assert bench.same(bench.runner.run(ids, mask), bench.padded_eager(ids, mask, 9))


@pytest.mark.parametrize("failure", [RuntimeError("the device is lost"), KeyboardInterrupt()])
def test_a_call_that_was_broken_off_leaves_the_runner_as_it_was(model: tuple[Any, Any], failure: BaseException) -> None:
    bench = Bench(model[0].model.encoder_model.to("cpu"), "cpu", BUCKETS)
    bench.gate.fails_with = failure

    with pytest.raises(type(failure)):
        bench.runner.run(*bench.batch(64, seed=3))

    graph_checks.every_length_equals_the_padded_eager_run(bench)


def test_a_token_that_the_model_does_not_know_is_an_error_and_the_next_request_is_served(model: tuple[Any, Any]) -> None:
    bench = Bench(model[0].model.encoder_model.to("cpu"), "cpu", BUCKETS)
    ids, mask = bench.batch(10)

    with pytest.raises(IndexError):
        bench.runner.run(ids + bench.encoder.config.vocab_size, mask)

    assert bench.same(bench.runner.run(ids, mask), bench.padded_eager(ids, mask, 64))


def test_a_token_that_overflows_spoils_its_own_text_and_not_the_next_one_in_the_bucket(model: tuple[Any, Any]) -> None:
    """A masked token counts nothing, but nothing times infinity is no number: none may stay behind a shorter text."""
    encoder = copy.deepcopy(model[0].model.encoder_model.to("cpu"))
    with torch.no_grad():
        encoder.get_input_embeddings().weight[7] = torch.inf
    bench = Bench(encoder, "cpu", Buckets.of([64], most_tokens=64))
    ids, mask = bench.batch(10)
    ids[ids == 7] = 8

    spoiled = bench.runner.run(torch.full((1, 64), 7), torch.ones(1, 64))
    found = bench.runner.run(ids, mask)

    assert spoiled.isnan().any()
    assert bench.same(found, bench.padded_eager(ids, mask, 64))


@pytest.mark.parametrize(
    ("ids", "mask"),
    [
        (torch.zeros(1, 3), torch.ones(1, 3)),
        (torch.zeros(3, dtype=torch.int64), torch.ones(3)),
        (torch.zeros(1, 3, dtype=torch.int64), torch.ones(1, 4)),
        (torch.zeros(1, 0, dtype=torch.int64), torch.ones(1, 0)),
    ],
)
def test_what_is_no_batch_of_tokens_is_refused(model: tuple[Any, Any], ids: torch.Tensor, mask: torch.Tensor) -> None:
    bench = Bench(model[0].model.encoder_model.to("cpu"), "cpu", Buckets.of([64], most_tokens=64))

    with pytest.raises(GpuRefused):
        bench.runner.run(ids, mask)


def test_a_region_that_cannot_be_captured_leaves_the_backend_as_it_was(device: str) -> None:
    backend, held = encoders.backend_on(device), torch.ones(2, device=device)

    with pytest.raises(GpuRefused):
        backend.capture(lambda: held * held.sum().item())
    with torch.no_grad():
        captured = backend.capture(lambda: held + 1)
    held.fill_(3)
    captured.replay()

    assert captured.output.tolist() == [4.0, 4.0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
def test_requests_from_several_streams_wait_for_one_another(model: tuple[Any, Any]) -> None:
    """A runner gives its answer before the device has computed it: the next request may come on another stream by then."""
    bench = Bench(model[0].model.encoder_model.to("cuda"), "cuda", BUCKETS)
    batches = [bench.batch(200, seed=turn) for turn in range(40)]
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    found = []

    for turn, batch in enumerate(batches):
        with torch.cuda.stream(streams[turn % 4]):
            found.append(bench.runner.run(*batch))
    torch.cuda.synchronize()

    assert all(bench.same(one, bench.padded_eager(*batch, 256)) for one, batch in zip(found, batches, strict=True))


class TestBuckets:
    def test_the_least_that_holds_a_shape_is_taken(self) -> None:
        found = Buckets.of([128, 64], most_tokens=512, rows=[4, 1])

        assert found.fitting(Shape(64)) == Shape(64)
        assert found.fitting(Shape(65)) == Shape(128)
        assert found.fitting(Shape(1, rows=2)) == Shape(64, rows=4)
        assert found.fitting(Shape(129)) is None
        assert found.fitting(Shape(1, rows=5)) is None

    @pytest.mark.parametrize(("most", "lengths"), [(1_024, [64, 128, 192, 256]), (200, [64, 128, 192]), (48, [48])])
    def test_those_by_default_end_where_the_model_does(self, most: int, lengths: list[int]) -> None:
        assert [shape.tokens for shape in Buckets.of(most_tokens=most).shapes] == lengths

    @pytest.mark.parametrize(
        ("tokens", "rows", "said"),
        [([64, 513], [1], "above the 512"), ([64, 64], [1], "different"), ([], [1], "one"), ([64], [0], "above 0")],
    )
    def test_others_are_refused(self, tokens: list[int], rows: list[int], said: str) -> None:
        with pytest.raises(GpuRefused, match=said):
            Buckets.of(tokens, most_tokens=512, rows=rows)


class TestAPool:
    def _pool(self, encoder: Any, count: int) -> tuple[list[Bench], RunnerPool]:
        benches = [Bench(encoder, "cpu", Buckets.of([64], most_tokens=64)) for _ in range(count)]
        return benches, RunnerPool([bench.runner for bench in benches], limit_s=0.05)

    def test_each_request_has_a_runner_of_its_own_and_one_too_many_is_told_so(self, model: tuple[Any, Any]) -> None:
        encoder = model[0].model.encoder_model.to("cpu")
        (one, two), pool = self._pool(encoder, 2)
        answers: list[torch.Tensor] = []
        first, second = one.batch(60, seed=1), one.batch(60, seed=2)

        threads = [
            threading.Thread(target=lambda given=given: answers.append(pool.run(*given))) for given in (first, second)
        ]  # fmt: skip
        with one.gate.holding(), two.gate.holding():
            for thread in threads:
                thread.start()
            assert one.gate.reached.wait(30)
            assert two.gate.reached.wait(30)
            with pytest.raises(Overloaded):
                pool.run(*first)
        for thread in threads:
            thread.join(30)

        expected = [one.padded_eager(*given, 64) for given in (first, second)]
        assert all(any(torch.equal(answer, wanted) for answer in answers) for wanted in expected)
        assert torch.equal(pool.run(*first), expected[0])

    def test_a_runner_whose_request_failed_serves_the_next_one(self, model: tuple[Any, Any]) -> None:
        (bench,), pool = self._pool(model[0].model.encoder_model.to("cpu"), 1)
        bench.gate.fails_with = RuntimeError("lost")

        with pytest.raises(RuntimeError):
            pool.run(*bench.batch(3))

        assert bench.same(pool.run(*bench.batch(3)), bench.padded_eager(*bench.batch(3), 64))

    def test_a_pool_of_none_is_refused(self) -> None:
        with pytest.raises(GpuRefused):
            RunnerPool([], limit_s=1)


def _scores(model: Any, tokenizer: Any, texts: list[str]) -> list[list[float]]:
    """Of the library's own pipeline, one text at a time."""
    from gliclass import ZeroShotClassificationPipeline

    pipe = ZeroShotClassificationPipeline(model, tokenizer, max_length=512, device="cpu", progress_bar=False)
    found = [pipe([text], list(encoders.LABELS), threshold=0.0, return_hierarchical=True)[0] for text in texts]
    return [[scores[label] for label in encoders.LABELS] for scores in found]


def test_a_gliclass_scores_the_same_with_graphs_in_its_encoders_place(tmp_path: Path) -> None:
    model, tokenizer = encoders.gliclass(tmp_path)
    texts = ["thanks", "the port is 8443", "the river follows the garden " * 20, "how nice , " * 60, "a lot " * 150]

    plain = _scores(model, tokenizer, texts)
    model.model.encoder_model = graphed(model.model.encoder_model, BUCKETS, [RecordingGraphs()], pad_id=0, limit_s=1)

    assert _scores(model, tokenizer, texts) == [pytest.approx(scores, abs=1e-5) for scores in plain]


@pytest.mark.parametrize("asked", [{"output_hidden_states": True}, {"output_attentions": True}, {"inputs_embeds": torch.ones(1)}])
def test_a_graphed_encoder_does_not_give_less_than_it_is_asked_for(model: tuple[Any, Any], asked: dict[str, Any]) -> None:
    encoder = model[0].model.encoder_model.to("cpu")
    graphs = graphed(encoder, Buckets.of([64], most_tokens=64), [RecordingGraphs()], pad_id=0, limit_s=1)

    with pytest.raises(GpuRefused, match=next(iter(asked))):
        graphs(torch.ones(1, 3, dtype=torch.int64), torch.ones(1, 3), **asked)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a device is here")
def test_without_a_device_it_is_refused_in_words() -> None:
    with pytest.raises(GpuUnsupported, match="need a CUDA device"):
        CudaGraphs()
