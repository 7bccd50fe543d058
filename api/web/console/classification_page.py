"""The page for declaring a classification: a line for each criterion of the chain."""

import re
from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Any, Final, get_args

from msgspec import json

from api.desk.conditions import own_tag
from api.http.forms import Form
from api.http.router import PathIds
from api.web.console.frame import Venue, Viewer, console_page, data_table
from api.web.console.inputs import Beginning, Filling, Option, complaint, form
from api.web.html import Child, Html, element, joined
from engine.domain.errors import Fault, Unacceptable
from engine.domain.events import Criterion
from engine.domain.ids import parse_id
from engine.domain.terms import BEST_MAX, CRITERIA_MAX, TiebreakEdition
from projections.answers.criteria import drop_of, drop_text, named_tiebreak, tiebreak_name
from projections.answers.view import View

CRITERIA_NAME: Final = "criteria"
FREE_CRITERIA: Final = 4
"""Empty lines below the declared criteria."""
_PARTS: Final = ("unity", "drop", "best", "among", "first", "ratio", "per", "tiebreak", "pairing", "edition")
_BEST: Final = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_IN_NAMES: Final = ("cut", "median", "limit")
_COMPARED: Final = (Option("", "totals"), Option("first", "who reached it first"))
_AMONG: Final = (Option("", "everybody"), Option("tied", "those who are tied"))
_PAIRING: Final = (Option("", "Swiss"), Option("predetermined", "predetermined"))
_EDITION: Final = (Option("", "of its date"), *[Option(one, one) for one in get_args(TiebreakEdition)])


async def declaration(view: View, ids: PathIds) -> Beginning:
    """The declared criteria."""
    ranking = view.ranking(ids["ranking_id"])
    given: dict[str, str] = {}
    for number, criterion in enumerate(ranking.criteria):
        given |= _texts(number, criterion)
    unities = [Option("", ""), *[Option(str(one.id), one.name) for one in ranking.unities]]
    return Beginning(about=ranking.name, given=given, if_match=f'"{own_tag(ranking)}"', options={"unity": unities})


def _texts(number: int, criterion: Criterion) -> dict[str, str]:
    return {
        _name(number, "unity"): str(criterion.unity_id),
        _name(number, "drop"): drop_text(criterion.drop),
        _name(number, "best"): "" if criterion.best is None else str(criterion.best),
        _name(number, "among"): criterion.among or "",
        _name(number, "first"): "first" if criterion.first else "",
        _name(number, "ratio"): str(criterion.ratio or ""),
        _name(number, "per"): str(criterion.per or ""),
        _name(number, "tiebreak"): tiebreak_name(criterion) if criterion.tiebreak else "",
        _name(number, "pairing"): criterion.pairing or "",
        _name(number, "edition"): criterion.edition or "",
    }


def _name(number: int, part: str) -> str:
    """The field of a criterion, with the name that the operation's faults use."""
    return f"{CRITERIA_NAME}[{number}].{part}"


def closed_up(sent: Form) -> dict[str, str]:
    """The form without the lines that have no unity, so that faults count lines as the page does."""
    made = {name: text for name, text in sent.items() if not name.startswith(f"{CRITERIA_NAME}[")}
    used = [number for number in range(CRITERIA_MAX) if sent.get(_name(number, "unity"))]
    for to, number in enumerate(used):
        made |= {_name(to, part): sent.get(_name(number, part), "").strip() for part in _PARTS}
    return made


def criteria_form(sent: Form) -> Form:
    """The form that the operation takes, from one that is closed up. Raises Unacceptable for text that is not a number
    of results, or of those dropped."""
    rest = {name: text for name, text in sent.items() if not name.startswith(f"{CRITERIA_NAME}[")}
    criteria: list[dict[str, Any]] = []
    faults: list[Fault] = []
    while unity := sent.get(_name(len(criteria), "unity")):
        number = len(criteria)
        best, among = sent[_name(number, "best")], sent[_name(number, "among")]
        if best and not (_BEST.fullmatch(best) and int(best) <= BEST_MAX):
            faults.append(Fault(_name(number, "best"), f"must be a number from 1 to {BEST_MAX:,}, or empty"))
            best = ""
        try:
            drop = drop_of(sent[_name(number, "drop")])
        except ValueError as error:
            faults.append(Fault(_name(number, "drop"), str(error)))
            drop = ()
        criterion: dict[str, Any] = {"unity": _id(unity)}
        if divided := [part for part in ("ratio", "per") if sent[_name(number, part)]]:
            criterion = {divided[0]: [_id(unity), _id(sent[_name(number, divided[0])])]}
        if len(divided) > 1:
            faults.append(Fault(_name(number, "per"), "must be empty, because it is already divided"))
        criterion |= {"first": True} if sent[_name(number, "first")] else {}
        criterion |= {part: sent[_name(number, part)] for part in ("pairing", "edition") if sent[_name(number, part)]}
        if name := sent[_name(number, "tiebreak")]:
            if (tiebreak := named_tiebreak(name)) is None:
                faults.append(Fault(_name(number, "tiebreak"), "must be the name of a tie-break, such as BH/C1"))
            criterion |= tiebreak or {}
        criterion |= ({"best": int(best)} if best else {}) | ({"drop": drop} if drop else {})
        criteria.append(criterion | ({"among": among} if among else {}))
    if faults:
        raise Unacceptable("The order cannot be like this; correct the fields named.", faults)
    return {**rest, CRITERIA_NAME: json.encode(criteria).decode()}


