"""The pages of the project: what they link to is there, and so are the tests that they name."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in ("", "docs", "benchmarks", "clients/python", "clients/typescript")
    for page in (ROOT / folder).glob("*.md")
)
LINK: Final = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """What can stand behind # in a link to this page: its headings as GitHub names them, and the ids it sets itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_that_exist(name: str) -> None:
    page = ROOT / name
    missing = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / target) if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_every_test_that_a_page_names_is_there() -> None:
    files = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")}
    there = files.keys() | set(re.findall(r"\bdef (test_\w+)", "".join(files.values())))
    named = {name: set(re.findall(r"`(test_\w+)`", (ROOT / name).read_text(encoding="utf-8"))) for name in PAGES}
    assert {name: names - there for name, names in named.items() if names - there} == {}
