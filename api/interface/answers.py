"""What goes out over HTTP: the shapes of the interface, rendered from a board.

Each piece is rendered once per change, not once per request. It is kept with its live until what it shows has changed,
so all requests of a batch share the same bytes. The functions return the whole body of an answer, or, if that is long,
how to begin it. The board is folded in place while others have their turn. So a long answer first takes hold of what it
shows (frozen values as they are, copies of totals), and is then rendered step by step while it is sent.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final, TypeVar, assert_never

import msgspec
from msgspec import Raw, Struct

from api.http.outgoing import LONG_BYTES, Later, Long, Made, Part, Taken, joined, regrouped, tag
from api.interface import shapes
from api.interface.wire import Page
from engine.domain import events
from engine.domain.events import Event
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import FOLD_VERSION, Competition, Ranking, Unity
from projections.board.hierarchy import NestedSetBounds, walk
from projections.board.standing import ordered, placed, standings
from projections.live.live import Live

LINES_AT_ONCE_MAX: Final = 4_000
"""Competitors and lines of standings that are rendered in one go; each takes 1 to 2 µs."""
PIECES_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of the shapes of single competitors that are kept for one tournament. Others are rendered when they are
shown."""
LINES_OF_PORTION: Final = 1_000
"""Lines of a standing that are rendered as one step of a long answer."""

_encode: Final = msgspec.json.Encoder().encode
_T = TypeVar("_T")


def whole(body: "bytes | Listing | Later") -> bytes:
    """The body of an answer in one piece, for callers that need not give way to others."""
    if isinstance(body, bytes):
        return body
    return body.body if isinstance(body, Listing) else b"".join(body().portions())


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────


class Listing(Struct, frozen=True):
    """The body of a list, and the strong ETag that stands for just these bytes."""

    body: bytes
    etag: str


def rankings(live: Live) -> Listing | Later:
    """Every ranking of the tournament, in the list shape."""

    def render() -> Listing | None:
        rankings = live.board.rankings
        if sum([len(ranking.participants) for ranking in rankings.values()]) > LINES_AT_ONCE_MAX:
            return None
        listed, size = [], 0
        for ranking_id, ranking in rankings.items():
            enrolled = _enrolled(live, ranking_id, ranking)
            listed.append(_listed_ranking(ranking_id, ranking, enrolled))
            size += len(listed[-1])
            if not enrolled or size > LONG_BYTES:
                return None
        return _listing(_envelope("ok", "rankings", b'{"ranking":[%b]}' % b",".join(listed)))

    stamp = live.revisions.competitors, live.revisions.rankings
    return live.rendered("rankings", stamp, render, _size) or _later(live, ("rankings",), _take_rankings)


def competitors(live: Live, page: Page) -> Listing | Later:
    """One page of the competitors, in the order of their registration."""

    def around(live: Live) -> tuple[bytes, bytes]:
        paging = _paging(page, len(live.board.competitors))
        return _around("competitors", shapes.Competitors(competitor=[], **paging), "competitor")

    def render() -> Listing | None:
        pieces = _competitor_pieces(live)
        if not pieces.ready:
            return None
        shown, size = [], 0
        for competitor_id in _on_page(live.board.competitors, page):
            shown.append(pieces[competitor_id])
            size += len(shown[-1])
            if size > LONG_BYTES:
                return None
        return _listing(b",".join(shown).join(around(live)))

    def take(live: Live) -> _Taking:
        pieces = _competitor_pieces(live).frozen()
        shown = _on_page(live.board.competitors, page)
        before, after = around(live)

        def make() -> Iterator[bytes]:
            yield before
            yield from joined(pieces.of(shown))

        return make, (pieces,), after

    if _is_past_the_end(page, len(live.board.competitors)):
        return _listing(b"".join(around(live)))
    kept = live.rendered(("competitors", page), live.revisions.competitors, render, _size)
    return kept or _later(live, ("competitors", page.page, page.per_page), take)


