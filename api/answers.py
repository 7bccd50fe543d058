"""What goes out over HTTP: the shapes of the interface, rendered from a board.

Rendering happens once per change, not once per request: each piece is kept with its live until what it shows has
changed, so all requests of a batch share the same bytes. The functions return the whole body of an answer.
"""

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar, assert_never

import msgspec
from msgspec import Raw, Struct

from api import shapes
from api.wire import Page
from engine import events
from engine.events import Event
from engine.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board import Competition, Competitor, Ranking, Unity
from projections.hierarchy import bounds
from projections.live import Live
from projections.standing import standings

_encode: Final = msgspec.json.Encoder().encode
_T = TypeVar("_T")


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────


class Listing(Struct, frozen=True):
    """The body of a list, and the strong ETag that stands for just these bytes."""

    body: bytes
    etag: str

    def __len__(self) -> int:
        return len(self.body)


def rankings(live: Live) -> Listing:
    """Every ranking of the tournament, in the list shape."""

    def render() -> Listing:
        listed = [_listed_ranking(live, ranking_id, ranking) for ranking_id, ranking in live.board.rankings.items()]
        return _listing("rankings", shapes.Rankings(listed))

    return live.rendered("rankings", (live.revisions.competitors, live.revisions.rankings), render)


def competitors(live: Live, page: Page) -> Listing:
    """One page of the competitors, in the order of their registration."""

    def render() -> Listing:
        pieces = _competitor_pieces(live)
        registered = live.board.competitors
        shown = [Raw(pieces[competitor_id]) for competitor_id in _on_page(registered, page)]
        return _listing("competitors", shapes.Competitors(competitor=shown, **_paging(page, len(registered))))

    return live.rendered(("competitors", page), live.revisions.competitors, render)


def competitions(live: Live, page: Page) -> Listing:
    """One page of the competitions, in the order of their creation."""

    def render() -> Listing:
        shown = _on_page(live.board.competitions.items(), page)
        body = shapes.Competitions(
            competition=[_competition(live, competition_id, competition) for competition_id, competition in shown],
            **_paging(page, len(live.board.competitions)),
        )
        return _listing("competitions", body)

    stamp = live.revisions.competitors, live.revisions.competitions
    return live.rendered(("competitions", page), stamp, render)


def _listing(key: str, shape: Struct) -> Listing:
    body = _envelope("ok", key, _encode(shape))
    return Listing(body, hashlib.sha256(body).hexdigest()[:32])


def _on_page(items: Collection[_T], page: Page) -> list[_T]:
    start = (page.page - 1) * page.per_page
    if start >= len(items):  # it may be any number, also one that islice would not take
        return []
    return list(islice(items, start, start + page.per_page))


