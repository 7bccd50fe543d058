"""Changes of a tournament through forms of the console: those of `changes.py`, and points."""

import re
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, Final, cast

from msgspec import UNSET, json
from msgspec.structs import asdict, replace

from api.desk.fingerprints import fingerprint
from api.http.forms import Form
from api.http.reply import Reply
from api.http.router import IncomingRequest, PathIds
from api.interface.access import refuse_beyond_scope
from api.interface.declarations import RecallContext
from api.interface.doubts import doubts
from api.interface.fields import IDS, ITEMS, Fields, FormReader, read_query
from api.interface.kinds import KindName, create_ranking, kinds
from api.interface.named_winners import refuse_wrong_winner
from api.interface.names import Names
from api.interface.new_match import doubts_about
from api.interface.rendering import encode
from api.web.console import lists_pages
from api.web.console.answering import (
    DONE_FIELD,
    OFFSET_FIELD,
    UNITY_FIELD,
    Console,
    PageAsked,
    address_of,
    page_reply,
    refused_reply,
    see_other,
    venue_of,
)
from api.web.console.beginnings import ADD_COMPETITION, LIKE_FIELD, LIKE_FIELDS, RECORD
from api.web.console.change_page import change_page, mentions_part, preview_part, seen_form
from api.web.console.changes import ADD_POINTS, CREATE_LIKE, REGISTER, Change
from api.web.console.first_steps import STEP_KIND, page_after
from api.web.console.frame import CONSOLE, Viewer, done_message
from api.web.console.import_page import STEP
from api.web.console.inputs import IF_MATCH, KEY, NAMES_FIELD, Filling, new_key
from api.web.console.pickers import with_times
from api.web.console.ranking_page import COMPETITIONS_SUGGESTED, DELTAS_NAME, ENTRY, points_page
from api.web.console.taken_forms import known_names, names_in
from api.web.console.typed_names import with_ids
from api.web.html import element, joined
from engine.domain.commands import AddCompetition, RecordResult
from engine.domain.errors import Fault, TallybookError, Unreadable
from engine.domain.faults import cited, unacceptable
from engine.domain.names import caseless_key
from engine.domain.scoring import winner_by_score
from engine.domain.terms import CompetitionId, CompetitorId, RankingId
from engine.process.time_slices import in_time_slices
from projections.answers.board_table import BoardTableQuestion
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.competitors import CompetitorListQuestion
from projections.answers.erasure import ErasureQuestion
from projections.answers.rankings import ListedUnity
from projections.answers.view import View, ask
from projections.answers.zones import with_days, zone_of

_POINTS_QUERY: Final[Fields] = (UNITY_FIELD, OFFSET_FIELD)


