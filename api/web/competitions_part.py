"""The parts of a board that show competitions: the last result above the table, results and fixtures below it.

`static/competitions.js` writes the same, and keeps them current.
"""

from typing import Final

from api.web.competitions import ShownCompetitionShape, ShownCompetitionsShape, SideShape
from api.web.html import Child, Html, element, joined
from api.web.page import name_text
from api.web.words import Words

SIDES_LONG: Final = 60
"""Characters of the names in the latest result above which a large screen leaves out what it gave."""


def latest_part(words: Words, shown: ShownCompetitionsShape) -> Html:
    """The competition that gave points last."""
    if shown.latest is None:
        return element("p", id="latest", class_="latest", hidden=True)
    size = "latest long" if sum([len(side.name) for side in shown.latest.sides]) > SIDES_LONG else "latest"
    return element("p", element("strong", words("latest")), " ", _text(words, shown.latest), id="latest", class_=size)


def competitions_part(words: Words, shown: ShownCompetitionsShape) -> Html:
    """Results and fixtures; hidden if there are none."""
    return element(
        "section",
        _list(words, "results", shown.results),
        _list(words, "fixtures", shown.fixtures),
        id="competitions",
        class_="competitions",
        aria_label=words("competitions"),
        hidden=not (shown.results or shown.fixtures),
    )


def _list(words: Words, title: str, competitions: list[ShownCompetitionShape]) -> Html:
    items = [element("li", _text(words, one), _where(words, one)) for one in competitions]
    return element("div", element("h2", words(title)), element("ol", *items), hidden=not items)


def _text(words: Words, one: ShownCompetitionShape) -> Html:
    """The participants, the result, and what it gave."""
    names = [_side(side) for side in one.sides]
    if len(names) == 2 and not one.others:
        middle = element("b", one.result) if one.result else "\N{EN DASH}"
        who = joined((names[0], " ", middle, " ", names[1]))
    else:
        rest = words("and_more", number=one.others) if one.others else None
        who = joined((*[part for name in names for part in (", ", name)][1:], rest))
    given = [
        joined((name_text(side.name), f" {words.read(side.gained)}"))
        for side in one.sides
        if side.gained not in (None, side.performance)
    ]
    gave = [part for text in given for part in (", ", text)][1:]
    return joined((element("span", who, class_="who-met"), element("span", *gave, class_="gave") if gave else None))


def _side(side: SideShape) -> Html:
    performance = None if side.performance is None else f" {side.performance}"
    text: list[Child] = [name_text(side.name), performance]
    return element("strong", *text) if side.won else joined(text)


def _where(words: Words, one: ShownCompetitionShape) -> Html:
    place = joined((", ", name_text(one.location))) if one.location else None
    return element("span", words.time_element(one.started_at), place, class_="where")
