"""The common parts of all pages of the console: the frame, the links between pages, and messages."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from api.access.auth import Scope, Token
from api.access.sessions import Session
from api.http.reply import header
from api.interface.sports import Sport
from api.web.files import StaticFiles
from api.web.html import Child, Html, document, element, joined
from api.web.page import PAGE_HEADERS, Query, head_of
from api.web.words import Words
from engine.log import codec
from engine.log.heads import Head

CONSOLE: Final = "/console"
CONSOLE_HEADERS: Final = PAGE_HEADERS + header("Cross-Origin-Opener-Policy", "same-origin")


class Viewer(Struct, frozen=True, kw_only=True):
    """The viewer of a page: their session and its token, and the files that pages are made with."""

    session: Session
    token: Token
    static: StaticFiles

    def may(self, scope: Scope) -> bool:
        return self.token.scope >= scope


class Venue(Struct, frozen=True, kw_only=True):
    """The tournament that a page is about, and the head that the page shows. `words`: with times of its zone. `sport`:
    the words of what is played."""

    slug: str
    name: str
    head: Head
    words: Words
    sport: Sport

    def address(self, below: str = "", query: Query | None = None) -> str:
        """As `tournament_address`."""
        return tournament_address(self.slug, below, query)


def tournament_address(slug: str, below: str, query: Query | None) -> str:
    """The address of a tournament's page, or of what lies `below` it."""
    path = f"{CONSOLE}/tournament/{quote(slug, safe='')}{below}"
    return f"{path}?{urlencode(query)}" if query else path


def console_page(
    viewer: Viewer, title: str, *children: Child, venue: Venue | None = None, below: str | None = None
) -> bytes:
    """A page for a viewer who has signed in. `below`: the part of the venue that it is; None: it is none of them."""
    body = joined(
        (
            element("a", "Skip to the content", href="#content", class_="skip"),
            _top(viewer),
            None if venue is None or not viewer.may(Scope.READ) else _parts(viewer, venue, below),
            element("main", element("h1", title), *children, id="content"),
            element("p", role="status", class_="unseen", id="said"),
        )
    )
    listens_to = venue if viewer.may(Scope.READ) else None
    return _framed(viewer.static, f"{title} · {'Tallybook' if venue is None else venue.name}", body, listens_to)


def sign_in_page(static: StaticFiles, to: str, message: str | None, *, is_elsewhere: bool = False) -> bytes:
    """The page for signing in with a token. `to`: the page to show next. `is_elsewhere`: the browser comes from another
    site, so it may have a session that it did not send."""
    token = element(
        "input",
        type="password",
        name="token",
        id="token",
        required=True,
        autocomplete="current-password",
        spellcheck="false",
        aria_describedby="token-about" if message is None else "token-about token-fault",
        aria_invalid=None if message is None else "true",
    )
    form = element(
        "form",
        element("label", "Token", for_="token"),
        token,
        None if message is None else element("p", message, class_="fault", id="token-fault", role="alert"),
        element("p", "It begins with tb_. The operator creates tokens.", class_="about", id="token-about"),
        element("input", type="hidden", name="to", value=to),
        element("p", element("button", "Sign in", class_="chief")),
        method="post",
        action=f"{CONSOLE}/sign-in",
        class_="card fields",
    )
    signed_in = element("p", "Already signed in? ", element("a", "Continue", href=to), ".") if is_elsewhere else None
    return narrow_page(static, "Sign in", form, signed_in)


def narrow_page(static: StaticFiles, title: str, *children: Child) -> bytes:
    """A page for visitors who have not signed in."""
    body = element("main", element("p", "Tallybook", class_="brand"), element("h1", title), *children)
    return _framed(static, f"{title} · Tallybook", body, None, kind="console narrow")


def message_page(viewer: Viewer | None, static: StaticFiles, title: str, message: str) -> bytes:
    """The page shown instead of one that is refused."""
    if viewer is not None:
        return console_page(viewer, title, element("p", message, class_="fault", role="alert"))
    body = element(
        "main", element("h1", title), element("p", message), element("a", "Back to the console", href=CONSOLE)
    )
    return _framed(static, f"{title} · Tallybook", body, None, kind="console narrow")


