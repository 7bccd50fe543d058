"""The stream of a published tournament, without a token: the stream of a log that ends at the public end."""

from typing import Final

from api.http.reply import STREAMED, Reply
from api.http.router import IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.interface.declarations import Stream
from api.interface.fields import read_query
from api.interface.public.reads import PUBLIC
from api.interface.public.view import PublicViews
from api.interface.resources.stream import AFTER, StreamQuestion, first_after, format_of, start_of
from api.interface.resources.tournaments import SLUG_CHARACTERS_LOGGED
from api.stream.followers import Streams, Visitor
from api.stream.frames import reset
from api.stream.listeners import UNBUFFERED, Asked, StreamReply
from api.stream.public_frames import PUBLIC_LOG
from engine.database.pool import Database
from engine.domain.errors import HistoryReplaced
from engine.domain.terms import Sequence
from engine.log import heads
from engine.log.heads import Head
from projections.live.tournament import LiveTournament

PUBLIC_EVENTS: Final = Stream("events", "Stream public changes as they happen", "followPublicEvents", (AFTER,))


def add_to(
    router: Router,
    views: PublicViews,
    streams: Streams,
    database: Database,
    *,
    visits: Throttle | None,
    proxies: int,
) -> None:
    """Adds the stream. `visits` counts the requests of each address, if they are counted."""

    async def follow(incoming: IncomingRequest) -> Reply:
        request, slug = incoming.request, incoming.parameters["tournament"]
        incoming.facts["tournament"] = slug[:SLUG_CHARACTERS_LOGGED]
        visitor = Visitor(address_of(request, proxies=proxies))
        if visits is not None:
            visits.take(visitor.address)
        question = StreamQuestion(**read_query(request.query, PUBLIC_EVENTS.fields))
        form = format_of(request)
        start = start_of(request, question)
        async with views.published(slug) as (live, end):
            streams.refuse_more(live.tournament_id, PUBLIC_LOG, visitor)
            head = await _head_at(database, live, end)
            after = await first_after(database, live, start, end, PUBLIC_LOG)
            if live.dropped or head is None:
                raise HistoryReplaced
            if after is None or request.method == "HEAD":
                body = b"" if after is not None else reset(form, head, PUBLIC_LOG)
                return Reply(body, media_type=form, headers=UNBUFFERED, kept=STREAMED)
            asked = Asked(form=form, after=after, end=head, opener=visitor, streamed=PUBLIC_LOG)
            return StreamReply(streams, live, asked, incoming.facts)

    router.add("GET", PUBLIC + PUBLIC_EVENTS.path, follow)


async def _head_at(database: Database, live: LiveTournament, end: Sequence) -> Head | None:
    """The event `end`, with the digest of its block; None: the log no longer has it."""
    if end == live.head.sequence:
        return live.head
    async with database.connection_for(live.tournament_id) as connection:
        block = await heads.block_around(connection, live.tournament_id, end)
    return None if block is None else Head(end, block[0])
