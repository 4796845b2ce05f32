"""The stand-ins' fixture."""

from tests.gpu.vllm.standin import installed

__all__ = ["installed"]
