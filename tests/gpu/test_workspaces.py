"""Workspaces are shared by whoever needs the same, one after the other, and by nobody else."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.moe.workspace import WorkspaceKey, Workspaces

KEY = WorkspaceKey(512, 10, 2_560, 640, 8_192, 512, "bfloat16", "cuda:0", "silu", "nvfp4", "modelopt")
MIB = 1024**2


class Buffers:
    """What a layer's wrapper asks for: static, dynamic, output."""

    size_bytes = 400 * MIB


def test_48_layers_of_one_key_share_one_workspace_of_400_mib_and_not_18_75_gib() -> None:
    workspaces = Workspaces(lambda key: Buffers())

    seen = []
    for layer in range(48):
        with workspaces.using(KEY, f"layer {layer}", "main") as buffers:
            seen.append(buffers)

    assert len({id(buffers) for buffers in seen}) == len(workspaces) == 1
    assert 48 * Buffers.size_bytes / 1024**3 == 18.75


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(WorkspaceKey)])
def test_a_key_that_differs_in_any_part_has_a_workspace_of_its_own(part: str) -> None:
    values: dict[str, Any] = dataclasses.asdict(KEY)
    values[part] += 1 if isinstance(values[part], int) else "x"
    other = WorkspaceKey(**values)
    workspaces = Workspaces(lambda key: Buffers())

    with workspaces.using(KEY, "a", "main") as first, workspaces.using(other, "b", "main") as second:
        assert first is not second

    assert len(workspaces) == 2


def test_a_use_within_another_is_refused_and_names_both() -> None:
    workspaces = Workspaces(lambda key: Buffers())

    with workspaces.using(KEY, "layer 1", "main"):
        with pytest.raises(GpuRefused, match=r"layer 2 .* layer 1"), workspaces.using(KEY, "layer 2", "main"):
            pass
        with pytest.raises(GpuRefused), workspaces.using(KEY, "layer 3", "main"):
            pass

    with workspaces.using(KEY, "layer 2", "main"):
        pass


def test_a_use_in_another_stream_is_refused_although_the_host_is_done_with_the_first() -> None:
    workspaces = Workspaces(lambda key: Buffers())
    with workspaces.using(KEY, "layer 1", "main"):
        pass

    with pytest.raises(GpuRefused, match="stream 'main' in stream 'side'"), workspaces.using(KEY, "layer 2", "side"):
        pass


def test_of_two_threads_one_has_it_and_the_other_is_refused() -> None:
    workspaces = Workspaces(lambda key: Buffers())
    inside, leave, refused = threading.Event(), threading.Event(), []

    def first() -> None:
        with workspaces.using(KEY, "first", "main"):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with pytest.raises(GpuRefused) as caught, workspaces.using(KEY, "second", "main"):
        refused.append("entered")
    leave.set()
    thread.join(10)

    assert refused == []
    assert "first" in caught.value.detail


def test_a_use_that_raises_lets_go() -> None:
    workspaces = Workspaces(lambda key: Buffers())

    with pytest.raises(ArithmeticError), workspaces.using(KEY, "first", "main"):
        raise ArithmeticError

    with workspaces.using(KEY, "second", "main"):
        pass
