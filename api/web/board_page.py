"""The page of a board, complete without scripts: one table at one moment, with links to all others.

The script of the page, `static/board.js`, takes over from here: it finds what it needs in `data-` attributes.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct

from api.interface.sports import in_order
from api.stream.public_frames import PUBLIC_KINDS
from api.web.competition_page import COMPETITIONS
from api.web.competitions import competitions_part, competitions_shape, latest_part
from api.web.html import Html, Value, element, joined
from api.web.page import (
    Query,
    Site,
    abbreviated,
    dot,
    framed,
    name_text,
)
from api.web.pictured import HEIGHT, PICTURE_LINES, WIDTH, Pictured, PictureLine
from api.web.table import (
    column_name,
    column_short,
    deducted_text,
    last_name,
    outcome_letter,
    unity_name,
    value_text,
    zone_places,
)
from api.web.words import Words
from engine.domain.steps import Steps, collected
from engine.domain.table_zones import TableZone
from engine.domain.times import instant
from projections.answers.board_table import BoardTable, Footnote, TableColumn, TableLine, TableState

TV_LINES: Final = 12
"""Lines of a page on a large screen."""
TABS_MAX: Final = 12
"""Up to this many rankings have a tab each; more are chosen from a list."""
FIRST_TOLD: Final = 5
"""Lines in the preview of a link to a page."""
PICTURE: Final = "/picture.png"
"""The path of the picture, below that of the board."""
TITLE_LONG: Final = 40
"""Characters of a title above which it is written smaller."""
SEARCHED_LINES_MIN: Final = 20
"""Lines above which the page has a form for searching competitors."""
NAME_LONG: Final = 36
"""Characters of a competitor's name above which it is written smaller on a large screen."""
TV_SECONDS: Final = 15
"""How long a large screen shows one page."""


class Mode(Struct, frozen=True):
    """How a board is shown. `below`: its path below that of the board."""

    kind: str
    below: str
    lines: int


BOARD: Final = Mode("board", "", 100)
TV: Final = Mode("tv", "/tv", TV_LINES)
EMBED: Final = Mode("embed", "/embed", 50)
EMBED_PIXELS: Final = 240
EMBED_LINE_PIXELS: Final = 53
"""Height of a frame without its lines, with a title of two lines, and height of each line."""


def board_page(
    site: Site,
    mode: Mode,
    table: BoardTable,
    rows: Items[Html],
    query: Query,
    origin: str,
    pages: Items[tuple[str, str]],
) -> bytes:
    """The page that shows `table`, with the `rows` from `table_rows`. `query`: that of the request; `origin`: the
    scheme and host of the request; empty: unknown. `pages`: words and paths of those about the ranking."""
    words, to = site.words, site.leading(query, COMPETITIONS)
    body = joined(
        (
            element("a", words("skip"), href="#table", class_="skip"),
            _head(site, mode, table, query),
            _choices(site, mode, table, query) if mode is not EMBED else None,
            _search(site, table, query) if mode is BOARD else None,
            element(
                "main",
                _found(site, mode, table, query),
                _pages(site, mode, table, query, words("lines_label")),
                _table(site, mode, table, rows, query),
                _footnotes(site.words, table),
                _zones(table),
                _pages(site, mode, table, query, words("lines_below_label")) if mode is not TV else None,
                **_told(site, mode, table, query),
            ),
            competitions_part(words, competitions_shape(words, table), to) if mode is BOARD else None,
            _past(site, table, query) if mode is BOARD else None,
            _foot(site, mode, table, query, origin, pages),
        )
    )
    title = f"{_heading(table, query)} · {site.name}"
    about = _about(site, table, query, origin, title)
    if mode is TV:
        about = joined((about, _turning(site, mode, table, query)))
    return framed(site, title, body, kind=mode.kind, about=about)


