"""The board of a tournament: what its addresses answer.

    /board/<slug>                       the page
    /board/<slug>/tv                    the same, for a large screen
    /board/<slug>/embed                 the same, for other sites: the only page that may be framed
    /board/<slug>/competitors/<id>      a competitor: place, record, next matches, and how they got there
    /board/<slug>/rounds                results and fixtures, a round at a time
    /board/<slug>/cross                 the cross table
    /board/<slug>/problems              the problems of a contest
    /board/<slug>/competitions/<id>     a competition: the points it gave, and its corrections
    /board/<slug>/leaders               the leaders, and when each led
    /board/<slug>/table.json, .csv      the lines, for the script of the page, and for spreadsheets
    /board/<slug>/scoreboard.json       a contest for programs that read CLICS
    /board/<slug>/report.trf            a chess tournament for programs that read TRF
    /board/<slug>/passage.json          points in the order of the log, which the script folds
    /board/<slug>/timeline.json         the same in the order in which they took place
    /board/<slug>/race.json             a unity through time, for a race
    /board/<slug>/calendar.ics          the matches of a ranking, for programs that keep calendars
    /board/<slug>/logo.png              the logo of the tournament
    /board/<slug>/picture.png           the first lines, for previews of links to the page

Each answer is made from what the public sees (`api/interface/public/view.py`), once for all identical requests until
the next event.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from api.http import problems
from api.http.compression import Compression
from api.http.cookies import came_by_tls
from api.http.preferences import accepted_language
from api.http.reply import JSON, REVALIDATED, Reply, header
from api.http.request import HttpRequest
from api.http.router import Handler, IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.imports.writing import WrittenForm, written
from api.interface.cells import EXCEL, PLAIN, CsvForm, csv_text, harmless
from api.interface.declarations import RecallContext
from api.interface.fields import (
    FROM_0,
    FROM_1,
    ID,
    PHRASE,
    TIME_END,
    Field,
    Fields,
    FieldType,
    number_up_to,
    one_of,
    read_query,
)
from api.interface.public.view import PublicViews
from api.interface.rendering import TaggedBody, encode, tagged_body
from api.interface.resources.tournaments import SLUG_CHARACTERS_LOGGED
from api.interface.sports import sport_of
from api.web.board_page import BOARD, EMBED, PICTURE, TV, Mode, board_page, pictured, table_rows
from api.web.calendar import CALENDAR_TYPE, calendar
from api.web.competitor_page import COMPETITOR_PAGE
from api.web.files import StaticFiles
from api.web.html import HTML_TYPE
from api.web.moments import passage_shape, race_shape, table_shape, timeline_shape
from api.web.page import EMBED_HEADERS, LOGO, PAGE_HEADERS, RankingPage, Site, empty_page, refused_page
from api.web.picture import Pictures
from api.web.pictured import PICTURE_LINES
from api.web.ranking_pages import RANKING_PAGES, shown_page
from api.web.rounds_page import CALENDAR
from api.web.table import column_name
from api.web.words import ENGLISH, Words, words_for
from engine.domain.errors import Fault, Refusal, Unreadable
from engine.domain.ids import parse_id
from engine.domain.presentation import LANGUAGES
from engine.domain.terms import NAME_CHARACTERS_MAX, Sequence
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.answers.board_table import BOARD_LINES, BoardTable, BoardTableQuestion, TableLine
from projections.answers.passages import PassageQuestion, TimelineQuestion
from projections.answers.races import RaceQuestion
from projections.answers.rounds import CalendarQuestion
from projections.answers.view import ask
from projections.answers.zones import days_in

LINES_ASKED_MAX: Final = 500
"""Lines that the script of a page, or a program, can request at once."""
CSV_LINES_MAX: Final = 10_000
"""Lines of a CSV; further ones are requested with `offset`."""
CSV_LINES_AT_ONCE: Final = 200
ADDRESS_KEPT_CHARACTERS_MAX: Final = 300
"""Characters of an address up to which its answer is kept until the next event."""


def _at(text: str) -> Sequence | datetime:
    number = parse_id(text)
    return TIME_END.read(text) if number is None else Sequence(number)


def _words(text: str) -> str | None:
    """None: the field is empty."""
    return PHRASE.read(text.strip()) if text.strip() else None


_MOMENT: Final = FieldType(_at, {"anyOf": [FROM_1.schema, TIME_END.schema]})
_WORDS: Final = FieldType(_words, {"type": "string", "maxLength": NAME_CHARACTERS_MAX})
_LANG: Final = Field("lang", one_of(*LANGUAGES), "the language of the words; absent: that of the tournament")
_TABLE_FIELDS: Final[Fields] = (
    Field("ranking", ID, "which ranking; absent: the first one", argument="ranking_id"),
    Field("unity", ID, "which unity; absent: the classification", argument="unity_id"),
    Field("at", _MOMENT, "after this event, or with what had taken place by this day or time; absent: now"),
    Field("on", TIME_END, "with what had taken place by this day or time, as known after the event that at names"),
    Field("since", _MOMENT, "compared with this moment; absent: with the moment before the last round"),
    Field("offset", FROM_0, "the number of lines to skip"),
    Field("tag", _WORDS, "only competitors with exactly this tag; positions are counted among them"),
    Field("find", _WORDS, "only competitors whose name contains this"),
    Field("line", ID, "the page of lines that includes this competitor's"),
    _LANG,
)
_PICTURE_FIELDS: Final[Fields] = tuple(
    [field for field in _TABLE_FIELDS if field.name in ("ranking", "unity", "at", "on", "lang")]
)
_FORMAT: Final = Field(
    "format", one_of("excel"), "excel: with semicolons and decimal commas, for Excel in most of Europe"
)
_LIMIT: Final = Field("limit", number_up_to(1, LINES_ASKED_MAX), f"the number of lines; absent: {BOARD_LINES}")
_COMPETITOR_FIELDS: Final[Fields] = (
    *_PICTURE_FIELDS,
    *COMPETITOR_PAGE.fields,
)
_PASSAGE_FIELDS: Final[Fields] = (
    Field("ranking", ID, "which ranking", required=True, argument="ranking_id"),
    Field("at", FROM_1, "the passage that shows this event", required=True),
    _LANG,
)


def _with_clocks(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, each moment under the clock that it belongs to: events under the log's, days and times under the
    world's. Raises Unreadable if `at` and `on` are both days or times."""
    for name, on in (("at", "on"), ("since", "since_on")):
        if isinstance(arguments.get(name), datetime):
            if on in arguments:
                faults = [Fault(one, "cannot be combined with another day") for one in (name, on)]
                raise Unreadable("The query names two days; with on, at must be the number of an event.", faults)
            arguments[on] = arguments.pop(name)
    return arguments


