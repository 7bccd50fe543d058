"""Tie-breaks by opponents' results: compared with two other programs, and what their values are made of.

The values of `tiebreaks.jsonl` are recorded: the first tournaments of `tiebreak_oracles.py`. `make long` asks the
programs themselves about 400, if TALLYBOOK_TEST_ORACLES names the Python of an environment that has them.
"""

import os
import subprocess
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import Criterion
from engine.domain.terms import CompetitorId, TiebreakCode, TiebreakEdition, UnityId
from projections.board.tiebreaks import Broken, Play, PlayKind, Rules, Tiebreaks

HERE: Final = Path(__file__).parent
ORACLES: Final = os.environ.get("TALLYBOOK_TEST_ORACLES")
RECORDED: Final = [msgspec.json.decode(line) for line in (HERE / "tiebreaks.jsonl").read_bytes().splitlines()]
_KINDS: Final[dict[str, PlayKind]] = {
    "+": "forfeit win",
    "-": "forfeit loss",
    "U": "bye",
    "F": "bye",
    "H": "requested",
    "Z": "requested",
}
_POINT: Final = 2
_SCALES: Final = {"BH": 2, "FB": 2, "AOB": 2, "PS": 2, "KS": 2, "SB": 4, "STD": 2}
"""What a value is multiplied by here, where amounts are half points."""


class Tournament:
    """A tournament of an oracle, as tie-breaks see it."""

    def __init__(self, one: dict[str, Any]) -> None:
        self.one = one
        self.is_swiss = one["pairing"] == "swiss"
        self.results = [[cell[-1] for cell in its.split()] for its in one["players"]]
        self.plays = {CompetitorId(number): self._plays(its) for number, its in enumerate(one["players"], start=1)}
        rules = Rules(
            edition=one["edition"],
            pairing=one["pairing"],
            win=one["win"],
            draw=one["draw"],
            point=_POINT,
            rounds=len(self.results[0]),
        )
        ratings = {CompetitorId(number): rating for number, rating in enumerate(one["ratings"], start=1)}
        self.tiebreaks = Tiebreaks(rules, self.plays, ratings)
        self.points = {one: sum(play.points for play in its) for one, its in self.plays.items()}

    def _plays(self, cells: str) -> list[Play]:
        points = {"1": self.one["win"], "=": self.one["draw"], "H": self.one["draw"], "0": 0, "-": 0, "Z": 0}
        return [
            Play(
                number,
                _KINDS.get(cell[-1], "played"),
                points.get(cell[-1], self.one["win"]),
                CompetitorId(int(cell[:-2])) if int(cell[:-2]) else None,
                cell[-2] == "b",
            )
            for number, cell in enumerate(cells.split(), start=1)
            if self.is_swiss or int(cell[:-2])
        ]

    def values(self, name: str) -> list[Fraction | None]:
        """The values of a tie-break, in points, as gacrux shows them."""
        tiebreak = named(name)
        if tiebreak.tiebreak == "DE":
            return [Fraction(place) for _, place in sorted(self._encounters())]
        found = []
        for competitor_id in self.plays:
            broken = self.tiebreaks.of(tiebreak, competitor_id)
            found.append(None if broken is None else Fraction(broken.value) / _SCALES.get(tiebreak.tiebreak or "", 1))
        return found

    def _encounters(self) -> Iterator[tuple[CompetitorId, int]]:
        """The places of all, each among those with the same points; 0 in a group that stays together."""
        for group in self._levels(self.plays, self.points):
            among = self.tiebreaks.among(group)
            together = len({broken.place for broken in among.values()}) == 1
            yield from ((one, 0 if together else broken.place or 0) for one, broken in among.items())

    def places(self, names: Iterable[str]) -> list[int]:
        """The places of all, by points and then by tie-breaks."""
        groups = list(self._levels(self.plays, self.points))
        for tiebreak in map(named, names):
            groups = [part for group in groups for part in self._levels(group, self._keys(tiebreak, group))]
        starts = [1 + sum(map(len, groups[:number])) for number in range(len(groups))]
        return [place for _, place in sorted((one, start) for one, start in self._placed(groups, starts))]

    def _placed(self, groups: list[list[CompetitorId]], starts: list[int]) -> Iterator[tuple[CompetitorId, int]]:
        for group, start in zip(groups, starts, strict=True):
            yield from ((one, start) for one in group)

    def _keys(self, tiebreak: Criterion, group: list[CompetitorId]) -> dict[CompetitorId, Any]:
        if tiebreak.tiebreak == "DE":
            return {one: -broken.value for one, broken in self.tiebreaks.among(group).items()}
        values = {one: self.tiebreaks.of(tiebreak, one) for one in group}
        return {one: -1 if broken is None else broken.value for one, broken in values.items()}

    def _levels(self, group: Collection[CompetitorId], keys: dict[CompetitorId, Any]) -> Iterator[list[CompetitorId]]:
        for level in sorted({keys[one] for one in group}, reverse=True):
            yield [one for one in group if keys[one] == level]


