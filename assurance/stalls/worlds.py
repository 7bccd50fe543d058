"""The tournaments that are asked: a crowd in one ranking, a long season, and names that are long and alike."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from engine.domain.events import (
    ClassificationDeclared,
    CompetitionAdded,
    CompetitorChanged,
    CompetitorRegistered,
    Criterion,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    RankingInformationChanged,
    Scored,
    TournamentPublished,
    UnityAdded,
)
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import CompetitionId, CompetitorId, Counts, RankingId, UnityId

RANKING: Final = RankingId(1)
"""In which all are, with `SUM`, `BEST` and `LAST`."""
SUM, BEST, LAST, EXPIRING = map(UnityId, (1_000, 1_001, 1_002, 2_000))
ROLLING: Final = RankingId(2)
"""In which points expire."""
FIRST_SMALL: Final = 3
RACE: Final = CompetitionId(9_000_001)
"""In which all took part; it gave points to each in both rankings."""
_BEGAN: Final = datetime(2026, 1, 3, 15, tzinfo=UTC)


class Scale(Struct, frozen=True):
    """The sizes of the tournaments, and of the requests. Of a crowd: `competitors`, `rankings`. Of a season: `teams`,
    and `deltas` in `events`. Of names: `alike` ones, `former` ones of one competitor, `characters` of a text. Of
    requests: `lines`, `items`."""

    competitors: int
    rankings: int
    teams: int
    deltas: int
    events: int
    alike: int
    former: int
    characters: int
    lines: int
    items: int


LIMITS: Final = Scale(
    competitors=10_000,
    rankings=990,
    teams=500,
    deltas=49_900,
    events=19_000,
    alike=5_000,
    former=99,
    characters=10_000,
    lines=10_000,
    items=1_000,
)
TENTH: Final = Scale(
    competitors=1_000,
    rankings=99,
    teams=50,
    deltas=4_990,
    events=1_900,
    alike=500,
    former=9,
    characters=1_000,
    lines=1_000,
    items=100,
)


def crowd(scale: Scale) -> list[Event]:
    """Tags and names as long as in life. Every competitor has won something in each unity."""
    ids = tuple(map(CompetitorId, range(1, scale.competitors + 1)))
    facts: list[Event] = [
        CompetitorRegistered(competitor_id=one, name=f"Competitor {one}", tags=(f"team {one % 40}",)) for one in ids
    ]
    facts.append(
        RankingCreated(ranking_id=RANKING, name="All", participants=ids, main_unity_id=SUM, main_unity_name="points")
    )
    facts += [
        UnityAdded(ranking_id=RANKING, unity_id=BEST, name="best", counts=Counts.BEST),
        UnityAdded(ranking_id=RANKING, unity_id=LAST, name="last", counts=Counts.LAST),
        RankingCreated(
            ranking_id=ROLLING,
            name="Rolling",
            participants=ids,
            main_unity_id=EXPIRING,
            main_unity_name="points",
            main_unity_lasts="P52W",
            main_unity_expires_on=ExpiresOn.WEEK,
        ),
    ]
    facts += [
        RankingCreated(
            ranking_id=RankingId(number),
            name=f"Small {number}",
            participants=ids[:3],
            main_unity_id=UnityId(1_000 * number),
            main_unity_name="points",
        )
        for number in range(FIRST_SMALL, scale.rankings + 1)
    ]
    facts.append(CompetitionAdded(competition_id=RACE, group_id=1, participants=ids, started_at=_BEGAN))
    given = {RANKING: SUM, ROLLING: EXPIRING}
    facts += [
        PointsAdded(
            ranking_id=ranking_id,
            competition_id=RACE,
            deltas=tuple([Delta(one, unity_id, one % 97) for one in ids]),
            results=tuple([Scored(one, BEST, one % 89) for one in ids]) if ranking_id == RANKING else (),
        )
        for ranking_id, unity_id in given.items()
    ]
    facts.append(ClassificationDeclared(ranking_id=RANKING, criteria=(Criterion(unity_id=SUM, best=2),)))
    return [*facts, TournamentPublished()]


def long_name(number: int) -> str:
    """Nearly the same for all numbers."""
    return f"{'ab' * 124}{number:06}"


def names(scale: Scale) -> list[Event]:
    """Names of the greatest length that are nearly the same, of which one competitor had many; and texts like them."""
    ids = tuple(map(CompetitorId, range(1, scale.alike + 1)))
    facts: list[Event] = [CompetitorRegistered(competitor_id=one, name=long_name(one)) for one in ids]
    ranking = RankingCreated(
        ranking_id=RANKING, name="All", participants=ids, main_unity_id=SUM, main_unity_name="points"
    )
    facts += [CompetitorChanged(competitor_id=ids[0], name=long_name(10_000 + n)) for n in range(scale.former)]
    texts = [
        RankingInformationChanged(ranking_id=RANKING, description="ab" * (scale.characters // 2 - 5) + f"{n:06}")
        for n in range(3)
    ]
    races = [
        CompetitionAdded(
            competition_id=CompetitionId(10**7 + n), group_id=1, participants=ids[:2], location=long_name(20_000 + n)
        )
        for n in range(scale.items)
    ]
    points = PointsAdded(ranking_id=RANKING, deltas=(Delta(ids[0], SUM, 1),))
    further = UnityAdded(ranking_id=RANKING, unity_id=BEST, name="best")
    return [*facts, ranking, further, *texts, *races, points, TournamentPublished()]


def season(scale: Scale) -> list[Event]:
    """Matches of two at dates of their own, and in the end one day with many, until the deltas are complete."""
    draw = random.Random(61)
    ids = tuple(map(CompetitorId, range(1, scale.teams + 1)))
    facts: list[Event] = [CompetitorRegistered(competitor_id=one, name=f"Team {one}") for one in ids]
    facts.append(
        RankingCreated(ranking_id=RANKING, name="League", participants=ids, main_unity_id=SUM, main_unity_name="points")
    )
    facts.append(UnityAdded(ranking_id=RANKING, unity_id=BEST, name="goals", counts=Counts.BEST))
    facts.append(ClassificationDeclared(ranking_id=RANKING, criteria=(Criterion(unity_id=SUM, best=30),)))
    facts.append(TournamentPublished())
    matches = (scale.events - len(facts)) // 2
    facts += [event for number in range(matches) for event in _match(number, matches, scale, draw, ids)]
    return facts


def _match(
    number: int, matches: int, scale: Scale, draw: random.Random, ids: tuple[CompetitorId, ...]
) -> Iterator[Event]:
    competition_id = CompetitionId(10**7 + number)
    date = _BEGAN + timedelta(hours=number if number < matches // 2 else matches)
    pair = (ids[0], draw.choice(ids[1:])) if number % 4 == 0 else tuple(draw.sample(ids, 2))
    yield CompetitionAdded(competition_id=competition_id, group_id=1, participants=pair, started_at=date, result="2:1")
    more = scale.deltas // matches - 4
    deltas = tuple([Delta(one, SUM, draw.randint(0, 3)) for one in pair])
    scored = tuple([Scored(one, BEST, draw.randint(0, 500)) for one in (*pair, *draw.choices(ids, k=more))])
    yield PointsAdded(ranking_id=RANKING, competition_id=competition_id, deltas=deltas, results=scored)