def _framed(static: StaticFiles, title: str, body: Html, venue: Venue | None, *, kind: str = "console") -> bytes:
    head = head_of(static, title, style="console.css", script="console.js")
    told: dict[str, str | int] = {}
    if venue is not None:  # what the script listens to, and the event to begin after
        told["data_events"] = f"/tournament/{quote(venue.slug, safe='')}/events"
        told["data_after"] = venue.head.sequence
        told["data_kinds"] = " ".join(sorted(codec.tags()))
    return document(head, element("body", body, class_=kind, **told))


# ── Around the content ──────────────────────────────────────────────────────────────────────────────────


def _top(viewer: Viewer) -> Html:
    ways = [("Tournaments", CONSOLE), ("Sessions", f"{CONSOLE}/sessions")] if viewer.may(Scope.READ) else []
    if viewer.may(Scope.ADMIN):
        ways.insert(1, ("Tokens", f"{CONSOLE}/tokens"))
    who = element("span", viewer.token.name, element("span", viewer.token.scope.text, class_="badge"), class_="who")
    leave = element("form", element("button", "Sign out"), method="post", action=f"{CONSOLE}/sign-out")
    return element(
        "header",
        element("a", "Tallybook", href=CONSOLE, class_="brand"),
        element("nav", *[element("a", text, href=to) for text, to in ways], aria_label="Console") if ways else None,
        who,
        leave,
        class_="top",
    )


def _parts(viewer: Viewer, venue: Venue, below: str | None) -> Html:
    sport = venue.sport
    parts = [("Overview", ""), (sport("{Teams}"), "/competitors"), (sport("{Matches}"), "/competitions")]
    if viewer.may(Scope.WRITE):
        parts.insert(1, (sport("{Match} day"), "/matchday"))
    if viewer.may(Scope.ADMIN):
        parts.append(("Publication", "/publication"))
    name = element("p", venue.name, class_="tournament") if below != "" else None
    return tabs(f"Parts of {venue.name}", [(text, venue.address(to), to == below) for text, to in parts], above=name)


# ── Pieces of pages ─────────────────────────────────────────────────────────────────────────────────────


def live(name: str, *children: Child) -> Html:
    """A part of a page that the script replaces after an event. It has no fields to fill in."""
    return element("div", *children, id=f"live-{name}", data_live=True)


def tabs(label: str, those: Iterable[tuple[str, str, bool]], *, above: Html | None = None) -> Html:
    """Links to pages of the same kind: the text and the address of each, and whether it is this page."""
    shown = [
        element("li", element("a", text, href=to, aria_current="page" if is_this else None))
        for text, to, is_this in those
    ]
    return element("nav", above, element("ul", *shown), class_="tabs", aria_label=label)


def way(text: str, to: str, *, chief: bool = False) -> Html:
    """A link to something that the viewer can do."""
    return element("a", text, href=to, class_="button chief" if chief else "button")


def ways(*links: Html | None) -> Html | None:
    """The links next to each other; None: there is none."""
    found = [link for link in links if link is not None]
    return element("p", *found, class_="actions") if found else None


def data_table(
    caption: str, heads: Items[tuple[Child, str]], rows: Iterable[Items[Child]], *, stacked: bool = False
) -> Html:
    """A table. `heads`: the text and the class of each column; the first column has the heads of the rows. `stacked`:
    on a narrow screen, the cells of a row stand below each other, each with the head of its column."""
    made = [
        element(
            "tr",
            *[
                element("th", cell, scope="row", class_=kind, data_label=_plain(text))
                if number == 0
                else element("td", cell, class_=kind, data_label=_plain(text))
                for number, (cell, (text, kind)) in enumerate(zip(row, heads, strict=True))
            ],
        )
        for row in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="unseen"),
            element("thead", element("tr", *[element("th", text, scope="col", class_=kind) for text, kind in heads])),
            element("tbody", *made),
            class_="data stacked" if stacked else "data",
        ),
        class_="wide",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _plain(head: Child) -> str | None:
    return head if isinstance(head, str) else None


def done_message(query: Query, undo: str | None = None) -> Html | None:
    """The message that a request was recorded. `undo`: the address of the page that undoes it."""
    sequence = query.get("done", "")
    if not (sequence.isascii() and sequence.isdigit()):
        return None
    link = None if undo is None else joined((" ", element("a", "Undo", href=undo)))
    return element("p", "Saved.", link, class_="done", role="status")


def facts(*pairs: tuple[str, Child]) -> Html:
    """Names with their values."""
    return element("dl", *[element("div", element("dt", name), element("dd", value)) for name, value in pairs])
