"""The league that files are imported into."""

import os
from collections.abc import Iterator

import pytest

from tests.api.cli.conftest import Tallybook
from tests.api.imports.league import open_league
from tests.conftest import Administrator

LEAGUE = f"tallybook_league_{os.getpid()}"
"""The database that tests with a `slug` have a copy of: to play it takes longer than to copy it."""


@pytest.fixture(scope="session")
def template_slug(administrator: Administrator) -> Iterator[str]:
    """The slug of the tournament in the template LEAGUE."""
    yield administrator.make_template(LEAGUE, lambda dsn: open_league(Tallybook(dsn)))
    administrator.drop(LEAGUE)


@pytest.fixture
def templates() -> dict[str, str]:
    return {"slug": LEAGUE}


@pytest.fixture
def slug(template_slug: str) -> str:
    return template_slug
