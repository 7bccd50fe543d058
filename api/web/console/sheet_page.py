"""The page of a match day: the matches of a round with their boxes, and the table as they make it."""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import Final

from msgspec import UNSET, Struct

from api.access.auth import ScorerPart
from api.interface.direction import isolated
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, live, way, ways
from api.web.console.inputs import KEY, Filling, complaint
from api.web.console.lists_pages import recorded_text
from api.web.console.sheet import (
    EXTRA_TIME,
    LOST_BY_BOTH,
    PENALTIES,
    PLAYED,
    POSTPONED,
    WALKOVERS,
    WORD,
    MatchRow,
)
from api.web.html import Child, Html, element, joined
from api.web.page import Query, name_text, number_text, signed_text
from api.web.result_text import score_text
from api.web.table import column_name
from api.web.words import ENGLISH
from engine.domain.scoring import ABANDONED
from engine.domain.terms import CompetitionId
from projections.answers.board_table import BoardTable
from projections.answers.foreseen import ComparedRanking, Foreseen
from projections.answers.names import NamesById
from projections.answers.rounds import Round, RoundMatch, RoundMatches

LOOKS: Final = "look"
"""The button that only shows the table."""
LINES_SHOWN: Final = 40
"""Lines of a table next to the matches."""


class SheetRow(Struct, frozen=True, kw_only=True):
    """A match as it is shown. `typed`: what stands in its boxes; None: its result fits into none. `was`: what the page
    showed first, with the tag of the match then. `words`: of its scoring. `numeric`: the keyboard of a phone. `wrong`:
    what is wrong with it; `asked`: what it is asked about; `other`: who else has saved it, and what."""

    competition_id: CompetitionId
    match: RoundMatch
    typed: MatchRow | None
    was: str
    words: Items[str] = ()
    numeric: str | None = "numeric"
    wrong: str | None = None
    asked: str | None = None
    other: str | None = None


class Tables(Struct, frozen=True, kw_only=True):
    """The tables next to the matches: as they are, or as the `foreseen` results make them."""

    now: Items[BoardTable] = ()
    foreseen: Foreseen | None = None


def sheet_page(
    viewer: Viewer,
    venue: Venue,
    names: NamesById,
    found: RoundMatches,
    rows: Items[SheetRow],
    tables: Tables,
    filling: Filling,
    *,
    address: str,
    query: Query,
    saved: int | None,
    part: ScorerPart | None,
) -> bytes:
    """The page. `address`: where the form is sent. `saved`: how many results of the form were saved; None: it was not
    sent. `part`: of a scorer, who sees only the matches."""
    left = [one for one in rows if one.wrong or one.asked or one.other]
    return console_page(
        viewer,
        venue.sport("{Match} day"),
        done_message(query),
        None if saved is None else _saved(venue, saved, len(left)),
        complaint(filling, []),
        element("p", f"{isolated(venue.name)}: {isolated(round_text(venue, found.round))}", class_="subject")
        if part is not None and found.round is not None
        else None,
        ways(way("Scorers", venue.address("/scorers"))) if part is None and rows else None,
        _rounds(venue, found) if part is None or part.round is None else None,
        element("p", venue.sport("There are no {matches} yet.")) if found.round is None else None,
        element(
            "form",
            element("input", type="hidden", name=KEY, value=filling.key),
            element(
                "div",
                *_matches(venue, names, rows, is_scorer=part is not None),
                _more(venue, found.more),
                element(
                    "p",
                    element("button", "Save", class_="chief"),
                    element("button", "Show the table", name=LOOKS, value="1", class_="button")
                    if part is None
                    else None,
                    class_="actions saving",
                )
                if any(one.typed is not None for one in rows)
                else None,
                class_="matches",
            ),
            element("div", *_tables(venue, names, tables), id="foreseen", class_="tables"),
            method="post",
            action=address,
            class_="sheet" if part is None else "sheet alone",
            data_sheet=part is None,
        )
        if rows
        else None,
        venue=venue,
        below="/matchday",
    )


def _more(venue: Venue, more: int) -> Html | None:
    if not more:
        return None
    return element("p", venue.sport(f"{number_text(more)} more {{matches}} of this round are not on this page."))


def _saved(venue: Venue, saved: int, left: int) -> Html:
    """What became of a form that could not be saved as a whole."""
    said = f"{number_text(saved)} saved." if saved else "Nothing is saved yet."
    what = venue.sport("1 {match} needs" if left == 1 else f"{number_text(left)} {{matches}} need")
    return element("p", f"{said} {what} another look.", class_="warning", role="alert", tabindex=-1)


