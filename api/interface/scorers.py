"""What is asked of a scorer's link: which matches it is for, and until when."""

from collections.abc import Mapping
from datetime import UTC, datetime

from api.access.auth import ScorerPart
from api.access.granting import asked_link
from engine.domain.errors import Fault, NotFound
from engine.domain.faults import refuse_if_any, unacceptable
from projections.answers.rounds import RoundMatchesQuestion
from projections.answers.view import View, ask
from projections.answers.zones import zone_of


async def link_for(view: View, sent: Mapping[str, str]) -> tuple[ScorerPart, datetime]:
    """The part of a link, and when it ends. Raises Unacceptable, also if no match is in the part."""
    now = datetime.now(UTC)
    part, until = asked_link(sent, zone_of(view.publication.presentation.zone), now)
    try:
        found = await ask(view, RoundMatchesQuestion(now=now, round=part.round, group_id=part.group_id))
    except NotFound:
        raise unacceptable([Fault("round", "is not a round of these matches")]) from None
    refuse_if_any([] if found.matches else [Fault("division", "has no matches")])
    return part, until
