"""Being told when a module has been imported, so that it can be changed without being imported by us."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class AfterImport(MetaPathFinder):
    """A finder that finds nothing by itself: it lets the others find a module, and is called once that one has run.

    Installed at the front of ``sys.meta_path``, which holds it for the process's life.
    """

    def __init__(self, names: set[str], imported: Callable[[ModuleType], None]) -> None:
        self._names = names
        self._imported = imported

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._names:
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)  # as Python's own import, which passes over those of long ago
            found: ModuleSpec | None = None if finder is self or find_spec is None else find_spec(name, path, target)
            if found is not None:
                if found.loader is not None:
                    found.loader = _Then(found.loader, self._imported)
                return found
        return None


class _Then(Loader):
    """Another loader's work, and then a call. The module keeps the other loader as its own."""

    def __init__(self, loader: Loader, then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then(module)