class _Asked(Struct, frozen=True):
    """A request: its `address` and `query` as received, and the `arguments` read from the query. `origin`: see
    `_origin`. `language`: the one that the browser of a page prefers; `lang`: the one that the query names.
    `ids`: those in the path."""

    slug: str
    origin: str
    language: str | None
    lang: str | None
    address: str
    query: dict[str, str]
    arguments: dict[str, Any]
    ids: Mapping[str, int]


_Make = Callable[[RecallContext, Site, _Asked], Awaitable[bytes]]


class _Sent(Struct, frozen=True):
    """How the answers of an address are sent."""

    media_type: str
    headers: str = ""

    @property
    def is_page(self) -> bool:
        return self.media_type == HTML_TYPE


_BY_LANGUAGE: Final = header("Vary", "Accept-Language")
_PAGE: Final = _Sent(HTML_TYPE, PAGE_HEADERS + _BY_LANGUAGE)
_EMBEDDED: Final = _Sent(HTML_TYPE, EMBED_HEADERS + _BY_LANGUAGE)
_JSON: Final = _Sent(JSON)
_PNG: Final = _Sent("image/png")
_CALENDAR: Final = _Sent(CALENDAR_TYPE)
_CSV: Final = _Sent("text/csv; charset=utf-8", header("Content-Disposition", "attachment"))
_TEXT: Final = _Sent("text/plain; charset=utf-8", header("Content-Disposition", "attachment"))