def competitions(live: Live, page: Page) -> Listing | Later:
    """One page of the competitions, in the order of their creation."""

    def around(live: Live) -> tuple[bytes, bytes]:
        paging = _paging(page, len(live.board.competitions))
        return _around("competitions", shapes.Competitions(competition=[], **paging), "competition")

    def render() -> Listing | None:
        found = _on_page(live.board.competitions.items(), page)
        pieces = _competitor_pieces(live)
        if not pieces.ready or sum([len(one.participants) for _, one in found]) > LINES_AT_ONCE_MAX:
            return None
        shown, size = [], 0
        for competition_id, competition in found:
            shown.append(b"".join(_competition(pieces, competition_id, competition)))
            size += len(shown[-1])
            if size > LONG_BYTES:
                return None
        return _listing(b",".join(shown).join(around(live)))

    def take(live: Live) -> _Taking:
        pieces = _competitor_pieces(live).frozen()
        shown = _on_page(live.board.competitions.items(), page)
        before, after = around(live)

        def make() -> Iterator[bytes]:
            yield before
            yield from pieces.steps()
            yield from regrouped(_listed(_competition(pieces, *one) for one in shown))

        return make, (pieces,), after

    if _is_past_the_end(page, len(live.board.competitions)):
        return _listing(b"".join(around(live)))
    stamp = live.revisions.competitors, live.revisions.competitions
    kept = live.rendered(("competitions", page), stamp, render, _size)
    return kept or _later(live, ("competitions", page.page, page.per_page), take)


def _is_past_the_end(page: Page, total: int) -> bool:
    """Whether the page lies past the end. Such a page is not kept: there is no end to their number."""
    return (page.page - 1) * page.per_page >= total


def _listing(body: bytes) -> Listing:
    return Listing(body, hashlib.sha256(body).hexdigest()[:32])


def _on_page(items: Collection[_T], page: Page) -> list[_T]:
    """The items of a page that is not past the end. Beyond it, the start may be a number that islice does not take."""
    start = (page.page - 1) * page.per_page
    return list(islice(items, start, start + page.per_page))


