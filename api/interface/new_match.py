"""What is asked about a match that somebody adds by hand."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from api.interface.doubts import double, doubts, twin_of
from engine.domain.commands import AddCompetition
from engine.domain.errors import Fault
from engine.domain.presentation import in_zone
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.view import View, ask
from projections.answers.zones import zone_of

TWINS_AMONG_MAX: Final = 1_000
"""Matches of the first participant among which another one is sought: the newest."""


async def doubts_about(view: View, made: AddCompetition, now: datetime) -> list[Fault]:
    """What is asked. Raises NotFound if the first participant does not exist."""
    zone = zone_of(view.publication.presentation.zone)
    found = [*doubts(made.participants, made.started_at, made.result, made.winner_id, now.astimezone(zone))]
    if len({*made.participants}) != 2:
        return found
    question = CompetitionListQuestion(
        competitor_id=made.participants[0],
        group_id=made.group_id,
        round=made.round,
        voided=False,
        newest_first=True,
        limit=TWINS_AMONG_MAX,
    )
    those = (await ask(view, question)).competitions.values()
    begins = replace(made, started_at=made.started_at or now)
    twin = twin_of(begins, [one for one in those if {*one.participants} == {*made.participants}])
    return found if twin is None else [*found, double(in_zone(twin.started_at, zone))]
