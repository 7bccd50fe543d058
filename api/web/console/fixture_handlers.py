"""The fixtures of a league in the console: what they should be like, then all of them as the import that they are."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from api.access.auth import Scope
from api.http.forms import Form
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.imports.fixtures import FixturePlan, Fixtures
from api.interface.access import refuse_beyond_scope
from api.interface.names import Names
from api.web.console.answering import Console, refused_reply, venue_of
from api.web.console.frame import Venue, Viewer, console_page, done_message
from api.web.console.import_handlers import CompetitionImports
from api.web.console.import_page import CSV
from api.web.console.inputs import KEY, Filling, complaint, form, new_key
from api.web.html import Html, element
from engine.domain.errors import TallybookError
from engine.domain.terms import RankingId

_UNITS: Final = {"d": "days", "h": "hours", "min": "minutes"}
_FIELDS: Final = ("day", "time", "every", "unit", "places", "twice")


class FixtureHandlers:
    """`imports` shows and imports the fixtures."""

    def __init__(self, console: Console, imports: CompetitionImports) -> None:
        self._console = console
        self._imports = imports

    async def form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._page(incoming, viewer, Filling(key=new_key(), given={"every": "7"}))

    async def _page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            venue, ranking = await venue_of(view, incoming), view.ranking(RankingId(incoming.ids["ranking_id"]))
            below = f"/rankings/{ranking.id}"
            return console_page(
                viewer,
                f"Fixtures of {ranking.name}",
                done_message(dict(incoming.request.query)),
                element("p", venue.sport("Each of its {teams} meets each other, at home and away in turn.")),
                complaint(filling, _FIELDS),
                form(filling, venue.address(f"{below}/fixtures"), "Show them first", *_inputs(venue, filling)),
                element("p", element("a", "Cancel", href=venue.address(below)), class_="ways"),
                venue=venue,
            )

    async def show(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        """The fixtures, before they are imported."""
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        sent = await self._console.body(incoming)
        key = sent.pop(KEY, "")
        try:
            plan = _plan(sent)
            async with self._console.handlers.visited(incoming, viewer.token) as view:
                names, venue = Names(view.live.board), await venue_of(view, incoming)
                planned = plan.of(names.enrolled(RankingId(incoming.ids["ranking_id"])))
                text, byes = plan.csv(planned, names.text_of), _byes(venue, planned, names)
        except TallybookError as error:
            return await refused_reply(self._page, incoming, viewer, error, key=key, form=sent)
        return await self._imports.taken(incoming, viewer, {CSV: text}, key, byes)


def _plan(sent: Form) -> FixturePlan:
    return FixturePlan(
        day=sent.get("day", "").strip(),
        clock=sent.get("time", "").strip(),
        every=f"{sent.get('every', '').strip()}{sent.get('unit', 'd')}",
        places=tuple([one.strip() for one in sent.get("places", "").splitlines() if one.strip()]),
        twice="twice" in sent,
    )


def _byes(venue: Venue, planned: Fixtures, names: Names) -> str:
    """Who has no match in which round; empty: everybody has one."""
    if not planned.byes:
        return ""
    listed = ", ".join(f"{number}: {names.text_of(who)}" for number, who in planned.byes.items())
    return venue.sport("In each round, one has no {match}: ") + listed + "."


def _inputs(venue: Venue, filling: Filling) -> Iterator[Html]:
    given = filling.given
    box = partial(element, "input", autocomplete="off")
    yield _field(
        filling,
        "day",
        "First round",
        box(type="date", required=True, value=given.get("day", ""), **_of(filling, "day")),
    )
    clock = box(type="time", value=given.get("time", ""), **_of(filling, "time"))
    yield _field(filling, "time", "Time", clock, f"in the zone {venue.words.zone}; empty: none")
    every = box(inputmode="numeric", required=True, value=given.get("every", ""), **_of(filling, "every"))
    yield _field(filling, "every", "From round to round", every)
    units = [element("option", text, value=one, selected=one == given.get("unit")) for one, text in _UNITS.items()]
    yield _field(filling, "unit", "Of these", element("select", *units, **_of(filling, "unit")))
    places = element("textarea", given.get("places", ""), rows=3, **_of(filling, "places"))
    yield _field(filling, "places", "Places", places, venue.sport("one a line; the {matches} of a round take turns"))
    twice = element("input", type="checkbox", name="twice", value="on", checked="twice" in given)
    label = element("label", twice, venue.sport(" Twice: each {team} is at home once"))
    yield element("ul", element("li", label), class_="boxes")


def _of(filling: Filling, name: str) -> dict[str, str | None]:
    is_wrong = "true" if filling.about(name) else None
    return {"name": name, "id": f"field-{name}", "aria_describedby": f"about-{name}", "aria_invalid": is_wrong}


def _field(filling: Filling, name: str, label: str, box: Html, about: str = "") -> Html:
    wrong = "; ".join(filling.about(name))
    return element(
        "div",
        element("label", label, for_=f"field-{name}"),
        box,
        element("p", f"{wrong}." if wrong else about, class_="fault" if wrong else "about", id=f"about-{name}"),
        class_="field",
    )