# ── Rounds ──────────────────────────────────────────────────────────────────────────────────────────────


def _rounds(venue: Venue, found: RoundMatches) -> Html | None:
    if found.round is None:
        return None
    place = [one.key for one in found.rounds].index(found.round.key)
    before, after = found.rounds[:place][-1:], found.rounds[place + 1 :][:1]
    chosen = [
        element("option", round_text(venue, one), _left(one), value=one.key, selected=one.key == found.round.key)
        for one in found.rounds
    ]
    links = [
        element("a", text, href=venue.address("/matchday", {"round": one.key}), class_="button")
        for text, those in (("Earlier", before), ("Later", after))
        for one in those
    ]
    return element(
        "form",
        element("label", "Round", for_="round"),
        element("select", *chosen, name="round", id="round"),
        element("button", "Go", class_="button"),
        *links,
        method="get",
        action=venue.address("/matchday"),
        class_="rounds",
    )


def round_text(venue: Venue, one: Round) -> str:
    """What people call a round."""
    if one.number is not None:
        return f"Round {one.number}" + (f", {one.name}" if one.name else "")
    if one.name:
        return one.name
    return "Without a date" if one.begins is None else venue.words.day(one.begins)


def _left(one: Round) -> str:
    return f" ({number_text(one.left)} to play)" if one.left else ""


# ── Matches ─────────────────────────────────────────────────────────────────────────────────────────────


def _matches(venue: Venue, names: NamesById, rows: Items[SheetRow], *, is_scorer: bool) -> Iterator[Html]:
    """All of them, under their groups if there are several."""
    groups = {one.match.group_id for one in rows}
    last = None
    for one in rows:
        if len(groups) > 1 and one.match.group_id != last:
            yield element("h2", f"Division {one.match.group_id}")
        last = one.match.group_id
        yield _match(venue, names, one, is_scorer=is_scorer)


def _match(venue: Venue, names: NamesById, row: SheetRow, *, is_scorer: bool) -> Html:
    number, match = row.competition_id, row.match
    of = [names.competitor(one).name for one in match.participants]
    if row.typed is None:
        shown = " – ".join(of) if len(of) <= 2 else venue.sport(f"{len(of)} {{teams}}")  # noqa: RUF001 - one against the other
        form = venue.address(f"/competitions/{number}/record")
        link = name_text(shown) if is_scorer else element("a", isolated(shown), href=form)
        return element("p", link, f" {_recorded(names, match)}", class_="match")
    said = [text for text in (_sentence(row.wrong), row.asked and venue.sport(row.asked), row.other) if text]
    described = f"said-{number}" if said else None
    boxes = [
        _box(row, side, name, value, described)
        for side, name, value in (("home", of[0], row.typed.home), ("away", of[1], row.typed.away))
    ]
    return element(
        "fieldset",
        element("legend", " – ".join(of), class_="unseen"),  # noqa: RUF001 - one against the other
        element("label", name_text(of[0]), for_=f"home-{number}", class_="home"),
        boxes[0],
        element("span", ":", aria_hidden="true", class_="colon"),
        boxes[1],
        element("label", name_text(of[1]), for_=f"away-{number}", class_="away"),
        _how(row, of, is_scorer=is_scorer),
        element(
            "input",
            type="datetime-local",
            name=f"on[{number}]",
            value=row.typed.on,
            aria_label="New date, or none",
            class_="on",
        )
        if not is_scorer
        else None,
        element("p", *_when(venue, match), class_="when"),
        live(f"match-{number}", _recorded(names, match)),
        element("p", " ".join(said), class_="fault", id=described) if said else None,
        _sure(number) if row.asked else None,
        element("input", type="hidden", name=f"was[{number}]", value=row.was),
        class_="match wrong" if said else "match",
    )


def _sentence(wrong: str | None) -> str | None:
    return wrong and f"{wrong[0].upper()}{wrong[1:].removesuffix('.')}."


def _box(row: SheetRow, side: str, name: str, value: str, described: str | None) -> Html:
    return element(
        "input",
        name=f"{side}[{row.competition_id}]",
        id=f"{side}-{row.competition_id}",
        value=value,
        inputmode=row.numeric,
        autocomplete="off",
        maxlength=20,
        aria_invalid="true" if row.wrong else None,
        aria_describedby=described,
        class_=f"box {side}-box",
    )


