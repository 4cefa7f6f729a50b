"""The tables and plots of the race in docs/performance.md."""

import statistics
from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from bench import hard, plots
from bench.section import DOCS, Section

IMAGE = DOCS / "images" / "race.svg"
SECTION = Section("docs/performance.md", "race")
OURS = "blizzard"
COLD = {"blizzard, cold": "blizzard, cold", "Spark, cold": "blizzard, cold"}
"""Against whom each of them is measured, where it is not the warm blizzard."""

Figures = dict[str, Any]
MANY_ROUNDS = 5


def table(figures: Figures) -> Iterator[str]:
    """Yield a row for every contestant in every workload."""
    yield (
        "| workload | who | M rows/s | MB/s | spread | spread of CPU | time, ours = 1 "
        "| CPU, ours = 1 | MiB |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for key, found in figures["workloads"].items():
        size = "" if found["scale"] == 1 else f", {found['scale']:g} of it"
        first = f"**({key})** {found['title']}{size}"
        for name, took in found["contestants"].items():
            yield _row(first, name, took, found)
            first = ""


def _row(first: str, name: str, took: Figures, found: Figures) -> str:
    if not took["seconds"]:
        return f"| {first} | {name} | cannot: {_plain(took['error'])} |||||||"
    seconds = statistics.median(took["seconds"])
    ours = found["contestants"].get(COLD.get(name, OURS))
    wall = cpu = ""
    if ours and ours["seconds"]:
        wall = f"{seconds / statistics.median(ours['seconds']):.2f}"
        # The JVM outlives the program that started it, and what it used is then not seen.
        used = statistics.median(took["cpu"]) / statistics.median(ours["cpu"])
        cpu = "" if name in COLD else f"{used:.2f}"
    spread = f"{_spread(took['seconds'])} | {_spread(took['cpu'])}"
    return (
        f"| {first} | {name} | {found['rows'] / seconds / 1e6:.2f} "
        f"| {found['bytes'] / seconds / 1e6:.0f} | {spread} | {wall} | {cpu} "
        f"| {took['whole_mib']:,} |"
    )


def _spread(took: list[float]) -> str:
    """Return how far rounds lie apart, as a part of their median.

    Of five or more, the slowest and the fastest one are left out: they tell what else was running.
    """
    some = sorted(took)[1:-1] if len(took) >= MANY_ROUNDS else took
    return f"{(max(some) - min(some)) / statistics.median(took):.0%}"


def _plain(error: str) -> str:
    """Return an error in a form that a table bears."""
    return error.replace("|", "/")[:120]


def memory(figures: Figures) -> Iterator[str]:
    """Yield what a worker takes on one very large file, early and late."""
    took = figures["workloads"].get("e", {}).get("contestants", {}).get(OURS)
    if not took or not took["worker_mib"]:
        return
    sizes = took["worker_mib"]
    quarter = max(1, len(sizes) // 4)
    yield (
        f"**Memory.** On workload (e) the largest Python worker took {max(sizes)} MiB at most: "
        f"{max(sizes[quarter : 2 * quarter], default=0)} in the second quarter of the run, "
        f"{max(sizes[-quarter:])} in the last."
    )


def write(figures: Figures) -> None:
    """Put table, plot and machine into the page."""
    with plots.style():
        plots.save(draw(figures), IMAGE)
    made = figures["machine"]
    libraries = ", ".join(f"{name} {number}" for name, number in made["libraries"].items())
    lines = [
        *table(figures),
        "",
        f"{made['cpu']}, {made['cores']} cores, Python {made['python']}; {libraries}.",
        "",
        "![Speed of each contestant in each workload](images/race.svg)",
        "",
        *memory(figures),
        "",
        *hard.table(figures.get("hard", {})),
    ]
    SECTION.write("\n".join(lines))


def draw(figures: Figures) -> Figure:
    """Draw a bar for every contestant in every workload, as a multiple of Spark's own speed."""
    names = ("blizzard", "bare processes", "DuckDB", "Polars", "Spark stream")
    keys = [key for key, found in figures["workloads"].items() if _median(found, "Spark")]
    figure = Figure(figsize=(7, 0.8 + 0.6 * len(keys)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(names)
    for place, name in enumerate(names):
        at, speeds = [], []
        for row, key in enumerate(keys):
            found = figures["workloads"][key]
            theirs, spark = _median(found, name), _median(found, "Spark")
            if theirs and spark:
                at.append(row + (place - len(names) / 2 + 0.5) * height)
                speeds.append(spark / theirs)
        if speeds:
            axes.barh(at, speeds, height, label=name, color=plots.COLOURS[place])
    axes.axvline(1, color=plots.GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_yticks(range(len(keys)), [f"({key})" for key in keys])
    axes.invert_yaxis()
    axes.set_xlabel("speed, as a multiple of Spark's own reader and writer")
    figure.legend(loc="outside lower center", ncols=len(names))
    return figure


def _median(found: Figures, name: str) -> float | None:
    took = found["contestants"].get(name)
    return statistics.median(took["seconds"]) if took and took["seconds"] else None
