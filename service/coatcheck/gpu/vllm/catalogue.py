"""Every part of the plugin."""

from __future__ import annotations

from coatcheck.gpu.vllm import expert_routes, expert_workspaces, nvfp4_cache, page_plan, ple_loading
from coatcheck.gpu.vllm.parts import Part


def every_part() -> tuple[Part, ...]:
    """In the order in which they are told of."""
    return (ple_loading.part(), expert_routes.part(), expert_workspaces.part(), nvfp4_cache.part(), page_plan.part())
