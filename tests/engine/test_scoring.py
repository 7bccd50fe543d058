"""What results give: by outcome, score, place, performance and contest, and how each form of a result is read."""

from fractions import Fraction
from typing import Any, Final, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from engine.domain import events
from engine.domain.awards import Award, AwardValue, Scoring
from engine.domain.options import UnityOptions, options_of
from engine.domain.scoring import USUAL_WORDS, NotRead, choose, outcomes_by_amount, read, scoring_faults, turned, wanted
from engine.domain.terms import AWARDS_MAX, DELTA_MAX, SCORING_TABLE_MAX, SCORINGS_MAX, Counts, Sort
from projections.board.board import Board, Ranking
from tests.histories import fold_events

ANNA, BEN, CARA, DORA, EMIL, GAST = range(1, 7)  # the last one was never in the ranking
LEFT: Final = EMIL
MAIN, GOALS, AGAINST, TENTHS, TIME = range(40, 45)


class Played(Struct, frozen=True, kw_only=True):
    participants: tuple[int, ...] = (ANNA, BEN)
    result: str | dict[int, str] | None = None
    winner_id: int | None = None
    group_id: int = 1
    scale: str = ""


def ranking() -> Ranking:
    board = Board()
    best = options_of(UnityOptions(time="ms", counts=Counts.BEST))
    fold_events(
        board,
        events.TournamentOpened(name="Spring Open", slug="spring-open"),
        *(events.CompetitorRegistered(competitor_id=c, name=f"No. {c}") for c in (ANNA, BEN, CARA, DORA, EMIL, GAST)),
        events.RankingCreated(
            ranking_id=30,
            name="Overall",
            participants=(ANNA, BEN, CARA, DORA, EMIL),
            main_unity_id=MAIN,
            main_unity_name="points",
        ),
        events.UnityAdded(ranking_id=30, unity_id=GOALS, name="goals"),
        events.UnityAdded(ranking_id=30, unity_id=AGAINST, name="against"),
        events.UnityAdded(ranking_id=30, unity_id=TENTHS, name="tenths", decimals=1),
        events.UnityAdded(ranking_id=30, unity_id=TIME, name="time", sort=Sort.ASC, **best),
        events.ParticipantsChanged(ranking_id=30, removed=(LEFT,)),
    )
    return board.rankings[30]


RANKING: Final = ranking()


def award(value: str, unity_id: int = MAIN, **said: Any) -> Award:
    return Award(unity_id=unity_id, value=value, **said)


def scoring(*awards: Award, **said: Any) -> Scoring:
    return Scoring(awards=awards, **said)


LEAGUE: Final = scoring(
    award("outcome", table={"win": 3, "draw": 1, "loss": 0}),
    award("for", GOALS),
    award("against", GOALS, factor=-1),
    award("against", AGAINST),
)
RACE: Final = scoring(award("place", table=(10, 6, 3)), order="low")


def given_by(how: Scoring, result: str | dict[int, str] | None = None, *participants: int, **said: Any) -> Any:
    """What the result gives in the main unity, or in the only one, by competitor."""
    named = participants or (tuple(result) if isinstance(result, dict) else (ANNA, BEN))
    lines = wanted(how, Played(participants=named, result=result, **said), RANKING)
    main = how.awards[0].unity_id
    return {competitor: amount for (competitor, unity), amount in lines.items() if unity == main}


