"""The page of a ranking's history: its newest events first, those of the same match together."""

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.interface.competition_names import competition_text
from api.interface.direction import isolated
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, way, ways
from api.web.html import Child, Html, element, joined
from api.web.page import Query, name_text, number_text, signed_text
from engine.domain.notation import Notation
from engine.domain.terms import ActorId, CompetitorId, RankingId, Reversal, Sequence, UnityId
from projections.answers.history import History, HistoryLine, HistoryQuestion
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking, ListedUnity
from projections.answers.view import View

HISTORY_EVENTS: Final = 200
"""Events of a tournament that one page covers."""
HISTORY_LINES: Final = 500
"""Lines of one page."""
_HEADS: Final = [("When", "when"), ("What", ""), ("By", ""), ("Change", "value"), ("Undo", "action")]


def history_page(
    viewer: Viewer,
    venue: Venue,
    view: View,
    question: HistoryQuestion,
    history: History,
    senders: Mapping[ActorId, str],
    query: Query,
) -> bytes:
    """The lines of the requested events, each event with a link to undo or redo it. `senders`: the names of tokens."""
    ranking, undone = view.ranking(question.ranking_id), view.undone(question.ranking_id)
    first, last = question.first or Sequence(1), question.last or venue.head.sequence
    below = f"/rankings/{ranking.id}"
    unities = {one.id: one for one in ranking.unities}
    of = _Of(venue=venue, names=view.names, ranking_id=ranking.id, unities=unities, senders=senders)
    groups: dict[str, list[list[Child]]] = {}
    for _, lines in groupby(reversed(history.lines), key=attrgetter("sequence")):
        event = [*lines]
        is_scored = event[0].sequence in history.scored
        undo = None if is_scored else _undo(viewer, venue, ranking, undone, event[0])
        groups.setdefault(_what_for(of, event[0]), []).append([*_row(of, event), undo])
    said = f"Changes {number_text(first)} to {number_text(last)}"
    earlier, later = first - 1, min(last + HISTORY_EVENTS, venue.head.sequence)
    links = ways(
        way("Earlier", venue.address(f"{below}/history", {"to": str(earlier)})) if earlier else None,
        way("Later", venue.address(f"{below}/history", {"to": str(later)})) if later > last else None,
    )
    unshown = "These changes have more lines than this page shows; the command line and the interface show all."
    return console_page(
        viewer,
        f"History of {ranking.name}",
        done_message(query),
        element("p", element("a", "Back to the table", href=venue.address(below)), class_="ways"),
        element("p", said, class_="moment"),
        None if history.next is None else element("p", unshown, class_="warning"),
        *[
            element("section", element("h2", name), data_table(name, _HEADS, rows, stacked=True))
            for name, rows in groups.items()
        ],
        None if groups else element("p", "None of these changes gave points here."),
        links,
        venue=venue,
    )


class _Of(Struct, frozen=True, kw_only=True):
    """What the rows of a page have in common."""

    venue: Venue
    names: NamesById
    ranking_id: RankingId
    unities: Mapping[UnityId, ListedUnity]
    senders: Mapping[ActorId, str]


def _row(of: _Of, event: Items[HistoryLine]) -> list[Child]:
    """What an event changed, competitor by competitor."""
    first, by_competitor = event[0], dict[CompetitorId, list[HistoryLine]]()
    for line in reversed(event):
        if line.competitor_id is not None:
            by_competitor.setdefault(line.competitor_id, []).append(line)
    said: Child = element("ul", *[_changes(of, one, lines) for one, lines in by_competitor.items()], class_="changes")
    if not by_competitor:
        said = "The order of the table was set" if first.criteria else "The order of the table was removed"
    why = [element("p", text, class_="reason") for text in _reasons(first)]
    sender = name_text(of.senders.get(first.actor, "The operator"))
    return [of.venue.words.time_element(first.recorded_at), joined((said, *why)), sender, first.sequence]


def _changes(of: _Of, competitor_id: CompetitorId, lines: Items[HistoryLine]) -> Html:
    """What a competitor gained in each unity, with the new total, and its place in the first of them."""
    first = str(lines[0].unity_id)
    explained = of.venue.address(f"/rankings/{of.ranking_id}/competitors/{competitor_id}", {"unity": first})
    gained = [
        _gained(of.unities[line.unity_id], line) for line in lines if line.unity_id is not None and line.delta != 0
    ]
    name = element("a", name_text(of.names.competitor(competitor_id).name), href=explained)
    return element("li", name, " ", "; ".join(filter(None, (", ".join(gained), _places(lines[0])))))


def _gained(unity: ListedUnity, line: HistoryLine) -> str:
    total = number_text(line.total, unity.notation)
    return " ".join(filter(None, (_change(line, unity.notation), isolated(unity.name), f"({total})")))


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
    said = f"undone by change {by} " if line.reversal is None and by is not None else ""
    if ranking.closed_at is not None or not viewer.may(Scope.WRITE if is_own else Scope.ADMIN):
        return said
    text, below, sequence = ("Undo", "undo", line.sequence) if by is None else ("Redo", "redo", by)
    return joined((said, element("a", text, href=venue.address(f"/rankings/{ranking.id}/{below}/{sequence}"))))


def _places(line: HistoryLine) -> str:
    before, after = line.position_before, line.position_after
    if after is None:
        return "not in the list"
    return f"place {after}" if before in (None, after) else f"place {before} → {after}"


def _what_for(of: _Of, line: HistoryLine) -> str:
    """The heading under which the event stands: its competition, or what it is without one."""
    if line.competition_id is not None:
        found = of.names.competition(line.competition_id)
        return (
            f"#{line.competition_id}"
            if found is None
            else competition_text(of.names, found, of.venue.words("competition_of"))
        )
    return of.venue.sport("Points without a {match}") if line.competitor_id is not None else "The table itself"


def _reasons(line: HistoryLine) -> Iterator[str]:
    if line.reason is not None:
        yield isolated(line.reason)
    if line.reversal is Reversal.EXPIRY:
        yield "expired"
    elif line.reversal is not None:
        yield f"{'takes back' if line.reversal.takes_back else 'gives back'} change {line.reverses}"
