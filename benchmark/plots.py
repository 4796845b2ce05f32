"""Draws a report's picture. matplotlib is an extra (``[bench]``) and is imported only here, when asked for."""

from __future__ import annotations

from pathlib import Path

from benchmark.report import Picture


def draw(picture: Picture, path: Path) -> None:
    """Writes grouped bars as PNG (or what the file's ending says). Raises ModuleNotFoundError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(1.4 * max(4, len(picture.labels)) + 1.5, 4.2), layout="constrained")
    width = 0.8 / len(picture.series)
    for number, (name, values) in enumerate(picture.series.items()):
        measured = [(position, value) for position, value in enumerate(values) if value is not None]
        bars = axes.bar(
            [position + number * width for position, _ in measured], [value for _, value in measured], width, label=name
        )
        axes.bar_label(bars, fmt="%.3g", fontsize=8)
    axes.set_xticks([position + 0.4 - width / 2 for position in range(len(picture.labels))], picture.labels)
    axes.set_title(picture.title)
    axes.set_ylabel(picture.unit)
    axes.spines[["top", "right"]].set_visible(False)
    if len(picture.series) > 1:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=140)
    pyplot.close(figure)