class BoardHandlers:
    """Answers for the boards of all tournaments. `visits` counts the requests of each address, if they are counted."""

    def __init__(
        self,
        views: PublicViews,
        compression: Compression,
        static: StaticFiles,
        *,
        visits: Throttle | None,
        proxies: int,
    ) -> None:
        self._views = views
        self._compression = compression
        self._visits = visits
        self._proxies = proxies
        self._static = static
        self._pictures = Pictures()

    def add_to(self, router: Router) -> None:
        def add(below: str, make: _Make, fields: Fields, sent: _Sent = _PAGE) -> None:
            router.add("GET", f"/board/{{tournament}}{below}", self._handler(make, fields, sent))

        add("", partial(_board, BOARD), _TABLE_FIELDS)
        add(TV.below, partial(_board, TV), _TABLE_FIELDS)
        add(EMBED.below, partial(_board, EMBED), _TABLE_FIELDS, _EMBEDDED)
        add(COMPETITOR_PAGE.below, partial(_of_ranking, COMPETITOR_PAGE), _COMPETITOR_FIELDS)
        for page in RANKING_PAGES:
            add(page.below, partial(_of_ranking, page), (*_TABLE_FIELDS[:2], *page.fields, _LANG))
        add("/table.json", _table_json, (*_TABLE_FIELDS, _LIMIT), _JSON)
        add("/passage.json", _passage_json, _PASSAGE_FIELDS, _JSON)
        add("/timeline.json", _timeline_json, (*_TABLE_FIELDS[:1], _LANG), _JSON)
        add("/race.json", _race_json, (*_TABLE_FIELDS[:2], _LANG), _JSON)
        add("/table.csv", _table_csv, (*_TABLE_FIELDS, _FORMAT), _CSV)
        add("/scoreboard.json", partial(_written, "clics"), _TABLE_FIELDS[:1], _JSON)
        add("/report.trf", partial(_written, "trf"), _TABLE_FIELDS[:1], _TEXT)
        add(CALENDAR, _calendar, (*_TABLE_FIELDS[:1], _LANG), _CALENDAR)
        add(PICTURE, partial(_picture, self._pictures), _PICTURE_FIELDS, _PNG)
        add(LOGO, _logo, (), _PNG)
        self._static.add_to(router)

    def _handler(self, make: _Make, fields: Fields, sent: _Sent) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            slug = incoming.parameters["tournament"]
            incoming.facts["tournament"] = slug[:SLUG_CHARACTERS_LOGGED]
            if self._visits is not None:
                self._visits.take(address_of(incoming.request, proxies=self._proxies))
            try:
                query = incoming.request.query
                arguments = read_query(query, fields)
                lang = arguments.pop("lang", None)
                asked = _Asked(
                    slug,
                    _origin(incoming.request, proxies=self._proxies) if sent.is_page else "",
                    _language(incoming.request) if sent.is_page and lang is None else None,
                    lang,
                    incoming.request.target,
                    dict(query),
                    _with_clocks(arguments),
                    incoming.ids,
                )
                answered = await self._views.answer(slug, lambda context: self._made(context, make, asked))
            except Refusal as refusal:
                if not sent.is_page:
                    raise
                incoming.facts["code"] = refusal.code
                site = Site("", slug, self._static, Words(_language(incoming.request) or "en"))
                page = refused_page(site, refusal, leads_back=incoming.request.target != site.address({}))
                return Reply(page, code=problems.STATUSES[type(refusal)], media_type=HTML_TYPE, headers=sent.headers)
            return await self._compression.reply(
                incoming.request,
                answered.body,
                etag=answered.etag,
                media_type=sent.media_type,
                headers=sent.headers,
                kept=REVALIDATED,
            )

        return handle

    async def _made(self, context: RecallContext, make: _Make, asked: _Asked) -> TaggedBody:
        """The answer, made once for all identical requests until the next event, or the next boundary at which points
        expire. Raises NotFound, and as `make`."""
        live = context.live
        head = live.head
        kept = live.cache.moments if asked.arguments.keys() & {"at", "on"} else live.cache.windows
        kept.renew(head.sequence)
        key = context.hidden, asked.origin, asked.language, asked.address, live.expired_by
        if (found := kept.get(key)) is not None:
            return tagged_body(found)
        asked = replace(asked, arguments=days_in(live.board, asked.arguments))
        name = await context.name()
        looks = live.board.publication.presentation
        sport = sport_of([live.board.rankings[one] for one in context.rankings_in(live.board)])
        words = replace(words_for(looks.zone, asked.lang, looks.language, asked.language), sport=sport)
        has_logo = looks.logo is not None
        site = Site(name, asked.slug, self._static, words, asked.lang, looks.accent, has_logo, origin=asked.origin)
        body = await make(context, site, asked)
        if live.head == head and len(asked.origin + asked.address) <= ADDRESS_KEPT_CHARACTERS_MAX:
            kept.keep(key, body)
        return tagged_body(body)


def _language(request: HttpRequest) -> str | None:
    return accepted_language(request.headers.getall("Accept-Language", ()), LANGUAGES)


