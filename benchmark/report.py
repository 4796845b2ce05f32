"""What a benchmark hands over: its figures with all that is needed to read them, as JSON and as a table.

A figure that was not measured is absent, never zero.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from benchmark.environment import describe_environment
from coatcheck.domain.canonical import JsonObject, JsonValue

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """One table for the terminal. None is printed as an empty cell."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Bars to draw: for each series one value a label; None where it was not measured."""

    title: str
    unit: str
    labels: tuple[str, ...]
    series: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark's outcome. ``results`` is the machine-readable part whose names the documents promise."""

    name: str
    results: JsonObject
    settings: JsonObject
    corpus: JsonObject = field(default_factory=dict)
    """What was measured on: its SHA-256, its seed, its size."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Of models, analysers, rules and planner, as the service states them."""
    tables: tuple[Table, ...] = ()
    picture: Picture | None = None
    notes: tuple[str, ...] = ()
    """What a reader must know to read the figures rightly."""

    def as_json(self) -> JsonObject:
        return {
            "benchmark": self.name,
            "environment": describe_environment(),
            "corpus": self.corpus,
            "settings": self.settings,
            "revisions": dict(self.revisions),
            "results": self.results,
            "notes": list[JsonValue](self.notes),
        }


def json_text(report: Report) -> str:
    """The report with its environment."""
    return json.dumps(report.as_json(), indent=2, ensure_ascii=False) + "\n"


def show(report: Report, console: Console) -> None:
    """Prints the tables and the notes."""
    for table in report.tables:
        drawn = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD)
        for position, column in enumerate(table.columns):
            drawn.add_column(column, justify="left" if position == 0 else "right")
        for row in table.rows:
            drawn.add_row(*(_cell(cell) for cell in row))
        console.print(drawn)
    for note in report.notes:
        console.print(f"- {note}", markup=False)


def rounded(figures: Mapping[str, float | None], digits: int = 4) -> JsonObject:
    """The figures that were measured, rounded; the others are left out."""
    return {name: round(value, digits) for name, value in figures.items() if value is not None}


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else value
