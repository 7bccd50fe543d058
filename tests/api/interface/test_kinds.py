"""The kinds of rankings: what results give in each, worked out by hand from its rules."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, get_args

import pytest

from api.interface.kinds import Kind, KindName, kinds
from engine.domain.events import ClassificationDeclared, Criterion, RankingCreated, TournamentOpened, UnityAdded
from engine.domain.events import CompetitorRegistered as Registered
from engine.domain.options import as_main_unity, options_of
from engine.domain.scoring import NotRead, choose, scoring_faults, wanted
from engine.domain.terms import CompetitorId, UnityId
from projections.board.board import Board, Ranking
from tests.engine.test_scoring import Played
from tests.histories import fold_events

A, B, C, D, E, F, GUEST = range(1, 8)
"""The first six are in the ranking."""
Result = str | dict[int, str]


def ids_of(kind: Kind) -> dict[str, UnityId]:
    return {unity.name: UnityId(number) for number, unity in enumerate(kind.unities, start=40)}


def ranking_of(kind: Kind, enrolled: tuple[int, ...] = (A, B, C, D, E, F)) -> Ranking:
    main, *others = kind.unities
    ids, board = ids_of(kind), Board()
    fold_events(
        board,
        TournamentOpened(name="Spring Open", slug="spring-open"),
        *(Registered(competitor_id=c, name=f"No. {c}") for c in range(A, GUEST + 1)),
        RankingCreated(
            ranking_id=30,
            name="Overall",
            participants=enrolled,
            main_unity_id=ids[main.name],
            main_unity_name=main.name,
            main_unity_sort=main.sort,
            **as_main_unity(main),
        ),
        *(UnityAdded(ranking_id=30, unity_id=ids[u.name], name=u.name, sort=u.sort, **options_of(u)) for u in others),
        ClassificationDeclared(ranking_id=30, criteria=kind.criteria_with(ids)),
    )
    return board.rankings[30]


def lines(name: KindName, played: Played, enrolled: tuple[int, ...] = (A, B, C, D, E, F)) -> dict[str, dict[int, str]]:
    """What a result gives: by unity, to whom, as pages write it."""
    kind = kinds()[name]
    names = {unity_id: unity for unity, unity_id in ids_of(kind).items()}
    ranking = ranking_of(kind, enrolled)
    scoring = choose(kind.scorings_with(ids_of(kind)), played)
    assert scoring is not None
    found: dict[str, dict[int, str]] = {}
    for (competitor, unity_id), amount in wanted(scoring, played, ranking).items():
        notation = ranking.unities[unity_id].notation
        found.setdefault(names[unity_id], {})[competitor] = notation.text(amount)
    return found


def table(name: KindName, *results: tuple[Any, ...]) -> dict[str, dict[int, int]]:
    """The sums of several results, in smallest units, by unity: each is the participants and the result."""
    kind = kinds()[name]
    names = {unity_id: unity for unity, unity_id in ids_of(kind).items()}
    sums: dict[str, Counter[CompetitorId]] = {unity: Counter() for unity in names.values()}
    ranking = ranking_of(kind)
    for *participants, result in results:
        played = Played(participants=tuple(participants), result=result)
        scoring = choose(kind.scorings_with(ids_of(kind)), played)
        assert scoring is not None
        for (competitor, unity_id), amount in wanted(scoring, played, ranking).items():
            sums[names[unity_id]][competitor] += amount
    return {unity: dict(found) for unity, found in sums.items()}


def race(name: KindName, texts: Mapping[int, str], **said: Any) -> dict[str, dict[int, str]]:
    return lines(name, Played(participants=tuple(texts), result=dict(texts), **said))


def duel(name: KindName, result: str, **said: Any) -> dict[str, dict[int, str]]:
    return lines(name, Played(result=result, **said))


def test_the_names_of_kinds_are_those_of_the_data() -> None:
    assert [*kinds()] == [*get_args(KindName)]


@pytest.mark.parametrize("name", kinds())
def test_a_kind_is_a_declaration_without_faults(name: KindName) -> None:
    kind = kinds()[name]
    assert scoring_faults(ranking_of(kind), kind.scorings_with(ids_of(kind))) == []


@pytest.mark.parametrize("name", kinds())
def test_the_examples_of_a_kind_count(name: KindName) -> None:
    kind = kinds()[name]
    ranking = ranking_of(kind)
    for scoring in kind.scorings_with(ids_of(kind)):
        for text in kind.results:
            result: Result = {A: text, B: text, C: text}
            pairs = [(A, B), (A,)]
            given = []
            for participants, said in [((A, B, C), result), *((pair, text) for pair in pairs)]:
                try:
                    given.append(wanted(scoring, Played(participants=participants, result=said), ranking))
                except NotRead:
                    continue
            assert given


def test_football_gives_three_points_for_a_win_and_one_for_a_draw() -> None:
    """The table of the first group of the World Cup 2022, from its six matches (FIFA: three points since 1994)."""
    netherlands, senegal, ecuador, qatar = A, B, C, D
    group = table(
        "football",
        (qatar, ecuador, "0:2"),
        (senegal, netherlands, "0:2"),
        (qatar, senegal, "1:3"),
        (netherlands, ecuador, "1:1"),
        (netherlands, qatar, "2:0"),
        (ecuador, senegal, "1:2"),
    )
    assert group["points"] == {netherlands: 7, senegal: 6, ecuador: 4, qatar: 0}
    assert group["goal difference"] == {netherlands: 4, senegal: 1, ecuador: 1, qatar: -6}
    assert group["goals for"] == {netherlands: 5, senegal: 5, ecuador: 4, qatar: 1}
    assert group["goals against"] == {netherlands: 1, senegal: 4, ecuador: 3, qatar: 7}
    assert (group["won"], group["drawn"]) == ({netherlands: 2, senegal: 2, ecuador: 1}, {netherlands: 1, ecuador: 1})
    assert group["lost"] == {senegal: 1, ecuador: 1, qatar: 3}
    assert set(group["played"].values()) == {3}


def test_football_before_1981_gave_two_points_for_a_win() -> None:
    """The last group of the World Cup 1978: Argentina and Brazil had five points each, Argentina the better goals."""
    argentina, brazil, poland, peru = A, B, C, D
    group = table(
        "football-1980",
        (argentina, poland, "2:0"),
        (brazil, peru, "3:0"),
        (argentina, brazil, "0:0"),
        (poland, peru, "1:0"),
        (brazil, poland, "3:1"),
        (argentina, peru, "6:0"),
    )
    assert group["points"] == {argentina: 5, brazil: 5, poland: 2, peru: 0}
    assert group["goal difference"] == {argentina: 8, brazil: 5, poland: -3, peru: -10}


def test_ice_hockey_gives_a_point_for_a_loss_after_overtime() -> None:
    """IIHF Sport Regulations: 3 points for a win in regulation time; after it 2, and 1 for the other team."""
    group = table("ice-hockey", (A, B, "4:1"), (A, C, "3:2 OT"), (B, C, "2:3 so"))
    assert group["points"] == {A: 5, B: 1, C: 3}
    assert group["goal difference"] == {A: 4, B: -4, C: 0}
    columns = ("played", "won", "won after overtime", "lost after overtime", "lost")
    assert [[group[column].get(team, 0) for column in columns] for team in (A, B, C)] == [
        [2, 1, 1, 0, 0],
        [2, 0, 0, 1, 1],
        [2, 0, 1, 1, 0],
    ]
    with pytest.raises(NotRead):  # a match does not end in a draw
        duel("ice-hockey", "2:2")


@pytest.mark.parametrize(
    ("name", "above", "below"),
    [("football-1888", "goals for", "goals against"), ("volleyball", "sets won", "sets lost")],
)
def test_a_quotient_decides_last(name: KindName, above: str, below: str) -> None:
    kind = kinds()[name]
    ids = ids_of(kind)
    assert kind.criteria_with(ids)[-1] == Criterion(ids[above], ratio=ids[below])


def test_volleyball_gives_the_loser_of_five_sets_a_point() -> None:
    """FIVB: 3:0 and 3:1 give 3 and 0 points, 3:2 gives 2 and 1."""
    pool = table("volleyball", (A, B, "3:2"), (A, C, "3:1"), (B, C, "0:3"))
    assert pool["points"] == {A: 5, B: 1, C: 3}
    assert (pool["won"], pool["sets won"], pool["sets lost"]) == ({A: 2, C: 1}, {A: 6, B: 2, C: 4}, {A: 3, B: 6, C: 3})
    assert duel("volleyball", "wo", winner_id=B)["points"] == {A: "0", B: "3"}
    ids = ids_of(kinds()["volleyball"])
    criteria = [(one.unity_id, one.ratio) for one in kinds()["volleyball"].criteria_with(ids)]
    assert criteria == [(ids["won"], None), (ids["points"], None), (ids["sets won"], ids["sets lost"])]
    with pytest.raises(NotRead):
        duel("volleyball", "2:2")


def test_handball_counts_minus_points() -> None:
    """34 matches of a Bundesliga season: 22 wins, 1 draw and 11 losses are 45:23 points, and all points are 68."""
    season = table("handball", *[(A, B, "31:28")] * 22, (A, B, "25:25"), *[(A, B, "20:21")] * 11)
    assert (season["points"][A], season["minus points"][A]) == (45, 23)
    assert (season["points"][B], season["minus points"][B]) == (23, 45)
    assert season["goal difference"][A] == 22 * 3 - 11


def test_darts_counts_legs() -> None:
    """The league of the PDC until 2021: 2 points for a win, 1 for a draw, then leg difference, then legs."""
    league = table("darts", (A, B, "7:5"), (A, C, "6:6"), (B, C, "7:2"))
    assert league["points"] == {A: 3, B: 2, C: 1}
    assert (league["leg difference"], league["legs won"]) == ({A: 2, B: 3, C: -5}, {A: 13, B: 12, C: 8})


def test_chess_knows_byes_and_forfeits() -> None:
    """FIDE C.07: byes give a full point, half a point or none, and are no games; a forfeit is won, but not played."""
    swiss = table(
        "chess",
        (A, B, "1-0"),
        (C, D, "½-½"),
        (E, "bye"),
        (F, "half bye"),
        (A, C, "+:-"),
        (B, "zero bye"),
        (D, E, "0:0"),
        (B, F, "-:-"),
    )
    assert swiss["points"] == {A: 20, B: 0, C: 5, D: 5, E: 10, F: 5}
    assert swiss["played"] == {A: 1, B: 1, C: 1, D: 2, E: 1, F: 0}
    assert (swiss["won"], swiss["drawn"]) == ({A: 2}, {C: 1, D: 1})
    assert swiss["lost"] == {B: 2, C: 1, D: 1, E: 1, F: 1}  # a double forfeit is lost by both, and draws nothing


def test_rugby_gives_four_points_and_leaves_bonus_points_to_be_added_by_hand() -> None:
    """World Rugby: 4 points for a win, 2 for a draw; four tries, or a loss by at most seven, give 1 more."""
    pool = table("rugby", (A, B, "24:19"), (A, C, "15:15"))
    assert pool["points"] == {A: 6, B: 0, C: 2}
    assert pool["points difference"] == {A: 5, B: -5, C: 0}


def test_formula_one_counts_places_for_ties_but_not_those_of_sprints() -> None:
    """FIA Formula One Sporting Regulations, article 6: the first ten of a race, the first eight of a sprint."""
    result = {A: "1", B: "2", C: "10", D: "11", E: "DNF", F: "dsq"}
    grand_prix = race("formula-one", result)
    assert grand_prix["points"] == {A: "25.0", B: "18.0", C: "1.0", D: "0.0", E: "0.0", F: "0.0"}
    assert (grand_prix["wins"], grand_prix["seconds"], grand_prix["10ths"]) == ({A: "1"}, {B: "1"}, {C: "1"})
    sprint = race("formula-one", result, scale="sprint")
    assert sprint == {"points": {A: "8.0", B: "7.0", C: "0.0", D: "0.0", E: "0.0", F: "0.0"}}


def test_formula_one_can_give_half_points() -> None:
    """The Belgian Grand Prix of 2021 had three laps: 12.5 for the first, 9 for the second, and so on."""
    order = {A: "1", B: "2", C: "3", D: "4", E: "9", F: "10"}
    half = race("formula-one", order, scale="half")
    assert half["points"] == {A: "12.5", B: "9.0", C: "7.5", D: "6.0", E: "1.0", F: "0.5"}
    assert half["wins"] == {A: "1"}


def test_formula_one_shares_the_points_of_a_dead_heat() -> None:
    """Article 7: the points of the places of those who tie are added and shared equally."""
    assert race("formula-one", {A: "1", B: "1", C: "3"})["points"] == {A: "21.5", B: "21.5", C: "15.0"}


def test_sailing_gives_one_more_than_the_entries_to_those_who_did_not_finish() -> None:
    """Racing Rules of Sailing, appendix A: A4 (place), A5.2 (one more than entered), A7 (a tie shares the places)."""
    found = race("sailing", {A: "1", B: "2", C: "2", D: "OCS", E: "dnf"})
    assert found["points"] == {A: "1.0", B: "2.5", C: "2.5", D: "7.0", E: "7.0", F: "7.0"}  # F did not come
    assert found["firsts"] == {A: "1"}
    assert found["seconds"] == {B: "1", C: "1"}


@pytest.mark.parametrize("name", get_args(KindName))
def test_nobody_is_in_front_for_doing_nothing(name: KindName) -> None:
    """Where the lowest total wins, it is not that of who has no points."""
    kind = kinds()[name]
    deciding = {unity.name: unity for unity in kind.unities}
    first = kind.criteria[0].get("unity", kind.unities[0].name) if kind.criteria else kind.unities[0].name
    assert deciding[first].counts_results or deciding[first].sort == "DESC"
    if name in ("sailing", "golf", "race"):
        assert {kind.unities[0].absent, deciding[first].absent} == {"none"}


def test_golf_adds_the_strokes_of_all_rounds() -> None:
    """Rules of Golf 3.3: the player with the fewest strokes in all rounds wins. Who withdrew has no score."""
    rounds = table("golf", (A, B, C, {A: "71", B: "68", C: "70"}), (A, B, "69|WD"))
    assert rounds["strokes"] == {A: 140, B: 68, C: 70}
    assert rounds["rounds"] == {A: 2, B: 1, C: 1}


def test_triathlon_shares_the_mean_of_places() -> None:
    """Triathlon-Bundesliga: the lowest sum of places gets 20 points, the next 19; the sums decide between ties."""
    found = race("triathlon", {A: "44", B: "51", C: "51", D: "60", E: "dsq"})
    assert found["points"] == {A: "20.0", B: "18.5", C: "18.5", D: "17.0", E: "0.0"}
    assert found["place numbers"] == {A: "44", B: "51", C: "51", D: "60"}


def test_icpc_ranks_by_problems_then_penalty_then_the_last_problem() -> None:
    """The medals of the World Finals 2018, at Beijing: minutes, and 20 for each wrong try at a solved problem.

    Their rules: the team with the earlier last solution stands ahead of one with the same penalty.
    """
    moscow, mipt, none = "79 87 - 258 296+3 47+3 140+1 41+1 224+2 - 55", "66 17 - 272 229+1 55 - 91 122 - 48+2", "-"
    contest = race("icpc", {A: moscow, B: mipt, C: none})
    assert contest["solved"] == {A: "9", B: "8", C: "0"}
    assert contest["penalty"] == {A: "1427", B: "960", C: "0"}
    assert contest["last solved"] == {A: "296", B: "272", C: "0"}


def test_a_swim_gala_shares_the_points_of_a_tie_exactly() -> None:
    """Six lanes, 6 points to 1, as in Kent's Tudor League; the disqualified get none. Relays count double."""
    times = {A: "1:02.31", B: "59.80", C: "1:02,31", D: "1:10", E: "DQ", F: "1:11"}
    assert race("swim-gala", times)["points"] == {A: "4.5", B: "6.0", C: "4.5", D: "3.0", E: "0.0", F: "2.0"}
    relay = race("swim-gala", times, scale="relay")
    assert relay["points"] == {A: "9.0", B: "12.0", C: "9.0", D: "6.0", E: "0.0", F: "4.0"}
    assert duel("swim-gala", "31.2|31.2")["points"] == {A: "5.5", B: "5.5"}


