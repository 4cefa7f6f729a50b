"""What the bench of data file sizes counts, and that its page says what its figures say."""

import json
from pathlib import Path

from bench import steady
from bench.steady import FLOWS, distribution, sizes, table


def test_sizes_are_compared_with_what_was_asked_for():
    found = distribution([10, 40, 60, 110], asked=100)
    assert found == {
        "files": 4, "median": 0.5, "below_half": 0.5, "largest": 1.1, "ideal": 2.2
    }  # fmt: skip


def test_the_page_says_what_the_figures_say():
    figures = json.loads(steady.FIGURES.read_text())
    written = steady.SECTION.read()
    assert figures["now"].keys() == {flow.name for flow in FLOWS}
    assert written.split("\n") == list(table(figures))


def test_in_a_steady_flow_data_files_have_the_size_that_was_asked_for(tmp_path: Path):
    """After the first batch, from which the pipeline learns; none is a quarter too large."""
    flow = next(flow for flow in FLOWS if flow.name == "plain")
    found = [size / steady.FILE_SIZE for size in sizes(flow, 45, tmp_path)]
    assert len(found) >= 4
    assert all(0.9 < size < 1.25 for size in found[flow.cores :])
