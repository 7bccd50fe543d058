"""The page of one tournament: its head, its public view, its rankings, and the actions that are possible."""

from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.desk.quotas import Share
from api.interface.direction import isolated
from api.web.console.field_words import COUNTS_TEXTS
from api.web.console.first_steps import Step
from api.web.console.frame import (
    Venue,
    Viewer,
    console_page,
    data_table,
    done_message,
    facts,
    live,
    way,
    ways,
)
from api.web.console.tournaments_page import lag_text, verified_text
from api.web.html import Child, Html, element, joined
from api.web.page import Query, name_text, number_text
from engine.domain.terms import Counts
from projections.answers.rankings import ListedRanking, ListedUnity
from projections.answers.tournament import TournamentState
from projections.tables.tables import Checkpoint
from projections.verification.noted import LastVerified

RANKINGS_SHOWN: Final = 200
"""Rankings on the page of a tournament."""


class Overview(Struct, frozen=True, kw_only=True):
    """`rankings`: the first RANKINGS_SHOWN. `checkpoint`: how far the tables are; None: there are none yet. `verified`:
    the result of the last verification; None: there was none. `quota`: empty if there is none. `steps`: the first ones
    of a tournament. `open`: the number of matches that are over and have no result, as far as it was counted;
    `open_round`: the key of the round of the first one."""

    state: TournamentState
    rankings: list[ListedRanking]
    checkpoint: Checkpoint | None
    verified: LastVerified | None
    quota: list[Share]
    steps: Items[Step]
    open: int
    open_round: str


def overview_page(viewer: Viewer, venue: Venue, overview: Overview, query: Query) -> bytes:
    """What to do next; what the public sees; the rankings."""
    links: list[Html] = []
    if viewer.may(Scope.WRITE):
        links.append(way("Create a ranking", venue.address("/rankings/like")))
        links.append(way("Create a ranking by hand", venue.address("/rankings/new")))
        if len(overview.rankings) > 1:
            links.append(way("Order the rankings", venue.address("/rankings/order")))
    if viewer.may(Scope.ADMIN):
        links.append(way("Rename the tournament", venue.address("/name")))
        links.append(way("Change how it looks", venue.address("/presentation")))
        links.append(way("Change the logo", venue.address("/logo")))
        stage, word = ("restore", "Restore") if overview.state.publication.stage else ("archive", "Archive")
        links.append(way(f"{word} the tournament", venue.address(f"/{stage}")))
        if viewer.token.tournament_ids is None:
            links.append(way("Delete the tournament", venue.address("/delete")))
    return console_page(
        viewer,
        venue.name,
        done_message(query),
        live("next", _next(venue, overview)) if viewer.may(Scope.WRITE) else None,
        live("public", _public(venue, overview.state)),
        live("rankings", _rankings(venue, overview)),
        ways(*links),
        element("p", element("a", "For auditors", href=venue.address("/log")), class_="ways"),
        venue=venue,
        below="",
    )


def _next(venue: Venue, overview: Overview) -> Html | None:
    """The steps until a tournament is under way; then what waits for somebody. None: nothing does."""
    steps = overview.steps
    if all(step.is_done for step in steps):
        return _waiting(venue, overview)
    following = next(step for step in steps if not step.is_done)
    items = [
        element(
            "li",
            element("a", venue.sport(step.text), href=venue.address(step.below), class_="button chief")
            if step is following
            else element("a", venue.sport(step.text), href=venue.address(step.below)),
            element("span", " done", class_="badge") if step.is_done else element("span", f" {step.about}"),
        )
        for step in steps
    ]
    return element("section", element("h2", "What to do next"), element("ol", *items, class_="steps"))


def _waiting(venue: Venue, overview: Overview) -> Html | None:
    """The matches that are over and have no result yet."""
    if not overview.open:
        return None
    number = number_text(overview.open)
    text = venue.sport(f"{number} {{match}} has" if overview.open == 1 else f"{number} {{matches}} have")
    address = venue.address("/matchday", {"round": overview.open_round})
    enter = element("a", "Enter results", href=address, class_="button chief")
    return element("section", element("h2", "What to do next"), element("p", enter, f" {text} no result yet."))


def log_page(viewer: Viewer, venue: Venue, overview: Overview) -> bytes:
    """The log as auditors see it: its head, and how far what is made from it is."""
    webhooks = way("Webhooks", venue.address("/webhooks")) if viewer.may(Scope.ADMIN) else None
    head = live("head", _head(viewer, venue, overview))
    return console_page(viewer, "The log", head, ways(webhooks), venue=venue, below="/log")


