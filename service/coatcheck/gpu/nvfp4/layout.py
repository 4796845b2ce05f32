"""How one key or value vector lies in memory: its E2M1 values two to a byte, then one E4M3 scale for each group of 16.

Element ``2j`` is the low nibble of byte ``j``, element ``2j + 1`` the high one. A value is ``e2m1 * group_scale / global_scale``.
A head of 256 takes 128 + 16 = 144 bytes, and with two heads a token's key and value take 576 in each layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from coatcheck.domain.errors import GpuRefused

GROUP = 16
"""Elements that share a scale."""
E2M1_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""By code; the fourth bit is the sign."""
E2M1_MAX = 6.0
E4M3_MAX = 448.0
E4M3_SMALLEST = 2.0**-9
"""The smallest scale that is not zero, a subnormal one."""
GLOBAL_SCALES = (2.0**-60, 2.0**60)
"""Within these no product of the codec leaves the range of float32."""


@dataclass(frozen=True, slots=True)
class VectorLayout:
    """The bytes of one vector of ``head_size`` elements. Raises GpuRefused where that is no multiple of 16."""

    head_size: int

    def __post_init__(self) -> None:
        if self.head_size <= 0 or self.head_size % GROUP:
            raise GpuRefused(f"A head size of {self.head_size} is no positive multiple of {GROUP}, the size of a group.")

    @property
    def packed_bytes(self) -> int:
        return self.head_size // 2

    @property
    def scale_bytes(self) -> int:
        return self.head_size // GROUP

    @property
    def size_bytes(self) -> int:
        return self.packed_bytes + self.scale_bytes


def checked_global_scale(value: float) -> float:
    """The scale, if it is one: a positive number within ``GLOBAL_SCALES``. Raises GpuRefused."""
    least, most = GLOBAL_SCALES
    if not least <= value <= most:
        raise GpuRefused(f"A global scale of {value} is not between 2**-60 and 2**60.")
    return value
