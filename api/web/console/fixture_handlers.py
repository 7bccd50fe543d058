"""The fixtures of a league in the console: what they should be like, then all of them as the import that they are."""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from functools import partial
from typing import Final

from msgspec.structs import replace

from api.access.auth import Scope
from api.http.forms import Form
from api.http.router import IncomingRequest
from api.imports.competitions import CompetitionLine, Competitions, read_competitions
from api.imports.fixtures import FixturePlan, Fixtures
from api.imports.rows import read_csv
from api.interface.access import refuse_beyond_scope
from api.interface.direction import isolated
from api.interface.names import Names
from api.interface.sports import Sport, sport_of
from api.web.console.answering import address_of, venue_of
from api.web.console.competition_import_pages import PASTED_COMPETITIONS_MAX
from api.web.console.frame import Venue, Viewer, console_page, done_message
from api.web.console.import_handlers import CompetitionImports, ranking_id_of
from api.web.console.import_page import MAKE, STEP, Look, Offer
from api.web.console.inputs import Filling, complaint, form, new_key, own_input
from api.web.html import Html, element
from api.web.page import number_text
from projections.answers.lookup import ranking_of
from projections.answers.names import NamesById
from projections.answers.view import View

_UNITS: Final = {"d": "days", "h": "hours", "min": "minutes"}
_FIELDS: Final = ("day", "time", "every", "unit", "places", "lasts", "twice")


class FixtureImports(CompetitionImports):
    """They are made at once, or shown first."""

    path = "/rankings/{ranking_id}/fixtures"
    then = "/matchday"

    async def form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._page(incoming, viewer, Filling(key=new_key(), given={"every": "7"}))

    async def _page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            venue = await venue_of(view, incoming)
            offer = self._offer(view, venue, incoming, filling)
            return console_page(
                viewer,
                offer.title,
                done_message(dict(incoming.request.query)),
                element("p", venue.sport("Every {team} meets every other, at home and away in turn.")),
                complaint(filling, offer.fields),
                form(
                    filling,
                    offer.address,
                    "Show them first",
                    *offer.inputs,
                    is_chief=False,
                    other=element(
                        "button", venue.sport("Make the {matches}"), name=STEP, value=MAKE, class_="button chief"
                    ),
                ),
                element("p", element("a", "Cancel", href=offer.back), class_="ways"),
                venue=venue,
            )

    def _offer(self, view: View, venue: Venue, incoming: IncomingRequest, filling: Filling) -> Offer:
        ranking = ranking_of(view.live.board, ranking_id_of(incoming))
        return Offer(
            title=f"Fixtures of {ranking.name}",
            address=address_of(incoming, self.path),
            back=address_of(incoming, "/rankings/{ranking_id}"),
            inputs=tuple(_inputs(venue, filling)),
            fields=_FIELDS,
            source="form",
        )

    def _kind(self, view: View, incoming: IncomingRequest, form: Form) -> Competitions:
        plan, names, ranking_id = _plan(form), Names(view.live.board), ranking_id_of(incoming)
        planned = plan.of(names.enrolled(ranking_id))
        text = plan.csv(planned, names.text_of)
        kind = read_competitions(read_csv(text.encode()), ranking_id, PASTED_COMPETITIONS_MAX)
        kind.warning = _byes(sport_of(view.live.board.rankings.values()), planned, view.names)
        return kind

    def _look(self, view: View, venue: Venue, incoming: IncomingRequest, new: Items[CompetitionLine]) -> Look:
        look, number = super()._look(view, venue, incoming, new), number_text(len(new))
        text = venue.sport(f"{number} {{matches}}")
        return replace(look, said=f"{text}.", button=f"Make {text}", caption=text)


def _plan(sent: Form) -> FixturePlan:
    return FixturePlan(
        day=sent.get("day", "").strip(),
        clock=sent.get("time", "").strip(),
        every=f"{sent.get('every', '').strip()}{sent.get('unit', 'd')}",
        places=tuple([one.strip() for one in sent.get("places", "").splitlines() if one.strip()]),
        lasts=f"{lasts}min" if (lasts := sent.get("lasts", "").strip()) else "",
        twice="twice" in sent,
    )


def _byes(sport: Sport, planned: Fixtures, names: NamesById) -> str:
    """Who has no match in which round; empty: everybody has one."""
    if not planned.byes:
        return ""
    listed = ", ".join(f"{number}: {isolated(names.competitor(who).name)}" for number, who in planned.byes.items())
    return sport("In each round, one has no {match}: ") + listed + "."


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
    lasts = sport("with the pause; where a round has more {matches} than places, they follow each other")
    yield box(
        "lasts", sport("Minutes for a {match}"), filling, lasts, value=given.get("lasts", ""), inputmode="numeric"
    )
    twice = element("input", type="checkbox", name="twice", value="on", checked="twice" in given)
    yield element(
        "ul", element("li", element("label", twice, sport(" Twice: each {team} is at home once"))), class_="boxes"
    )