def _about(site: Site, table: BoardTable, query: Query, origin: str, title: str) -> Html:
    """The preview of a link to the page, in Open Graph. A picture needs an absolute address."""
    asked = {name: query[name] for name in ("ranking", "unity", "at", "on") if name in query}
    first = ", ".join([f"{line.place} {line.name}" for line in table.lines[:FIRST_TOLD]])
    for line in table.lines:
        if str(line.competitor_id) == query.get("line"):
            value = f"{value_text(site.words, table, line, 0)} {column_name(site.words, table.columns[0])}"
            first = f"{line.place} {line.name}, {value}"
    said = {"og:type": "website", "og:site_name": "Tallybook", "og:title": title, "og:description": first}
    if origin:
        said |= {
            "og:url": origin + site.address(asked),
            "og:image": origin + site.address(asked, PICTURE),
            "og:image:type": "image/png",
            "og:image:width": str(WIDTH),
            "og:image:height": str(HEIGHT),
            "og:image:alt": f"{title}: {first}",
        }
    return joined(
        (
            element("meta", name="description", content=first),
            element("meta", name="twitter:card", content="summary_large_image"),
            *[element("meta", property=name, content=text) for name, text in said.items()],
        )
    )


def pictured(site: Site, table: BoardTable) -> Pictured:
    """What the picture of the table shows."""
    words, first = site.words, table.lines[:PICTURE_LINES]
    lines = [
        PictureLine(
            line.place,
            line.competitor_id,
            line.name,
            line.color,
            value_text(words, table, line, 0),
            None if line.zone is None else table.zones[line.zone].kind,
        )
        for line in first
    ]
    zones = [table.zones[number] for number in dict.fromkeys(line.zone for line in first if line.zone is not None)]
    moment = words("as_of", time=words.time(table.recorded_at) if table.on is None else words.day(table.on))
    more = table.count - len(lines)
    return Pictured(
        tournament=site.name,
        ranking=_chosen(table),
        column=column_name(words, table.columns[0]),
        moment=moment,
        lines=tuple(lines),
        more=words("more", number=words.number(more)) if more > 0 else "",
        nobody=words("no_competitors"),
        numbered=words("numbered"),
        zones=tuple([(one.kind, f"{zone_places(one, table.count)} {one.text}") for one in zones]),
    )


def _told(site: Site, mode: Mode, table: BoardTable, query: Query) -> dict[str, Value]:
    """What the page passes to its script."""
    return {
        "id": "table",
        "data_slug": site.slug,
        "data_ranking": table.ranking_id,
        "data_unity": table.unity_id or "",
        "data_sequence": table.sequence,
        "data_end": table.end,
        "data_count": table.count,
        "data_offset": table.offset,
        "data_lines": mode.lines,
        "data_races": table.races,
        "data_folds": table.folds,
        "data_on": None if table.on is None else instant(table.on),
        "data_dated": _is_by_date(table, query),
        "data_kinds": " ".join(sorted(PUBLIC_KINDS)),
    }


def _chosen(table: BoardTable) -> str:
    return next(one.name for one in table.rankings if one.id == table.ranking_id)


_STATES: Final[dict[TableState, tuple[str, str | None]]] = {
    "live": ("as_of", None),  # the script makes it live
    "frozen": ("frozen", "frozen"),
    "final": ("final", "final"),
}
"""The words for the time of a current table, and their class."""


# ── Around the table ────────────────────────────────────────────────────────────────────────────────────


def _state(table: BoardTable) -> tuple[str, str | None]:
    """The words for the time of the table, and their class."""
    return ("as_of", None) if table.sequence < table.end or table.on is not None else _STATES[table.state]


def _heading(table: BoardTable, query: Query) -> str:
    """The title of the table: the ranking, and the tag if only competitors with a tag are shown."""
    tag = query.get("tag", "").strip()
    return f"{_chosen(table)}, {tag}" if tag else _chosen(table)


def _head(site: Site, mode: Mode, table: BoardTable, query: Query) -> Html:
    _, kind = _state(table)
    heading, to = _heading(table, query), site.leading(query, COMPETITIONS)
    return element(
        "header",
        site.titled(),
        element("h1", name_text(heading), class_="long" if len(heading) > TITLE_LONG else None),
        element("p", _moment(site.words, table, query), class_=f"moment {kind or ''}".strip(), id="moment"),
        None if mode is EMBED else latest_part(site.words, competitions_shape(site.words, table), to),
    )


