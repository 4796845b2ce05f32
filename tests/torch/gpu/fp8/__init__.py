"""Tests of the FP8 router's checkpoint, layers and kernels."""
