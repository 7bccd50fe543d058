"""What a scoring gave points for, as a sentence on pages and on the command line."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby

from api.interface.direction import isolated
from api.web.result_text import result_text
from api.web.words import Words
from engine.domain.notation import Notation
from projections.answers.names import NamesById
from projections.answers.scored_for import EarlierResult, ScoredFor

_TOLD = {
    "win": "scored_win",
    "draw": "scored_draw",
    "loss": "scored_loss",
    "against": "scored_against",
    "bye": "scored_bye",
    "place": "scored_place",
    "result": "scored_result",
    "absent": "scored_absent",
    "nothing": "scored_nothing",
}


def scored_text(
    words: Words, names: NamesById, scored: ScoredFor, notation: Notation, *, of: str = "", on: datetime | None = None
) -> str:
    """Such as "3 for the win over Bari, 2:1 (corrected on 11 May 2026 from 2:2)". `of`: the competition in words, which
    is told where no single opponent is. `on`: the day of the competition is told."""
    against = "" if scored.against is None else isolated(names.competitor(scored.against).name)
    result = "" if scored.result is None else isolated(result_text(words, scored.result))
    kind = "against" if scored.kind == "result" and against else scored.kind
    points = words.number(scored.amount, notation)
    told = words(_TOLD[kind], points=points, name=against, result=result, place=scored.place)
    told += f", {result}" if kind in ("win", "draw", "loss") and result else ""
    told += f": {of}" if of and (not against or kind == "nothing") else ""
    told = told if on is None else words("scored_on", told=told, day=words.day(on))
    return told + corrected_text(words, scored.earlier)


def corrected_text(words: Words, earlier: Iterable[EarlierResult]) -> str:
    """What follows a corrected result; empty: it was not corrected."""
    corrected = [
        words("corrected", day=day, result=", ".join(isolated(result_text(words, one.result)) for one in of_day))
        for day, of_day in groupby(earlier, lambda one: words.day(one.corrected_at))
    ]
    return f" ({'; '.join(corrected)})" if corrected else ""
