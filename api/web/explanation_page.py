"""The page that explains a line of a board: every step by which a competitor came to a place."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from api.interface.competition_names import result_text
from api.web.html import Html, element, joined
from api.web.page import Query, Site, dot, framed, name_text, number_text, signed_text, time_element
from engine.domain.notation import Notation
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
    kept = {name: text for name, text in query.items() if name != "to"}
    to_line = f"{site.address({**kept, 'line': str(competitor_id)})}#line-{competitor_id}"
    back = to_line if has_lines else site.address(kept)
    further = None
    if explanation.next is not None:
        address = site.address({**query, "to": str(explanation.next)}, f"/competitors/{competitor_id}")
        further = element("nav", element("a", "Earlier steps", href=address), class_="pages", aria_label="Steps")
    at = explanation.on or explanation.end.recorded_at
    head = element(
        "header",
        element("p", name_text(site.name), " · ", name_text(ranking.name), class_="tournament"),
        element("h1", dot(competitor.color), name_text(competitor.name)),
        element("p", _place_text(explanation.end, at, unity), class_="moment"),
    )
    body = joined(
        (
            element("nav", element("a", "Back to the table", href=back), class_="ways"),
            head,
            element("main", *_told(board, explanation.steps, competitor_id, unity), further),
        )
    )
    return framed(site, f"{competitor.name} · {ranking.name} · {site.name}", body, kind="explanation", scripts=False)


def _place_text(stand: DatedPlace, at: datetime | None, unity: Unity) -> Html:
    total = f"{number_text(stand.place.total, unity.notation)} in {unity.name}"
    where = "Not in the table" if stand.place.position is None else f"Place {stand.place.position}"
    return joined((where, f", {total}", None if at is None else ", as of ", None if at is None else time_element(at)))


def _told(board: Board, steps: Items[Step], her: CompetitorId, unity: Unity) -> list[Html]:
    """The steps in short; those that were the competitor's own; and, folded away, those in which only others moved."""
    if not steps:
        return [element("p", "Nothing has changed this place yet.")]
    own = [step for step in reversed(steps) if step.is_own]
    others = [step for step in reversed(steps) if not step.is_own]
    told = [element("p", _summary(steps, her, unity.notation), class_="summary")]
    if own:
        told.append(_table(board, own, her, unity, "Own results and changes, the newest first"))
    if others:
        number = f"When only others moved ({len(others)})"
        table = _table(board, others, her, unity, "Steps in which only others moved, the newest first")
        told.append(element("details", element("summary", number), table))
    return told


def _summary(steps: Items[Step], her: CompetitorId, notation: Notation) -> str:
    """What the steps came to."""
    deltas = [step.delta for step in steps if step.delta is not None]
    gained, lost = sum([one for one in deltas if one > 0]), sum([one for one in deltas if one < 0])
    passing = [one for step in steps for one in step.overtakings if not one.level]
    passed = sum([one.who == her for one in passing])
    first, last = steps[0].before.position, steps[-1].after.position
    places = "" if first is None or last is None else f" From place {first} to {last}."
    return (
        f"{number_text(len(deltas))} {'change' if len(deltas) == 1 else 'changes'} of the total: "
        f"{signed_text(gained, notation)}, {number_text(lost, notation)}. "
        f"Passed others {_times(passed)}, was passed {_times(len(passing) - passed)}.{places}"
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number_text(number)} times"


def _table(board: Board, steps: Iterable[Step], her: CompetitorId, unity: Unity, caption: str) -> Html:
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
        element("caption", caption, class_="unseen"),
        element("thead", element("tr", *heads)),
        element("tbody", *[_row(board, step, her, unity) for step in steps]),
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
    """When it took place: when its competition began, else when the event was recorded."""
    if step.took_place is not None:
        return step.took_place
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
    return f"{result_text(board, competition)}, group {competition.group_id}"


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