@pytest.mark.parametrize(
    ("result", "amounts"),
    [
        ("2:1", (3, 0)),
        (" 2 : 1 ", (3, 0)),
        ("2-1", (3, 0)),
        ("2–1", (3, 0)),  # noqa: RUF001 - pages write a dash
        ("1:1", (1, 1)),
        ("0:10", (0, 3)),
        ("½:½", (1, 1)),
        ("1/2-1/2", (1, 1)),
        ("2½:1,5", (3, 0)),
        ("2.50:2½", (1, 1)),
        ("2:3 aet", (0, 3)),
        ("2:3 (a.e.t.)", (0, 3)),
        ("5:4 PEN", (3, 0)),
        ("3:0 w/o", (3, 0)),
        ("0:0 wo", (0, 0)),
        ("+:-", (3, 0)),
        ("-/+", (0, 3)),
        ("\N{MINUS SIGN}:\N{MINUS SIGN}", (0, 0)),
        ("walkover", (0, 0)),
    ],
)
def test_a_score_of_two_participants_is_read_in_every_usual_form(result: str, amounts: tuple[int, int]) -> None:
    whole = scoring(LEAGUE.awards[0])
    assert given_by(whole, result) == dict(zip((ANNA, BEN), amounts, strict=True))


@pytest.mark.parametrize(
    ("words", "result", "winner", "amounts"),
    [
        ({}, "2:2 pen", BEN, (0, 3)),
        ({}, "1:2", ANNA, (3, 0)),  # the documented operation accepts it, and the winner decides
        ({"abandoned": "draw"}, "1:2 abandoned", BEN, (1, 1)),
        ({"Double Forfeit": "loss"}, "double forfeit", None, (0, 0)),
        ({"double forfeit": "loss"}, "3:0 double forfeit", ANNA, (0, 0)),
        ({"n.V.": None}, "2:3 n.V.", None, (0, 3)),
        ({}, "wo", BEN, (0, 3)),
        ({}, "0:0 wo", ANNA, (3, 0)),
        ({}, None, BEN, (0, 3)),
        ({}, "1:2", GAST, (0, 3)),  # no longer a participant
    ],
)
def test_the_word_then_the_winner_then_the_score_decide(
    words: Any, result: str | None, winner: int | None, amounts: tuple[int, int]
) -> None:
    how = scoring(LEAGUE.awards[0], words=words)
    assert given_by(how, result, ANNA, BEN, winner_id=winner) == dict(zip((ANNA, BEN), amounts, strict=True))


@pytest.mark.parametrize("result", ["2:2 pen", "2:2 (PEN)"])
def test_a_shoot_out_gives_nothing_until_its_winner_is_named_unless_a_scoring_says_what_it_is(result: str) -> None:
    with pytest.raises(NotRead, match="A shoot-out always has a winner: name the winner"):
        given_by(scoring(LEAGUE.awards[0]), result)
    assert given_by(scoring(LEAGUE.awards[0]), result, winner_id=BEN) == {ANNA: 0, BEN: 3}
    assert given_by(scoring(LEAGUE.awards[0], words={"Pen.": "draw"}), result) == {ANNA: 1, BEN: 1}


def test_a_loss_that_no_table_names_gives_nothing_but_a_draw_must_be_named() -> None:
    how = scoring(award("outcome", table={"win": 3}))
    assert given_by(how, "2:1") == {ANNA: 3, BEN: 0}
    with pytest.raises(NotRead, match="'draw' is not one of win"):
        given_by(how, "1:1")


def test_several_awards_into_one_unity_are_added() -> None:
    lines = wanted(LEAGUE, Played(result="4:2"), RANKING)
    assert lines == {
        (ANNA, MAIN): 3,
        (BEN, MAIN): 0,
        (ANNA, GOALS): 2,
        (BEN, GOALS): -2,
        (ANNA, AGAINST): 2,
        (BEN, AGAINST): 4,
    }


def test_a_walkover_without_a_score_gives_points_and_no_goals() -> None:
    assert set(wanted(LEAGUE, Played(winner_id=BEN), RANKING)) == {(ANNA, MAIN), (BEN, MAIN)}


@pytest.mark.parametrize("result", [None, ""])
def test_a_fixture_gives_nothing(result: str | None) -> None:
    assert wanted(LEAGUE, Played(result=result), RANKING) == {}