def _head(viewer: Viewer, venue: Venue, overview: Overview) -> Html:
    state = overview.state
    pairs: list[tuple[str, Child]] = [
        ("Head", f"change {number_text(venue.head.sequence)}"),
        ("Recorded", venue.words.time_element(state.recorded_at)),
        ("Digest", element("code", venue.head.digest.hex())),
        ("Competitors", number_text(state.competitors)),
        ("Competitions", number_text(state.competitions)),
    ]
    pairs += [(f"Quota of {share.what}", quota_text(share)) for share in overview.quota]
    if viewer.may(Scope.ADMIN):
        pairs.append(("Tables", lag_text(state.sequence, overview.checkpoint)))
        pairs.append(("Verified", verified_text(overview.verified, venue.words)))
    return facts(*pairs)


def quota_text(share: Share) -> str:
    """How much of a quota is used, with a warning if it is nearly full."""
    text = f"{number_text(share.used)} of {number_text(share.bound)} used"
    if share.used >= share.bound:
        return f"{text}: no more can be added. Ask the operator."
    return f"{text}: nearly full" if share.is_near else text


def _public(venue: Venue, state: TournamentState) -> Html:
    """A link to the board, if it is public, and what it shows."""
    if state.publication.stage is not None:
        return joined(
            (element("p", "This tournament is archived: nothing in it can be changed."), _board(venue, state))
        )
    return _board(venue, state)


def _board(venue: Venue, state: TournamentState) -> Html:
    if not state.publication.published:
        return element("p", f"The public sees {public_text(state)}.")
    return element(
        "p",
        element("a", f"/board/{venue.slug}", href=f"/board/{venue.slug}"),
        f" is its board. The public sees {public_text(state)}.",
    )


def public_text(state: TournamentState) -> str:
    """What the public sees."""
    publication = state.publication
    frozen = publication.frozen_at
    if not publication.published:
        return "nothing" if frozen is None else "nothing; it is frozen"
    return "everything" if frozen is None else "what it saw when it was frozen, and what was revealed since"


def _rankings(venue: Venue, overview: Overview) -> Html:
    if not overview.rankings:
        return element("p", "There is no ranking yet.")
    rows: list[list[Child]] = [
        [
            element("a", name_text(ranking.name), href=venue.address(f"/rankings/{ranking.id}")),
            number_text(ranking.competitors),
            ", ".join(map(unity_text, ranking.unities)),
            state_text(ranking),
        ]
        for ranking in overview.rankings
    ]
    heads = [("Ranking", "name"), (venue.sport("{Teams}"), "value"), ("Columns", ""), ("State", "state")]
    rest = overview.state.rankings - len(rows)
    more = element("p", f"{rest} more are not shown here.") if rest else None
    return joined((data_table("Rankings", heads, rows), more))


def unity_text(unity: ListedUnity) -> str:
    """The name of the unity, and which result it counts, if it counts results."""
    name = isolated(unity.name)
    return name if unity.counts is Counts.SUM else f"{name} ({COUNTS_TEXTS[unity.counts].lower()})"


def state_text(ranking: ListedRanking) -> str:
    state = "open" if ranking.closed_at is None else "closed"
    return f"{state}, hidden from the public" if ranking.hidden else state


def publication_page(viewer: Viewer, venue: Venue, state: TournamentState, query: Query) -> bytes:
    """What the public sees, and the actions that change it. For admins."""
    publication, address = state.publication, "/publication/"
    links = [
        way("Unpublish it", venue.address(f"{address}unpublish"))
        if publication.published
        else way("Publish it", venue.address(f"{address}publish"), chief=True)
    ]
    if publication.frozen_at is None:
        links.append(way("Freeze it", venue.address(f"{address}freeze")))
        links.append(way("Freeze it after a change", venue.address(f"{address}freeze-at")))
    else:
        links.append(way(venue.sport("Reveal the next {match}"), venue.address(f"{address}reveal-next")))
        links.append(way("Reveal up to a change", venue.address(f"{address}reveal-to")))
        links.append(way("Reveal everything", venue.address(f"{address}reveal-all")))
    shown = facts(("The public sees", public_text(state)))
    to_board = element("p", element("a", "The board that the public sees", href=f"/board/{venue.slug}"))
    return console_page(
        viewer,
        "Publication",
        done_message(query),
        live("publication", shown),
        ways(*links),
        to_board if publication.published else None,
        venue=venue,
        below="/publication",
    )
