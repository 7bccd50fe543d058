"""The games of a ranking: who met whom in which round, and what it gave, read from the results of its competitions.

Pure. A game is a competition of two that a scoring reads by outcome; a bye is one with a single participant. Those
without a result, voided ones, and those of struck competitors are none. Neither are those that would have given points
if the ranking had not been closed, or that had not taken place by a moment of the world's clock. The first participant
has White. Rounds are the declared ones; competitions without one form a round for each day (UTC), before those.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from typing import Final

from msgspec import Struct

from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion
from engine.domain.scoring import NotRead, ScoredAmounts, choose, read, wanted, was_played, worth
from engine.domain.steps import Steps, in_order
from engine.domain.terms import CompetitionId, CompetitorId, Sequence
from projections.board.board import Competition, Ranking
from projections.board.tiebreaks import Play, PlayKind, Rules, Tiebreaks
from projections.columns.packed import Packed

GAMES_READ_MAX: Final = 50_000
"""Competitions that tie-breaks read."""
_STEP_READ: Final = 20
_STEP_KNOWN: Final = 1_000
_RoundKey = tuple[date, int]


class Seat(Struct, frozen=True, gc=False):
    """One who took part in a game. `opponent_id` None: it is a bye."""

    competitor_id: CompetitorId
    kind: PlayKind
    opponent_id: CompetitorId | None
    is_black: bool


class Game(Struct, frozen=True, gc=False):
    """`amounts`: what it gives; perhaps nothing."""

    round: _RoundKey
    began: datetime
    seats: tuple[Seat, ...]
    amounts: ScoredAmounts


class Games:
    """Those of one ranking. What was read of a competition is remembered as long as it and the ranking stay the
    same."""

    def __init__(self) -> None:
        self._revised: Sequence | None = None
        self._read: dict[CompetitionId, tuple[bytes, Game | None]] = {}

    def of(
        self,
        competitions: Packed[CompetitionId, Competition],
        ranking: Ranking,
        among: Collection[CompetitionId] | None,
        on: datetime | None,
    ) -> Steps[list[Game]]:
        """Those of competitions that do not change meanwhile. `among`: of those that give points, only these; `on`: of
        the others, only those that began by then. Raises TooMuchWork."""
        if len(competitions) > GAMES_READ_MAX:
            raise TooMuchWork("competitions", GAMES_READ_MAX)
        if ranking.revised != self._revised:  # its scorings or its list may have changed
            self._revised, self._read = ranking.revised, {}
        known, games, new = self._read, list[Game](), 0
        for number, competition_id in enumerate(competitions, start=1):
            packed = competitions.packed(competition_id)
            found = known.get(competition_id)
            if found is None or found[0] is not packed:
                found = known[competition_id] = packed, _game(ranking, competitions[competition_id])
                new += 1
            if (game := found[1]) is not None and (
                among is None or (competition_id in among if game.amounts else on is None or game.began <= on)
            ):
                games.append(game)
            if number % _STEP_KNOWN == 0 or new == _STEP_READ:
                new = 0
                yield
        return games


def _game(ranking: Ranking, competition: Competition) -> Game | None:
    """None: it is no game."""
    scoring, participants = choose(ranking.scorings, competition), competition.participants
    if scoring is None or competition.voided_at is not None or len(participants) > 2:
        return None
    try:
        results, given = read(scoring, competition), wanted(scoring, competition, ranking)
    except NotRead:
        return None
    seats = []
    for place, competitor_id in enumerate(participants):
        result = results.get(competitor_id)
        if result is None or result.outcome is None or competitor_id in competition.struck:
            continue
        kind: PlayKind = "played"
        if result.outcome == "bye":
            kind = "requested" if result.word in ("half", "zero") else "bye"
        elif not was_played(scoring, result):
            kind = "forfeit win" if result.outcome == "win" else "forfeit loss"
        seats.append(Seat(competitor_id, kind, participants[1 - place] if len(participants) == 2 else None, place == 1))
    day = competition.started_at.date() if competition.round is None else date.max
    amounts = {named: amount for named, amount in given.items() if named[0] in participants}
    return Game((day, competition.round or 0), competition.started_at, tuple(seats), amounts) if seats else None


def played_by(games: Iterable[Game]) -> set[CompetitorId]:
    """All who took part in these games."""
    return {seat.competitor_id for game in games for seat in game.seats}


def tiebreaks_of(
    games: Collection[Game], ranking: Ranking, criterion: Criterion, ratings: Mapping[CompetitorId, int]
) -> Steps[Tiebreaks]:
    """The tie-breaks over some games, with the points in the unity of the criterion. `ratings`: of all competitors, 0
    where there is none."""
    rounds = {key: number for number, key in enumerate(sorted({game.round for game in games}), start=1)}
    plays: dict[CompetitorId, list[Play]] = {}
    unity_id = criterion.unity_id
    ordered = yield from in_order(games, lambda game: game.round)
    for number, game in enumerate(ordered, start=1):
        if number % _STEP_KNOWN == 0:
            yield
        for seat in game.seats:
            points = game.amounts.get((seat.competitor_id, unity_id), 0)
            play = Play(rounds[game.round], seat.kind, points, seat.opponent_id, seat.is_black)
            plays.setdefault(seat.competitor_id, []).append(play)
    rules = Rules(
        edition=criterion.edition or "2026-03",
        pairing=criterion.pairing or "swiss",
        win=worth(ranking.scorings, unity_id, "win") or 0,
        draw=worth(ranking.scorings, unity_id, "draw") or 0,
        point=10 ** ranking.unities[unity_id].notation.decimals,
        rounds=len(rounds),
    )
    return Tiebreaks(rules, plays, ratings)