def test_a_table_of_outcomes_knows_words() -> None:
    how = scoring(award("outcome", table={"win": 3, "win so": 2, "loss so": 1, "loss": 0}), words={"SO": None})
    assert given_by(how, "3:2 so") == {ANNA: 2, BEN: 1}
    assert given_by(how, "3:2") == {ANNA: 3, BEN: 0}
    with pytest.raises(NotRead, match="'draw' is not one of win, win so, loss so, loss"):
        given_by(how, "2:2")


def test_exact_scores_are_found_before_outcomes() -> None:
    how = scoring(award("score", table={"3:0": 3, "3:2": 2, "2:3": 1, "0:3": 0, "0:3 wo": -1, "win wo": 3, "loss": 0}))
    assert given_by(how, "2:3") == {ANNA: 1, BEN: 2}
    assert given_by(how, "3:0 wo") == {ANNA: 3, BEN: -1}
    assert given_by(how, "wo", ANNA, BEN, winner_id=BEN) == {ANNA: 0, BEN: 3}
    with pytest.raises(NotRead):
        given_by(how, "2:1")


def test_outcomes_are_counted_where_there_is_no_table() -> None:
    assert given_by(scoring(award("outcome", outcomes=("win",))), "2:1") == {ANNA: 1}
    assert given_by(scoring(award("outcome", outcomes=("win", "draw", "loss"))), "bye", ANNA) == {}


@pytest.mark.parametrize(("text", "amount"), [("bye", 10), ("Half Bye", 5), ("half-point bye", 5), ("zero bye", 0)])
def test_one_participant_can_have_a_bye(text: str, amount: int) -> None:
    how = scoring(award("outcome", TENTHS, table={"win": 10, "loss": 0, "bye": 10, "bye half": 5, "bye zero": 0}))
    assert given_by(how, text, ANNA) == {ANNA: amount}


def test_a_bye_gives_nothing_where_none_is_declared() -> None:
    assert given_by(LEAGUE, "bye", ANNA) == {}


@pytest.mark.parametrize(
    ("order", "texts", "amounts"),
    [
        ("low", ("10.1", "9.8", "10,1", "DNF"), (6, 10, 6, None)),
        ("low", ("1:02.3", "59.99", "1:00:00", "dq"), (6, 10, 3, None)),
        ("high", ("8.95", "7½", "-1", "+9"), (6, 3, 0, 10)),
        ("sent", ("3", "1", "1.", "5"), (3, 10, 10, 0)),
    ],
)
def test_performances_become_places(order: Any, texts: tuple[str, ...], amounts: tuple[int | None, ...]) -> None:
    how = scoring(award("place", table=(10, 6, 3)), order=order)
    result = dict(zip((ANNA, BEN, CARA, DORA), texts, strict=True))
    expected = {c: amount for c, amount in zip(result, amounts, strict=True) if amount is not None}
    assert given_by(how, result) == expected


def test_two_in_a_race_are_two_performances() -> None:
    assert given_by(RACE, "10.1|9.8") == {ANNA: 6, BEN: 10}
    assert given_by(RACE, "10.1 | dns") == {ANNA: 10}
    duel = scoring(award("outcome", table={"win": 2, "draw": 1, "loss": 0}), order="low")
    assert given_by(duel, "10.1|9.8") == {ANNA: 0, BEN: 2}
    assert given_by(duel, "9,8|9.80") == {ANNA: 1, BEN: 1}
    assert given_by(duel, "dnf|dnf") == {}
    with pytest.raises(NotRead, match="has performances"):
        given_by(LEAGUE, "2|1")


