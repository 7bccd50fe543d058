"""The forms that operations take, made from the forms that the console's pages send."""

import re
from collections.abc import Container
from typing import Final

from api.http.forms import Form
from api.http.router import PathIds
from api.interface.direction import isolated
from api.interface.fields import FROM_1, ITEMS, FieldMisread
from api.interface.names import COMPARED_MAX
from api.interface.rendering import encode
from api.web.console.classification_page import criteria_form
from api.web.console.inputs import JSON_FIELD, NAMES_FIELD
from engine.domain.errors import Fault
from engine.domain.faults import unacceptable
from engine.domain.names import caseless_key
from engine.domain.terms import CompetitorId
from projections.answers.view import View

LIKE: Final = "like"
HOME: Final = "home"
AWAY: Final = "away"
_NAMES_CITED: Final = 5
_COMPETITOR: Final = re.compile(r"competitor\[([1-9][0-9]{0,18})\]", re.ASCII)
_CHOSEN: Final = re.compile("id:([1-9][0-9]{0,18})", re.ASCII)
_PLACE: Final = re.compile(r"place\[([1-9][0-9]{0,18})\]", re.ASCII)


def chosen(form: Form, _view: View, _ids: PathIds) -> Form:
    """The form with the chosen competitors, in the order of the form, which is that of their registration."""
    rest = {name: text for name, text in form.items() if not _COMPETITOR.fullmatch(name)}
    chosen = [f"id:{found[1]}" for name in form if (found := _COMPETITOR.fullmatch(name))]
    return {"participants": ",".join(chosen)} | rest


def chosen_competitors(form: Form, view: View, ids: PathIds) -> Form:
    """As `chosen`, for an operation whose field is called competitors. Some may be typed, too."""
    found = chosen(form, view, ids)
    participants = found["participants"]
    return {name: text for name, text in found.items() if name != "participants"} | (
        {"competitors": participants} if participants or "competitors" not in form else {}
    )


def chosen_scorings(form: Form, _view: View, _ids: PathIds) -> Form:
    """The scorings of the kind that was chosen, or else those that were written."""
    return {JSON_FIELD: form.get(LIKE) or form.get(JSON_FIELD, "")}


def order(form: Form, _view: View, _ids: PathIds) -> Form:
    """The rankings, ordered by the places that were sent; equal places keep the order of the form. Raises Unacceptable
    for text that is not a place."""
    places: dict[str, int] = {}
    faults = []
    for name, text in form.items():
        if found := _PLACE.fullmatch(name):
            try:
                places[found[1]] = FROM_1.read(text)
            except FieldMisread as error:
                faults += [Fault(name, fault) for fault in error.faults]
    if faults:
        raise unacceptable(faults)
    return {"order": ",".join(sorted(places, key=places.__getitem__))}


def named(form: Form, view: View, _ids: PathIds) -> Form:
    """A competitor for each line. Raises Unacceptable for names that are there twice, or already."""
    there = known_names(view)
    names = names_in(form, there)
    return {ITEMS: encode([{"name": name} for name in names]).decode()}


def names_in(form: Form, there: Container[str] = ()) -> list[str]:
    """The names, one a line. Raises Unacceptable if there is none, and for those that are there twice, or already."""
    names = [line.strip() for line in form.get(NAMES_FIELD, "").splitlines() if line.strip()]
    seen, wrong = set[str](), list[str]()
    for name in names:
        if (key := caseless_key(name)) in there or key in seen:
            wrong.append(name)
        seen.add(key)
    if not names or wrong:
        said = f"{', '.join(wrong[:_NAMES_CITED])}: there already" if wrong else "must have a name on each line"
        raise unacceptable([Fault(NAMES_FIELD, said)])
    return names


def known_names(view: View) -> dict[str, CompetitorId]:
    """The competitors by their names; none where there are too many to look at."""
    those = view.live.board.competitors
    return {
        caseless_key(one.name): number for number, one in those.run(1, len(those) if len(those) <= COMPARED_MAX else 0)
    }


def meeting(form: Form, view: View, ids: PathIds) -> Form:
    """The participants that were chosen as home and away, or from a list, or typed. Raises Unacceptable if home and
    away are the same."""
    rest = {name: text for name, text in form.items() if name not in (HOME, AWAY)}
    if HOME in form or AWAY in form:
        found = _CHOSEN.fullmatch(form.get(HOME, "")) if form.get(HOME) == form.get(AWAY) else None
        one = view.live.board.competitors.get(CompetitorId(int(found[1]))) if found else None
        if one is not None:
            raise unacceptable([Fault(AWAY, f"{isolated(one.name)} is named more than once")])
        return rest | {"participants": ",".join(filter(None, (form.get(HOME), form.get(AWAY))))}
    return chosen(rest, view, ids)


def enrolled(form: Form, view: View, ids: PathIds) -> Form:
    """Who joins and who leaves, from the list of those who are in the ranking; or as it was typed."""
    if "add" in form or "remove" in form:
        return {name: text for name, text in form.items() if not _COMPETITOR.fullmatch(name)}
    chosen = {CompetitorId(int(found[1])) for name in form if (found := _COMPETITOR.fullmatch(name))}
    now = view.ranking(ids["ranking_id"])
    present = set(view.live.board.rankings[now.id].participants)
    return {
        "add": ",".join(f"id:{one}" for one in sorted(chosen - present)),
        "remove": ",".join(f"id:{one}" for one in sorted(present - chosen)),
    }


def criteria(form: Form, _view: View, _ids: PathIds) -> Form:
    return criteria_form(form)
