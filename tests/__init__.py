"""Tests mirror the source; what several of them build stands in ``conftest`` and in the modules beside it."""