def _origin(request: HttpRequest, *, proxies: int) -> str:
    """Scheme and host that the client sent; empty: the host is invalid. A page that names them is cached only for
    requests with the same ones, because a client can send any."""
    hosts = request.headers.getall("Host", ())
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return ""
    return f"{'https' if came_by_tls(request, proxies=proxies) else 'http'}://{hosts[0]}"


_HOST: Final = re.compile(r"[0-9A-Za-z.-]{1,200}(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](?::[0-9]{1,5})?", re.ASCII)


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────


async def _board(mode: Mode, context: RecallContext, site: Site, asked: _Asked) -> bytes:
    if not (context.rankings_in(context.live.board) or asked.arguments):
        return empty_page(site)
    table = await ask(context, BoardTableQuestion(**asked.arguments, limit=mode.lines, tags=mode is BOARD))
    rows = await in_time_slices(table_rows(site, mode, table, asked.query))
    scorings = context.live.board.rankings[table.ranking_id].scorings
    pages = [(page.link, page.below) for page in RANKING_PAGES if page.link and page.suits(scorings)]
    return board_page(site, mode, table, rows, asked.query, asked.origin, pages)


async def _picture(pictures: Pictures, context: RecallContext, site: Site, asked: _Asked) -> bytes:
    table = await ask(context, BoardTableQuestion(**asked.arguments, limit=PICTURE_LINES, form=False))
    return await pictures.drawn(pictured(site, table))


async def _logo(context: RecallContext, _site: Site, _asked: _Asked) -> bytes:
    return await context.logo()


async def _table_json(context: RecallContext, site: Site, asked: _Asked) -> bytes:
    return encode(await table_shape(site.words, await ask(context, BoardTableQuestion(**asked.arguments))))


async def _passage_json(context: RecallContext, site: Site, asked: _Asked) -> bytes:
    passage = await ask(context, PassageQuestion(**asked.arguments))
    return encode(await in_time_slices(passage_shape(site.words, passage)))


async def _timeline_json(context: RecallContext, site: Site, asked: _Asked) -> bytes:
    timeline = await ask(context, TimelineQuestion(**asked.arguments))
    return encode(await in_time_slices(timeline_shape(site.words, timeline)))


async def _race_json(context: RecallContext, _site: Site, asked: _Asked) -> bytes:
    return encode(race_shape(await ask(context, RaceQuestion(**asked.arguments))))


async def _written(form: WrittenForm, context: RecallContext, _site: Site, asked: _Asked) -> bytes:
    """Without the organiser's ids, which are not public."""
    return (await written(context, asked.arguments.get("ranking_id"), form, with_keys=False)).encode()


async def _calendar(context: RecallContext, site: Site, asked: _Asked) -> bytes:
    ranking_id = context.ranking_in(context.live.board, asked.arguments.get("ranking_id"))
    found = await ask(context, CalendarQuestion(ranking_id=ranking_id))
    name = f"{context.names.ranking(ranking_id)} \N{MIDDLE DOT} {site.name}"
    return calendar(site.words, name, f"{context.live.tournament_id}.tallybook", found.matches)


async def _table_csv(context: RecallContext, _site: Site, asked: _Asked) -> bytes:
    arguments = {**asked.arguments}
    form = PLAIN if arguments.pop("format", None) is None else EXCEL
    table = await ask(context, BoardTableQuestion(**arguments, limit=CSV_LINES_MAX, form=False))
    columns = [
        "position",
        "moved",
        "competitor_id",
        "competitor",
        *[harmless(column_name(ENGLISH, one)) for one in table.columns],
    ]
    chunks, time_slice = [form.begins, csv_text([columns], form)], TimeSlice()
    for start in range(0, len(table.lines), CSV_LINES_AT_ONCE):
        lines = table.lines[start : start + CSV_LINES_AT_ONCE]
        chunks.append(
            csv_text(
                (
                    (one.place, one.moved, one.competitor_id, harmless(one.name), *_values(table, one, form))
                    for one in lines
                ),
                form,
            )
        )
        if time_slice.over:
            await time_slice.give_way()
    return "".join(chunks).encode()


def _values(table: BoardTable, line: TableLine, form: CsvForm) -> list[str | None]:
    written = zip(table.columns, line.values, strict=True)
    return [None if value is None else form.number(column.notation.text(value)) for column, value in written]


async def _of_ranking(page: RankingPage, context: RecallContext, site: Site, asked: _Asked) -> bytes:
    ranking_id = context.ranking_in(context.live.board, asked.arguments.get("ranking_id"))
    return await shown_page(page, context, site, ranking_id, {**asked.arguments, **asked.ids}, asked.query)
