"""What operators read about limits is what the service enforces."""

from tests.api import limits


def test_the_limits_are_those_that_operators_read() -> None:
    """`make docs` writes them into the page."""
    page = limits.PAGE.read_text(encoding="utf-8")
    assert page == limits.written(page)
