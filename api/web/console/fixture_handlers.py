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
from api.web.console.inputs import KEY, Filling, complaint, form, new_key, own_input
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
                element("p", venue.sport("Every {team} meets every other, at home and away in turn.")),
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
    given, sport = filling.given, venue.sport
    box = partial(own_input, "input")
    zone = f"in the zone {venue.words.zone}; empty: none"
    yield box("day", "First round", filling, "", value=given.get("day", ""), type="date", required=True)
    yield box("time", "Time", filling, zone, value=given.get("time", ""), type="time")
    yield box(
        "every", "From round to round", filling, "", value=given.get("every", ""), inputmode="numeric", required=True
    )
    units = [element("option", text, value=one, selected=one == given.get("unit")) for one, text in _UNITS.items()]
    yield own_input("select", "unit", "Unit", filling, "", *units)
    turns = sport("one a line; the {matches} of a round take turns")
    yield own_input("textarea", "places", "Places", filling, turns, given.get("places", ""), rows=3)
    twice = element("input", type="checkbox", name="twice", value="on", checked="twice" in given)
    yield element(
        "ul", element("li", element("label", twice, sport(" Twice: each {team} is at home once"))), class_="boxes"
    )
