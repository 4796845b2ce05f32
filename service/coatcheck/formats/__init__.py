"""The wire formats: how each provider's messages become parts, and parts the very same messages again."""

from coatcheck.formats.detect import detect
from coatcheck.formats.registry import FORMATS, get

__all__ = ["FORMATS", "detect", "get"]
