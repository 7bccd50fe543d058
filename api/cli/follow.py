"""The command that follows a tournament."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli.names import RankingText
from api.cli.plain import write
from api.cli.where import HERE, Slug, Where, desk_at, tournament_at
from api.desk.desk import Desk
from api.interface.names import Names
from api.interface.resources.stream import first_after, parse_start
from api.stream.followers import NEWS_SECONDS
from api.stream.frames import SET_ASIDE, Frame, StreamFormat, Wanted
from api.stream.pace import SPEED_MAX, Pace
from engine.domain.errors import Conflict, Unacceptable
from engine.domain.terms import Sequence
from engine.domain.times import timestamp
from engine.log import undecoded
from engine.log.heads import Head
from projections.answers.view import View

_SPEED: Final = Number(gt=0, lte=SPEED_MAX)
Speed = Annotated[float | None, Parameter(validator=_SPEED)]


async def follow(
    slug: Slug,
    /,
    *,
    after: str | None = None,
    ranking: RankingText | None = None,
    speed: Speed = None,
    until: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    after
        Begin after this event: its sequence or its id. "head": only new events. Without it: all events.
    ranking
        Only events of this ranking: its id or its name.
    speed
        Play the past with its pauses, this many times as fast. No pause is longer than 5 seconds.
    until
        End with the event of this sequence. Without it, the command continues until it is stopped.
    json
        Print each event as the stream has it over HTTP, one JSON object a line.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        wanted = Wanted()
        if ranking is not None:
            ranking_id = Names(view.live.board).ranking(ranking)
            view.ranking(ranking_id)
            wanted = Wanted(ranking_id)
        last = None if until is None else Sequence(until)
        async for frame in _frames(desk, view, await _start(desk, view, after), Pace(speed), last):
            if wanted.lets_through(frame):
                write(frame.sent_as(StreamFormat.NDJSON).decode() if json else _line(frame))


async def _start(desk: Desk, view: View, after: str | None) -> Head:
    start = None if after is None else parse_start(after)
    if after is not None and start is None:
        raise Unacceptable('--after takes the id of an event, a sequence, or "head".')
    first = await first_after(desk.database, view.live, start, view.live.head.sequence)
    if first is None:
        raise Conflict("This id belongs to another log, or to one that has changed since; follow without --after.")
    return first


async def _frames(desk: Desk, view: View, after: Head, pace: Pace, last: Sequence | None) -> AsyncIterator[Frame]:
    """The events that follow, as they are committed, up to `last`. Raises as `LivePool.make_current`, and LogForked."""
    clock = asyncio.get_running_loop().time
    while True:
        while after.sequence < view.live.head.sequence:
            async with desk.database.connection() as connection:
                span = undecoded.EventSpan(after, view.live.head.sequence, view.live.head)
                events = await undecoded.stored(connection, view.live.tournament_id, span)
            for stored in events:
                if (seconds := pace.pause_before(stored.recorded_at, clock())) > 0:
                    await asyncio.sleep(seconds)
                yield Frame(stored)
                after = Head(stored.sequence, stored.digest)
                if last is not None and stored.sequence >= last:
                    return
        if last is not None and after.sequence >= last:
            return
        await asyncio.sleep(NEWS_SECONDS)
        await desk.live_pool.make_current(view.live)


def _line(frame: Frame) -> str:
    stored = frame.stored
    kind, body = (SET_ASIDE, "") if stored.kind is None else (stored.kind, stored.body)
    return f"{stored.sequence:>8}  {timestamp(stored.recorded_at)}  {kind}  {body}\n"
