"""Verification of a whole database, and what it found."""

from typing import Any

from engine.database.pool import Database
from projections.verification import all_tournaments
from projections.verification.all_tournaments import Plan, Report
from projections.verification.findings import Difference


def of_no_account(*_: object) -> None:
    """Ignores what it is told."""


async def verified(database: Database, **plan: Any) -> Report:
    told: list[Difference] = []
    report = await all_tournaments.verify_all(
        database, Plan(**plan), on_difference=told.append, on_events=of_no_account
    )
    assert told == report.differences
    return report


def named(report: Report) -> set[tuple[int | None, str]]:
    """The sequence and the field of each difference; all of them must be of one tournament, or of none."""
    assert len({difference.tournament for difference in report.differences}) <= 1
    return {(difference.sequence, difference.field) for difference in report.differences}