def _how(row: SheetRow, of: Items[str], *, is_scorer: bool) -> Html:
    assert row.typed is not None
    texts = {
        PLAYED: "By the score",
        WALKOVERS[0]: f"Walkover for {of[0]}",
        WALKOVERS[1]: f"Walkover for {of[1]}",
        LOST_BY_BOTH: "Not played, lost by both",
        **({} if is_scorer else {POSTPONED: "Postponed"}),
        ABANDONED: "Abandoned, not decided",
        EXTRA_TIME: "After extra time",
        PENALTIES[0]: f"Penalties, won by {of[0]}",
        PENALTIES[1]: f"Penalties, won by {of[1]}",
        **{f"{WORD}{word}": word for word in row.words},
    }
    texts.setdefault(row.typed.how, row.typed.how.removeprefix(WORD))
    return element(
        "select",
        *[element("option", text, value=value, selected=value == row.typed.how) for value, text in texts.items()],
        name=f"how[{row.competition_id}]",
        aria_label="How it ended",
        class_="how",
    )


def _sure(number: CompetitionId) -> Html:
    box = element("input", type="checkbox", name=f"sure[{number}]", value="on")
    return element("label", box, " Yes, save it", class_="sure")


def _when(venue: Venue, match: RoundMatch) -> Iterator[Child]:
    yield "No date" if match.date is None else venue.words.when_element(match.date)
    if match.location:
        yield joined((" · ", name_text(match.location)))


def _recorded(names: NamesById, match: RoundMatch) -> str:
    if match.result is None:
        return ""
    if not isinstance(match.result, str):
        return "Saved"
    says_who = match.winner_id is None or score_text(ENGLISH, match.result)
    return f"Saved: {recorded_text(names, match.result, None if says_who else match.winner_id)}"


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────


def _tables(venue: Venue, names: NamesById, tables: Tables) -> Iterator[Html]:
    team = venue.sport("{Team}")
    if tables.foreseen is None:
        for one in tables.now:
            name = next(named.name for named in one.rankings if named.id == one.ranking_id)
            rows: list[list[Child]] = [
                [line.place, name_text(line.name), _value(one, line.values)] for line in one.lines
            ]
            value = column_name(ENGLISH, one.columns[0]) if one.columns else ""
            yield _table(name, "", (team, value), rows, one.count)
        return
    if tables.foreseen.rankings is None:
        yield element("p", "The table is too long to be shown here before the results are saved.")
    for ranking in tables.foreseen.rankings or ():
        yield from _foreseen(names, ranking, team)


def _value(table: BoardTable, values: Items[int | None]) -> str:
    return number_text(values[0], table.columns[0].notation) if values and table.columns else ""


def _foreseen(names: NamesById, ranking: ComparedRanking, team: str) -> Iterator[Html]:
    unity = ranking.unities[0]
    notation = names.unity(ranking.id, unity.id).notation
    totals = {one.competitor_id: one for one in unity.moves}
    places = [
        (one.competitor_id, one.position_before, one.position_after)
        for one in (unity.moves if ranking.classification is UNSET else ranking.classification)
        if one.position_after is not None
    ]
    rows: list[list[Child]] = []
    for competitor_id, before, after in places:
        total = totals[competitor_id]
        gained = notation.change(total.total_before or 0, total.total_after or 0)
        more = f" ({signed_text(gained, notation.of_points)})" if gained else ""
        moved = joined((number_text(after), _moved(before, after)))
        rows.append([moved, name_text(total.name), number_text(total.total_after, notation) + more])
    yield _table(ranking.name, " after saving", (team, unity.name), rows, len(rows))


def _moved(before: int | None, after: int | None) -> Html | None:
    if before is None or after is None or before == after:
        return None
    places = abs(before - after)
    arrow, word = ("▲", "up") if before > after else ("▼", "down")
    return element(
        "span",
        element("span", f" {arrow}{places}", aria_hidden="true"),
        element("span", f" {word} {places}", class_="unseen"),
        class_=word,
    )


def _table(name: str, when: str, heads: tuple[str, str], rows: list[list[Child]], count: int) -> Html:
    """`heads`: what a line is, and its value."""
    team, value = heads
    columns = [("Place", "position"), (team, "name"), (isolated(value[:1].upper() + value[1:]), "value")]
    rest = count - len(rows[:LINES_SHOWN])
    return joined(
        (
            element("h2", f"{isolated(name)}{when}"),
            data_table(f"{name}{when}", columns, rows[:LINES_SHOWN]),
            element("p", f"{number_text(rest)} more are in the table.") if rest > 0 else None,
        )
    )
