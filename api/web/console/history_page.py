"""The page of a ranking's history: its newest events first, each with its lines."""

from collections.abc import Mapping
from typing import Final

from api.access.auth import Scope
from api.interface.competition_names import competition_text
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, way, ways
from api.web.html import Child, Html, element, joined
from api.web.page import Query, name_text, number_text, signed_text
from engine.domain.notation import Notation
from engine.domain.terms import OPERATOR, ActorId, CompetitionId, RankingId, Reversal, Sequence
from projections.answers.history import History, HistoryLine, HistoryQuestion
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking, ListedUnity
from projections.answers.view import View

HISTORY_EVENTS: Final = 200
"""Events of a tournament that one page covers."""
HISTORY_LINES: Final = 500
"""Lines of one page."""
_HEADS: Final = [
    ("Event", "value"),
    ("When", "when"),
    ("Competitor", "name"),
    ("Change", "value"),
    ("Total", "value"),
    ("Place", "value"),
    ("For", ""),
    ("By", ""),
    ("Undo", ""),
]


def history_page(
    viewer: Viewer, venue: Venue, view: View, question: HistoryQuestion, history: History, query: Query
) -> bytes:
    """The lines of the requested events, each event with a link to undo or redo it."""
    ranking, undone = view.ranking(question.ranking_id), view.undone(question.ranking_id)
    first, last = question.first or Sequence(1), question.last or venue.head.sequence
    below = f"/rankings/{ranking.id}"
    unities = {one.id: one for one in ranking.unities}
    rows: list[list[Child]] = []
    event: Sequence | None = None
    for line in reversed(history.lines):
        unity = None if line.unity_id is None else unities[line.unity_id]
        undo = None if line.sequence == event else _undo(viewer, venue, ranking, undone, line)
        rows.append([*_row(venue, view.names, ranking.id, unity, line), undo])
        event = line.sequence
    said = f"Events {number_text(first)} to {number_text(last)} of {number_text(venue.head.sequence)}"
    earlier, later = first - 1, min(last + HISTORY_EVENTS, venue.head.sequence)
    links = ways(
        way("Earlier", venue.address(f"{below}/history", {"to": str(earlier)})) if earlier else None,
        way("Later", venue.address(f"{below}/history", {"to": str(later)})) if later > last else None,
    )
    unshown = "These events have more lines than this page shows; the command line and the interface show all."
    return console_page(
        viewer,
        f"History of {ranking.name}",
        done_message(query),
        element("p", element("a", "Back to the table", href=venue.address(below)), class_="ways"),
        element("p", said, class_="moment"),
        None if history.next is None else element("p", unshown, class_="warning"),
        data_table(said, _HEADS, rows, stacked=True)
        if rows
        else element("p", "None of these events gave points in this ranking."),
        links,
        venue=venue,
    )


def _row(
    venue: Venue, names: NamesById, ranking_id: RankingId, unity: ListedUnity | None, line: HistoryLine
) -> list[Child]:
    when, who = venue.words.time_element(line.recorded_at), _actor(line.actor)
    if unity is None or line.competitor_id is None:
        what = "The order of the table was declared" if line.criteria else "The declared order of the table was removed"
        return [line.sequence, when, what, "", "", "", "", who]
    explained = venue.address(f"/rankings/{ranking_id}/competitors/{line.competitor_id}", {"unity": str(unity.id)})
    return [
        line.sequence,
        when,
        element("a", name_text(names.competitor(line.competitor_id).name), href=explained),
        joined((_change(line, unity.notation), element("span", " ", name_text(unity.name), class_="unit"))),
        number_text(line.total, unity.notation),
        _places(line),
        _what_for(names, line),
        who,
    ]


def _change(line: HistoryLine, notation: Notation) -> str:
    """The effect of the line: a delta, or a result; empty: it reversed results."""
    if line.result is not None:
        return number_text(line.result, notation)
    return "" if line.delta is None else signed_text(line.delta, notation)


def _undo(
    viewer: Viewer, venue: Venue, ranking: ListedRanking, undone: Mapping[Sequence, Sequence], line: HistoryLine
) -> Child:
    """The state of the event, and a link to the page that undoes or redoes it, if the viewer may."""
    if line.competitor_id is None:
        return None
    by = undone.get(line.sequence if line.reverses is None else line.reverses)
    if line.reversal is None:
        is_own = by is None and line.actor == viewer.token.token_id
    elif line.reversal is Reversal.UNDO and by == line.sequence:
        is_own = line.actor == viewer.token.token_id
    else:
        return None
    said = f"undone by event {by} " if line.reversal is None and by is not None else ""
    if ranking.closed_at is not None or not viewer.may(Scope.WRITE if is_own else Scope.ADMIN):
        return said
    text, below, sequence = ("Undo", "undo", line.sequence) if by is None else ("Redo", "redo", by)
    return joined((said, element("a", text, href=venue.address(f"/rankings/{ranking.id}/{below}/{sequence}"))))


def _places(line: HistoryLine) -> str:
    before, after = line.position_before, line.position_after
    if after is None:
        return "not in the list"
    return str(after) if before in (None, after) else f"{before} → {after}"


def _what_for(names: NamesById, line: HistoryLine) -> Html:
    said: list[Child] = []
    if line.competition_id is not None:
        said.append(element("span", _competition(names, line.competition_id)))
    if line.reason is not None:
        said.append(element("span", name_text(line.reason), class_="reason"))
    if line.reversal is not None:
        takes = "takes back" if line.reversal.takes_back else "gives back"
        told = "expired" if line.reversal is Reversal.EXPIRY else f"{takes} event {line.reverses}"
        said.append(element("span", told, class_="reason"))
    return joined([child for one in said for child in (one, " ")])


def _competition(names: NamesById, competition_id: CompetitionId) -> str:
    found = names.competition(competition_id)
    return f"competition {competition_id}" if found is None else competition_text(names, found)


def _actor(actor: ActorId) -> str:
    return "the operator" if actor == OPERATOR else f"token {actor}"
