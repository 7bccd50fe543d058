"""The command that explains a competitor's place."""

from typing import Annotated, Any, Final

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive

from api.cli import printing
from api.cli.explanation_text import ExplanationText, only_with
from api.cli.lines import Count, On, window_of
from api.cli.names import CompetitorText, RankingText, UnityText
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.direction import isolated
from api.interface.names import Names
from api.interface.shapes import shaped
from api.web.words import Words
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.terms import CompetitorId, Sequence
from projections.answers.explanation import ExplainQuestion
from projections.answers.standings import StandingsQuestion
from projections.answers.view import View, ask

_OTHERS: Final = Group("Others", validator=mutually_exclusive)
TopOthers = Annotated[
    int | None,
    Parameter(
        group=_OTHERS, validator=Number(gte=1), help="Of the others, name only those among the first N at the end."
    ),
]
AroundOther = Annotated[
    str | None,
    Parameter(
        group=_OTHERS,
        help="Of the others, name only this one, by id or name, and the five above and the five below it at the end.",
    ),
]


async def explain(
    slug: Slug,
    ranking: RankingText,
    competitor: CompetitorText,
    /,
    *,
    unity: UnityText = None,
    from_: Annotated[int, Parameter(name="--from", validator=Number(gte=0))] = 0,
    to: Count = None,
    on: On = None,
    top: TopOthers = None,
    around: AroundOther = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    from_
        Begin after the event with this sequence; 0 means before the first.
    to
        End after the event with this sequence. Without it, after the last.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names, head = Names(view.live.board), view.live.head.sequence
        ranking_id = names.ranking(ranking)
        unity_id = names.unity_or_main(ranking_id, unity)
        competitor_id = names.competitor(competitor)
        view.competitor(competitor_id)
        last = head if to is None else Sequence(to)
        if from_ > last:
            raise NotFound(
                f"There is nothing to explain from event {from_} to event {last}; --from must not be greater than --to."
            )
        if on is not None and from_:
            raise Unacceptable("With --on, steps are in order of time; leave out --from.")
        asked: dict[str, Any] = {"ranking_id": ranking_id, "unity_id": unity_id, "on": on}
        question = ExplainQuestion(**asked, competitor_id=competitor_id, start=Sequence(from_), end=last, limit=None)
        explanation, of_others = await ask(view, question), ""
        if (top, around) != (None, None):
            middle = None if around is None else names.competitor(around)
            at_end = StandingsQuestion(**asked, at_sequence=None if last == head else last, **window_of(top, middle))
            others = {line.competitor_id for line in (await ask(view, at_end)).unities[0].lines}
            explanation = only_with(explanation, competitor_id, others)
            of_others = _words_of_others(view, len(others), middle)
    if json:
        printing.json(shaped(explanation))
    else:
        words = Words("en", view.publication.presentation.zone)
        text = ExplanationText(words, view.names, view.ranking(ranking_id), unity_id, competitor_id)
        printing.line(text.text(explanation, of_others=of_others))


def _words_of_others(view: View, count: int, middle: CompetitorId | None) -> str:
    return f"the first {count}" if middle is None else f"the {count} around {isolated(view.competitor(middle).name)}"