def test_those_who_share_a_place_get_the_full_amount_or_the_mean() -> None:
    tie = {ANNA: "9.8", BEN: "9.8", CARA: "9.8", DORA: "10"}
    assert given_by(scoring(award("place", table=(10, 6, 3)), order="low"), tie) == {
        ANNA: 10,
        BEN: 10,
        CARA: 10,
        DORA: 0,
    }
    mean = award("place", table=(10, 6, 4), ties="mean")
    assert given_by(scoring(mean, order="low"), tie) == {ANNA: 7, BEN: 7, CARA: 7, DORA: 0}
    low_points = award("place", TENTHS, factor=10, ties="mean")
    assert given_by(scoring(low_points, order="low"), {ANNA: "1", BEN: "1", CARA: "2"}) == {ANNA: 15, BEN: 15, CARA: 30}


def test_halves_of_the_smallest_unit_are_rounded_away_from_zero() -> None:
    tie = {ANNA: "1", BEN: "1", CARA: "2"}
    assert given_by(scoring(award("place", ties="mean"), order="low"), tie)[ANNA] == 2
    assert given_by(scoring(award("place", factor=-1, ties="mean"), order="low"), tie)[ANNA] == -2
    assert given_by(scoring(award("place", table=(-2, -1), ties="mean"), order="low"), tie)[ANNA] == -2


def test_a_table_of_some_places_gives_nothing_for_the_others() -> None:
    result = {ANNA: "1", BEN: "2", CARA: "2", DORA: "4"}
    assert given_by(scoring(award("place", table={"2": 1})), result) == {BEN: 1, CARA: 1}
    assert given_by(scoring(award("place", table={"3": 4}, ties="mean")), result) == {BEN: 2, CARA: 2}


def test_a_score_can_say_that_both_have_lost() -> None:
    how = scoring(LEAGUE.awards[0], words={"0:0": "loss"})
    assert given_by(how, "0-0") == {ANNA: 0, BEN: 0}
    assert given_by(how, "0:0", ANNA, BEN, winner_id=BEN) == {ANNA: 0, BEN: 0}
    assert given_by(how, "½-½") == {ANNA: 1, BEN: 1}


def test_statuses_get_what_is_declared_in_any_case() -> None:
    statuses = {"DNF": "entries+1", "dsq": 99, "Absent": "entries+1", "WD": None}
    how = scoring(award("place", statuses=statuses), order="sent")
    assert given_by(how, {ANNA: "1", BEN: "wd"}) == {ANNA: 1, CARA: 5, DORA: 5}
    assert given_by(how, {ANNA: "1", BEN: "dnf", CARA: "DSQ"}) == {ANNA: 1, BEN: 5, CARA: 99, DORA: 5}
    assert given_by(msgspec.structs.replace(how, entries=20), {ANNA: "1", BEN: "Dnf"})[BEN] == 21


def test_places_are_counted_among_all_participants_or_those_of_the_ranking() -> None:
    result = {GAST: "9.0", ANNA: "9.5", LEFT: "9.6", BEN: "9.8"}
    assert given_by(RACE, result) == {ANNA: 6, LEFT: 3, BEN: 0}
    ours = scoring(award("place", table=(10, 6, 3), among="enrolled"), order="low")
    assert given_by(ours, result) == {ANNA: 10, BEN: 6}
    sent = scoring(award("place", table=(10, 6, 3), among="enrolled"))
    assert given_by(sent, {GAST: "1", ANNA: "4", BEN: "9"}) == {ANNA: 10, BEN: 6}


def test_performances_are_read_in_the_notation_of_the_unity() -> None:
    assert given_by(scoring(award("performance", TIME)), {ANNA: "1:02.3", BEN: "9,58", CARA: "dns"}) == {
        ANNA: 62_300,
        BEN: 9_580,
    }
    assert given_by(scoring(award("performance")), "71", ANNA) == {ANNA: 71}
    with pytest.raises(NotRead, match=r"'7\.5' cannot count in the unity 'points': it must be a whole number"):
        given_by(scoring(award("performance")), "7.5", ANNA)


