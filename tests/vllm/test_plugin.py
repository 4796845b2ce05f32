"""The plugin beside a real vLLM: found by its group, armed by vLLM itself, once, without anything of the service."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vllm.environment import ask, needs_vllm

pytestmark = needs_vllm


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = ask("plugin.py")
    return answer


def test_vllm_loads_it_by_its_group_and_loading_again_adds_nothing(found: dict[str, Any]) -> None:
    assert found["entry_points"] == ["coatcheck", "coatcheck_sparse_as_full"]
    assert found["armed_after_vllm_loaded_its_plugins"] == 1
    assert found["armed_after_loading_again"] == 1


def test_it_needs_nothing_of_the_service(found: dict[str, Any]) -> None:
    assert found["of_the_service"] == []
    assert found["installed_of_ours"] == ["coatcheck"]


def test_what_it_finds_in_vllm_0_32_is_what_it_knows(found: dict[str, Any]) -> None:
    """FlashInfer is not installed beside vLLM for the CPU."""
    states = {part["name"]: part["state"] for part in found["report"]["parts"]}

    assert states == {
        "ple-loading": "applied", "expert-routes": "applied", "expert-workspaces": "absent", "nvfp4-cache": "waiting",
        "page-plan": "applied",
    }  # fmt: skip
    assert found["report"]["vllm"] == "vllm 0.32.0+cpu"


def test_routes_of_vllms_own_experts_are_cleaned_and_counted() -> None:
    """The article's: three routes among 512 experts, one of padding and one above the range."""
    answers = ask("routes.py")

    assert answers["FlashInferB12xExperts"] == answers["B12xExperts"] == [[[0, 7, 0]], [[0.0, 0.5, 0.0]]]
    assert answers["above"] == 2


@pytest.mark.parametrize(
    ("plugins", "kind"), [("coatcheck", "indexed_attention"), ("coatcheck,coatcheck_sparse_as_full", "full_attention")]
)
def test_sparse_attention_is_read_as_full_where_it_is_asked_for(plugins: str, kind: str) -> None:
    """What transformers calls it by itself is its own new name for it."""
    assert ask("sparse.py", plugins=plugins) == ["linear_attention"] * 3 + [kind]


def test_a_whole_table_is_loaded_by_vllms_own_loader_and_was_not_without_the_plugin() -> None:
    answers = ask("ple.py")

    assert all(isinstance(error, str) for error in answers["without"].values())
    for name in ("long name", "short name", "numbered"):
        assert answers[name] == answers["expected"]
    assert answers["another shape"] == "GpuRefused"
