"""The page that explains a line of a board: every step by which a competitor came to a place."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from api.web.html import Html, element, joined
from api.web.page import Query, Site, dot, framed, name_text, number_text, signed_text, time_element
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board, Unity
from projections.past.explanation import Cause, Overtaking, Step
from projections.past.past import DatedPlace, Explanation

OVERTAKINGS_SHOWN_MAX: Final = 5
"""Overtakings of one step that are told one by one."""
_CAUSES: Final = {
    Cause.POINTS: "Points",
    Cause.REVERSAL: "Points taken back",
    Cause.LIST: "The list of competitors changed",
    Cause.SORT: "Which totals are better changed",
}


def explanation_page(
    site: Site,
    board: Board,
    explanation: Explanation,
    ranking_id: RankingId,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    query: Query,
    *,
    has_lines: bool = False,
) -> bytes:
    """The page. `board` knows the names of all who are in the explanation. `has_lines`: the table has an address for
    each line."""
    competitor, ranking = board.competitors[competitor_id], board.rankings[ranking_id]
    unity = ranking.unities[unity_id]
    kept = {name: text for name, text in query.items() if name != "from"}
    to_line = f"{site.address({**kept, 'line': str(competitor_id)})}#line-{competitor_id}"
    back = to_line if has_lines else site.address(kept)
    further = None
    if explanation.next is not None:
        address = site.address({**query, "from": str(explanation.next)}, f"/competitors/{competitor_id}")
        further = element("nav", element("a", "Later steps", href=address), class_="pages", aria_label="Steps")
    head = element(
        "header",
        element("p", name_text(site.name), " · ", name_text(ranking.name), class_="tournament"),
        element("h1", dot(competitor.color), name_text(competitor.name)),
        element("p", _place_text(explanation.end, unity), class_="moment"),
    )
    body = joined(
        (
            element("nav", element("a", "Back to the table", href=back), class_="ways"),
            head,
            element("main", _steps(board, explanation.steps, competitor_id, unity), further),
        )
    )
    return framed(site, f"{competitor.name} · {ranking.name} · {site.name}", body, kind="explanation", scripts=False)


def _place_text(stand: DatedPlace, unity: Unity) -> Html:
    total = f"{number_text(stand.place.total, unity.notation)} in {unity.name}"
    where = "Not in the table" if stand.place.position is None else f"Place {stand.place.position}"
    return joined((where, f", {total}", None if stand.recorded_at is None else ", as of ", _when(stand)))


def _when(stand: DatedPlace) -> Html | None:
    return None if stand.recorded_at is None else time_element(stand.recorded_at)


def _steps(board: Board, steps: Iterable[Step], her: CompetitorId, unity: Unity) -> Html:
    rows = [_row(board, step, her, unity) for step in steps]
    if not rows:
        return element("p", "Nothing has changed this place yet.")
    heads = [
        element("th", text, scope="col", class_=kind)
        for text, kind in (
            ("When", "when"),
            ("What", "name"),
            ("Change", "value"),
            (unity.name, "value first"),
            ("Place", "value"),
        )
    ]
    return element(
        "table",
        element("caption", "Every step, the oldest first", class_="unseen"),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
    )


def _row(board: Board, step: Step, her: CompetitorId, unity: Unity) -> Html:
    said = [element("p", _what(board, step))]
    if step.reason is not None:
        said.append(element("p", step.reason, class_="reason"))
    if step.overtakings:
        said.append(element("p", _overtakings(board, step, her), class_="overtakings"))
    change = None if step.delta is None else signed_text(step.delta, unity.notation)
    return element(
        "tr",
        element("td", time_element(_happened(board, step)), class_="when"),
        element("td", *said, class_="name"),
        element("td", change, class_="value", data_label="Change"),
        element("td", number_text(step.after.total, unity.notation), class_="value first", data_label=unity.name),
        element("td", _places(step), class_="value", data_label="Place"),
    )


def _happened(board: Board, step: Step) -> datetime:
    """When its competition began, else when the event was recorded."""
    competition = None if step.competition_id is None else board.competitions.get(step.competition_id)
    return step.recorded.recorded_at if competition is None else competition.started_at


def _what(board: Board, step: Step) -> str:
    cause = _CAUSES[step.cause]
    if step.reversal is not None and not step.reversal.takes_back:
        cause = "Points given back"
    if step.competition_id is None:
        return "Others moved" if step.cause is Cause.POINTS and step.delta is None else cause
    named = _competition(board, step.competition_id)
    return named if step.cause is Cause.POINTS else f"{cause}: {named}"


def _competition(board: Board, competition_id: CompetitionId) -> str:
    competition = board.competitions.get(competition_id)
    if competition is None:
        return f"Competition {competition_id}"
    where = f", {competition.location}" if competition.location else ""
    if isinstance(competition.result, str) and len(competition.participants) <= 2:
        sides = " \N{EN DASH} ".join(board.competitors[one].name for one in competition.participants)
        return f"{sides} {competition.result}{where}"
    return f"Competition of {len(competition.participants)}{where}"


def _places(step: Step) -> str:
    before, after = step.before.position, step.after.position
    if after is None:
        return "left"
    return str(after) if before in (None, after) else f"{before} → {after}"


def _overtakings(board: Board, step: Step, her: CompetitorId) -> str:
    told = [_overtaking(board, one, her) for one in step.overtakings[:OVERTAKINGS_SHOWN_MAX]]
    more = len(step.overtakings) - len(told) + step.overtakings_left_out
    if more:
        told.append(f"{number_text(more)} more")
    return "; ".join(told)


def _overtaking(board: Board, one: Overtaking, her: CompetitorId) -> str:
    other = board.competitors[one.whom if one.who == her else one.who].name
    if one.level:
        return f"drew level with {other}" if one.who == her else f"{other} drew level"
    return f"passed {other}" if one.who == her else f"{other} passed"