def _paging(page: Page, total: int) -> dict[str, int]:
    pages = max(1, -(-total // page.per_page))
    return {"page": page.page, "pages": pages, "perpage": page.per_page, "total": total}


# ── What a change is answered with ──────────────────────────────────────────────────────────────────────


def change(live: Live, event: Event) -> bytes:
    """The answer to the request that led to `event`: the resource it made or changed, as it is now."""
    match event:
        case events.PointsAdded() | events.RankingModified() | events.RankingClosed() | events.RankingReopened():
            return modified_ranking(live, event.ranking_id)
        case events.RankingCreated():
            created = live.board.rankings[event.ranking_id]
            return _envelope("added", "ranking", _encode(_listed_ranking(live, event.ranking_id, created)))
        case events.UnityAdded():
            unity = live.board.rankings[event.ranking_id].unities[event.unity_id]
            return _envelope("added", "unity", _encode(_listed_unity(event.unity_id, unity)))
        case events.CompetitorRegistered():
            return _envelope("added", "competitor", _competitor_pieces(live)[event.competitor_id])
        case events.CompetitorChanged():
            return competitor(live, event.competitor_id)
        case events.CompetitionAdded():
            added = live.board.competitions[event.competition_id]
            return _envelope("added", "competition", _encode(_competition(live, event.competition_id, added)))
        case events.CompetitionChanged() | events.CompetitionVoided() | events.CompetitionUnvoided():
            return competition(live, event.competition_id)
        case events.TournamentOpened() | events.PointsReversed():
            raise AssertionError("no request begins with it")
        case _:
            assert_never(event)


def ranking(live: Live, ranking_id: RankingId) -> bytes:
    """One ranking, in the list and creation shape."""
    listed = _listed_ranking(live, ranking_id, live.board.rankings[ranking_id])
    return _envelope("ok", "ranking", _encode(listed))


def competitor(live: Live, competitor_id: CompetitorId) -> bytes:
    return _envelope("ok", "competitor", _competitor_pieces(live)[competitor_id])


def competition(live: Live, competition_id: CompetitionId) -> bytes:
    shape = _competition(live, competition_id, live.board.competitions[competition_id])
    return _envelope("ok", "competition", _encode(shape))


def modified_ranking(live: Live, ranking_id: RankingId) -> bytes:
    """One ranking with its standings, in the modification shape."""

    def render() -> bytes:
        ranking = live.board.rankings[ranking_id]
        standings_of = [_standing_unity(live, ranking, u, unity) for u, unity in ranking.unities.items()]
        return b'%b,"unities":[%b]}}' % (_before_unities(live, ranking_id, ranking), b",".join(standings_of))

    return live.rendered(("modified", ranking_id), live.head.sequence, render)


# ── Pieces ──────────────────────────────────────────────────────────────────────────────────────────────


def _before_unities(live: Live, ranking_id: RankingId, ranking: Ranking) -> bytes:
    """The modification shape up to its unities, which come last: points change nothing of it."""

    def render() -> bytes:
        shape = shapes.RankingBeforeUnities(
            id=ranking_id,
            name=ranking.name,
            description=ranking.description,
            closed_at=_timestamp_or_none(ranking.closed_at),
            competitors=_enrolled(live, ranking_id, ranking),
        )
        return _envelope("ok", "ranking", _encode(shape)).removesuffix(b"}}")

    stamp = live.revisions.competitors, live.revisions.rankings
    return live.rendered(("before unities", ranking_id), stamp, render)


def _listed_ranking(live: Live, ranking_id: RankingId, ranking: Ranking) -> shapes.ListedRanking:
    return shapes.ListedRanking(
        id=ranking_id,
        name=ranking.name,
        description=ranking.description,
        closed_at=_timestamp_or_none(ranking.closed_at),
        general=ranking.number == 1,
        position=str(ranking.number),
        unities=[_listed_unity(unity_id, unity) for unity_id, unity in ranking.unities.items()],
        competitors=_enrolled(live, ranking_id, ranking),
    )


def _listed_unity(unity_id: UnityId, unity: Unity) -> shapes.ListedUnity:
    return shapes.ListedUnity(
        id=unity_id,
        name=unity.name,
        position=unity.number,
        general=unity.number == 1,
        sort=unity.sort.value,
    )


def _standing_unity(live: Live, ranking: Ranking, unity_id: UnityId, unity: Unity) -> bytes:
    """Whatever this shows grows the version, so the version tells whether it still holds."""

    def render() -> bytes:
        lines = standings(ranking.participants, unity.totals, unity.sort)
        return _encode(
            shapes.StandingUnity(
                name=unity.name, version=unity.version, competitors_ranking=lines, general=unity.number == 1
            )
        )

    if len(ranking.unities) == 1:
        return render()  # it is what has changed: there is nothing to be gained by keeping it beside the whole
    return live.rendered(("unity", unity_id), unity.version, render)


def _enrolled(live: Live, ranking_id: RankingId, ranking: Ranking) -> Raw:
    def render() -> bytes:
        pieces = _competitor_pieces(live)
        return b"[%b]" % b",".join([pieces[competitor_id] for competitor_id in ranking.participants])

    stamp = live.revisions.competitors, live.revisions.rankings
    return Raw(live.rendered(("enrolled", ranking_id), stamp, render))


class _Pieces(dict[CompetitorId, bytes]):
    """Every competitor's shape, each rendered when it is first asked for: beside thousands it may be the only one."""

    def __init__(self, competitors: Mapping[CompetitorId, Competitor]) -> None:
        self._competitors = competitors
        self._bounds = bounds({competitor_id: c.parent_id for competitor_id, c in competitors.items()})

    def __missing__(self, competitor_id: CompetitorId) -> bytes:
        competitor, place = self._competitors[competitor_id], self._bounds.pop(competitor_id)
        piece = self[competitor_id] = _encode(
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
        return piece

    def size_bytes(self) -> int:
        """As if all had been asked for."""
        return sum([_PIECE_BYTES + len(c.name) + _TAG_BYTES * len(c.tags) for c in self._competitors.values()])


_PIECE_BYTES: Final = 350
"""Of a competitor, without its name and tags."""
_TAG_BYTES: Final = 50


def _competitor_pieces(live: Live) -> _Pieces:
    """Anew after a change of one competitor, which may move the bounds of all."""
    return live.rendered(
        "pieces", live.revisions.competitors, lambda: _Pieces(live.board.competitors), _Pieces.size_bytes
    )


def _competition(live: Live, competition_id: CompetitionId, competition: Competition) -> shapes.Competition:
    pieces = _competitor_pieces(live)
    created_at, updated_at = timestamp(competition.created_at), timestamp(competition.updated_at)
    performances = competition.result if isinstance(competition.result, dict) else {}
    return shapes.Competition(
        id=competition_id,
        group_id=competition.group_id,
        started_at=timestamp(competition.started_at),
        location=competition.location,
        participants=[
            shapes.Participant(
                competitor_id=competitor_id,
                competitor=Raw(pieces[competitor_id]),
                winner=competitor_id == competition.winner_id,
                result=performances.get(competitor_id),
                created_at=created_at,
                updated_at=updated_at,
            )
            for competitor_id in competition.participants
        ],
        result=competition.result,  # type: ignore[arg-type] # CompetitorId is an int
        has_result=competition.result is not None,
        created_at=created_at,
        updated_at=updated_at,
    )


def timestamp(moment: datetime) -> str:
    return moment.isoformat(" ", "seconds")[:19]


def _timestamp_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _envelope(message: str, key: str, payload: bytes) -> bytes:
    return b'{"status":200,"message":"%b","%b":%b}' % (message.encode(), key.encode(), payload)
