"""The entry points in ``vllm.general_plugins``: they arm every part, once in each process, and say what became of it.

vLLM calls it in each of its processes (API server, engine, workers, the one that inspects models), and would die of an exception.
Nothing of vLLM is imported here: a module is changed when vLLM imports it, and one that vLLM has no use for never is.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

from coatcheck.gpu.vllm import catalogue, installed, sparse_types
from coatcheck.gpu.vllm.importing import AfterImport
from coatcheck.gpu.vllm.parts import Outcome, Part, PartReport, PlaceReport, Report, State
from coatcheck.gpu.vllm.saying import say, warn


def register() -> None:
    """The entry point ``coatcheck``: every part but the one that has to be asked for. Raises nothing."""
    _survived(armed)


def register_sparse_as_full() -> None:
    """The entry point ``coatcheck_sparse_as_full``: only where ``VLLM_PLUGINS`` names it. Raises nothing.

    vLLM loads every plugin where that is not set, and what proves nothing about the outputs is for somebody to ask for.
    """
    _survived(_sparse_as_full)


def armed() -> Armed:
    """This process's plugin: the one that is armed, or a new one."""
    for finder in sys.meta_path:
        if isinstance(finder, Armed):
            return finder
    made = Armed()
    sys.meta_path.insert(0, made)
    for part in catalogue.every_part():
        made.add(part)
    return made


class Armed(AfterImport):
    """The parts, each waiting for its modules, and what became of them."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._places: set[str] = set()
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        super().__init__(self._places, self._apply)

    def add(self, part: Part) -> None:
        """Changes what is imported already, and says what the part waits for. One that is there already is not added again."""
        if any(other.name == part.name for other in self._parts):
            return
        self._parts.append(part)
        self._places.update(part.places)
        for place in part.places:
            if not installed.has_module(place):
                self._outcomes[part.name, place] = Outcome(State.ABSENT, "not in what is installed")
            elif (module := sys.modules.get(place)) is not None:
                self._outcomes[part.name, place] = _applied(part, module)
            else:
                self._outcomes[part.name, place] = Outcome(State.WAITING, "not imported yet")
        found = [(place, self._outcomes[part.name, place]) for place in part.places]
        said = [f"{place}: {outcome.state} ({outcome.detail})" for place, outcome in found if outcome.state is not State.ABSENT]
        say(f"{part.name}: {'; '.join(said) or 'nothing to change in what is installed'}")

    def report(self) -> Report:
        """What became of every part in this process so far."""
        parts = []
        for part in self._parts:
            outcomes = [(place, self._outcomes[part.name, place]) for place in part.places]
            places = tuple(PlaceReport(place, outcome.state, outcome.detail) for place, outcome in outcomes)
            parts.append(PartReport(part.name, part.purpose, places))
        return Report(installed.vllm_version(), tuple(parts))

    def _apply(self, module: ModuleType) -> None:
        for part in self._parts:
            if module.__name__ in part.places:
                outcome = _applied(part, module)
                self._outcomes[part.name, module.__name__] = outcome
                say(f"{part.name}: {module.__name__}: {outcome.state} ({outcome.detail})")


def _applied(part: Part, module: ModuleType) -> Outcome:
    try:
        return part.apply(module)
    except Exception as error:
        # As in ``_survived``: what is built otherwise than we know is left as it is.
        warn(f"{part.name}: {module.__name__} is left alone")
        return Outcome(State.UNSUITABLE, f"{type(error).__name__} while changing it")


def _survived(arming: Callable[[], object]) -> None:
    try:
        arming()
    except Exception as error:
        # Whatever it is, vLLM can do without us, and would not survive it.
        warn(f"changes nothing here: {type(error).__name__}")


def _sparse_as_full() -> None:
    name = sparse_types.ENTRY_POINT
    if name in (importlib.import_module("vllm.envs").VLLM_PLUGINS or ()):
        armed().add(sparse_types.part())
    else:
        say(f"{sparse_types.NAME}: does nothing, since VLLM_PLUGINS does not name {name}")
