"""The common parts of all pages: the frame around them, addresses, and the format of numbers and times."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

from msgspec import Struct

from api.http.reply import header
from api.interface.fields import Fields
from api.web.files import StaticFiles
from api.web.html import Child, Html, document, element, joined
from api.web.words import ENGLISH, Words
from engine.domain.awards import Scoring
from engine.domain.errors import Refusal
from engine.domain.events import COLOR_DEFAULT
from engine.domain.notation import WHOLE, Notation
from engine.domain.presentation import ZONE_DEFAULT
from engine.domain.terms import RankingId
from projections.answers.names import NamesById
from projections.answers.view import Question

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors {framed_by}; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
_ALWAYS: Final = header("X-Content-Type-Options", "nosniff") + header("Referrer-Policy", "same-origin")
PAGE_HEADERS: Final = header("Content-Security-Policy", _POLICY.format(framed_by="'none'")) + _ALWAYS
EMBED_HEADERS: Final = header("Content-Security-Policy", _POLICY.format(framed_by="*")) + _ALWAYS
"""For the only page that other sites may frame. It has no form, and nothing that a click could change."""

LOGO: Final = "/logo.png"
"""The path of the logo, below that of the board."""

Query = Mapping[str, str]
ToId: TypeAlias = Callable[[object], str]
"""Makes an address from an id."""


class Site(Struct, frozen=True):
    """The board of one tournament: its address, and what its pages need. `lang`: the requested language, which all its
    addresses repeat. `has_lines`: its table has an address for each line. `origin`: where the reader reaches the
    service; empty: unknown."""

    name: str
    slug: str
    static: StaticFiles
    words: Words = ENGLISH
    lang: str | None = None
    accent: str | None = None
    has_logo: bool = False
    has_lines: bool = True
    origin: str = ""

    @property
    def logo(self) -> str | None:
        """The address of the logo."""
        return f"/board/{quote(self.slug, safe='')}{LOGO}" if self.has_logo else None

    def titled(self, *more: Child) -> Html:
        """The name of the tournament, after its logo."""
        logo = None if self.logo is None else element("img", src=self.logo, alt="", class_="logo")
        return element("p", logo, name_text(self.name), *more, class_="tournament")

    def address(self, query: Query, below: str = "") -> str:
        """The address of the board, or of what lies `below` it, with this query."""
        path = f"/board/{quote(self.slug, safe='')}{below}"
        query = query if self.lang is None else {**query, "lang": self.lang}
        return f"{path}?{urlencode(query)}" if query else path

    def leading(self, query: Query, below: str) -> ToId:
        """What makes addresses from ids, of pages `below` that are about the same ranking."""
        kept = {name: query[name] for name in ("ranking",) if name in query}
        return lambda thing_id: self.address(kept, f"{below}/{thing_id}")


class RankingPage(Struct, frozen=True, kw_only=True):
    """A page about a ranking, a row in the module that renders it. `below`: its path below that of the board. `link`:
    the word that leads to it; None: only another such page leads there. `fields`: those of its query, besides ranking,
    unity and language. `question` is made of the query, of the ids in the path, and of `given` where the query says
    nothing; `page` renders the answer. `suits`: whether the link is for a ranking
    with these scorings."""

    below: str
    link: str | None
    question: Callable[..., Question[Any]]
    page: Callable[[Site, NamesById, Any, RankingId, Query], bytes]
    fields: Fields = ()
    given: Mapping[str, Any] = {}
    suits: Callable[[tuple[Scoring, ...]], bool] = lambda _: True


def framed(site: Site, title: str, body: Html, *, kind: str, scripts: bool = True, about: Html | None = None) -> bytes:
    """A whole page of a board. `kind`: the class of its body. `about`: the part of its head that describes it in
    previews of links."""
    accent = None if site.accent is None else site.static.accent_address(site.accent)
    script = "board.js" if scripts else None
    head = head_of(site.static, title, script=script, about=about, accent=accent, icon=site.logo)
    zone = None if site.words.zone == ZONE_DEFAULT else site.words.zone
    return document(head, element("body", body, class_=kind, data_zone=zone), language=site.words.language)


def framed_about(
    site: Site,
    ranking: str,
    title: str,
    said: Child,
    ways: Items[Html],
    *parts: Child,
    kind: str,
    heading: Html | None = None,
) -> bytes:
    """A whole page about a ranking, without scripts: `ways` to other pages, a title with what is `said` of it, and the
    `parts`. `heading`: the title, if it is more than a text."""
    head = element(
        "header",
        site.titled(" \N{MIDDLE DOT} ", name_text(ranking)),
        element("h1", heading or name_text(title)),
        element("p", said, class_="moment"),
    )
    nav = element("nav", *[part for one in ways for part in (one, " ")], class_="ways")
    full = " \N{MIDDLE DOT} ".join((title, ranking, site.name))
    return framed(site, full, joined((nav, head, *parts)), kind=kind, scripts=False)


def head_of(
    static: StaticFiles,
    title: str,
    *,
    style: str | None = None,
    script: str | None,
    about: Html | None = None,
    accent: str | None = None,
    icon: str | None = None,
) -> Html:
    """The content of the head of every page. `style`, `script`: the names of files; the style adds to the board's.
    `accent`, `icon`: the addresses of the style of a colour, and of a PNG in place of our icon."""
    styles = ("board.css",) if style is None else ("board.css", style)
    return joined(
        (
            element("meta", charset="utf-8"),
            element("title", title),
            about,
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            *[element("link", rel="stylesheet", href=static.address(name)) for name in styles],
            None if accent is None else element("link", rel="stylesheet", href=accent),
            element("link", rel="icon", href=static.address("icon.svg"), type="image/svg+xml")
            if icon is None
            else element("link", rel="icon", href=icon, type="image/png"),
            None if script is None else element("script", type="module", src=static.address(script)),
        )
    )


def number_text(number: int | None, notation: Notation = WHOLE) -> str:
    """A total, formatted in English, as on all pages except boards; the same holds for the times below."""
    return ENGLISH.number(number, notation)


def signed_text(number: int, notation: Notation) -> str:
    return ENGLISH.signed(number, notation)


def time_element(moment: datetime) -> Html:
    """A time in UTC, for people and for programs."""
    return ENGLISH.time_element(moment)


def dot(color: str) -> Html | None:
    """The colour of a competitor; None: they have none. It is drawn, because the policy forbids style attributes."""
    if color == COLOR_DEFAULT:
        return None
    circle = element("circle", cx=8, cy=8, r=7, fill=f"#{color}")
    return element("svg", circle, class_="dot", viewBox="0 0 16 16", aria_hidden="true")


def name_text(name: str) -> Html:
    """The name of somebody or something. It keeps its own direction of writing."""
    return element("bdi", name)


def abbreviated(name: str, short: str) -> Html:
    """The name, or its abbreviation, if it has one, with the name as title."""
    return name_text(name) if short == name else element("abbr", short, title=name)


def refused_page(site: Site, refusal: Refusal, *, leads_back: bool) -> bytes:
    """The page for a refused request. `leads_back`: it links to the board, which may exist."""
    faults = [element("li", element("code", fault.field), f": {fault.message}") for fault in refusal.faults]
    words = site.words
    english = None if words.language == "en" else "en"
    ways = [element("a", words("to_start"), href="/")]
    if leads_back:
        ways.insert(0, element("a", words("back"), href=site.address({})))
    body = element(
        "main",
        element("h1", words("nothing_here")),
        element("p", refusal.message, lang=english),
        element("ul", *faults, lang=english) if faults else None,
        element("p", *[part for way in ways for part in (way, " ")], class_="ways"),
    )
    return framed(site, "Tallybook", body, kind="refused", scripts=False)


def empty_page(site: Site) -> bytes:
    """The board of a tournament without a ranking that the public may see. Whether one is hidden, it does not say."""
    body = element("main", element("h1", name_text(site.name)), element("p", site.words("nothing")))
    return framed(site, site.name, body, kind="refused", scripts=False)
