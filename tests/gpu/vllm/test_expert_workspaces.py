"""Wrappers of one shape share their buffers, others do not, and two never use them at once."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from types import ModuleType

import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.vllm import plugin
from coatcheck.gpu.vllm.parts import State
from tests.gpu.vllm.standin import WORKSPACES, WORKSPACES_SOURCE, write


@pytest.fixture
def module(installed: Path) -> ModuleType:
    write(installed, {WORKSPACES: WORKSPACES_SOURCE})
    plugin.register()
    return importlib.import_module(WORKSPACES)


def test_48_layers_of_one_shape_have_one_set_of_buffers(module: ModuleType) -> None:
    layers = [module.B12xMoEWrapper() for _ in range(48)]

    for name in ("_static_workspace", "_dynamic_workspace", "_moe_output"):
        assert len({id(getattr(layer, name)) for layer in layers}) == 1
    assert [layer.run() for layer in layers] == [layers[0]._moe_output] * 48


def test_layers_of_another_shape_have_their_own(module: ModuleType) -> None:
    wide, narrow = module.B12xMoEWrapper(intermediate_size=16), module.B12xMoEWrapper(intermediate_size=8)

    assert wide._moe_output is not narrow._moe_output


def test_buffers_that_somebody_hands_in_are_kept_and_not_handed_on(module: ModuleType) -> None:
    own = object()

    given, others = module.B12xMoEWrapper(shared_output=own), module.B12xMoEWrapper()

    assert given._moe_output is own
    assert others._moe_output is not own
    assert given._static_workspace is not others._static_workspace


def test_a_use_within_anothers_is_refused_and_the_next_one_is_not(module: ModuleType) -> None:
    first, second = module.B12xMoEWrapper(), module.B12xMoEWrapper()
    first.within = second.run

    with pytest.raises(GpuRefused, match="is using"):
        first.run()

    assert second.run() is second._moe_output


def test_a_use_in_another_thread_is_refused(module: ModuleType) -> None:
    first, second = module.B12xMoEWrapper(), module.B12xMoEWrapper()
    first.run()
    refused: list[BaseException] = []

    def elsewhere() -> None:
        try:
            second.run()
        except GpuRefused as error:
            refused.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(10)

    assert len(refused) == 1


def test_a_flashinfer_that_shares_by_itself_is_left_alone(installed: Path) -> None:
    own = WORKSPACES_SOURCE.replace("= object(), object(), self", "= _get_cached_workspace(), object(), self")
    write(installed, {WORKSPACES: own + "\n\ndef _get_cached_workspace():\n    return object()\n"})
    plugin.register()

    module = importlib.import_module(WORKSPACES)

    assert module.B12xMoEWrapper()._moe_output is not module.B12xMoEWrapper()._moe_output
    [part] = [part for part in plugin.armed().report().parts if part.name == "expert-workspaces"]
    assert part.state is State.NOT_NEEDED