def test_a_contest_counts_problems_minutes_wrong_tries_and_the_last_minute() -> None:
    result = {ANNA: "A:43 - C:120+2 7 -", BEN: "- D:-3 E:? F:-1?2 ?4", CARA: "0"}
    values = ("solved", "minutes", "tries", "last")
    assert [given_by(scoring(award(value)), result)[ANNA] for value in values] == [3, 170, 2, 120]
    assert [given_by(scoring(award(value)), result)[BEN] for value in values] == [0, 0, 0, 0]
    assert given_by(scoring(award("solved")), result)[CARA] == 1
    penalty = scoring(award("minutes"), award("tries", factor=20))
    assert given_by(penalty, result) == {ANNA: 210, BEN: 0, CARA: 0}


def test_only_current_and_former_competitors_of_the_ranking_get_points() -> None:
    assert given_by(LEAGUE, "1:2", GAST, LEFT) == {LEFT: 3}


def test_the_scale_chooses_the_scoring_then_the_group() -> None:
    main, cup = scoring(*LEAGUE.awards), scoring(*LEAGUE.awards, groups=(7, 8))
    sprint = scoring(*RACE.awards, name="Sprint")
    assert choose((cup, sprint, main), Played(group_id=7)) is cup
    assert choose((cup, sprint, main), Played(group_id=1)) is main
    assert choose((cup, sprint, main), Played(group_id=7, scale="sprint")) is sprint
    assert choose((cup, sprint), Played(group_id=1)) is None
    assert choose((main,), Played(scale="sprint")) is None


@pytest.mark.parametrize("result", ["4:2 hat-trick", "02-Jan-2026", "abc", "2", "1|2|3", "+:+", "aet", "1:"])
def test_what_cannot_be_read_is_refused_with_the_forms_that_count(result: str) -> None:
    with pytest.raises(NotRead) as refused:
        wanted(LEAGUE, Played(result=result), RANKING)
    assert refused.value.forms[0] == "a score of two numbers, such as 2:1"


@pytest.mark.parametrize(
    ("how", "form"),
    [
        (RACE, "a number or time, such as 9.58 or 1:02.3"),
        (scoring(award("place"), order="sent"), "a place, such as 1"),
        (scoring(award("solved"), order="high"), "the minutes of solved problems, such as 43 120+2, or -"),
    ],
)
def test_the_form_of_a_performance_is_told(how: Scoring, form: str) -> None:
    with pytest.raises(NotRead) as refused:
        given_by(how, {ANNA: "rained off", BEN: "1", CARA: "2"})
    assert refused.value.forms == (f"for each participant, with | between two: {form}",)