class ChangeHandlers:
    """Shows forms, and makes the requested changes through `Handlers.perform`."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def form(self, change: Change, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, change.scope)
        read_query(incoming.request.query, (DONE_FIELD,))
        return await self._form_page(change, incoming, viewer, None)

    async def _form_page(
        self,
        change: Change,
        incoming: IncomingRequest,
        viewer: Viewer,
        refused: Filling | None,
        asked: str | None = None,
    ) -> bytes:
        """The page of a change. `refused`: the form as it was sent, with its faults, if it has any. `asked`: a question
        about it."""
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            ids = incoming.ids
            beginning, venue = await change.begin(context, ids), await venue_of(context, incoming)
            if asked is not None:
                question = element("p", venue.sport(asked), class_="warning")
                beginning = replace(beginning, at_once=False, shown=joined((question, beginning.shown)))
            filling = replace(
                refused or Filling(key=new_key(), given=beginning.given),
                if_match=beginning.if_match if refused is None or refused.if_match is None else refused.if_match,
                options=beginning.options,
                labels=beginning.labels,
                sport=venue.sport,
                zone=_zone_of(context),
            )
            address, back = address_of(incoming, change.path), address_of(incoming, change.back)
            if change.page is not None:
                return change.page(viewer, venue, beginning, filling, address, back)
            previewed = None
            is_shown = (refused is None) is not change.looks_at_form and not filling.message and not beginning.at_once
            if change.preview is not None and is_shown:
                sent = await self._read(change, filling.given, context, ids) if change.looks_at_form else None
                foreseen = await self._console.handlers.preview(incoming, change.preview, viewer.token, sent)
                previewed = preview_part(context.names, foreseen)
            if change.mentions and not filling.message:
                previewed = mentions_part(await ask(context, ErasureQuestion(ids["competitor_id"])))
            competitors = None
            if change.with_competitors and any(field.type is IDS for field in change.fields(beginning)):
                competitors = await ask(context, CompetitorListQuestion(limit=lists_pages.ITEMS_SHOWN))
            return change_page(
                viewer,
                venue,
                competitors,
                change,
                beginning,
                filling,
                address=address,
                back=back,
                previewed=previewed,
                said=done_message(dict(incoming.request.query)),
            )

    async def change(self, change: Change, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, change.scope)
        form = change.tidy(await self._console.body(incoming))
        key, if_match, seen = form.pop(KEY, ""), form.pop(IF_MATCH, None), form.pop(STEP, None)
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                is_seen = not change.looks_at_form or seen == seen_form(form)
                read = await self._read(change, form, context, incoming.ids)
                asked = None if is_seen else await _question(change, read, context, incoming.ids)
                at_once = (await change.begin(context, incoming.ids)).at_once and asked is None
            if not is_seen and not at_once:
                filling = Filling(key=key or new_key(), given=form)
                return page_reply(await self._form_page(change, incoming, viewer, filling, asked))
            receipt = await self._console.handlers.perform(
                incoming, change.operation, viewer.token, {**read, **change.fixed}, key=key, if_match=if_match
            )
        except TallybookError as error:
            return await refused_reply(
                partial(self._form_page, change), incoming, viewer, error, key=key, form=form, if_match=if_match
            )
        if change.leaves:
            return see_other(CONSOLE)
        then = change.back if change.made is None else change.made.format_map(asdict(receipt.event))
        if change.step is not None:
            then = await self._page_after(incoming, viewer, change.step, then)
        return see_other(address_of(incoming, then, {"done": str(receipt.last_sequence)}))

    async def _page_after(self, incoming: IncomingRequest, viewer: Viewer, step: int, otherwise: str) -> str:
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            return page_after(context, viewer, step, otherwise)

    async def _read(self, change: Change, form: Form, context: RecallContext, ids: PathIds) -> Form:
        """The form as the operation takes it. Raises Unacceptable."""
        operation, names = change.operation, Names(context.live.board)
        read = with_times(operation.fields, change.read(form, context, ids), _zone_of(context))
        read = await in_time_slices(with_ids(names, operation.command, operation.fields, read))
        if operation is not RECORD or not context.is_scored:
            return read
        competition_id = CompetitionId(ids["competition_id"])
        participants = context.competition(competition_id).participants
        if "participants" in read:
            participants = tuple([CompetitorId(int(one)) for one in re.findall("[0-9]+", read["participants"])])
        read = with_winner(participants, read)
        said = RecordResult(competition_id=CompetitionId(0), of=competition_id, **FormReader(RECORD.fields).read(read))
        await in_time_slices(refuse_wrong_winner(context.live.board, said))
        return read

    async def create_like(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Creates a ranking of a known kind. A form that is sent again adds only what is still missing."""
        refuse_beyond_scope(viewer.token, CREATE_LIKE.scope)
        form = await self._console.body(incoming)
        key = form.pop(KEY, "") or new_key()
        try:
            kind = kinds().get(cast("KindName", form.get(LIKE_FIELD.name)))
            if kind is None:
                raise unacceptable([Fault(LIKE_FIELD.name, "must be one of the kinds listed")])
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                chosen = CREATE_LIKE.read(form, context, incoming.ids)
                taken = tuple([one for one in LIKE_FIELDS if one.name != "participants" or NAMES_FIELD not in form])
                rest = {one.name: chosen[one.name] for one in taken if one.name in chosen}
                named = with_ids(Names(context.live.board), CREATE_LIKE.operation.command, taken, rest)
                fields = FormReader(taken).read(await in_time_slices(named))
                if NAMES_FIELD in form:
                    fields["participants"] = await self._registered(incoming, viewer, context, form, key)
                _, last = await create_ranking(
                    self._console.desk,
                    context.live,
                    kind,
                    **fields,
                    actor=viewer.token.token_id,
                    key=key,
                    fingerprint=fingerprint("POST", incoming.request.path, form),
                )
        except TallybookError as error:
            return await refused_reply(
                partial(self._form_page, CREATE_LIKE), incoming, viewer, error, key=key, form=form
            )
        then = await self._page_after(incoming, viewer, STEP_KIND, "")
        return see_other(address_of(incoming, then, {"done": str(last)}))

    async def _registered(
        self, incoming: IncomingRequest, viewer: Viewer, context: RecallContext, form: Form, key: str
    ) -> tuple[CompetitorId, ...]:
        """Those who have the names in the form, of whom the unknown ones are registered. Raises Unacceptable."""
        names, there = names_in(form), known_names(context)
        if new := [{"name": name} for name in names if caseless_key(name) not in there]:
            read = {ITEMS: encode(new).decode()}
            await self._console.handlers.perform(
                incoming, REGISTER, viewer.token, read, key=f"{key}-names", if_match=None
            )
            there = known_names(context)
        found = [there[one] for one in map(caseless_key, names) if one in there]
        if len(found) < len(names):
            raise unacceptable([Fault(NAMES_FIELD, "too many are there already; choose who plays from the list")])
        return tuple(found)

    async def points_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, ADD_POINTS.scope)
        return await self._points_page(incoming, viewer, Filling(key=new_key()))

    async def _points_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            asked = PageAsked(incoming, _POINTS_QUERY)
            ranking_id = RankingId(asked.ids["ranking_id"])
            unity_id = context.unity(ranking_id, asked.arguments.get("unity_id")).id
            offset = asked.arguments.get("offset", 0)
            shown = BoardTableQuestion(ranking_id=ranking_id, unity_id=unity_id, offset=offset)
            table = await ask(context, shown)
            venue = await venue_of(context, incoming)
            newest = await ask(context, CompetitionListQuestion(newest_first=True, limit=COMPETITIONS_SUGGESTED))
            return points_page(viewer, venue, context, table, newest, filling, asked.query)

    async def add_points(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, ADD_POINTS.scope)
        unity_id = PageAsked(incoming, _POINTS_QUERY).arguments.get("unity_id")
        form = await self._console.body(incoming)
        key = form.pop(KEY, "")
        try:
            if unity_id is None:
                raise Unreadable("The address must say which unity the points are of; open the form again.")
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                ranking_id = RankingId(incoming.ids["ranking_id"])
                read, faults = points_form(form, context.unity(ranking_id, unity_id))
                named = with_ids(Names(context.live.board), ADD_POINTS.command, ADD_POINTS.fields, read, faults)
                read = await in_time_slices(named)
            receipt = await self._console.handlers.perform(
                incoming, ADD_POINTS, viewer.token, read, key=key, if_match=None
            )
        except TallybookError as error:
            return await refused_reply(self._points_page, incoming, viewer, error, key=key, form=form)
        query = {"unity": str(unity_id), "added": "1", "done": str(receipt.last_sequence)}
        return see_other(address_of(incoming, "/rankings/{ranking_id}", query))


