"""Every kernel of the runtime, as it is compiled ahead of time. A new room adds its line."""

from __future__ import annotations

from coatcheck.gpu.kernels.ahead import Specimen
from coatcheck.gpu.kernels.backends import require_triton


def every_specimen() -> list[Specimen]:
    """Imports triton and the rooms' kernels. Raises GpuUnsupported where there is no triton."""
    require_triton()
    from coatcheck.gpu.fp8.specimens import specimens as fp8
    from coatcheck.gpu.nvfp4.specimens import specimens as nvfp4

    return [*nvfp4(), *fp8()]
