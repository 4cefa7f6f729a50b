"""The plots of the documentation."""

import json
from pathlib import Path

from bench import growth, plots
from bench.section import DOCS

PANEL = plots.Panel(title="growing", lines={"seconds": [(1, 2.0), (10, 20.0)]})


def drawn(path: Path) -> bytes:
    with plots.style():
        plots.save(plots.log_log([PANEL], columns=1, across="n"), path)
    return path.read_bytes()


def test_the_same_figures_give_the_same_bytes(tmp_path: Path) -> None:
    assert drawn(tmp_path / "a.svg") == drawn(tmp_path / "b.svg")


def test_a_plot_says_what_it_shows_in_text(tmp_path: Path) -> None:
    text = drawn(tmp_path / "a.svg").decode()
    assert ">growing<" in text
    assert ">seconds<" in text


def test_a_plot_has_no_background_of_its_own(tmp_path: Path) -> None:
    """It stands on a white page and on a black one."""
    text = drawn(tmp_path / "a.svg").decode()
    assert "#ffffff" not in text
    assert "#000000" not in text


def test_other_figures_have_another_mark() -> None:
    other = plots.Panel(title="growing", lines={"seconds": [(1, 2.0), (10, 21.0)]})
    assert plots.mark_of([PANEL]) != plots.mark_of([other])


def test_the_growth_page_shows_the_figures_that_are_kept() -> None:
    found = json.loads(growth.FIGURES.read_text())["figures"]
    again = "run python -m bench.growth --draw"
    assert growth.SECTION.read() == growth.table_of(found), again
    assert plots.mark_of(growth.panels_of(found)) in growth.PLOT.read_text(), again
    assert f"images/{growth.PLOT.name}" in (DOCS / growth.SECTION.page).read_text()


def test_every_measure_has_a_panel_with_all_its_sizes() -> None:
    found = json.loads(growth.FIGURES.read_text())["figures"]
    panels = growth.panels_of(found)
    assert len(panels) == len(growth.MEASURES)
    for panel, name in zip(panels, growth.MEASURES, strict=True):
        sizes = [one["n"] for one in found if one["measure"] == name]
        assert [n for n, _seconds in panel.lines["CPU seconds"]] == sizes
