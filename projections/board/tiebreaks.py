"""Tie-breaks over opponents, as FIDE's regulations C.07 define them, exactly, and what each value is made of.

Pure. Two editions: that of August 2024, and that of March 2026. Points are whole numbers of the unity's smallest unit;
means are fractions. docs/TIEBREAKS.md says how what the regulations leave open is read.

UNPLAYED ROUNDS. In a Swiss tournament, a competitor without a game in a round has an unplayed one. *Voluntary* ones are
requested byes, absences, and games lost by forfeit. For opponents, the score of a competitor is *adjusted*: a
requested bye or absence that only voluntary unplayed rounds follow counts as a draw. For the competitor, an unplayed
round is one against a *dummy*, who has the competitor's own score. In the edition of 2026 it is at most the adjusted
score of the opponent who was paired or, without one, draws in all rounds. Otherwise, where pairings are
predetermined, forfeits are games like others (not over the board), and nobody plays dummies.

CUTS. A cut leaves out the contribution of the opponent with the lowest score, of several the lowest contribution. But
if there are voluntary unplayed rounds, it leaves out the lowest of their contributions, unless that is lower. A median
then leaves out that many highest ones, too.

GO. The sum of opponents' scores (SOS) has the scores of all who were paired, and nothing for byes; SOSOS has their SOS.

DIRECT ENCOUNTER. A group that is tied is ordered by the points of the games among its members; games of the same pair
count with their mean. If some pairs have not met, a member stands first only if nobody else could reach their points
by winning all missing games; then the same is asked of the rest. Those who remain tied start again among themselves.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.domain.events import Criterion
from engine.domain.notation import WHOLE, Notation
from engine.domain.terms import CompetitorId, TiebreakCode, TiebreakEdition, TiebreakPairing

PlayKind = Literal["played", "forfeit win", "forfeit loss", "bye", "requested"]
"""`bye`: allocated by the pairing, or with full points. `requested`: a bye with fewer points, or an absence."""
LeftOut = Literal["cut", "median", "below the limit"]
Amount: TypeAlias = int | Fraction

_VOLUNTARY: Final = ("forfeit loss", "requested")


class Rules(Struct, frozen=True, kw_only=True):
    """`win`, `draw`: their points. `point`: the smallest units in one point. `rounds`: those so far."""

    edition: TiebreakEdition
    pairing: TiebreakPairing
    win: int
    draw: int
    point: int
    rounds: int


class Play(Struct, frozen=True, gc=False):
    """A competitor's part in a round, from 1, and the points for it. `opponent_id`: the one paired, if any."""

    round: int
    kind: PlayKind
    points: int
    opponent_id: CompetitorId | None = None
    is_black: bool = False


class Contribution(Struct, frozen=True, kw_only=True, gc=False):
    """What one round contributes to a value. `score`: of the opponent or, without one, of a dummy; None: the round
    counts alone. `times`: the points it was multiplied by. `left_out`: why it does not count; None: it does."""

    round: int
    kind: PlayKind
    amount: Amount
    opponent_id: CompetitorId | None = None
    is_dummy: bool = False
    score: int | None = None
    times: int | None = None
    left_out: LeftOut | None = None


class Broken(Struct, frozen=True, gc=False):
    """A competitor's value: the sum of the parts that count, divided by `divisor`. `rounded`: to a whole number, halves
    up. `place`: in a direct encounter, the place among the tied, from 1, which decides; the lower is better."""

    total: Amount
    parts: tuple[Contribution, ...]
    divisor: int = 1
    rounded: bool = False
    place: int | None = None

    @property
    def value(self) -> Amount:
        """What is compared."""
        if self.place is not None:
            return self.place
        mean = Fraction(self.total) / self.divisor if self.divisor > 1 else self.total
        return (2 * mean + 1) // 2 if self.rounded else mean


_MEAN_DECIMALS: Final = 2
"""Decimals of a shown mean, in addition to those of the points."""


def notation_of_value(criterion: Criterion, points: Notation) -> Notation:
    """The notation of the shown values of a criterion in a unity."""
    match criterion.tiebreak:
        case None | "BH" | "FB" | "PS" | "KS" | "SOS" | "SOSOS":
            return points
        case "SB":
            return Notation(2 * points.decimals)
        case "AOB":
            return Notation(points.decimals + _MEAN_DECIMALS)
        case "STD":
            return Notation(1)
        case _:
            return WHOLE


