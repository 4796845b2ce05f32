"""Which of a checkpoint's outputs means "entailment": by the names that its configuration has, in any order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from coatcheck.domain.errors import RefusedToStart

_ENTAILMENT = frozenset(("entailment", "entails", "entail", "entailed"))
_OTHERS = frozenset(
    ("neutral", "contradiction", "contradicts", "contradict", "contradictory", "notentailment", "nonentailment", "notentailed")
)


def entailment_at(config: Mapping[str, Any], given: Sequence[str] | None = None) -> tuple[int, int]:
    """The place of "entailment" among a checkpoint's outputs, and how many there are.

    ``given`` names the outputs in their order, for a checkpoint that does not. Raises RefusedToStart for names that do not say
    which is which: guessing would turn the gate about.
    """
    names = list(given) if given is not None else _named(config)
    bare = [re.sub(r"[^a-z]", "", str(name).lower()) for name in names]
    places = [place for place, name in enumerate(bare) if name in _ENTAILMENT]
    others = [name for name in bare if name in _OTHERS]
    if len(places) != 1 or len(others) != len(bare) - 1 or len(bare) < 2 or len(set(bare)) != len(bare):
        shown = ", ".join(str(name)[:40] for name in names[:8]) or "none"
        raise RefusedToStart(
            f"The labels of the entailment model ({shown}) do not say which one is entailment and what the others are: "
            "name them in the order of its outputs."
        )
    return places[0], len(bare)


def _named(config: Mapping[str, Any]) -> list[str]:
    """The names in the order of the outputs; none where the numbers have gaps."""
    by_id = config.get("id2label")
    if not isinstance(by_id, dict):
        by_name = config.get("label2id")
        by_id = {str(number): name for name, number in by_name.items()} if isinstance(by_name, dict) else {}
    try:
        by_number = {int(number): str(name) for number, name in by_id.items()}
    except (TypeError, ValueError):
        return []
    return [by_number[number] for number in range(len(by_number))] if set(by_number) == set(range(len(by_number))) else []
