"""The results page is made from the stored results."""

from typing import Final

from benchmarks import report
from benchmarks.machine import ROOT

FOLDER: Final = ROOT / "benchmarks"
STORED: Final = report.read_json(FOLDER / "results.json")


def test_the_page_is_made_from_the_stored_results() -> None:
    """`python -m benchmarks.bench --page` writes it."""
    charts = [f"charts/{file.name}" for file in (FOLDER / "charts").glob("*.svg")]
    assert (FOLDER / report.PAGE).read_text(encoding="utf-8") == report.page(STORED, charts)


def test_the_page_opens_with_what_people_ask() -> None:
    opening = report.page(STORED, []).partition("\n## ")[0]
    assert opening.count("\n| ") == 2 + 6


def test_every_figure_of_the_summary_is_measured() -> None:
    named = {name for line in report.SUMMARY for name in (line.rate, line.p50, line.p99) if name}
    assert named - {figure.name for figure in STORED.figures} == set()