def _moment(words: Words, table: BoardTable, query: Query) -> Html:
    """The moment shown, by both clocks if they differ. The script writes the same."""
    recorded = words.time_element(table.recorded_at)
    last = None if table.last is None else {"what": last_name(words, table), "day": words.day(table.last.at)}
    if table.on is not None:
        moment = words("on_day", day=words.day(table.on)) if last is None else words("after", **last)
    elif "at" in query:
        key = "after_event" if last is None else "after_event_last"
        moment = words(key, number=table.sequence, end=table.end, **(last or {}))
    else:
        return words.html(_state(table)[0], time=recorded)
    return words.html("recorded", moment=moment, time=recorded)


def _kept(query: Query) -> Query:
    """What another table of the same moment is asked with."""
    return {name: query[name] for name in ("at", "on", "since", "tag", "lang") if name in query}


def _choices(site: Site, mode: Mode, table: BoardTable, query: Query) -> Html:
    words = site.words
    kept = _kept(query)
    in_ranking = {"ranking": str(table.ranking_id)}

    def tab(text: str, its: Query, chosen: bool) -> Html:
        current = "page" if chosen else None
        return element(
            "li", element("a", name_text(text), href=site.address({**its, **kept}, mode.below), aria_current=current)
        )

    rankings = [tab(one.name, {"ranking": str(one.id)}, one.id == table.ranking_id) for one in table.rankings]
    by_heads = {table.sole, *_led_to(words, table).values()}
    others = [one for one in table.unities if one.id not in by_heads]
    columns = [tab(words("table"), in_ranking, table.unity_id in (None, table.sole))]
    columns += [
        tab(unity_name(words, one.name), in_ranking | {"unity": str(one.id)}, one.id == table.unity_id)
        for one in others
    ]
    chosen = _tabs(words("rankings"), rankings) if len(rankings) <= TABS_MAX else _select(site, mode, table, kept)
    return joined((chosen, _tabs(words("tables"), columns)))


def _led_to(words: Words, table: BoardTable) -> dict[str, int]:
    """The unities to whose own tables the heads of their columns lead, by their names."""
    plain = {one.unity for one in table.columns if column_name(words, one) == unity_name(words, one.unity)}
    return {
        one.name: one.id for one in table.unities if one.name in plain and one.id not in (table.sole, table.unity_id)
    }


def _tabs(label: str, tabs: Items[Html]) -> Html | None:
    """None: there is nothing to choose."""
    return element("nav", element("ul", *tabs), class_="tabs", aria_label=label) if len(tabs) > 1 else None


def _select(site: Site, mode: Mode, table: BoardTable, kept: Query) -> Html:
    """The choice among many rankings."""
    options = [element("option", one.name, value=one.id, selected=one.id == table.ranking_id) for one in table.rankings]
    return element(
        "form",
        element("label", f"{site.words('ranking')} ", element("select", *options, name="ranking")),
        *[element("input", type="hidden", name=name, value=text) for name, text in kept.items()],
        element("button", site.words("show")),
        action=site.address({}, mode.below),
        class_="choices",
        aria_label=site.words("rankings"),
    )


def _search(site: Site, table: BoardTable, query: Query) -> Html | None:
    """The form that searches competitors, if there are many or they have tags."""
    asked = any(query.get(name) for name in ("find", "tag"))
    if not table.is_searched or not (asked or table.tags or table.count > SEARCHED_LINES_MIN):
        return None
    words = site.words
    kept = [name for name in ("ranking", "unity", "at", "on", "since", "lang") if name in query]
    tags = [element("option", one, selected=one == query.get("tag")) for one in table.tags]
    everybody = element("option", words("everybody"), value="")
    return element(
        "form",
        element(
            "label",
            f"{words('find')} ",
            element("input", type="search", name="find", value=query.get("find"), maxlength=255),
        ),
        element("label", f"{words('among')} ", element("select", everybody, *tags, name="tag")) if tags else None,
        *[element("input", type="hidden", name=name, value=query[name]) for name in kept],
        element("button", words("find")),
        action=site.address({}),
        class_="choices search",
        role="search",
    )