def _id(text: str) -> int | str:
    return int(text) if parse_id(text) else text


def classification_page(
    viewer: Viewer, venue: Venue, beginning: Beginning, filling: Filling, address: str, back: str
) -> bytes:
    """The page. Its lines are those declared or sent, and up to FREE_CRITERIA more."""
    used = [number for number in range(CRITERIA_MAX) if filling.given.get(_name(number, "unity"))]
    count = min(max(used, default=-1) + 1 + FREE_CRITERIA, CRITERIA_MAX)
    heads = [
        ("#", "position"),
        ("Column", "chosen"),
        ("Compared by", "chosen"),
        ("Discards", "entry"),
        ("Best", "entry"),
        ("Compared among", "chosen"),
        ("Divided by", "chosen"),
        ("Per", "chosen"),
        ("Tie-break", "entry"),
        ("Rounds", "chosen"),
        ("Edition", "chosen"),
    ]
    rows = [_line(number, beginning.options["unity"], filling) for number in range(count)]
    shown = [_name(number, part) for number in range(count) for part in (*_PARTS, *_IN_NAMES)]
    shown += [f"{CRITERIA_NAME}[{number}]" for number in range(count)]
    return console_page(
        viewer,
        f"Order of the table: {beginning.about}",
        element("p", element("a", "Back to the table", href=back), class_="ways"),
        element(
            "p",
            "The table is in the order of the first criterion. The next criterion separates those tied. Discards: 4:1, "
            "8:2 leaves out the worst result from four results on, and the two worst from eight on. Best: the number "
            "of best results of each that count; empty: all. Divided by: a ratio, such as goals for by goals against. "
            "Per: a mean, such as points per game. Tie-break: by who met whom, such as BH/C1 or SB of "
            "FIDE's regulations. Without a criterion, the first column alone counts.",
            class_="about",
        ),
        complaint(filling, shown),
        form(filling, address, "Save", data_table("Criteria", heads, rows)),
        element("p", element("a", "Cancel", href=back), class_="ways"),
        venue=venue,
    )


def _line(number: int, unities: Items[Option], filling: Filling) -> list[Child]:
    cells = {
        "unity": _select(number, "unity", "Column", unities, filling),
        "first": _select(number, "first", "Compared by", _COMPARED, filling),
        "drop": _input(number, "drop", "Discards", filling),
        "best": _input(number, "best", "Best results", filling, inputmode="numeric"),
        "among": _select(number, "among", "Compared among", _AMONG, filling),
        "ratio": _select(number, "ratio", "Divided by", unities, filling),
        "per": _select(number, "per", "Per", unities, filling),
        "tiebreak": _input(number, "tiebreak", "Tie-break", filling),
        "pairing": _select(number, "pairing", "Rounds", _PAIRING, filling),
        "edition": _select(number, "edition", "Edition", _EDITION, filling),
    }
    return [number + 1, *[joined((cell, _fault(number, part, filling))) for part, cell in cells.items()]]


def _input(number: int, part: str, label: str, filling: Filling, **more: str) -> Html:
    given = filling.given.get(_name(number, part), "")
    return element("input", value=given, autocomplete="off", **more, **_attributes(number, part, label, filling))


def _select(number: int, part: str, label: str, options: Items[Option], filling: Filling) -> Html:
    given = filling.given.get(_name(number, part), "")
    choices = [element("option", one.text, value=one.value, selected=one.value == given) for one in options]
    return element("select", *choices, **_attributes(number, part, label, filling))


def _fault(number: int, part: str, filling: Filling) -> Html | None:
    wrong = _wrong(number, part, filling)
    return element("p", f"{'; '.join(wrong)}.", class_="fault", id=f"fault-{number}-{part}") if wrong else None


def _wrong(number: int, part: str, filling: Filling) -> list[str]:
    """The fault of a part of a criterion; one of the whole criterion is shown next to its unity, and one of cuts next
    to the name of the tie-break, which says them."""
    more = {"unity": [f"{CRITERIA_NAME}[{number}]"], "tiebreak": [_name(number, one) for one in _IN_NAMES]}
    return [one for field in (_name(number, part), *more.get(part, ())) for one in filling.about(field)]


def _attributes(number: int, part: str, label: str, filling: Filling) -> Mapping[str, str | None]:
    is_wrong = bool(_wrong(number, part, filling))
    return {
        "name": _name(number, part),
        "aria_label": f"{label}, criterion {number + 1}",
        "aria_invalid": "true" if is_wrong else None,
        "aria_describedby": f"fault-{number}-{part}" if is_wrong else None,
    }
