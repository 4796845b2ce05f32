"""The recording that stands for CUDA's graphs: as stale as they are, and no more lenient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.graphs.recording import Recorded, RecordingGraphs

Region = Callable[[torch.Tensor], torch.Tensor]


def captured(region: Region, held: torch.Tensor) -> Recorded:
    return RecordingGraphs().capture(lambda: region(held))


def test_a_replay_reads_what_its_memory_holds_now_and_nothing_else() -> None:
    held = torch.tensor([1.0, 2.0])
    graph = captured(lambda given: (given * 2 + 1).relu(), held)

    held.copy_(torch.tensor([3.0, -4.0]))
    graph.replay()
    assert graph.output.tolist() == [7.0, 0.0]

    held = torch.tensor([5.0, 5.0])
    graph.replay()
    assert graph.output.tolist() == [7.0, 0.0]


def test_capturing_computes_nothing_and_what_a_graph_made_for_itself_is_nobodys() -> None:
    kept: list[torch.Tensor] = []

    def region(given: torch.Tensor) -> torch.Tensor:
        kept.append(given * 2)
        return kept[-1] + 1

    graph = captured(region, torch.ones(2))
    assert graph.output.isnan().all()
    assert kept[-1].isnan().all()

    graph.replay()
    assert graph.output.tolist() == [3.0, 3.0]
    assert kept[-1].isnan().all()


def test_views_writes_in_place_and_whole_numbers_are_replayed() -> None:
    held = torch.arange(6)

    def region(given: torch.Tensor) -> torch.Tensor:
        out = given.view(2, 3).t() + 1
        out[0] += 10
        out[1:].mul_(torch.arange(2))
        return torch.cat([out, out.flip(0)])[given[:2] % 3]

    graph = captured(region, held)
    for turn in range(3):
        held.copy_(torch.arange(6) + turn)
        graph.replay()
        assert torch.equal(graph.output, region(held))


@pytest.mark.parametrize(
    ("region", "said"),
    [
        (lambda given: given * given.sum().item(), "waits for a number"),
        (lambda given: given * int(given[0]), "waits for a number"),
        (lambda given: given if given.all() else given + 1, "waits for a number"),
        (lambda given: given if torch.equal(given, given) else given + 1, "waits for a number"),
        (lambda given: given.nonzero(), "known on the device"),
        (lambda given: given.masked_select(given > 0), "known on the device"),
        (lambda given: given[given > 0], "known on the device"),
        (lambda given: given.clone().index_put_((given > 0,), torch.zeros(())), "known on the device"),
        (lambda given: given.unique(), "known on the device"),
        (lambda given: given.repeat_interleave(given.long()), "known on the device"),
        (lambda given: given * torch.tensor([1.0, 2.0]), "number of the first run"),
        (lambda given: given * given.tolist()[0], "tolist"),
        (lambda given: given + torch.from_numpy(given.numpy()), "numpy"),
        (lambda given: given.cpu() + 1, "cpu"),
        (lambda given: given + given.data_ptr(), "data_ptr"),
    ],
)
def test_what_a_gpu_could_not_capture_is_refused(region: Region, said: str) -> None:
    with pytest.raises(GpuRefused, match=said):
        captured(region, torch.tensor([1.0, 2.0]))


def test_what_copies_between_the_host_and_the_device_is_refused() -> None:
    for region in (lambda given: given.to("meta"), lambda given: torch.ones(2, device="meta").copy_(given)):
        with pytest.raises(GpuRefused, match="between the host"):
            captured(region, torch.ones(2))


def test_after_a_refusal_the_next_region_is_captured() -> None:
    held = torch.ones(2)
    with pytest.raises(GpuRefused):
        captured(lambda given: given.nonzero(), held)

    graph = captured(lambda given: given + 1, held)
    graph.replay()

    assert graph.output.tolist() == [2.0, 2.0]
    assert graph.operations == ("aten::add.Tensor",)