def _zone_of(view: View) -> tzinfo:
    return zone_of(view.publication.presentation.zone)


async def _question(change: Change, read: Form, context: RecallContext, ids: PathIds) -> str | None:
    """What a new match or result should be asked about before it is recorded; None: nothing."""
    if change.operation is ADD_COMPETITION:
        made = AddCompetition(competition_id=CompetitionId(0), **FormReader(ADD_COMPETITION.fields).read(read))
        made = with_days(context.live.board, made)
        return " ".join([one.message for one in await doubts_about(context, made, datetime.now(UTC))]) or None
    if change.operation is not RECORD:
        return None
    competition_id = CompetitionId(ids["competition_id"])
    match, fields = context.competition(competition_id), FormReader(RECORD.fields).read(read)
    said = RecordResult(competition_id=competition_id, **fields)
    if said.result in (UNSET, match.result):
        return None
    begins = match.date if said.started_at is UNSET else said.started_at
    found = doubts(match.participants, begins, said.result, said.winner_id, datetime.now(_zone_of(context)))
    return " ".join(one.message for one in found) or None


def with_winner(participants: tuple[CompetitorId, ...], form: Form) -> Form:
    """The form of a result, with the winner of the score unless it names one."""
    if form.get("winner"):
        return form
    winner = winner_by_score(participants, form.get("result"))
    return {**form, "winner": "" if winner is None else str(winner)}


def points_form(form: Form, unity: ListedUnity) -> tuple[Form, list[Fault]]:
    """The form that the operation takes, from a field for each competitor, and the faults of text that is not a number
    in the notation of the unity, or too large for it. Empty fields add nothing."""
    notation, most = unity.notation, unity.counts.most
    lines: list[dict[str, Any]] = []
    faults: list[Fault] = []
    rest: dict[str, str] = {}
    for name, text in form.items():
        if (entry := ENTRY.fullmatch(name)) is None:
            rest[name] = text
        elif text := text.strip():
            try:
                amount = notation.number(text)
                if abs(amount) > most:
                    raise ValueError(f"is not within ±{notation.text(most)}")
            except ValueError as error:
                faults.append(Fault(DELTAS_NAME, f"{cited(text)}, for competitor {entry[1]}, {error}"))
            else:
                delta = {"unity_id": unity.id, "delta": str(amount)}
                lines.append({"competitor_id": int(entry[1]), "unities": [delta]})
    return {**rest, DELTAS_NAME: json.encode(lines).decode() if lines else ""}, faults
