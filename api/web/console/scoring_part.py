"""Scorings on pages: what results give in a ranking, and which results give nothing."""

from collections.abc import Iterable

from api.access.auth import Scope
from api.interface.competition_names import competition_text
from api.interface.scoring_text import award_rows
from api.web.console.frame import Venue, Viewer, data_table
from api.web.html import Child, Html, element
from api.web.page import name_text
from api.web.result_text import performances_text, result_text
from api.web.words import ENGLISH, Words
from projections.answers.competition_results import CompetitionResults
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking
from projections.answers.scoring import Unscored


def scorings_part(ranking: ListedRanking) -> Html | None:
    """What each award of the declared scorings gives; None: none are declared."""
    if not ranking.scorings:
        return None
    heads = [(text, "name") for text in ("For", "Column", "From", "Gives")]
    return data_table("What results give", heads, award_rows(ranking, ranking.scorings), stacked=True)


def results_part(words: Words, names: NamesById, found: CompetitionResults) -> Html | None:
    """The results that a competition had, if there were several: newest first."""
    if len(found.results) < 2:
        return None
    rows: list[list[Child]] = []
    for number, one in reversed([*enumerate(found.results)]):
        winner = "" if one.winner_id is None else name_text(names.competitor(one.winner_id).name)
        if one.result is None or isinstance(one.result, str):
            result = result_text(words, one.result or "") or "none"
        else:
            before = found.results[number - 1].result if number else None
            result = performances_text(words, names, one.result, before)
        rows.append([words.time_element(one.recorded_at), result, winner])
    heads = [("Saved", "name"), ("Result", "name"), ("Winner", "name")]
    return element(
        "section", element("h2", "Earlier and current results"), data_table("Earlier and current results", heads, rows)
    )


def unscored_part(viewer: Viewer, venue: Venue, names: NamesById, unscored: Iterable[Unscored]) -> Html | None:
    """The results that give nothing, with the reason and the forms that count; None: there are none."""
    rows: list[list[Child]] = []
    for one in unscored:
        competition = names.competition(one.competition_id)
        assert competition is not None
        text: Child = competition_text(names, competition, venue.words("competition_of"))
        if viewer.may(Scope.WRITE):
            text = element("a", text, href=venue.address(f"/competitions/{one.competition_id}/record"))
        result = competition.result if isinstance(competition.result, str) else ""
        rows.append([text, result_text(ENGLISH, result), one.why])
    if not rows:
        return None
    heads = [(venue.sport("{Match}"), "name"), ("Result", "name"), ("Why", "name")]
    return element(
        "section",
        element("h2", "Results that give nothing"),
        data_table("Results that give nothing", heads, rows, stacked=True),
    )
