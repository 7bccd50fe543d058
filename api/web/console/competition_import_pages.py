"""The pages for importing competitions and their points from CSV, and for undoing imports. Pure."""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Final, get_args

from api.access.auth import Scope
from api.imports.competition_files import Scoring
from api.imports.competition_imports import Judged
from api.imports.templates import TEMPLATES, Kind
from api.imports.undoing import Undoing
from api.interface.competition_names import BETWEEN, competition_text
from api.interface.direction import isolated
from api.interface.fields import SHORT, Field
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, way, ways
from api.web.console.import_page import CSV, ROWS_SHOWN, STEP, csv_input, hidden
from api.web.console.inputs import Filling, Option, complaint, form, inputs, text_input
from api.web.html import Child, Html, element, joined
from api.web.page import Query, number_text
from engine.domain.events import Result
from engine.domain.notation import WHOLE, Notation
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, RankingId
from engine.log.import_runs import Run
from projections.answers.names import NamesById
from projections.board.board import Board

PASTED_COMPETITIONS_MAX: Final = 1_000
"""Lines that the console imports at once."""
_PARTICIPANTS_SHOWN: Final = 3
"""Of a competition of many."""
_LIKE: Final = Field("like", SHORT, "fills unities with these names, such as goal difference and won")
_POINTS: Final = {"win": "Win", "draw": "Draw", "loss": "Loss"}
_KINDS: Final = tuple([kind for kind in get_args(Kind) if TEMPLATES[kind].scoring])


def scoring_of(given: Mapping[str, str]) -> Scoring:
    """The scoring that the fields of the form describe."""
    kind = next((kind for kind in _KINDS if kind == given.get("like")), None)
    typed = {name: given[name].strip() for name in _POINTS if given.get(name, "").strip()}
    return Scoring(**((TEMPLATES[kind].scoring if kind else {}) | typed))


def import_page(viewer: Viewer, venue: Venue, board: Board, ranking_id: RankingId, filling: Filling) -> bytes:
    """The form for the text."""
    kinds = [Option("", ""), *[Option(kind, kind.capitalize()) for kind in _KINDS]]
    chosen = Filling(
        key=filling.key,
        given=filling.given,
        faults=filling.faults,
        options={"like": kinds},
        labels={"like": "Scores as in"},
    )
    ranking = board.rankings[ranking_id]
    notation = next(iter(ranking.unities.values())).notation
    usual = Scoring()
    return console_page(
        viewer,
        f"Import competitions into {ranking.name}",
        complaint(filling, [*_POINTS]),
        form(
            filling,
            venue.address(f"/rankings/{ranking_id}/import"),
            "Look at them first",
            csv_input(
                filling,
                "Competitions, as CSV",
                "The first line is date,participants,score, then any of group, location, and names of unities with "
                "points. Participants are separated by |. Dates are in the zone of the tournament. "
                f"Up to {number_text(PASTED_COMPETITIONS_MAX)} lines.",
            ),
            inputs((_LIKE,), chosen),
            *[
                text_input(
                    name,
                    text,
                    filling,
                    f"points of the main unity; {getattr(usual, name)} if empty",
                    is_number=notation == WHOLE,
                )
                for name, text in _POINTS.items()
            ]
            if notation.time is None
            else [],
        ),
        element("p", element("a", "Leave it", href=venue.address(f"/rankings/{ranking_id}")), class_="ways"),
        venue=venue,
    )


def look_page(
    viewer: Viewer, venue: Venue, board: Board, ranking_id: RankingId, judged: Judged, filling: Filling
) -> bytes:
    """The effects of the text, and the button that imports it."""
    ranking = board.rankings[ranking_id]
    new = [one for one in judged.asked if not (one.is_added and one.is_scored)]
    unities = ranking.unities
    used = [u for u in unities if any(delta.unity_id == u for one in new for delta in one.played.deltas)]
    heads = [("Competition", "name"), ("Date", "when"), ("Score", ""), *[(unities[u].name, "value") for u in used]]
    rows: list[list[Child]] = []
    for one in new[:ROWS_SHOWN]:
        played = one.played
        names = _few([isolated(board.competitors[c].name) for c in played.participants], BETWEEN)
        row: list[Child] = [names, venue.words.time_element(played.started_at), _score(played.result)]
        for unity in used:
            gained = {delta.competitor_id: delta.amount for delta in played.deltas if delta.unity_id == unity}
            row.append(_gained([gained.get(c) for c in played.participants], unities[unity].notation))
        rows.append(row)
    already = len(judged.asked) - len(new)
    back = venue.address(f"/rankings/{ranking_id}/import")
    carried = [hidden(name, filling.given.get(name, "")) for name in (CSV, "like", *_POINTS)]
    return console_page(
        viewer,
        f"Import competitions into {ranking.name}",
        element("p", f"{number_text(len(new))} would be imported. Nothing is recorded yet.", class_="subject"),
        element("p", f"{number_text(already)} of the text are imported already.") if already else None,
        data_table("Competitions to import", heads, rows) if rows else None,
        element("p", f"{number_text(len(new) - len(rows))} more are not shown here.") if len(new) > len(rows) else None,
        form(filling, back, f"Import {number_text(len(new))}", joined([*carried, hidden(STEP, "import")]))
        if new
        else None,
        element("p", element("a", "Start again", href=back), class_="ways"),
        venue=venue,
    )


