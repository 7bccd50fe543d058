"""The match-day sheet: the results of a round on one page, recorded in one block.

What is wrong stays in its row as it was typed; the rest is saved. A match that somebody else has changed since the
page was made is not saved but shown, with the name of their token. What a form says is compared with the matches as
they are, so a form that is sent twice records nothing the second time.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, json
from msgspec.structs import asdict, replace

from api.access import auth
from api.access.auth import Scope
from api.desk.conditions import Condition, own_tag
from api.desk.fingerprints import fingerprint
from api.http.forms import Form
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.interface.access import refuse_beyond_scope
from api.interface.declarations import RecallContext
from api.interface.doubts import doubts
from api.interface.fields import INTEGER, SHORT, Field, read_query
from api.web.console import sheet
from api.web.console.answering import Console, address_of, page_reply, see_other, venue_of
from api.web.console.frame import Viewer
from api.web.console.inputs import KEY, Filling, new_key
from api.web.console.sheet import MatchRow, recorded, row_of
from api.web.console.sheet_page import LINES_SHOWN, LOOKS, SheetRow, Tables, sheet_page
from api.web.page import Query
from api.web.result_text import result_text
from api.web.words import ENGLISH
from engine.domain.commands import RecordResult, RecordResults
from engine.domain.errors import Fault, NotFound, Overtaken, PreconditionFailed, Refusal, Unacceptable
from engine.domain.faults import unacceptable
from engine.domain.scoring import scorings_of
from engine.domain.terms import CompetitionId, Sequence
from engine.log import reading
from projections.answers.board_table import BoardTableQuestion
from projections.answers.foreseen import ForeseenQuestion
from projections.answers.rounds import RoundMatch, RoundMatches, RoundMatchesQuestion
from projections.answers.view import ask
from projections.answers.zones import zone_of

_FIELDS: Final = (
    Field("round", SHORT, "the round; absent: the one that is played now"),
    Field("group", INTEGER, "only matches of this group", argument="group_id"),
    Field("done", INTEGER, "the event that the page before has recorded"),
)
_TIMES_COMPARED: Final = 5
"""How often a form is compared again with matches that others change meanwhile."""
TABLES_SHOWN: Final = 4
"""Tables next to the matches."""
_CELL: Final = re.compile(r"(home|away|how|on|was|sure)\[([1-9][0-9]{0,18})\]", re.ASCII)
_OTHERS: Final = "{who} has saved {what} meanwhile. Save again to replace it."


class _Typed(Struct, frozen=True, kw_only=True):
    """A row of a form. `was`: what the page showed, after the tag that the match had."""

    row: MatchRow
    was: str
    sure: bool

    @property
    def is_changed(self) -> bool:
        return (self.row.text, self.row.on) != (self.was.partition(" ")[2], "")


class _Judged(Struct, frozen=True, kw_only=True):
    """A form, compared with the matches as they are. `said`: what is to be recorded, by match; `overtaken`: the matches
    that others have changed. `done`: the last event that changed a match as the form says."""

    rows: dict[CompetitionId, SheetRow]
    said: dict[CompetitionId, RecordResult]
    overtaken: list[CompetitionId]
    done: list[Sequence]

    @property
    def is_done(self) -> bool:
        return not any(one.wrong or one.asked or one.other for one in self.rows.values())


class SheetHandlers:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        _refuse_readers(viewer)
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            found = await _found(incoming, viewer, context)
            return await self._page(
                incoming, viewer, context, found, _judged(context, found, {}, {}, may_postpone=True)
            )

    async def save(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        _refuse_readers(viewer)
        form = await self._console.body(incoming)
        key, looks, typed = form.pop(KEY, ""), form.pop(LOOKS, None) is not None, _typed(form)
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            found, refused, saved = await _found(incoming, viewer, context), dict[CompetitionId, str](), 0
            gone = len(typed.keys() - found.matches.keys())
            for _ in range(_TIMES_COMPARED):
                found = replace(found, matches={one: context.competition(one) for one in found.matches})
                judged = _judged(context, found, typed, refused, may_postpone=viewer.may(Scope.WRITE))
                if looks or not judged.said:
                    break
                try:
                    await self._record(incoming, viewer, context, found, judged, key)
                    saved += len(judged.said)
                except PreconditionFailed:
                    await self._console.desk.live_pool.make_current(context.live)
                except Refusal as refusal:
                    refused |= await self._refused_alone(context, judged, refusal)
            else:
                raise Overtaken
            if looks or gone or not judged.is_done:
                found = await _left(incoming, viewer, context, found)
                judged = await self._naming_others(context, judged)
                saying = None if looks else saved
                page = await self._page(incoming, viewer, context, found, judged, saved=saying, gone=gone, key=key)
                return page_reply(page, code=200 if looks else 422)
            return see_other(await _then(incoming, viewer, context, max(judged.done, default=None)))

    # ── Recording ───────────────────────────────────────────────────────────────────────────────────────

    async def _record(
        self,
        incoming: IncomingRequest,
        viewer: Viewer,
        context: RecallContext,
        found: RoundMatches,
        judged: _Judged,
        key: str,
    ) -> None:
        """Records all that is said in one block. Raises PreconditionFailed if a match has changed since it was
        judged, and as the desk does."""
        desk, live = self._console.desk, context.live
        desk.refuse_late(live.tournament_id)
        tags = [own_tag(found.matches[one]) for one in judged.said]
        what = {"said": json.encode([*judged.said.values()]).decode(), "tags": " ".join(tags), KEY: key}
        said = fingerprint("POST", incoming.request.path, what)
        receipt = await desk.submit(
            live,
            RecordResults(items=tuple(judged.said.values())),
            actor=viewer.token.token_id,
            idempotency_key=f"sheet-{said.hex()}",
            fingerprint=said,
            condition=Condition("competition", tuple(judged.said), frozenset(tags)),
            taken_at=incoming.taken_at,
        )
        incoming.facts["sequence"] = receipt.last_sequence

    async def _refused_alone(
        self, context: RecallContext, judged: _Judged, refusal: Refusal
    ) -> dict[CompetitionId, str]:
        """Why some results would be refused alone. Raises the refusal if that is none of them."""
        refused: dict[CompetitionId, str] = {}
        for competition_id, said in judged.said.items():
            try:
                await self._console.desk.preview(context.live, RecordResults(items=(said,)))
            except Refusal as error:
                refused[competition_id] = "; ".join(fault.message for fault in error.faults) or error.message
        if not refused:
            raise refusal
        return refused

    # ── Showing ─────────────────────────────────────────────────────────────────────────────────────────

    async def _naming_others(self, context: RecallContext, judged: _Judged) -> _Judged:
        """With the names of the tokens that have changed matches meanwhile."""
        rows, tournament_id = dict(judged.rows), context.live.tournament_id
        for competition_id in judged.overtaken:
            row = rows[competition_id]
            async with self._console.database.connection_for(tournament_id) as connection:
                actor = (await reading.event_at(connection, tournament_id, row.match.revised)).actor
            async with self._console.database.connection() as connection:
                name = (await auth.names_of(connection, [actor])).get(actor)
            what = result_text(ENGLISH, row.match.result) if isinstance(row.match.result, str) else "no result"
            rows[competition_id] = replace(row, other=_OTHERS.format(who=name or "The operator", what=what))
        return replace(judged, rows=rows)

    async def _page(
        self,
        incoming: IncomingRequest,
        viewer: Viewer,
        context: RecallContext,
        found: RoundMatches,
        judged: _Judged,
        *,
        saved: int | None = None,
        gone: int = 0,
        key: str = "",
    ) -> bytes:
        venue, query = await venue_of(context, incoming), dict(incoming.request.query)
        message = f"{gone} of the matches are no longer in this round; look for them in the others." if gone else None
        return sheet_page(
            viewer,
            venue,
            context.names,
            found,
            [*judged.rows.values()],
            await self._tables(viewer, context, judged),
            Filling(key=key or new_key(), message=message),
            address=venue.address("/matchday", _addressed(incoming, found)),
            query=query,
            saved=saved,
            part=viewer.token.part,
        )

    async def _tables(self, viewer: Viewer, context: RecallContext, judged: _Judged) -> Tables:
        """As the results make them; as they are, if there are none. A scorer sees none."""
        if viewer.token.part is not None:
            return Tables()
        if judged.said:
            command = RecordResults(items=tuple(judged.said.values()))
            decided = await self._console.desk.preview(context.live, command)
            return Tables(foreseen=await ask(context, ForeseenQuestion(decided)))
        rankings = context.live.board.rankings
        scored = dict.fromkeys(
            ranking_id
            for row in judged.rows.values()
            for ranking_id in rankings
            if scorings_of([rankings[ranking_id]], row.match)
        )
        shown = [BoardTableQuestion(ranking_id=one, limit=LINES_SHOWN, form=False) for one in scored][:TABLES_SHOWN]
        return Tables(now=[await ask(context, one) for one in shown])


# ── Comparing ───────────────────────────────────────────────────────────────────────────────────────────


def _judged(
    context: RecallContext,
    found: RoundMatches,
    typed: Mapping[CompetitionId, _Typed],
    refused: Mapping[CompetitionId, str],
    *,
    may_postpone: bool,
) -> _Judged:
    """The rows of the sheet, and what is to be recorded of what was typed. `refused`: what cannot be, and why."""
    judged = _Judged(rows={}, said={}, overtaken=[], done=[])
    rankings = context.live.board.rankings.values()
    for competition_id, match in found.matches.items():
        scorings, shown = scorings_of(rankings, match), row_of(match)
        judged.rows[competition_id] = SheetRow(
            competition_id=competition_id,
            match=match,
            typed=shown,
            was=_was(match, shown),
            words=[word for _, one in scorings for word in one.words],
            numeric=sheet.keyboard(scorings),
        )
        its = typed.get(competition_id)
        if shown is not None and its is not None and its.is_changed:
            zone = zone_of(context.publication.presentation.zone)
            try:
                if its.row.how == sheet.POSTPONED and not may_postpone:
                    raise unacceptable([Fault("how", "only organisers postpone")])
                said = recorded(competition_id, match, its.row, scorings, zone)
            except Unacceptable as error:
                _mark(judged, competition_id, its, wrong="; ".join(fault.message for fault in error.faults))
            else:
                _take(judged, competition_id, its, said, refused.get(competition_id), datetime.now(zone))
    return judged


def _take(
    judged: _Judged, competition_id: CompetitionId, its: _Typed, said: RecordResult, refused: str | None, now: datetime
) -> None:
    """Adds what is said of a match, unless somebody must look at it first."""
    match = judged.rows[competition_id].match
    found = () if its.sure else doubts(match.participants, match.date, said.result, said.winner_id, now)
    asked = " ".join(one.message for one in found) or None
    if not sheet.changes(match, said):
        judged.done.append(match.revised)
    elif its.was.partition(" ")[0] != own_tag(match):
        judged.overtaken.append(competition_id)
        row = judged.rows[competition_id]
        judged.rows[competition_id] = replace(row, typed=its.row, other=_OTHERS)
    elif refused is not None or asked is not None:
        _mark(judged, competition_id, its, wrong=refused, asked=asked)
    else:
        judged.said[competition_id] = said
        _mark(judged, competition_id, its)


def _mark(
    judged: _Judged, competition_id: CompetitionId, its: _Typed, *, wrong: str | None = None, asked: str | None = None
) -> None:
    """Shows a row as it was typed."""
    row = judged.rows[competition_id]
    judged.rows[competition_id] = replace(row, typed=its.row, was=its.was, wrong=wrong, asked=asked)


def _typed(form: Form) -> dict[CompetitionId, _Typed]:
    """The rows of a form. Other fields are left out."""
    cells: dict[CompetitionId, dict[str, str]] = {}
    for name, text in form.items():
        if (found := _CELL.fullmatch(name)) is not None:
            cells.setdefault(CompetitionId(int(found[2])), {})[found[1]] = text
    return {
        competition_id: _Typed(
            row=MatchRow(**{name: text.strip() for name, text in its.items() if name in MatchRow.__struct_fields__}),
            was=its.get("was", ""),
            sure="sure" in its,
        )
        for competition_id, its in cells.items()
    }


def _was(match: RoundMatch, shown: MatchRow | None) -> str:
    return f"{own_tag(match)} {'' if shown is None else shown.text}"


def _refuse_readers(viewer: Viewer) -> None:
    """Raises Forbidden unless the viewer may record results, or those of a part."""
    if viewer.token.part is None:
        refuse_beyond_scope(viewer.token, Scope.WRITE)


async def _found(incoming: IncomingRequest, viewer: Viewer, context: RecallContext) -> RoundMatches:
    """The matches of the page; of a scorer, only those of their part."""
    return await ask(context, RoundMatchesQuestion(now=datetime.now(UTC), **_asked(incoming, viewer)))


def _asked(incoming: IncomingRequest, viewer: Viewer) -> dict[str, Any]:
    asked = read_query(incoming.request.query, _FIELDS)
    asked.pop("done", None)
    if (part := viewer.token.part) is not None:
        asked |= {name: value for name, value in asdict(part).items() if value is not None}
    return asked


async def _left(incoming: IncomingRequest, viewer: Viewer, context: RecallContext, found: RoundMatches) -> RoundMatches:
    """With the number of matches that are left in each round by now, unless this round is no longer there."""
    now = await ask(context, RoundMatchesQuestion(now=datetime.now(UTC), **_asked(incoming, viewer) | {"round": None}))
    is_there = found.round is not None and found.round.key in [one.key for one in now.rounds]
    return replace(found, rounds=now.rounds) if is_there else found


def _addressed(incoming: IncomingRequest, found: RoundMatches) -> Query:
    """The query of the page of this round."""
    group = {name: text for name, text in incoming.request.query if name == "group"}
    return group if found.round is None else {**group, "round": found.round.key}


async def _then(incoming: IncomingRequest, viewer: Viewer, context: RecallContext, done: Sequence | None) -> str:
    """The address of the page after everything is saved: of the same round, if there still is one."""
    try:
        query = _addressed(incoming, await _found(incoming, viewer, context))
    except NotFound:
        query = {}
    return address_of(incoming, "/matchday", query if done is None else {**query, "done": str(done)})
