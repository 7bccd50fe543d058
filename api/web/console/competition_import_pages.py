"""The pages for importing competitions and their points from CSV, and for undoing imports. Pure."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from typing import Final, get_args

from api.access.auth import Scope
from api.imports.competitions import CompetitionLine
from api.imports.dates import DateOrder
from api.imports.played import NEEDED, OPTIONAL
from api.imports.undoing import Undoing
from api.interface.competition_names import BETWEEN
from api.interface.direction import isolated
from api.interface.fields import SHORT, Field
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, way, ways
from api.web.console.import_page import CSV, LEAVE_OUT, ROWS_SHOWN, Look, Offer, csv_input
from api.web.console.inputs import Filling, Option, complaint, form, inputs
from api.web.html import Child, Html, element, joined
from api.web.page import Query, number_text
from api.web.result_text import result_text
from api.web.words import ENGLISH
from engine.domain.events import Result
from engine.domain.notation import Notation
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, RankingId, UnityId
from engine.log.import_runs import Run
from projections.answers.names import NamesById

PASTED_COMPETITIONS_MAX: Final = 1_000
"""Lines that the console imports at once."""
_PARTICIPANTS_SHOWN: Final = 3
"""Of a competition of many."""
_DATES: Final = Field("dates", SHORT, "the order of dates such as 01/08/2026, if none of them shows it")
_ORDERS: Final = get_args(DateOrder)


def dates_of(given: Mapping[str, str]) -> DateOrder | None:
    """The order of dates that the fields of the form say."""
    return next((order for order in _ORDERS if order == given.get(_DATES.name)), None)


def competitions_offer(venue: Venue, ranking_id: RankingId, name: str, filling: Filling) -> Offer:
    """`name`: of the ranking."""
    chosen = Filling(
        key=filling.key,
        given=filling.given,
        faults=filling.faults,
        options={
            "dates": [Option("", ""), *[Option(order, order.replace("-", " ").capitalize()) for order in _ORDERS]],
        },
    )
    return Offer(
        title=f"Import into {name}",
        address=venue.address(f"/rankings/{ranking_id}/import"),
        back=venue.address(f"/rankings/{ranking_id}"),
        inputs=(
            csv_input(
                filling,
                venue.sport("{Matches}, as CSV"),
                joined(
                    (
                        "The first line is ",
                        element("code", ",".join(NEEDED)),
                        ", then any of ",
                        element("code", ",".join(OPTIONAL)),
                        " and names of columns with points. Those who meet are separated by |. The winner is one of "
                        "them, where the score does not say who won. Dates are in the zone of the tournament. "
                        "Scores give what results give in the ranking. "
                        f"Up to {number_text(PASTED_COMPETITIONS_MAX)} lines.",
                    )
                ),
            ),
            inputs((_DATES, LEAVE_OUT), chosen),
        ),
        fields=(CSV, _DATES.name, LEAVE_OUT.name),
    )


def competitions_look(
    venue: Venue,
    names: NamesById,
    unities: Mapping[UnityId, tuple[str, Notation]],
    new: Items[CompetitionLine],
) -> Look:
    """`unities`: of the ranking, with their names and notations."""
    given = {unity_id for one in new for _, unity_id in one.played.gives}
    used = [unity_id for unity_id in unities if unity_id in given]
    has_rounds = any(one.played.round is not None or one.played.round_name for one in new)
    has_places = any(one.played.location for one in new)
    has_scores = any(one.played.result is not None for one in new)
    rows: list[list[Child]] = []
    for played in [one.played for one in new[:ROWS_SHOWN]]:
        who = _few([isolated(names.competitor(c).name) for c in played.participants], BETWEEN)
        row: list[Child] = [who, venue.words.when_element(played.started_at)]
        row += [_score(played.result)] if has_scores else []
        row += [played.round_name or played.round] if has_rounds else []
        row += [isolated(played.location)] if has_places else []
        row += [_gained([played.gives.get((c, u)) for c in played.participants], unities[u][1]) for u in used]
        rows.append(row)
    return Look(
        said=f"{number_text(len(new))} would be imported.",
        button=f"Import {number_text(len(new))}",
        caption=venue.sport("{Matches} to import"),
        heads=[
            (venue.sport("{Match}"), "name"),
            ("Date", "when"),
            *([("Score", "")] if has_scores else []),
            *([("Round", "")] if has_rounds else []),
            *([("Place", "")] if has_places else []),
            *[(unities[u][0], "value") for u in used],
        ],
        rows=rows,
    )


def _score(result: Result | None) -> str:
    if isinstance(result, dict):
        return f"{number_text(len(result))} performances"
    return "" if result is None else result_text(ENGLISH, result)


def _gained(amounts: Items[int | None], notation: Notation) -> str:
    return _few(["" if amount is None else number_text(amount, notation) for amount in amounts], " : ")


def _few(texts: Items[str], between: str) -> str:
    """The two of a duel, or the first of many."""
    if len(texts) <= SCORE_PARTICIPANTS_MAX:
        return between.join(texts)
    more = len(texts) - _PARTICIPANTS_SHOWN
    return ", ".join(texts[:_PARTICIPANTS_SHOWN]) + (f" and {number_text(more)} more" if more > 0 else "")


def imports_page(viewer: Viewer, venue: Venue, runs: Items[Run], query: Query) -> bytes:
    """All imports, newest first, each with a link that undoes it."""
    rows: list[list[Child]] = [
        [
            run.name,
            venue.words.time_element(run.recorded_at),
            run.event,
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
        ("Change", "value"),
        (venue.sport("{Matches}"), "value"),
        ("Points", "value"),
        ("State", ""),
        ("Actions", "action"),
    ]
    back = venue.sport("Back to the {matches}")
    return console_page(
        viewer,
        "Imports",
        done_message(query),
        ways(way("Bring a file", venue.address("/bring"))) if viewer.may(Scope.WRITE) else None,
        element("p", element("a", back, href=venue.address("/competitions")), class_="ways"),
        data_table("Imports", heads, rows, stacked=True) if rows else element("p", "There are none yet."),
        venue=venue,
    )


def _undo(viewer: Viewer, venue: Venue, run: Run) -> Html | None:
    address = venue.address(f"/imports/{run.name}/undo")
    unseen = element("span", f" import {run.name}", class_="unseen")
    return element("a", "Undo", unseen, href=address, class_="act") if viewer.may(Scope.WRITE) else None


def undo_page(
    viewer: Viewer,
    venue: Venue,
    undoing: Undoing,
    text_of: Callable[[CompetitionId], str],
    previewed: Html,
    filling: Filling,
) -> bytes:
    """The effects of undoing an import, and the button that undoes it. `text_of` a competition: what it is called."""
    voided = _count(len(undoing.voided), *venue.sport("{match} {matches}").split())
    points = _count(undoing.points, "change", "changes")
    said = "Nothing from it counts any longer."
    if undoing.events:
        counts = {
            _count(undoing.results, "result", "results"): undoing.results,
            f"the points of {points}": undoing.points,
        }
        taken = " and ".join([text for text, number in counts.items() if number])
        said = f"{voided} would no longer count{f', and {taken} taken back' if taken else ''}. Nothing is deleted."
    if undoing.commands:
        said += " The corrected file can be imported afterwards."
    address = venue.address(f"/imports/{undoing.name}/undo")
    return console_page(
        viewer,
        f"Undo import {undoing.name}",
        element("p", said, class_="warning" if undoing.events else None),
        _listed("They would no longer count", text_of, undoing.voided),
        _listed("They stay, because they also have points from elsewhere", text_of, undoing.kept),
        previewed if undoing.events else None,
        complaint(filling, []),
        form(filling, address, "Undo it") if undoing.commands else None,
        ways(way("Cancel", venue.address("/imports"))),
        venue=venue,
    )


def _count(number: int, one: str, several: str) -> str:
    return f"{number_text(number)} {one if number == 1 else several}"


def _listed(said: str, text_of: Callable[[CompetitionId], str], competitions: Items[CompetitionId]) -> Html | None:
    if not competitions:
        return None
    shown = [element("li", text_of(one)) for one in competitions[:ROWS_SHOWN]]
    return element(
        "details", element("summary", f"{said}: {number_text(len(competitions))}"), element("ul", *shown), class_="ids"
    )