TEXTS: Final = st.text(max_size=40) | st.from_regex(
    r"[0-9½+:|.,/ -]{0,12}( (pen|wo|bye|dnf|half bye))?", fullmatch=True
)
SCORINGS: Final = st.builds(
    Scoring,
    awards=st.lists(
        st.builds(
            Award,
            unity_id=st.sampled_from([MAIN, GOALS, AGAINST, TENTHS]),
            value=st.sampled_from(get_args(AwardValue)),
            table=st.none() | st.just({"win": 3, "draw": 1, "loss": 0, "1": 5}) | st.just((5, 3, 1)),
            factor=st.integers(-3, 3),
            statuses=st.dictionaries(
                st.sampled_from(["DNF", "absent"]), st.none() | st.integers(-5, 5) | st.just("entries+1")
            ),
            ties=st.sampled_from(["each", "mean"]),
            among=st.sampled_from(["participants", "enrolled"]),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    order=st.sampled_from(["low", "high", "sent"]),
    words=st.dictionaries(TEXTS, st.sampled_from(["win", "draw", "loss", "awarded", None]), max_size=2),
)


@given(SCORINGS, st.lists(st.integers(ANNA, GAST), unique=True, max_size=4), st.data())
def test_any_result_is_read_or_refused(how: Scoring, participants: list[int], data: st.DataObject) -> None:
    performances = st.dictionaries(st.integers(ANNA, GAST), TEXTS)
    result = data.draw(st.none() | TEXTS | performances)
    winner = data.draw(st.none() | st.integers(ANNA, GAST))
    played = Played(participants=tuple(participants), result=result, winner_id=winner)
    try:
        lines = wanted(how, played, RANKING)
    except NotRead:
        return
    assert all(competitor != GAST and type(amount) is int for (competitor, _), amount in lines.items())
    if result is None and read(how, played) == {}:
        assert lines == {}


@given(
    st.lists(st.integers(0, 30), min_size=3, max_size=12),
    st.lists(st.integers(0, 50), max_size=15).map(tuple),
    st.sampled_from(["low", "high"]),
)
def test_the_mean_gives_away_exactly_the_points_of_the_places(
    sizes: list[int], table: tuple[int, ...], order: Any
) -> None:
    """Exactly, because the amounts are in a unit in which every mean of up to 12 is whole."""
    unit = 27_720
    whole = tuple(amount * unit for amount in table)
    how = scoring(award("place", table=whole, ties="mean"), order=order)
    board_ranking = _crowd(len(sizes))
    result = {number: str(size) for number, size in enumerate(sizes, start=1)}
    lines = wanted(how, Played(participants=tuple(result), result=result), board_ranking)
    assert sum(lines.values()) == sum(whole[: len(sizes)])
    for one in result:
        better = sum((size < sizes[one - 1]) if order == "low" else (size > sizes[one - 1]) for size in sizes)
        equal = sizes.count(sizes[one - 1])
        mean = Fraction(sum(table[better : better + equal]), equal)
        assert Fraction(lines[one, MAIN], unit) == mean


def _crowd(count: int) -> Ranking:
    board = Board()
    everyone = tuple(range(1, count + 1))
    fold_events(
        board,
        events.TournamentOpened(name="Spring Open", slug="spring-open"),
        *(events.CompetitorRegistered(competitor_id=c, name=f"No. {c}") for c in everyone),
        events.RankingCreated(
            ranking_id=30, name="Overall", participants=everyone, main_unity_id=MAIN, main_unity_name="points"
        ),
    )
    return board.rankings[30]


def test_an_amount_that_no_delta_can_have_is_refused() -> None:
    with pytest.raises(NotRead, match=f"not within ±{DELTA_MAX}"):
        given_by(scoring(award("for", factor=DELTA_MAX)), "2:1")


def test_a_scoring_is_stored_as_json_and_read_back() -> None:
    how = scoring(
        award("place", table=(25, 18), statuses={"DNF": "entries+1", "DSQ": 0}, ties="mean"),
        award("outcome", table={"win": 3, "win so": 2}, outcomes=("win",)),
        name="sprint",
        groups=(1, 2),
        order="low",
        words={"so": None, "double forfeit": "loss"},
        entries=20,
    )
    stored = msgspec.json.encode(how)
    assert b'"from":"place"' in stored
    assert msgspec.json.decode(stored, type=Scoring) == how


@pytest.mark.parametrize(
    ("how", "faults"),
    [
        ([LEAGUE, RACE], []),
        ([LEAGUE] * (SCORINGS_MAX + 1), [("scorings", f"must be at most {SCORINGS_MAX}")]),
        ([scoring()], [("scorings[0].awards", f"must be 1 to {AWARDS_MAX}")]),
        (
            [scoring(*LEAGUE.awards, name="cup"), scoring(*LEAGUE.awards, name="CUP")],
            [(f"scorings[{n}].name", "must not be the name of another scoring") for n in (0, 1)],
        ),
        ([scoring(award("for", 99))], [("scorings[0].awards[0].unity", "unity 99 is not in this ranking")]),
        (
            [scoring(award("for"), award("performance", TIME), award("for", TIME))],
            [(f"scorings[0].awards[{n}].unity", "counts results: only one award can give them") for n in (1, 2)],
        ),
        ([scoring(award("score"))], [("scorings[0].awards[0].table", "must be an object by score")]),
        ([scoring(award("for", table=(1,)))], [("scorings[0].awards[0].table", "must be left out")]),
        (
            [scoring(award("place", table={"1": 3, "first": 2}))],
            [("scorings[0].awards[0].table", "'first' must be a place, such as 1")],
        ),
        (
            [scoring(award("outcome", table={"victory": 3}))],
            [("scorings[0].awards[0].table", "'victory' must be win, draw, loss or bye, perhaps with a word")],
        ),
        (
            [scoring(award("score", table={"03:1 (N.V.)": 3}))],
            [("scorings[0].awards[0].table", "'03:1 (N.V.)' must be written '3:1 nv'")],
        ),
        (
            [scoring(award("place", table=(1,) * (SCORING_TABLE_MAX + 1)))],
            [("scorings[0].awards[0].table", f"must have at most {SCORING_TABLE_MAX} amounts")],
        ),
        (
            [scoring(award("place", factor=DELTA_MAX + 1))],
            [("scorings[0].awards[0].factor", f"must be within ±{DELTA_MAX}")],
        ),
        ([scoring(*RACE.awards, entries=0)], [("scorings[0].entries", "must be from 1 to 1000000")]),
        ([scoring(*RACE.awards, words={"()": None})], [("scorings[0].words", "must not be empty")]),
        ([scoring(award("place", statuses={" ": 0}))], [("scorings[0].awards[0].statuses", "must not be empty")]),
    ],
)
def test_a_declaration_is_refused_with_each_of_its_faults(how: list[Scoring], faults: list[tuple[str, str]]) -> None:
    assert [(fault.field, fault.message) for fault in scoring_faults(RANKING, tuple(how))] == faults


def test_every_scoring_knows_the_usual_words() -> None:
    assert set(USUAL_WORDS) == {"aet", "pen", "wo", "walkover", "awarded"}


@pytest.mark.parametrize(
    ("awards", "found"),
    [
        ([{"win": 3, "draw": 1, "loss": 0}], {3: "win", 1: "draw", 0: "loss"}),
        ([{"win": 2, "draw": 1}], {2: "win", 1: "draw", 0: "loss"}),  # what a table lacks is 0
        ([{"win": 3, "win ot": 2, "loss ot": 1, "loss": 0}], {}),
        ([{"win": 1, "draw": 1, "loss": 0}], {}),
        ([{"win": 10, "draw": 5, "loss": 0, "bye": 10}], {}),  # a bye is no win
        ([{"win": 3, "draw": 1}, {"win": 2, "draw": 1}], {}),
        ([{"win": 3, "draw": 1}, 1], {}),
        ([], {}),
    ],
)
def test_an_amount_stands_for_an_outcome_where_nothing_else_gives_it(awards: list[Any], found: dict[int, str]) -> None:
    made = [
        Award(unity_id=MAIN, value="outcome", table=one) if isinstance(one, dict) else Award(unity_id=MAIN, value="for")
        for one in awards
    ]
    assert outcomes_by_amount([Scoring(awards=tuple(made))], MAIN) == found


@pytest.mark.parametrize(
    ("sent", "reads"),
    [
        ("2:1", "1:2"),
        ("\N{VULGAR FRACTION ONE HALF} - 0", "0 - \N{VULGAR FRACTION ONE HALF}"),
        ("2:2 pen", "2:2 pen"),
        ("3:2 ot", "2:3 ot"),
        ("+:-", "-:+"),
        ("10.1|9.8", "9.8|10.1"),
        ("bye", None),
        ("10.1|9.8|7", None),
        ("abandoned", None),
        ("", None),
    ],
)
def test_a_result_of_two_can_be_turned_for_the_second(sent: str, reads: str | None) -> None:
    assert turned(sent) == reads
