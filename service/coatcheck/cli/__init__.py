"""The ``coatcheck`` command: a user of the SDK, like any other."""

from coatcheck.cli.main import main

__all__ = ["main"]