def _found(site: Site, mode: Mode, table: BoardTable, query: Query) -> Html | None:
    """The search, and a link back to all competitors."""
    tag, find = query.get("tag", "").strip(), query.get("find", "").strip()
    if not tag and not find:
        return None
    whole = {name: text for name, text in query.items() if name not in ("tag", "find", "offset", "line")}
    words = site.words
    named = words.html("found_named", text=name_text(find)) if find else None
    among = words.html("found_among", tag=name_text(tag)) if tag else None
    way = element("a", words("whole_table"), href=site.address(whole, mode.below))
    if find and table.count == 1 and table.lines:
        one = table.lines[0].competitor_id
        address = site.address({**whole, "line": str(one)} | ({"tag": tag} if tag else {}), mode.below)
        way = element("a", words("its_line"), href=f"{address}#line-{one}")
    return element(
        "p",
        element("span", words.counted("lines", table.count), named, among, ". "),
        way,
        class_="found",
    )


def _pages(site: Site, mode: Mode, table: BoardTable, query: Query, label: str) -> Html:
    """Links to the lines before and after those shown. The script keeps them current."""
    first, last = table.offset + 1, table.offset + len(table.lines)
    words, count = site.words, table.count
    shown = words("span", first=first, last=last, count=count) if table.lines else words("no_lines", count=count)
    if mode is TV:
        page, pages = table.offset // mode.lines + 1, max(-(-count // mode.lines), 1)
        shown = words("page", page=page, pages=pages, lines=shown)
    return element(
        "nav",
        _page_link(site, mode, query, max(table.offset - mode.lines, 0), words("above"), shown=table.offset > 0),
        element("span", shown),
        _page_link(site, mode, query, table.offset + mode.lines, words("below"), shown=last < table.count),
        class_="pages",
        aria_label=label,
        hidden=table.offset == 0 and last >= table.count,
    )


def _page_link(site: Site, mode: Mode, query: Query, offset: int, text: str, *, shown: bool) -> Html:
    return element("a", text, href=site.address(_at_offset(query, offset), mode.below), hidden=not shown)


def _at_offset(query: Query, offset: int) -> Query:
    rest = {name: text for name, text in query.items() if name not in ("offset", "line")}
    return rest | {"offset": str(offset)} if offset else rest


def _is_by_date(table: BoardTable, query: Query) -> bool:
    """Whether the slider moves through time, along what took place, rather than through the events of the log."""
    if "on" in query or not table.has_timeline:
        return False
    return table.on is not None or (table.last is not None and "at" not in query)


def _past(site: Site, table: BoardTable, query: Query) -> Html | None:
    """The slider over the whole history. Without scripts, it is a plain form, with a date field in place of a slider of
    dates."""
    if "on" in query:
        return None
    kept = [
        element("input", type="hidden", name=name, value=query[name])
        for name in ("ranking", "unity", "since", "tag", "find", "lang")
        if name in query
    ]
    words = site.words
    same = {name: text for name, text in query.items() if name != "at"}
    asked = {"name": "at", "id": "at", "aria_describedby": "moment"}
    if _is_by_date(table, query):
        shown = table.on or (table.recorded_at if table.last is None else table.last.at)
        slider = element("input", type="date", value=words.local(shown).date().isoformat(), **asked)
        other: Html | None = element(
            "a", words("as_recorded"), class_="other", href=site.address({**same, "at": str(table.end)})
        )
    else:
        slider = element("input", type="range", min=1, max=table.end, value=table.sequence, **asked)
        other = None if table.last is None else element("a", words("by_date"), class_="other", href=site.address(same))
    return element(
        "form",
        element("label", words("history"), for_="at"),
        slider,
        *kept,
        element("button", words("show")),
        element("a", words("now"), href=site.address(same), aria_current=None if "at" in query else "true"),
        other,
        action=site.address({}),
        class_="past",
        id="past",
        aria_label=words("past"),
    )


def _foot(
    site: Site, mode: Mode, table: BoardTable, query: Query, origin: str, pages: Iterable[tuple[str, str]]
) -> Html:
    words = site.words
    if mode is EMBED:
        whole = element("a", words("whole_board"), href=site.address(query), target="_blank", rel="noopener")
        return element("footer", element("p", whole))
    same = {name: text for name, text in query.items() if name not in ("offset", "line")}
    ways = [("CSV", "/table.csv"), (words("large_screen"), "/tv")]
    links = [element("a", text, href=site.address(same, below)) for text, below in ways]
    of_ranking = {name: query[name] for name in ("ranking", "unity") if name in query}
    links += [
        element("a", words(word), class_="timeless", href=site.address(of_ranking, below)) for word, below in pages
    ]
    compared = None if table.since is None else f"{words('arrows_last')} "
    if "since" in query:
        compared = f"{words('arrows_since')} "
    of_last = None if table.since is None else element("span", words("amounts_last"), " ", class_="of-last")
    return element(
        "footer",
        element("p", compared, of_last, words("choose")),
        _spaced(links),
        _embedding(site, table, same, origin),
    )


