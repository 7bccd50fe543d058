"""The competitions around the moment that a board shows: the last result above the table, results and fixtures below.
The script of the page takes them in their shape; `static/competitions.js` writes the same HTML, and keeps it current.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from api.web.html import Child, Html, element, joined
from api.web.page import ToId, name_text, number_text, signed_text
from api.web.result_text import ended_text, result_text, score_text
from api.web.words import Words
from engine.domain.notation import Notation
from projections.answers.around import ShownCompetition, Side
from projections.answers.board_table import BoardTable

SIDES_LONG: Final = 60
"""Characters of the names in the latest result above which a large screen leaves out what it gave."""


class SideShape(Struct, frozen=True, gc=False):
    """A participant. `gained`: their points in the unity shown, formatted for people; None: they got none.
    `performance`: their own part of the result."""

    competitor_id: str
    name: str
    won: bool
    gained: str | None
    performance: str | None


class ShownCompetitionShape(Struct, frozen=True, kw_only=True):
    """`took_place`: null: it is not known. `entered_late`: when it was entered, if later ones had been entered before.
    `round`: its number. `result`: the score; `ended`: instead of it, how it ended in words, such as a walkover.
    `sides`: the participants, or some if there are more than two; `others`: the number of the rest."""

    id: str
    took_place: datetime | None
    entered_late: datetime | None
    location: str
    round: str | None = None
    round_name: str = ""
    result: str | None
    ended: str | None = None
    sides: list[SideShape]
    others: int


class ShownCompetitionsShape(Struct, frozen=True, kw_only=True):
    """`latest`: the one that took place last. `late`: the one that was entered last, if it took place before.
    `results`: newest first; `fixtures`: the next first."""

    latest: ShownCompetitionShape | None
    late: ShownCompetitionShape | None
    results: list[ShownCompetitionShape]
    fixtures: list[ShownCompetitionShape]


def competitions_shape(words: Words, table: BoardTable) -> ShownCompetitionsShape:
    shown, notation = table.competitions, table.form_notation
    return ShownCompetitionsShape(
        latest=None if shown.latest is None else competition_shape(words, shown.latest, notation),
        late=None if shown.late is None else competition_shape(words, shown.late, notation),
        results=[competition_shape(words, one, notation) for one in shown.results],
        fixtures=[competition_shape(words, one, notation) for one in shown.fixtures],
    )


def competition_shape(words: Words, shown: ShownCompetition, notation: Notation) -> ShownCompetitionShape:
    competition, performed = shown.competition, any(one.performance is not None for one in shown.sides)
    result = competition.result if isinstance(competition.result, str) and not performed else ""
    score = score_text(words, result) or None
    return ShownCompetitionShape(
        id=str(shown.competition_id),
        took_place=shown.took_place,
        entered_late=shown.entered_late,
        location=competition.location,
        round=None if competition.round is None else str(competition.round),
        round_name=competition.round_name,
        result=score,
        ended=ended_text(words, result) or None if score is None else None,
        sides=[_side_shape(words, one, notation) for one in shown.sides],
        others=shown.others,
    )


def _side_shape(words: Words, side: Side, notation: Notation) -> SideShape:
    gained = None if side.gained is None else _gained_text(side.gained, notation)
    performance = None if side.performance is None else result_text(words, side.performance)
    return SideShape(str(side.competitor_id), side.name, side.won, gained, performance)


def _gained_text(gained: int, notation: Notation) -> str:
    """What a competition gave: points, or a result."""
    return signed_text(gained, notation) if notation.results is None else number_text(gained, notation)


def latest_part(words: Words, shown: ShownCompetitionsShape, to: ToId) -> Html:
    """The competition that took place last, and the one that was entered late since. `to`: the address of its page; the
    same below."""
    if shown.latest is None:
        return element("p", id="latest", class_="latest", hidden=True)
    size = "latest long" if sum([len(side.name) for side in shown.latest.sides]) > SIDES_LONG else "latest"
    where = None if shown.latest.entered_late is None else _where(words, shown.latest)
    return element(
        "p",
        *_titled(words, "latest", shown.latest, to),
        where,
        None if shown.late is None else _late_part(words, shown.late, to),
        id="latest",
        class_=size,
    )


def _late_part(words: Words, late: ShownCompetitionShape, to: ToId) -> Html:
    where = _where(words, replace(late, entered_late=None))
    return element("span", *_titled(words, "late", late, to), where, class_="late")


def _titled(words: Words, title: str, one: ShownCompetitionShape, to: ToId) -> tuple[Child, ...]:
    return element("strong", words(title)), " ", _text(words, one, to)


def competitions_part(words: Words, shown: ShownCompetitionsShape, to: ToId) -> Html:
    """Results and fixtures; hidden if there are none."""
    return element(
        "section",
        _list(words, "results", shown.results, to),
        _list(words, "fixtures", shown.fixtures, to),
        id="competitions",
        class_="competitions",
        aria_label=words("competitions"),
        hidden=not (shown.results or shown.fixtures),
    )


def _list(words: Words, title: str, competitions: list[ShownCompetitionShape], to: ToId) -> Html:
    return element("div", element("h2", words(title)), listed(words, competitions, to), hidden=not competitions)


def listed(words: Words, competitions: Iterable[ShownCompetitionShape], to: ToId) -> Html:
    """One item for each."""
    return element("ol", *[element("li", _text(words, one, to), _where(words, one)) for one in competitions])


def _text(words: Words, one: ShownCompetitionShape, to: ToId) -> Html:
    """The participants, the result, and what it gave."""
    names = [_side(side) for side in one.sides]
    if len(names) == 2 and not one.others and all(side.performance is None for side in one.sides):
        middle = element("b", one.result) if one.result else "\N{EN DASH}"
        who = joined((names[0], " ", middle, " ", names[1], None if one.ended is None else f", {one.ended}"))
    else:
        rest = words("and_more", number=one.others) if one.others else None
        who = joined((*[part for name in names for part in (", ", name)][1:], rest))
    given = [
        joined((name_text(side.name), f" {words.read(side.gained)}"))
        for side in one.sides
        if side.gained not in (None, side.performance)
    ]
    gave = [part for text in given for part in (", ", text)][1:]
    return joined(
        (element("a", who, href=to(one.id), class_="who-met"), element("span", *gave, class_="gave") if gave else None)
    )


def _side(side: SideShape) -> Html:
    performance = None if side.performance is None else f" {side.performance}"
    text: list[Child] = [name_text(side.name), performance]
    return element("strong", *text) if side.won else joined(text)


def _where(words: Words, one: ShownCompetitionShape) -> Html:
    """In which round, when and where it took place, and when it was entered, if late."""
    number = None if one.round is None else words("round", number=one.round)
    said: list[Child] = [
        name_text(one.round_name) if one.round_name else number,
        None if one.took_place is None else words.when_element(one.took_place),
        name_text(one.location) if one.location else None,
        None if one.entered_late is None else words("entered_late", day=words.day(one.entered_late)),
    ]
    return element("span", *[part for one in said if one is not None for part in (", ", one)][1:], class_="where")
