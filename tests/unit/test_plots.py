"""The plots of the documentation."""

import json

from bench import growth, plots
from bench.section import DOCS


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