def _embedding(site: Site, table: BoardTable, query: Query, origin: str) -> Html:
    """The HTML that shows the table in another page, in a frame of the right size. Its address must be absolute:
    without an `origin`, the reader has to complete it."""
    address = (origin or "https://\N{HORIZONTAL ELLIPSIS}") + site.address(query, EMBED.below)
    height = EMBED_PIXELS + EMBED_LINE_PIXELS * min(max(table.count, 1), EMBED.lines)
    frame = element("iframe", src=address, title=f"{_heading(table, query)}, {site.name}", width="100%", height=height)
    return element(
        "details",
        element("summary", site.words("embed")),
        element("label", site.words("embed_write"), element("textarea", str(frame), readonly=True, rows=4)),
        element("a", site.words("embed_look"), href=site.address(query, EMBED.below)),
        class_="embedding",
    )


def _spaced(links: Iterable[Html]) -> Html:
    return element("p", *[child for link in links for child in (link, " ")], class_="ways")


def _turning(site: Site, mode: Mode, table: BoardTable, query: Query) -> Html:
    """Turns the page of a large screen that has no scripts."""
    following = table.offset + mode.lines
    address = site.address(_at_offset(query, following if following < table.count else 0), mode.below)
    return element("noscript", element("meta", http_equiv="refresh", content=f"{TV_SECONDS}; url={address}"))


# ── The table ───────────────────────────────────────────────────────────────────────────────────────────


def table_rows(site: Site, mode: Mode, table: BoardTable, query: Query) -> Steps[list[Html]]:
    """The rows of the table on its page."""
    kept = {name: query[name] for name in ("ranking", "unity", "at", "on") if name in query}
    here = query.get("line")
    compared, with_form = _columns_beside(table)
    classes = _value_classes(table)
    return collected(
        _row(site, mode, table, line, kept, classes, here, compared=compared, with_form=with_form)
        for line in table.lines
    )


def _columns_beside(table: BoardTable) -> tuple[bool, bool]:
    """Whether there are columns of movement, and of recent results."""
    return table.since is not None, any(line.form for line in table.lines)


def _table(site: Site, mode: Mode, table: BoardTable, rows: Items[Html], query: Query) -> Html:
    words, (compared, with_form) = site.words, _columns_beside(table)
    led_to = {} if mode is EMBED else _led_to(words, table)

    def head(column: TableColumn) -> Html:
        """The name of a column, or its abbreviation with the name to be seen; it may lead to a table of its own."""
        name, short = column_name(words, column), column_short(words, column)
        text = abbreviated(name, short)
        if column.unity not in led_to or name != unity_name(words, column.unity):
            return text
        asked = {"ranking": str(table.ranking_id), "unity": str(led_to[column.unity]), **_kept(query)}
        return element("a", text, href=site.address(asked, mode.below))

    heads = [
        element("th", element("abbr", "#", title=words("position")), scope="col", class_="position"),
        element("th", element("span", words("movement"), class_="unseen"), scope="col", class_="moved")
        if compared
        else None,
        element("th", words("competitor"), scope="col", class_="name"),
        element("th", words("form"), scope="col", class_="form") if with_form else None,
        *[element("th", head(table.columns[number]), scope="col", class_=its) for number, its in _value_classes(table)],
    ]
    return element(
        "table",
        element(
            "caption", ", ".join([_chosen(table), *[column_name(words, one) for one in table.columns]]), class_="unseen"
        ),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
        aria_rowcount=table.count + 1,
    )