def shown_value(criterion: Criterion, broken: Broken | None) -> int:
    """The value in the smallest unit of `notation_of_value`: means rounded, halves up; standard points from halves."""
    return 0 if broken is None else int((2 * scale_of(criterion) * broken.value + 1) // 2)


def scale_of(criterion: Criterion) -> int:
    """What amounts are multiplied by to be in the smallest unit of `notation_of_value`."""
    return {"AOB": 10**_MEAN_DECIMALS, "STD": 5}.get(criterion.tiebreak or "", 1)


class Tiebreaks:
    """The values of all competitors: `plays` has the rounds of each, in order; those of a Swiss tournament that are
    missing are absences. `ratings`: of all competitors, 0 where there is none."""

    def __init__(
        self,
        rules: Rules,
        plays: Mapping[CompetitorId, Items[Play]],
        ratings: Mapping[CompetitorId, int] | None = None,
    ) -> None:
        self._rules = rules
        self._given = plays
        self._ratings = ratings or {}
        self._is_swiss = rules.pairing == "swiss"
        self._scores = _Scores(rules, plays)
        self._fore = _Scores(rules, plays, fore=True)
        self._plays = self._scores.plays

    def of(self, criterion: Criterion, competitor_id: CompetitorId) -> Broken | None:
        """A competitor's value. None: nobody has one (a rating is missing), or this competitor has none (no game was
        played). Direct encounters are `among` the tied."""
        code = criterion.tiebreak
        if code == "ARO":
            return self._average_rating(criterion, competitor_id)
        if code == "AOB":
            return self._average_buchholz(competitor_id)
        if code == "KS":
            parts = self._koya(criterion, competitor_id)
        elif code in ("SOS", "SOSOS"):
            parts = self._met_scores(competitor_id, self._scores.total if code == "SOS" else self._sos)
        elif code == "PS":
            parts = self._running(criterion, competitor_id)
        elif code in ("BH", "FB", "SB"):
            scores = self._fore if code == "FB" else self._scores
            parts = _cut(criterion, scores.parts(competitor_id, multiplied=code == "SB"))
        else:
            parts = self._counted(code, competitor_id)
        return _sum(parts)

    def among(self, tied: Collection[CompetitorId]) -> dict[CompetitorId, Broken]:
        """The direct encounter of those who are tied, by place. What is shown is the last comparison of each."""
        found: dict[CompetitorId, Broken] = {}
        waiting = [(1, list(tied))]
        while waiting:
            place, group = waiting.pop()
            if len(group) == 1 and found:
                found[group[0]] = replace(found[group[0]], place=place)
                continue
            members = frozenset(group)
            met = {one: self._met(one, members) for one in group}
            waiting += self._parted(place, group, met)
            found |= {one: _sum(parts, place) for one, (parts, _) in met.items()}
        return found

    def _parted(
        self, place: int, group: list[CompetitorId], met: Mapping[CompetitorId, tuple[list[Contribution], int]]
    ) -> Iterator[tuple[int, list[CompetitorId]]]:
        """The smaller groups to compare again, each with its place; none if this one stays together."""
        points = {one: sum(part.amount for part in parts) for one, (parts, _) in met.items()}
        missing = {one: len(group) - 1 - number for one, (_, number) in met.items()}
        if not self._is_swiss or not any(missing.values()):
            for level in sorted(set(points.values()), reverse=True):
                part = [one for one in group if points[one] == level]
                if len(part) < len(group):
                    yield place, part
                place += len(part)
            return
        rest = sorted(group, key=lambda one: -points[one])
        possible = {one: points[one] + self._rules.win * missing[one] for one in group}
        first = 0
        while first + 1 < len(rest) and points[rest[first]] > max(possible[one] for one in rest[first + 1 :]):
            yield place + first, rest[first : first + 1]
            first += 1
        if first:
            yield place + first, rest[first:]

    def _met(self, competitor_id: CompetitorId, tied: Collection[CompetitorId]) -> tuple[list[Contribution], int]:
        """A competitor's games against others of a group, and how many of them that were."""
        games: dict[CompetitorId, list[Play]] = {}
        for play in self._plays(competitor_id):
            other = play.opponent_id
            if other is not None and other in tied and (play.kind == "played" or not self._is_swiss):
                games.setdefault(other, []).append(play)
        parts = [_part(play, _exact(play.points, len(plays))) for plays in games.values() for play in plays]
        return parts, len(games)

    # ── Over opponents ──────────────────────────────────────────────────────────────────────────────────

    def _average_buchholz(self, competitor_id: CompetitorId) -> Broken | None:
        return _mean(self._met_over_the_board(competitor_id, self._buchholz))

    def _buchholz(self, competitor_id: CompetitorId) -> int:
        return sum([part.score or 0 for part in self._scores.parts(competitor_id)])

    def _met_scores(self, competitor_id: CompetitorId, score: Callable[[CompetitorId], int]) -> list[Contribution]:
        """What the paired opponents have, also those of forfeits."""
        return _scored_against(self._plays(competitor_id), score)

    def _met_over_the_board(
        self, competitor_id: CompetitorId, score: Callable[[CompetitorId], int]
    ) -> list[Contribution]:
        return _scored_against([play for play in self._plays(competitor_id) if play.kind == "played"], score)

    def _sos(self, competitor_id: CompetitorId) -> int:
        return sum([part.score or 0 for part in self._met_scores(competitor_id, self._scores.total)])

    def _koya(self, criterion: Criterion, competitor_id: CompetitorId) -> list[Contribution]:
        """The points against those who have at least half of the possible points."""
        limit = self._possible * self._rules.win + criterion.limit * self._rules.point
        parts = []
        for play in self._plays(competitor_id):
            if play.opponent_id is not None:
                score = self._scores.total(play.opponent_id)
                left_out: LeftOut | None = None if 2 * score >= limit else "below the limit"
                parts.append(_part(play, play.points, score=score, left_out=left_out))
        return parts

    @cached_property
    def _possible(self) -> int:
        """The number of games that anybody could have won."""
        if self._is_swiss:
            return self._rules.rounds
        return max((sum(play.opponent_id is not None for play in plays) for plays in self._given.values()), default=0)

    # ── What a competitor did ───────────────────────────────────────────────────────────────────────────

    def _running(self, criterion: Criterion, competitor_id: CompetitorId) -> list[Contribution]:
        """The score after each round. Cuts leave out those after the first rounds."""
        parts, score, waiting = list[Contribution](), 0, deque(self._plays(competitor_id))
        for number in range(1, self._rules.rounds + 1):
            play = Play(number, "requested", 0)
            while waiting and waiting[0].round == number:
                play = waiting.popleft()
                score += play.points
            parts.append(_part(play, score, left_out="cut" if number <= criterion.cut else None))
        return parts

    def _counted(self, code: TiebreakCode | None, competitor_id: CompetitorId) -> list[Contribution]:
        """The rounds that count, each with 1; standard points are halves: 2 for a win, 1 for a draw."""
        return [_part(play, amount) for play in self._plays(competitor_id) if (amount := int(self._amount(code, play)))]

    def _amount(self, code: TiebreakCode | None, play: Play) -> int:
        if code == "STD":
            return (play.points >= self._rules.draw) + (play.points > self._rules.draw)
        if code == "REP":
            return play.kind not in _VOLUNTARY
        if code in ("WIN", "WON", "BWG") and play.points != self._rules.win:
            return False
        if code in ("BPG", "BWG") and not play.is_black:
            return False
        return code == "WIN" or play.kind == "played" or (play.kind == "forfeit win" and not self._is_swiss)

    @cached_property
    def _are_rated(self) -> bool:
        return self._given.keys() <= self._ratings.keys() and all(self._ratings.values())

    def _average_rating(self, criterion: Criterion, competitor_id: CompetitorId) -> Broken | None:
        """The mean rating of those met over the board."""
        if not self._are_rated:
            return None
        parts = self._met_over_the_board(competitor_id, self._ratings.__getitem__)
        return _mean(_cut(criterion, parts), rounded=True)


class _Scores:
    """The rounds of competitors, and their scores, as they are and adjusted. `fore`: those of Fore Buchholz, where all
    games paired in the last round are draws, forfeited ones as well."""

    def __init__(self, rules: Rules, given: Mapping[CompetitorId, Items[Play]], *, fore: bool = False) -> None:
        self._rules = rules
        self._is_swiss = rules.pairing == "swiss"
        self._given = given
        self._is_fore = fore
        self._plays: dict[CompetitorId, Items[Play]] = {}
        self._adjusted: dict[CompetitorId, int] = {}
        self._parts: dict[tuple[CompetitorId, bool], list[Contribution]] = {}

    def plays(self, competitor_id: CompetitorId) -> Items[Play]:
        """In order, with absences."""
        if competitor_id not in self._plays:
            plays, last = self._given.get(competitor_id, ()), self._rules.rounds
            present = {play.round for play in plays} if self._is_swiss else ()
            if self._is_swiss and len(present) < last:
                absent = [Play(number, "requested", 0) for number in range(1, last + 1) if number not in present]
                plays = sorted([*plays, *absent], key=lambda play: play.round)
            if self._is_fore:
                drawn = {"kind": "played", "points": self._rules.draw}
                plays = [replace(one, **drawn) if one.round == last and one.opponent_id else one for one in plays]
            self._plays[competitor_id] = plays
        return self._plays[competitor_id]

    def total(self, competitor_id: CompetitorId) -> int:
        return sum([play.points for play in self.plays(competitor_id)])

    def adjusted(self, competitor_id: CompetitorId) -> int:
        """The score, with draws for the requested byes and absences that only voluntary unplayed rounds follow."""
        if competitor_id not in self._adjusted:
            score = self.total(competitor_id)
            for play in reversed(self.plays(competitor_id) if self._is_swiss else ()):
                if play.kind not in _VOLUNTARY:
                    break
                if play.kind == "requested":
                    score += self._rules.draw - play.points
            self._adjusted[competitor_id] = score
        return self._adjusted[competitor_id]

    def parts(self, competitor_id: CompetitorId, *, multiplied: bool = False) -> Items[Contribution]:
        """The scores of a competitor's opponents and dummies, each `multiplied` by the points against them."""
        known = self._parts.get((competitor_id, multiplied))
        if known is not None:
            return known
        parts = self._parts[competitor_id, multiplied] = list[Contribution]()
        for play in self.plays(competitor_id):
            is_dummy = self._is_swiss and play.kind != "played"
            if is_dummy:
                score = self._dummy(competitor_id, play)
            elif play.opponent_id is not None:
                score = self.adjusted(play.opponent_id)
            else:
                continue
            times = play.points if multiplied else None
            amount = score if times is None else score * times
            parts.append(_part(play, amount, is_dummy=is_dummy, score=score, times=times))
        return parts

    def _dummy(self, competitor_id: CompetitorId, play: Play) -> int:
        own = self.total(competitor_id)
        if self._rules.edition == "2024-08":
            return own
        opponent_id = play.opponent_id
        return min(own, self._rules.draw * self._rules.rounds if opponent_id is None else self.adjusted(opponent_id))


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────


def _part(
    play: Play,
    amount: Amount,
    *,
    is_dummy: bool = False,
    score: int | None = None,
    times: int | None = None,
    left_out: LeftOut | None = None,
) -> Contribution:
    return Contribution(
        round=play.round,
        kind=play.kind,
        amount=amount,
        opponent_id=play.opponent_id,
        is_dummy=is_dummy,
        score=score,
        times=times,
        left_out=left_out,
    )


def _scored_against(plays: Iterable[Play], score: Callable[[CompetitorId], int]) -> list[Contribution]:
    """What the opponents of these rounds have."""
    scores = [(play, score(play.opponent_id)) for play in plays if play.opponent_id is not None]
    return [_part(play, its, score=its) for play, its in scores]


def _cut(criterion: Criterion, parts: Items[Contribution]) -> list[Contribution]:
    """The parts, with those marked that cuts or medians leave out."""
    marked, rest = list(parts), list(range(len(parts)))
    for _ in range(min(criterion.cut or criterion.median, len(rest))):
        place = _lowest(parts, rest)
        rest.remove(place)
        marked[place] = replace(parts[place], left_out="cut")
    for _ in range(min(criterion.median, len(rest))):
        place = max(rest, key=lambda one: (parts[one].score, parts[one].amount))
        rest.remove(place)
        marked[place] = replace(parts[place], left_out="median")
    return marked


def _lowest(parts: Items[Contribution], rest: Iterable[int]) -> int:
    """The next of these parts to cut."""
    lowest = min(rest, key=lambda one: (parts[one].score, parts[one].amount))
    voluntary = [one for one in rest if parts[one].is_dummy and parts[one].kind in _VOLUNTARY]
    if voluntary:
        own = min(voluntary, key=lambda one: (parts[one].amount, parts[one].score))
        if parts[own].amount >= parts[lowest].amount:
            return own
    return lowest


def _sum(parts: Items[Contribution], place: int | None = None) -> Broken:
    return Broken(_total(parts), tuple(parts), place=place)


def _mean(parts: Items[Contribution], *, rounded: bool = False) -> Broken | None:
    """None: no part counts."""
    number = sum(part.left_out is None for part in parts)
    return Broken(_total(parts), tuple(parts), number, rounded) if number else None


def _total(parts: Iterable[Contribution]) -> Amount:
    return sum(part.amount for part in parts if part.left_out is None)


def _exact(number: int, divisor: int) -> Amount:
    return number if divisor == 1 else Fraction(number, divisor)