def named(name: str) -> Criterion:
    """The tie-break with a name such as `BH/C1`."""
    code, _, modifier = name.partition("/")
    count = int(modifier[1:] or 0)
    return Criterion(
        unity_id=UnityId(1),
        tiebreak=msgspec.convert(code, TiebreakCode),
        cut=count if modifier.startswith("C") else 0,
        median=count if modifier.startswith("M") else 0,
        limit=count if modifier.startswith("L") else 0,
    )


# ── Against gacrux and tiebreak-core ────────────────────────────────────────────────────────────────────


def differing(tournament: Tournament, oracle: str) -> dict[str, list[tuple[Any, ...]]]:
    """The values in which an oracle differs."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, expected in tournament.one.get(oracle, {}).items():
        ours = tournament.values(name)
        theirs = [None if value is None else Fraction(value).limit_denominator(10_000) for value in expected]
        if name == "AOB" and oracle == "values":  # gacrux rounds it to two decimals, halves up
            ours = [None if value is None else Fraction(int(value * 100 + Fraction(1, 2)), 100) for value in ours]
        pairs = [(player, mine, its) for player, (mine, its) in enumerate(zip(ours, theirs, strict=True), start=1)]
        if differ := [pair for pair in pairs if pair[1] != pair[2]]:
            found[name] = differ
    return found


def check_against_gacrux(tournament: Tournament) -> None:
    """Values and places are equal, but for one reading: forfeits won in a round robin are games won (WON, BPG, BWG)."""
    read_otherwise = set() if tournament.is_swiss else {"WON", "BPG", "BWG"}
    differ = differing(tournament, "values")
    assert differ.keys() <= read_otherwise, (tournament.one["number"], differ)
    for names, places in tournament.one["places"].items():
        if not read_otherwise & {*names.split()}:
            assert tournament.places(names.split()) == places, (tournament.one["number"], names)


def check_against_core(tournament: Tournament) -> None:
    """Values are equal, but for what docs/TIEBREAKS.md lists."""
    results = tournament.results
    has_forfeits = any(result in "+-" for its in results for result in its)
    read_otherwise = {"ARO", "ARO/C1", "ARO/M1", "AOB", "BH/M2"}
    if has_forfeits or not tournament.is_swiss:
        read_otherwise |= {"KS", "KS/L+1", "KS/L-2"}
    if any(its[-1] in "+-" for its in results):
        read_otherwise |= {"FB", "FB/C1", "FB/M1"}
    if tournament.is_swiss:
        read_otherwise.add("SB/C2")
    elif has_forfeits:
        read_otherwise |= {"REP", "STD"}
    differ = differing(tournament, "core") if tournament.one["win"] == _POINT else {}
    assert differ.keys() <= read_otherwise, (tournament.one["number"], differ)


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: f"{one['number']}-{one['pairing']}")
def test_values_and_places_are_those_of_gacrux_and_tiebreak_core(one: dict[str, Any]) -> None:
    tournament = Tournament(one)
    check_against_gacrux(tournament)
    check_against_core(tournament)


def test_the_recorded_tournaments_have_all_that_may_happen() -> None:
    cells = {cell[-1] for one in RECORDED for its in one["players"] for cell in its.split()}
    assert cells == {*"10=+-UFHZ"}
    assert {(one["pairing"], one["edition"]) for one in RECORDED} == {
        (pairing, edition) for pairing in ("swiss", "predetermined") for edition in ("2024-08", "2026-03")
    }
    assert {one["win"] for one in RECORDED} == {2, 6}


@pytest.mark.long
@pytest.mark.skipif(ORACLES is None, reason="no oracles: name their Python in TALLYBOOK_TEST_ORACLES")
def test_300_swiss_tournaments_and_100_round_robins_agree_with_the_oracles() -> None:
    assert ORACLES is not None
    program = [ORACLES, str(HERE / "tiebreak_oracles.py"), "0", "400"]
    asked = subprocess.run(program, capture_output=True, timeout=300, check=True)
    lines = asked.stdout.splitlines()
    assert len(lines) == 400
    assert [msgspec.json.decode(line) for line in lines[: len(RECORDED)]] == RECORDED
    for line in lines:
        tournament = Tournament(msgspec.json.decode(line))
        check_against_gacrux(tournament)
        check_against_core(tournament)


# ── Readings ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("players", "name", "values"),
    [
        pytest.param(["2w-", "1b-"], "STD", [0, 0], id="Both who did not come have no standard points."),
        pytest.param(
            ["2w1 3b+", "1b0 4w1", "4w= 1w-", "3b= 2b0"],
            "FB",
            [1.5, 2.5, 2.5, 1.5],
            id="A game forfeited in the last round is a draw for Fore Buchholz, too.",
        ),
        pytest.param(
            ["2w+ 3w1", "1b- 4w1", "4w1 1b0", "3b0 2b0"],
            "KS",
            [2, 0, 0, 0],
            id="Points for a forfeit count against those with half of the points.",
        ),
        pytest.param(
            ["2w1", "1b0"], "BH/C2", [0, 0], id="Cuts that leave out more than there is leave out everything."
        ),
        pytest.param(
            ["2w1 3b0", "1b0 4w=", "4w= 1w1", "3b= 2b="],
            "SB/C1",
            [0, 0.5, 1, 0.75],
            id="Sonneborn-Berger is cut by the score of the opponent, not by the product.",
        ),
    ],
)
def test_gaps_in_the_regulations_are_read_as_documented(players: list[str], name: str, values: list[float]) -> None:
    assert tournament_of(players).values(name) == values


@pytest.mark.parametrize(
    ("name", "values"), [("WON", [2, 1, 0]), ("BPG", [1, 1, 1]), ("BWG", [1, 0, 0]), ("REP", [2, 2, 1])]
)
def test_in_a_round_robin_games_won_by_forfeit_are_games_and_those_lost_are_not(name: str, values: list[int]) -> None:
    """Player 1 wins with Black against 3, who does not come."""
    assert tournament_of(["2w1 3b+", "1b0 3w1", "2b0 1w-"], pairing="predetermined").values(name) == values


def test_two_whose_only_game_was_forfeited_have_not_met() -> None:
    assert tournament_of(["2w+ 3b0", "1b- 4b1", "4w1 1w1", "3b0 2w0"]).values("DE")[:2] == [0, 0]


def tournament_of(players: list[str], pairing: str = "swiss") -> Tournament:
    ratings = [2000] * len(players)
    return Tournament(
        {"players": players, "pairing": pairing, "edition": "2026-03", "win": 2, "draw": 1, "ratings": ratings}
    )


# ── What values are made of ─────────────────────────────────────────────────────────────────────────────

_CODES: Final = ["BH", "FB", "AOB", "SB", "WIN", "WON", "BPG", "BWG", "PS", "REP", "STD", "KS", "ARO", "SOS", "SOSOS"]


@st.composite
def tournaments(
    draw: st.DrawFn, edition: TiebreakEdition | None = None
) -> tuple[Rules, dict[CompetitorId, list[Play]]]:
    """Swiss tournaments of any pairings, with all kinds of unplayed rounds."""
    competitors = [CompetitorId(number) for number in range(1, draw(st.integers(2, 8)) + 1)]
    rounds = draw(st.integers(1, 5))
    plays: dict[CompetitorId, list[Play]] = {one: [] for one in competitors}
    for number in range(1, rounds + 1):
        waiting = draw(st.permutations(competitors))
        while waiting:
            one = waiting.pop()
            if waiting and draw(st.booleans()):
                other = waiting.pop()
                kinds = draw(st.sampled_from([("played", "played"), ("forfeit win", "forfeit loss")]))
                points = draw(st.sampled_from([(2, 0), (1, 1)])) if kinds[0] == "played" else (2, 0)
                plays[one].append(Play(number, kinds[0], points[0], other))  # type: ignore[arg-type]
                plays[other].append(Play(number, kinds[1], points[1], one, True))  # type: ignore[arg-type]
            elif draw(st.booleans()):
                plays[one].append(Play(number, *draw(st.sampled_from([("bye", 2), ("requested", 1)]))))  # type: ignore
    editions = st.sampled_from(["2024-08", "2026-03"])
    rules = Rules(
        edition=edition or draw(editions),  # type: ignore[arg-type]
        pairing="swiss",
        win=2,
        draw=1,
        point=2,
        rounds=rounds,
    )
    return rules, plays


def counted(broken: Broken) -> list[Fraction]:
    return [Fraction(part.amount) for part in broken.parts if part.left_out is None]


@given(tournaments(), st.integers(0, 3), st.integers(0, 2))
def test_what_a_value_is_made_of_adds_up_to_it(
    drawn: tuple[Rules, dict[CompetitorId, list[Play]]], cut: int, median: int
) -> None:
    rules, plays = drawn
    tiebreaks = Tiebreaks(rules, plays, {one: 1500 + 7 * one for one in plays})
    for name in _CODES:
        tiebreak = msgspec.structs.replace(named(name), cut=cut, median=0 if cut else median)
        for competitor_id in plays:
            broken = tiebreaks.of(tiebreak, competitor_id)
            if broken is None:
                assert name in ("AOB", "ARO")
                continue
            mean = sum(counted(broken)) / broken.divisor
            assert broken.value == (int(mean + Fraction(1, 2)) if name == "ARO" else mean)
            assert broken.divisor == (len(counted(broken)) if name in ("AOB", "ARO") else 1)
            assert len({part.round for part in broken.parts}) == len(broken.parts)
            for part in broken.parts:
                assert part.times is None or part.amount == part.score * part.times  # type: ignore[operator]
    for broken in tiebreaks.among(plays).values():
        assert sum(counted(broken)) == broken.total


@given(tournaments())
def test_buchholz_names_an_opponent_or_a_dummy_for_each_round(
    drawn: tuple[Rules, dict[CompetitorId, list[Play]]],
) -> None:
    rules, plays = drawn
    tiebreaks = Tiebreaks(rules, plays)
    for competitor_id, its in plays.items():
        broken = tiebreaks.of(named("BH"), competitor_id)
        assert broken is not None
        assert [part.round for part in broken.parts] == list(range(1, rules.rounds + 1))
        met = {play.round: play.opponent_id for play in its if play.kind == "played"}
        for part in broken.parts:
            assert part.is_dummy == (part.round not in met)
            if not part.is_dummy:
                assert part.opponent_id == met[part.round]
            else:
                assert part.score is not None
                assert part.score <= sum(play.points for play in its)


@given(tournaments())
def test_sums_of_opponents_scores_are_those_of_all_who_were_paired(
    drawn: tuple[Rules, dict[CompetitorId, list[Play]]],
) -> None:
    rules, plays = drawn
    tiebreaks = Tiebreaks(rules, plays)
    met = {one: [play.opponent_id for play in its if play.opponent_id is not None] for one, its in plays.items()}
    scores = {one: sum(play.points for play in its) for one, its in plays.items()}
    sos = {one: sum(scores[other] for other in others) for one, others in met.items()}
    for competitor_id, others in met.items():
        assert tiebreaks.of(named("SOS"), competitor_id).value == sos[competitor_id]  # type: ignore[union-attr]
        theirs = sum(sos[other] for other in others)
        assert tiebreaks.of(named("SOSOS"), competitor_id).value == theirs  # type: ignore[union-attr]


@given(tournaments("2024-08"))
def test_the_edition_of_2026_only_lowers_dummies(drawn: tuple[Rules, dict[CompetitorId, list[Play]]]) -> None:
    rules, plays = drawn
    former = Tiebreaks(rules, plays)
    current = Tiebreaks(msgspec.structs.replace(rules, edition="2026-03"), plays)
    for competitor_id in plays:
        before = former.of(named("BH"), competitor_id)
        after = current.of(named("BH"), competitor_id)
        assert before is not None
        assert after is not None
        for one, other in zip(before.parts, after.parts, strict=True):
            assert one == other or (one.is_dummy and other.amount < one.amount)


def test_the_order_of_competitors_changes_no_direct_encounter() -> None:
    for one in RECORDED:
        tournament = Tournament(one)
        for group in tournament._levels(tournament.plays, tournament.points):
            there = tournament.tiebreaks.among(group)
            back = tournament.tiebreaks.among(group[::-1])
            assert {one: broken.place for one, broken in there.items()} == {
                one: broken.place for one, broken in back.items()
            }


def test_average_ratings_are_dropped_for_all_if_anybody_has_none() -> None:
    tournament = Tournament(RECORDED[0])
    rules = tournament.tiebreaks._rules
    ratings = dict.fromkeys(tournament.plays, 2000)
    assert Tiebreaks(rules, tournament.plays, ratings).of(named("ARO"), CompetitorId(1)) is not None
    del ratings[CompetitorId(2)]
    assert all(Tiebreaks(rules, tournament.plays, ratings).of(named("ARO"), one) is None for one in tournament.plays)
