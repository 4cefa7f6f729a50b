"""Plots for the documentation: small SVGs that read well on white and on black.

They are the same bytes as long as their figures are.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GREY = "#808080"
"""Legible on white and on black."""
COLOURS = ("#3b8bd6", "#e07b39", "#4aa564", "#b05fc4", "#c9a227", "#d1495b")
"""The same."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One small plot: lines by name."""

    title: str
    lines: Mapping[str, Points]


def style() -> AbstractContextManager[None]:
    """Draw in this style inside of the block: grey on nothing, with names that do not change."""
    return mpl.rc_context(
        {
            "svg.hashsalt": "blizzard",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 8,
            "text.color": GREY,
            "axes.edgecolor": GREY,
            "axes.labelcolor": GREY,
            "axes.titlesize": 8,
            "axes.titlecolor": GREY,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": GREY,
            "grid.alpha": 0.25,
            "grid.linewidth": 0.5,
            "xtick.color": GREY,
            "ytick.color": GREY,
            "legend.frameon": False,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
        }
    )


def mark_of(panels: Sequence[Panel]) -> str:
    """Return a word that stands in the plot of these panels and in no other's."""
    drawn = [(panel.title, dict(panel.lines)) for panel in panels]
    return hashlib.sha256(json.dumps(drawn).encode()).hexdigest()


def save(figure: Figure, path: Path, *, mark: str = "") -> None:
    """Write a figure as SVG; the same figure gives the same bytes on the same versions.

    With a mark it can be told, without drawing, whether a plot is that of given figures.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"Date": None, "Description": mark or None}
    figure.savefig(path, format="svg", transparent=True, metadata=told)
    # The backend leaves spaces at the ends of lines, which editors and hooks would take away.
    text = "\n".join(line.rstrip() for line in path.read_text().splitlines())
    path.write_text(f"{text}\n")


def log_log(panels: Sequence[Panel], *, columns: int, across: str) -> Figure:
    """Draw panels of lines, both axes by powers of ten, with the same range across all."""
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(2.5 * columns, 1.9 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colours = dict(zip(names, COLOURS, strict=False))
    for place, panel in enumerate(panels):
        axes: Axes = grid[place // columns][place % columns]
        axes.set_title(panel.title)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.minorticks_off()
        for name, points in panel.lines.items():
            axes.plot(
                [across_ for across_, _up in points],
                [up for _across, up in points],
                marker="o",
                markersize=3,
                linewidth=1.2,
                color=colours[name],
                label=name,
            )
        if place // columns == rows - 1:
            axes.set_xlabel(across)
    handles, shown = _shown(figure.axes)
    figure.legend(handles, shown, loc="outside lower center", ncols=len(names))
    return figure


def _shown(axes: Iterable[Axes]) -> tuple[list[Artist], list[str]]:
    """Return each name of a line once, as it is drawn."""
    found: dict[str, Artist] = {}
    for one in axes:
        for handle, name in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    return list(found.values()), list(found)