def _paging(page: Page, total: int) -> dict[str, int]:
    pages = max(1, -(-total // page.per_page))
    return {"page": page.page, "pages": pages, "perpage": page.per_page, "total": total}


# ── What a change is answered with ──────────────────────────────────────────────────────────────────────


def change(live: Live, event: Event) -> bytes | Later:
    """The answer to the request that led to `event`: the resource it made or changed, as it is now."""
    match event:
        case events.PointsAdded() | events.RankingModified() | events.RankingClosed() | events.RankingReopened():
            return modified_ranking(live, event.ranking_id)
        case events.RankingCreated():
            return one_ranking(live, "added", event.ranking_id)
        case events.UnityAdded():
            unity = live.board.rankings[event.ranking_id].unities[event.unity_id]
            return _envelope("added", "unity", _encode(_listed_unity(event.unity_id, unity, unity.name)))
        case events.CompetitorRegistered():
            return one_competitor(live, "added", event.competitor_id)
        case events.CompetitorChanged():
            return one_competitor(live, "ok", event.competitor_id)
        case events.CompetitionAdded():
            return one_competition(live, "added", event.competition_id)
        case events.CompetitionChanged() | events.CompetitionVoided() | events.CompetitionUnvoided():
            return one_competition(live, "ok", event.competition_id)
        case events.TournamentOpened() | events.PointsReversed() | events.EventSetAside() | events.Ignored():
            raise AssertionError("no request begins with it")
        case _:
            assert_never(event)


def modified_ranking(live: Live, ranking_id: RankingId) -> bytes | Later:
    """One ranking with its standings, in the modification shape."""

    def render() -> bytes:
        ranking = live.board.rankings[ranking_id]
        lines = len(ranking.participants) * len(ranking.unities)
        before = _before_unities(live, ranking_id, ranking) if lines <= 2 * LINES_AT_ONCE_MAX else b""
        if not before:
            return b""
        standings_of = [_standing_unity(live, ranking, u, unity) for u, unity in ranking.unities.items()]
        return b'%b,"unities":[%b]}}' % (before, b",".join(standings_of))

    return live.rendered(("modified", ranking_id), live.head.sequence, render, len) or _later(
        live, ("modified", ranking_id), lambda live: _take_modified(live, ranking_id)
    )


def one_ranking(live: Live, message: str, ranking_id: RankingId) -> bytes | Later:
    """One ranking, in the list and creation shape."""
    ranking = live.board.rankings[ranking_id]
    enrolled = _enrolled(live, ranking_id, ranking)
    if enrolled:
        return _envelope(message, "ranking", _listed_ranking(ranking_id, ranking, enrolled))
    return _later(live, ("ranking", message, ranking_id), lambda live: _take_rankings(live, ranking_id, message))


def one_competitor(live: Live, message: str, competitor_id: CompetitorId) -> bytes | Later:
    pieces = _competitor_pieces(live)
    if pieces.ready:
        return _envelope(message, "competitor", pieces[competitor_id])

    def take(live: Live) -> _Taking:
        pieces = _competitor_pieces(live).frozen()

        def make() -> Iterator[bytes]:
            yield from pieces.steps()
            yield _envelope(message, "competitor", pieces[competitor_id]).removesuffix(b"}")

        return make, (pieces,), b"}"

    return _later(live, ("competitor", message, competitor_id), take)


def one_competition(live: Live, message: str, competition_id: CompetitionId) -> bytes | Later:
    pieces = _competitor_pieces(live)
    competition = live.board.competitions[competition_id]
    if pieces.ready and len(competition.participants) <= LINES_AT_ONCE_MAX:
        found, size = [], 0
        for piece in _competition(pieces, competition_id, competition):
            found.append(piece)
            size += len(piece)
            if size > LONG_BYTES:
                break
        else:
            return _envelope(message, "competition", b"".join(found))

    def take(live: Live) -> _Taking:
        pieces = _competitor_pieces(live).frozen()
        competition = live.board.competitions[competition_id]

        def make() -> Iterator[bytes]:
            yield _envelope(message, "competition", b"").removesuffix(b"}")
            yield from pieces.steps()
            yield from regrouped(_competition(pieces, competition_id, competition))

        return make, (pieces,), b"}"

    return _later(live, ("competition", message, competition_id), take)


# ── Long answers ────────────────────────────────────────────────────────────────────────────────────────

_Taking = tuple[Callable[[], Iterator[bytes]], tuple[Part, ...], bytes]
"""What a long answer has taken hold of: how to make it, its parts, and its last bytes."""


def _later(live: Live, question: tuple[object, ...], take: Callable[[Live], _Taking]) -> Later:
    """The long answer to `question`. All who begin it at the same head share it."""

    def begin() -> Long:
        make, parts, end = take(live)
        head = live.head
        etag = tag(FOLD_VERSION, live.tournament_id, head.sequence, head.digest, *question)
        return Long(make, parts, end=end, etag=etag, head=head)

    return lambda: live.shared(question, begin)


def _take_rankings(live: Live, only: RankingId | None = None, message: str = "ok") -> _Taking:
    """All rankings in a list, or one by itself. Takes everything of a ranking and its unities that may change."""
    pieces = _competitor_pieces(live).frozen()
    taken = [
        (
            shapes.ListedRanking(
                id=ranking_id,
                name=ranking.name,
                description=ranking.description,
                closed_at=_timestamp_or_none(ranking.closed_at),
                general=ranking.number == 1,
                position=str(ranking.number),
                unities=[],
                competitors=Raw(b"[]"),
            ),
            next(iter(ranking.unities.values())).name,
            tuple(ranking.unities.items()),
            ranking.participants,
        )
        for ranking_id, ranking in live.board.rankings.items()
        if only in (None, ranking_id)
    ]

    def one(
        shape: shapes.ListedRanking,
        main_name: str,
        unities: tuple[tuple[UnityId, Unity], ...],
        participants: tuple[CompetitorId, ...],
    ) -> Iterator[bytes]:
        shape = msgspec.structs.replace(
            shape,  # only the name of the main unity can change
            unities=[_listed_unity(u, unity, unity.name if n else main_name) for n, (u, unity) in enumerate(unities)],
        )
        yield _encode(shape).removesuffix(b"]}")
        yield from joined(pieces.of(participants))
        yield b"]}"

    def make() -> Iterator[bytes]:
        yield from pieces.steps()
        if only is None:
            yield b'{"status":200,"message":"ok","rankings":{"ranking":['
        else:
            yield b'{"status":200,"message":"%b","ranking":' % message.encode()
        yield from regrouped(_listed(one(*ranking) for ranking in taken))

    size = sum([_TAKEN_BYTES + 8 * len(unities) for _, _, unities, _ in taken])
    return make, (pieces, Taken(size)), b"]}}" if only is None else b"}"


_TAKEN_BYTES: Final = 600


def _take_modified(live: Live, ranking_id: RankingId) -> _Taking:
    ranking = live.board.rankings[ranking_id]
    participants = ranking.participants
    pieces = _competitor_pieces(live).frozen()
    stamp = live.revisions.competitors, live.revisions.rankings
    enrolled = live.part(
        ("part enrolled", ranking_id),
        stamp,
        lambda: Made(joined(pieces.of(participants)), _PIECE_BYTES * len(participants)),
    )
    standings_of = [
        live.part(("part unity", unity_id), unity.version, partial(_standing_part, participants, unity))
        for unity_id, unity in ranking.unities.items()
    ]
    before = _ranking_before_unities(ranking_id, ranking, b"[]").removesuffix(b"]")

    def make() -> Iterator[bytes]:
        yield from pieces.steps()
        yield before
        yield from enrolled.portions()
        yield b'],"unities":['
        yield from _listed(standing.portions() for standing in standings_of)

    return make, (pieces, enrolled, *standings_of), b"]}}"


def _standing_part(participants: tuple[CompetitorId, ...], unity: Unity) -> Made:
    totals, sort = dict(unity.totals), unity.sort
    shape = shapes.StandingUnity(
        name=unity.name, version=unity.version, competitors_ranking=[], general=unity.number == 1
    )

    def portions() -> Iterator[bytes]:
        lines = ordered(participants, totals, sort)
        yield b""
        before, _, after = _encode(shape).partition(b'"competitors_ranking":[')
        yield b'%b"competitors_ranking":[' % before
        above = None
        for start in range(0, len(lines), LINES_OF_PORTION):
            run = placed(lines[start : start + LINES_OF_PORTION], start + 1, above)
            above = run[-1]
            yield (b"," if start else b"") + _encode(run)[1:-1]
        yield after

    return Made(portions(), _STANDING_BYTES * max(len(participants), len(totals)))


_STANDING_BYTES: Final = 64
"""Bytes of a line of a standing, or, before it is made, of what it is made from."""


def _listed(items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """The items with commas between them; each is itself made piece by piece."""
    comma = b""
    for item in items:
        if comma:
            yield comma
        yield from item
        comma = b","


# ── Pieces ──────────────────────────────────────────────────────────────────────────────────────────────


def _before_unities(live: Live, ranking_id: RankingId, ranking: Ranking) -> bytes:
    """The modification shape up to its unities, which come last. Points change nothing in it. Empty: it is long."""

    def render() -> bytes:
        enrolled = _enrolled(live, ranking_id, ranking)
        return enrolled and _ranking_before_unities(ranking_id, ranking, enrolled)

    stamp = live.revisions.competitors, live.revisions.rankings
    return live.rendered(("before unities", ranking_id), stamp, render, len)


def _ranking_before_unities(ranking_id: RankingId, ranking: Ranking, enrolled: bytes) -> bytes:
    shape = shapes.RankingBeforeUnities(
        id=ranking_id,
        name=ranking.name,
        description=ranking.description,
        closed_at=_timestamp_or_none(ranking.closed_at),
        competitors=Raw(enrolled),
    )
    return _envelope("ok", "ranking", _encode(shape)).removesuffix(b"}}")


def _listed_ranking(ranking_id: RankingId, ranking: Ranking, enrolled: bytes) -> bytes:
    return _encode(
        shapes.ListedRanking(
            id=ranking_id,
            name=ranking.name,
            description=ranking.description,
            closed_at=_timestamp_or_none(ranking.closed_at),
            general=ranking.number == 1,
            position=str(ranking.number),
            unities=[_listed_unity(unity_id, unity, unity.name) for unity_id, unity in ranking.unities.items()],
            competitors=Raw(enrolled),
        )
    )


def _listed_unity(unity_id: UnityId, unity: Unity, name: str) -> shapes.ListedUnity:
    return shapes.ListedUnity(
        id=unity_id,
        name=name,
        position=unity.number,
        general=unity.number == 1,
        sort=unity.sort.value,
    )


def _standing_unity(live: Live, ranking: Ranking, unity_id: UnityId, unity: Unity) -> bytes:
    """Every change of what this shows raises the version, so the version tells whether it still holds."""

    def render() -> bytes:
        lines = standings(ranking.participants, unity.totals, unity.sort)
        return _encode(
            shapes.StandingUnity(
                name=unity.name, version=unity.version, competitors_ranking=lines, general=unity.number == 1
            )
        )

    if len(ranking.unities) == 1:
        return render()  # it is what has changed: keeping it beside the whole gains nothing
    return live.rendered(("unity", unity_id), unity.version, render, len)


def _enrolled(live: Live, ranking_id: RankingId, ranking: Ranking) -> bytes:
    """The list of the ranking's competitors. Empty: it is long."""

    def render() -> bytes:
        pieces = _competitor_pieces(live)
        if not pieces.ready or len(ranking.participants) > LINES_AT_ONCE_MAX:
            return b""
        found, size = [], 0
        for competitor_id in ranking.participants:
            found.append(pieces[competitor_id])
            size += len(found[-1])
            if size > LONG_BYTES:
                return b""
        return b"[%b]" % b",".join(found)

    stamp = live.revisions.competitors, live.revisions.rankings
    return live.rendered(("enrolled", ranking_id), stamp, render, len)


class _Pieces(dict[CompetitorId, bytes]):
    """The shapes of all competitors, each rendered when it is first asked for: of thousands, it may be the only one. If
    they are not `ready`, go through the `steps` first."""

    def __init__(self, live: Live) -> None:
        self._competitors = live.board.competitors
        self._is_frozen = False
        self._kept_bytes = 0
        self._bounds: dict[CompetitorId, NestedSetBounds] = {}
        self._walk: Iterator[None] | None = None
        if any(live.tournament.competitors.values()):  # else there are only roots, whose bounds follow from the order
            self._walk = walk(dict(live.tournament.competitors), self._bounds)
            if len(self._competitors) <= LINES_AT_ONCE_MAX:
                for _ in self.steps():
                    pass

    @property
    def ready(self) -> bool:
        return self._walk is None

    def steps(self) -> Iterator[bytes]:
        """Empty portions, one for each step. Others who go through them at the same time do some of the steps."""
        while self._walk is not None:
            if next(self._walk, True):
                self._walk = None
            yield b""

    def frozen(self) -> "_Pieces":
        """These pieces, which now stay as they are, whatever is folded into the board."""
        if not self._is_frozen:
            self._competitors = dict(self._competitors)
            self._is_frozen = True
        return self

    def of(self, competitor_ids: Iterable[CompetitorId]) -> Iterator[bytes]:
        """The steps, then the pieces of these competitors."""
        yield from self.steps()
        for competitor_id in competitor_ids:
            yield self[competitor_id]

    def __missing__(self, competitor_id: CompetitorId) -> bytes:
        competitor = self._competitors[competitor_id]
        place = self._bounds.get(competitor_id) or NestedSetBounds(0, 2 * competitor.number - 1, 2 * competitor.number)
        piece = _encode(
            shapes.Competitor(
                id=competitor_id,
                name=competitor.name,
                tags=[shapes.Tag(tag) for tag in competitor.tags],
                color=competitor.color,
                level=place.level,
                lft=place.lft,
                rgt=place.rgt,
                created_at=timestamp(competitor.created_at),
                updated_at=timestamp(competitor.updated_at),
            )
        )
        size = len(piece) + _PIECE_OVERHEAD_BYTES
        if self._kept_bytes + size <= PIECES_BYTES_MAX:
            self._kept_bytes += size
            self[competitor_id] = piece
        return piece

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, as if all pieces had been asked for."""
        number = len(self._competitors)
        pieces = min(PIECES_BYTES_MAX, max(self._kept_bytes, _PIECE_BYTES * number))
        return pieces + number * (_FROZEN_BYTES * self._is_frozen + _BOUNDS_BYTES * bool(self._bounds or self._walk))


_PIECE_BYTES: Final = 400
"""Bytes of the piece of a competitor with an ordinary name and few tags."""
_PIECE_OVERHEAD_BYTES: Final = 120
_FROZEN_BYTES: Final = 50
_BOUNDS_BYTES: Final = 250


def _competitor_pieces(live: Live) -> _Pieces:
    """The pieces of all competitors, made anew after a change of one: it may move the bounds of all."""
    return live.part("pieces", live.revisions.competitors, lambda: _Pieces(live))


def _competition(pieces: _Pieces, competition_id: CompetitionId, competition: Competition) -> Iterator[bytes]:
    """The shape of a competition, piece by piece."""
    created_at, updated_at = timestamp(competition.created_at), timestamp(competition.updated_at)
    performances = competition.result if isinstance(competition.result, dict) else {}
    shape = shapes.Competition(
        id=competition_id,
        group_id=competition.group_id,
        started_at=timestamp(competition.started_at),
        location=competition.location,
        participants=[],
        result=competition.result,  # type: ignore[arg-type] # CompetitorId is an int
        has_result=competition.result is not None,
        created_at=created_at,
        updated_at=updated_at,
        voided_at=_timestamp_or_none(competition.voided_at),
    )
    before, _, after = _encode(shape).partition(b'"participants":[')
    yield b'%b"participants":[' % before
    comma = b""
    for competitor_id in competition.participants:
        participant = shapes.Participant(
            competitor_id=competitor_id,
            competitor=Raw(pieces[competitor_id]),
            winner=competitor_id == competition.winner_id,
            result=performances.get(competitor_id),
            created_at=created_at,
            updated_at=updated_at,
        )
        yield comma + _encode(participant)
        comma = b","
    yield after


def timestamp(moment: datetime) -> str:
    return moment.isoformat(" ", "seconds")[:19]


def _timestamp_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _envelope(message: str, key: str, payload: bytes) -> bytes:
    return b'{"status":200,"message":"%b","%b":%b}' % (message.encode(), key.encode(), payload)


def _around(key: str, shape: Struct, empty: str) -> tuple[bytes, bytes]:
    """What comes before and after the items of the list named `empty`, which has no items in `shape`."""
    before, mark, after = _envelope("ok", key, _encode(shape)).partition(b'"%b":[' % empty.encode())
    return before + mark, after


def _size(listing: Listing | None) -> int:
    return 0 if listing is None else len(listing.body)