def _row(
    site: Site,
    mode: Mode,
    table: BoardTable,
    line: TableLine,
    kept: Query,
    classes: Items[tuple[int, str]],
    here: str | None,
    *,
    compared: bool,
    with_form: bool,
) -> Html:
    words = site.words
    explained = site.address(kept, f"/competitors/{line.competitor_id}")
    target = "_blank" if mode is EMBED else None  # the explanation may not be framed
    zone = None if line.zone is None else table.zones[line.zone]
    size, gained = "long" if len(line.name) > NAME_LONG else None, _gained(words, table, line)
    name = element("a", name_text(line.name), href=explained, target=target, class_=size)
    return element(
        "tr",
        element("td", line.place, _zone_said(zone), class_="position" if zone is None else f"position {zone.kind}"),
        element("td", _moved(words, line.moved) if line.placed else None, class_="moved") if compared else None,
        element("th", element("span", dot(line.color), name, class_="who"), scope="row", class_="name"),
        element("td", _form(words, table, line), class_="form") if with_form else None,
        *[
            element(
                "td",
                value_text(words, table, line, number),
                _marks(words, table, line, number),
                None if number else gained,
                class_=value_class,
            )
            for number, value_class in classes
        ],
        id=f"line-{line.competitor_id}",
        class_="here" if here == str(line.competitor_id) else None,
        data_competitor=line.competitor_id,
    )


def _marks(words: Words, table: BoardTable, line: TableLine, column: int) -> Html | None:
    """The marks of the footnotes to a value."""
    its = [
        one.mark for one in table.footnotes if (one.deduction.competitor_id, one.column) == (line.competitor_id, column)
    ]
    return element("sup", element("span", f" {words('note')} ", class_="unseen"), " ".join(its)) if its else None


def _zone_said(zone: TableZone | None) -> Html | None:
    return None if zone is None else element("span", ", ", name_text(zone.text), class_="unseen")


def _zones(table: BoardTable) -> Html | None:
    """The legend of the zones. The script finds them here by their numbers."""
    said = [
        element("li", f"{zone_places(zone, table.count)} ", name_text(zone.text), class_=zone.kind)
        for zone in table.zones
    ]
    return element("ul", *said, class_="zones") if said else None


def _footnotes(words: Words, table: BoardTable) -> Html | None:
    """Below the table. The marks are those that browsers give a list."""
    names = {line.competitor_id: line.name for line in table.lines}

    def said(footnote: Footnote) -> Html:
        its, amount = footnote.deduction, deducted_text(words, table, footnote)
        return words.html(
            "deducted", name=name_text(names[its.competitor_id]), amount=amount, reason=name_text(its.reason)
        )

    notes = [element("li", said(one)) for one in table.footnotes]
    return element("ol", *notes, class_="notes", type="a") if notes else None


def _gained(words: Words, table: BoardTable, line: TableLine) -> Html | None:
    """What the last competition gave, behind the total. Narrow screens leave it out."""
    return (
        None
        if line.gained is None
        else element("span", " ", words.signed(line.gained, table.form_notation), class_="gained")
    )


def _value_classes(table: BoardTable) -> list[tuple[int, str]]:
    """The number of each column of values, in the order of the page, with its classes. `first`, `second`: those that
    decide first; `lead`: the one that the page has first."""
    order = in_order(one.unity for one in table.columns)

    def classes(number: int) -> str:
        if number == 0:
            return "value first"
        decides = table.columns[number].decides
        its = {"decides": decides, "second": decides and number == 1, "lead": number == order[0]}
        return " ".join(["value", *[name for name, has in its.items() if has]])

    return [(number, classes(number)) for number in order]


def _moved(words: Words, places: int | None) -> Html:
    """Movement by sign and by word, never by colour alone."""
    if places is None:
        return element("span", words("new"), class_="new")
    if places == 0:
        return element(
            "span", _sign("\N{EN DASH}"), element("span", words("unchanged"), class_="unseen"), class_="same"
        )
    sign, way = ("▲", "up") if places > 0 else ("▼", "down")
    return element("span", _sign(sign), abs(places), element("span", f" {words(way)}", class_="unseen"), class_=way)


def _sign(text: str) -> Html:
    return element("span", text, class_="sign", aria_hidden="true")


def _form(words: Words, table: BoardTable, line: TableLine) -> Html:
    return element(
        "ol",
        *[element("li", outcome_letter(words, one) or words.number(one.sum, table.form_notation)) for one in line.form],
    )