def _score(result: Result | None) -> str:
    if isinstance(result, dict):
        return f"{number_text(len(result))} performances"
    return "" if result is None else result


def _gained(amounts: Items[int | None], notation: Notation) -> str:
    return _few(["" if amount is None else number_text(amount, notation) for amount in amounts], " : ")


def _few(texts: Items[str], between: str) -> str:
    """The two of a duel, or the first of many."""
    if len(texts) <= SCORE_PARTICIPANTS_MAX:
        return between.join(texts)
    more = len(texts) - _PARTICIPANTS_SHOWN
    return ", ".join(texts[:_PARTICIPANTS_SHOWN]) + (f" and {number_text(more)} more" if more > 0 else "")


def imports_page(viewer: Viewer, venue: Venue, runs: Items[Run], query: Query) -> bytes:
    """All imports, the newest first, each with a link that undoes it."""
    rows: list[list[Child]] = [
        [
            run.name,
            venue.words.time_element(run.recorded_at),
            run.first,
            run.competitions,
            run.points,
            element("span", "undone", class_="badge") if run.undone else "",
            _undo(viewer, venue, run),
        ]
        for run in reversed(runs)
    ]
    heads = [
        ("Import", "name"),
        ("When", "when"),
        ("Event", "value"),
        ("Competitions", "value"),
        ("Points", "value"),
        ("State", ""),
        ("Actions", "action"),
    ]
    return console_page(
        viewer,
        "Imports",
        done_message(query),
        element("p", element("a", "Back to the competitions", href=venue.address("/competitions")), class_="ways"),
        data_table("Imports of competitions", heads, rows, stacked=True)
        if rows
        else element("p", "There are none yet."),
        venue=venue,
    )


def _undo(viewer: Viewer, venue: Venue, run: Run) -> Html | None:
    address = venue.address(f"/imports/{run.name}/undo")
    unseen = element("span", f" import {run.name}", class_="unseen")
    return element("a", "Undo", unseen, href=address, class_="act") if viewer.may(Scope.WRITE) else None


def undo_page(viewer: Viewer, venue: Venue, board: Board, undoing: Undoing, previewed: Html, filling: Filling) -> bytes:
    """The effects of undoing an import, and the button that undoes it."""
    voided, points = _count(len(undoing.voided), "competition"), _count(undoing.points, "event")
    said = "Nothing of it counts any more."
    if undoing.events:
        said = f"{voided} would be voided, and the points of {points} taken back. The log keeps all."
    if undoing.commands:
        said += " The corrected file can be imported afterwards."
    address = venue.address(f"/imports/{undoing.name}/undo")
    return console_page(
        viewer,
        f"Undo import {undoing.name}",
        element("p", said, class_="warning" if undoing.events else None),
        _listed("They would be voided", board, undoing.voided),
        _listed("They stay, because they hold points of others", board, undoing.kept),
        previewed if undoing.events else None,
        complaint(filling, []),
        form(filling, address, "Undo it", dangerous=bool(undoing.events)) if undoing.commands else None,
        ways(way("Leave it as it is", venue.address("/imports"))),
        venue=venue,
    )


def _count(number: int, what: str) -> str:
    return f"{number_text(number)} {what}{'' if number == 1 else 's'}"


def _listed(said: str, board: Board, competitions: Items[CompetitionId]) -> Html | None:
    if not competitions:
        return None
    shown = [
        element("li", competition_text(NamesById(board), board.competitions[one])) for one in competitions[:ROWS_SHOWN]
    ]
    return element(
        "details", element("summary", f"{said}: {number_text(len(competitions))}"), element("ul", *shown), class_="ids"
    )