def test_medals_are_given_to_all_who_share_a_place() -> None:
    """The high jump of Tokyo 2020: two golds, no silver, one bronze."""
    assert race("medals", {A: "1", B: "1", C: "3", D: "4"}) == {"gold": {A: "1", B: "1"}, "bronze": {C: "1"}}


def test_masters_are_placed_within_the_age_group_that_the_ranking_enrols() -> None:
    race_of_all = Played(
        participants=(GUEST, A, B, C, D), result={GUEST: "38:02", A: "41:07", B: "40:59", C: "dnf", D: "45:00"}
    )
    group = lines("masters", race_of_all, (A, B, C))
    assert group == {"points": {A: "9", B: "10", C: "0"}, "wins": {B: "1"}}


def test_tennis_gives_points_for_the_round_that_was_reached() -> None:
    """ATP Rulebook 2024, section 9: winner, finalist, semi-finals, and so on."""
    draw = {A: "W", B: "F", C: "SF", D: "qf", E: "R16", F: "R128"}
    assert race("tennis", draw, scale="grand slam")["points"] == dict(
        zip(draw, ("2000", "1300", "800", "400", "200", "10"), strict=True)
    )
    assert race("tennis", {A: "W", B: "F"}, scale="250")["points"] == {A: "250", B: "165"}


def test_high_scores_and_laps_are_results_of_one() -> None:
    assert lines("high-score", Played(participants=(A,), result="48150")) == {"high score": {A: "48150"}}
    assert race("laps", {A: "1:27.097", B: "1:27,1", C: "DNF"}) == {"time": {A: "1:27.097", B: "1:27.1"}}
