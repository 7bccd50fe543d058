"""Events of a log are judged once more: what was made is found possible, what could not be made is not."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.commands import ChangeCompetitor, RegisterCompetitor, RegisterCompetitors
from engine.domain.events import Delta, Event, Naming, Recorded
from engine.domain.rejudging import all_possible, impossible, may_have_made
from engine.domain.terms import (
    COMPETITORS_MAX,
    EXCESS_MAX,
    NAME_CHARACTERS_MAX,
    NOT_SEEN,
    OPERATOR,
    SLUG_CHARACTERS_MAX,
    TAGS_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    UnityId,
    name_fault,
)
from engine.log import codec
from projections.board.board import Board, Revisions, fold
from projections.board.parts import parts_of
from tests.bounds import Bounds
from tests.histories import EVENTS, NOBODY, board_of, fold_events, logs, unhurried

# ── What was made ───────────────────────────────────────────────────────────────────────────────────────


@unhurried
@given(logs())
def test_every_event_that_was_made_could_be_made(log: list[Recorded]) -> None:
    board = Board()
    for recorded in log:
        assert impossible(board, recorded.sequence, recorded.event) is None
        fold(board, Revisions(), recorded)


# ── What could not be made ──────────────────────────────────────────────────────────────────────────────

ANN, BOB, CY, RANKING, POINTS, DUEL = CompetitorId(1), CompetitorId(2), CompetitorId(3), RankingId(4), UnityId(5), 6
UNKNOWN: Final = CompetitorId(NOBODY)


def register(competitor_id: int = 10, name: str = "Dee", **fields: Any) -> Event:
    return events.CompetitorRegistered(competitor_id=CompetitorId(competitor_id), name=name, **fields)


def give(competitor_id: int = ANN, unity_id: int = POINTS, amount: int = 1, **fields: Any) -> Event:
    deltas = (Delta(CompetitorId(competitor_id), UnityId(unity_id), amount),)
    return events.PointsAdded(ranking_id=RANKING, deltas=deltas, **fields)


def create(*participants: int, **fields: Any) -> Event:
    named = {"name": "R", "main_unity_name": "P", "main_unity_id": UnityId(11)} | fields
    return events.RankingCreated(ranking_id=RankingId(10), participants=tuple(map(CompetitorId, participants)), **named)


def compete(*participants: int, **fields: Any) -> Event:
    known = tuple(map(CompetitorId, participants))
    return events.CompetitionAdded(competition_id=CompetitionId(10), group_id=1, participants=known, **fields)


@pytest.fixture
def board() -> Board:
    """Bob is below Ann; both, but not Cy, are in the ranking."""
    board = Board()
    fold_events(
        board,
        register(ANN, "Ann"),
        register(BOB, "Bob", parent_id=ANN),
        register(CY, "Cy"),
        events.RankingCreated(
            ranking_id=RANKING, name="R", participants=(ANN, BOB), main_unity_id=POINTS, main_unity_name="P"
        ),
        events.CompetitionAdded(competition_id=CompetitionId(DUEL), group_id=1, participants=(ANN, BOB)),
    )
    return board


IMPOSSIBLE: Final[dict[str, Event]] = {
    "a circle of parents": events.CompetitorChanged(competitor_id=ANN, parent_id=BOB),
    "its own parent": events.CompetitorChanged(competitor_id=ANN, parent_id=ANN),
    "a parent that is not there": register(parent_id=UNKNOWN),
    "an id that exists": register(ANN),
    "a unity's id that exists": create(ANN, main_unity_id=POINTS),
    "a colour that closes a style": register(color="red}</style>"),
    "NUL in a name": register(name="a\0b"),
    "a name that reorders what follows": register(name="a\u202eb"),
    "an isolate in a name": register(name="a\u2066b"),
    "a lone surrogate in a name": register(name="a\ud800b"),
    "an empty name": register(name=" "),
    "a name with blanks around it": register(name=" Dee"),
    "a name that is too long": register(name="x" * (NAME_CHARACTERS_MAX + 1)),
    "a tag twice": register(tags=("a", "a")),
    "too many tags": register(tags=tuple(f"t{n}" for n in range(TAGS_MAX + 1))),
    "a list with an unknown competitor": create(ANN, UNKNOWN),
    "a list with a competitor twice": create(ANN, ANN),
    "an empty list": create(),
    "unknown participants": compete(ANN, UNKNOWN),
    "a winner who did not take part": compete(ANN, BOB, winner_id=CY),
    "a score for three": compete(ANN, BOB, CY, result="1-0"),
    "performances for two": compete(ANN, BOB, result={ANN: "1"}),
    "a competitor outside the ranking": give(CY),
    "a unity of another ranking": give(unity_id=UNKNOWN),
    "an unknown cause": give(competition_id=CompetitionId(UNKNOWN)),
    "an unknown ranking": events.RankingClosed(ranking_id=RankingId(UNKNOWN)),
    "a ranking that is open": events.RankingReopened(ranking_id=RANKING),
    "a competition that counts": events.CompetitionUnvoided(competition_id=CompetitionId(DUEL)),
    "a criterion of an unknown unity": events.ClassificationDeclared(
        ranking_id=RANKING, criteria=(events.Criterion(UnityId(UNKNOWN)),)
    ),
    "a part beyond the last": give(part=(3, 2)),
    "no points at all": events.PointsAdded(ranking_id=RANKING, deltas=()),
    "nobody to enrol": events.ParticipantsChanged(ranking_id=RANKING),
    "a unity's name twice": events.UnityAdded(ranking_id=RANKING, unity_id=UnityId(10), name="P"),
    "opened twice": events.TournamentOpened(name="T", slug="t"),
}


@pytest.mark.parametrize("event", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_could_not_be_made_is_named(board: Board, event: Event) -> None:
    fault = impossible(board, Sequence(7), event)
    assert fault is not None
    assert fault.startswith("could not be made: ")


UNSEEN: Final = "\u200b\u2800"
YOUNGER: Final[dict[str, Event]] = {
    "a competitor": register(name=UNSEEN, tags=("a", UNSEEN)),
    "a competitor's new name": events.CompetitorChanged(competitor_id=ANN, name=UNSEEN),
    "a ranking": create(ANN, name=UNSEEN, main_unity_name=UNSEEN),
    "a place and a result": compete(ANN, BOB, CY, location=UNSEEN, result={ANN: UNSEEN}),
    "a reason": give(reason=UNSEEN),
    "a unity": events.UnityAdded(ranking_id=RANKING, unity_id=UnityId(10), name=UNSEEN),
    "a unity named as another in another form": events.UnityAdded(
        ranking_id=RANKING, unity_id=UnityId(10), name="Qualite\u0301"
    ),
    "the tournament": events.TournamentRenamed(name=UNSEEN),
}
"""Events of logs from before names had to be seen, and to differ in more than their form."""


@pytest.mark.parametrize("event", YOUNGER.values(), ids=YOUNGER.keys())
def test_what_only_a_younger_rule_refuses_could_be_made(board: Board, event: Event) -> None:
    fold_events(board, events.UnityAdded(ranking_id=RANKING, unity_id=UnityId(20), name="Qualit\u00e9"))
    assert impossible(board, Sequence(8), event) is None
    fold(board, Revisions(), Recorded(Sequence(8), datetime.now(UTC), OPERATOR, None, event))


@pytest.mark.parametrize(
    "event",
    [
        register(ANN, UNSEEN),
        register(name=f"{UNSEEN} "),
        register(name=UNSEEN, color="red"),
        create(ANN, name=UNSEEN, main_unity_id=POINTS),
        give(CY, reason=UNSEEN),
    ],
)
def test_a_name_that_cannot_be_seen_hides_nothing_else(board: Board, event: Event) -> None:
    assert impossible(board, Sequence(7), event) is not None


def test_points_in_a_closed_ranking_could_not_be_made(board: Board) -> None:
    assert impossible(board, Sequence(7), give()) is None
    fold_events(board, events.RankingClosed(ranking_id=RANKING))
    assert impossible(board, Sequence(8), give())
    reversal = events.PointsReversed(
        ranking_id=RANKING,
        deltas=(Delta(ANN, POINTS, 1),),
        competition_id=CompetitionId(DUEL),
        reverses=Sequence(3),
    )
    assert impossible(board, Sequence(8), reversal)


def test_in_an_archived_tournament_nothing_could_be_made_but_its_restoring_or_deletion(board: Board) -> None:
    reversal = events.PointsReversed(
        ranking_id=RANKING, deltas=(Delta(ANN, POINTS, 1),), competition_id=CompetitionId(DUEL), reverses=Sequence(3)
    )
    made = [give(), reversal, register(), compete(ANN, BOB), events.RankingClosed(ranking_id=RANKING)]
    assert [impossible(board, Sequence(7), event) for event in made] == [None] * len(made)
    assert all_possible(board, [give()])
    fold_events(board, events.TournamentArchived())
    assert None not in [impossible(board, Sequence(8), event) for event in made]
    assert not all_possible(board, [give()])
    for event in events.TournamentRestored(), events.TournamentDeleted():
        assert impossible(board, Sequence(8), event) is None


@pytest.mark.parametrize("slug", ["../etc", "", "A", "a--b", "-a", "a-", "a b", "ä", "x" * (SLUG_CHARACTERS_MAX + 1)])
def test_a_slug_that_no_name_gives_could_not_be_made(slug: str) -> None:
    assert impossible(Board(), Sequence(1), events.TournamentOpened(name="T", slug=slug))


def test_a_log_may_exceed_the_limit_of_competitors_by_a_few_blocks(board: Board, bounds: Bounds) -> None:
    bounds(COMPETITORS_MAX=1, EXCESS_MAX=3)
    assert impossible(board, Sequence(7), register()) is None
    fold_events(board, register(9))
    assert impossible(board, Sequence(8), register())
    assert EXCESS_MAX < COMPETITORS_MAX


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**70])
def test_an_id_out_of_range_cannot_be_read(number: int) -> None:
    for tag, body in (
        ("CompetitorRegistered", f'{{"competitor_id":{number},"name":"Dee"}}'),
        ("PointsAdded", f'{{"ranking_id":4,"deltas":[[{number},5,1]]}}'),
        ("CompetitionAdded", f'{{"competition_id":{number},"group_id":1}}'),
    ):
        with pytest.raises(codec.Undecodable):
            codec.decode(tag, body)


def test_a_group_beyond_64_bits_cannot_be_read() -> None:
    with pytest.raises(codec.Undecodable):
        codec.decode("CompetitionAdded", f'{{"competition_id":1,"group_id":{2**70}}}')


# ── A random log with a random change ───────────────────────────────────────────────────────────────────


@st.composite
def changed_logs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[list[Recorded], int]:
    """A log in which one event is not what it was, and the place of that event."""
    log = draw(logs(12))
    place = draw(st.integers(1, len(log) - 1)) if len(log) > 1 else 0
    was = log[place].event
    of_a_kind = EVENTS[type(was)] if draw(st.booleans()) else st.one_of(*EVENTS.values())
    other = draw(of_a_kind)
    if type(other) is type(was):  # some of its fields
        kept = draw(st.sets(st.sampled_from(was.__struct_fields__))) if was.__struct_fields__ else set()
        other = msgspec.structs.replace(other, **{name: getattr(was, name) for name in kept})
    log[place] = msgspec.structs.replace(log[place], event=other)
    return log, place


@unhurried
@given(changed_logs())
def test_a_log_with_a_change_is_refused_or_is_a_log_in_which_all_is_well(changed: tuple[list[Recorded], int]) -> None:
    log, _ = changed
    board = Board()
    for recorded in log:
        if impossible(board, recorded.sequence, recorded.event) is not None:
            return
        fold(board, Revisions(), recorded)
    assert list(wrongs(board)) == []
    assert list(parts_of(board_of(log))) == list(parts_of(board))


def wrongs(board: Board) -> Iterator[str]:
    """What is wrong with a board, said without judging."""
    known = set(board.competitors)
    for keyed in (board.competitors, board.competitions):
        keys = [one.key for one in keyed.values() if one.key is not None]
        if len(set(keys)) < len(keys) or [keyed[keyed.by_key(key) or 0].key for key in keys] != keys:
            yield f"{keys} are not unique"
    for competitor_id, competitor in board.competitors.items():
        if name_fault(competitor.name) not in (None, NOT_SEEN) or len(competitor.color) != 6:
            yield f"{competitor} has a wrong name or colour"
        line, above = {competitor_id}, competitor.parent_id
        while above is not None:
            if above not in known or above in line:
                yield f"{competitor_id} has no root"
                break
            line.add(above)
            above = board.competitors[above].parent_id
    for competition in board.competitions.values():
        if not known.issuperset(competition.participants) or competition.winner_id not in (
            None,
            *competition.participants,
        ):
            yield f"{competition} names strangers"
        if isinstance(competition.result, dict) and not set(competition.participants).issuperset(competition.result):
            yield f"{competition} has a result of strangers"
    for ranking in board.rankings.values():
        listed = list(ranking.participants)
        if not listed or not known.issuperset(listed) or len(set(listed)) < len(listed):
            yield f"{ranking} has a wrong list"
        names = [unity.name for unity in ranking.unities.values()]
        if len(set(names)) < len(names) or not {None, NOT_SEEN}.issuperset(map(name_fault, names)):
            yield f"{ranking} has unities of one name"
        if not {criterion.unity_id for criterion in ranking.criteria} <= ranking.unities.keys():
            yield f"{ranking} is classified by a stranger"


def test_a_parent_given_below_a_circle_could_not_be_made(board: Board) -> None:
    fold_events(board, events.CompetitorChanged(competitor_id=ANN, parent_id=BOB))
    assert impossible(board, Sequence(8), events.CompetitorChanged(competitor_id=CY, parent_id=BOB))


# ── What a repeated request may have made ───────────────────────────────────────────────────────────────


def command_of(event: Naming) -> RegisterCompetitor | ChangeCompetitor:
    """The command that led to the event, with a new id if it registers a competitor."""
    named = {name: getattr(event, name) for name in ("competitor_id", "name", "tags", "color", "parent_id", "key")}
    if isinstance(event, events.CompetitorChanged):
        return ChangeCompetitor(**named)
    return RegisterCompetitor(**named | {"competitor_id": UNKNOWN})


NAMINGS: Final = (
    events.CompetitorRegistered(
        competitor_id=BOB, name="Dee", tags=("a", "b"), color="aabbcc", parent_id=ANN, key="K1"
    ),
    events.CompetitorChanged(competitor_id=BOB, name="Eve", tags=("c",), color="112233", parent_id=ANN),
    events.CompetitorChanged(competitor_id=BOB, tags=()),
)
ERASED: Final = register(11, "", commitment="0" * 64)
NOT_THESE: Final = {"name": "Other", "tags": ("other",), "color": "ffffff", "parent_id": CY, "key": "K2"}


@pytest.mark.parametrize("event", NAMINGS)
def test_next_to_an_erased_competitor_whatever_is_left_of_the_others_must_be_the_same(event: Naming) -> None:
    def repeats(command: RegisterCompetitor | ChangeCompetitor) -> bool:
        items = cast(Any, (RegisterCompetitor(competitor_id=UNKNOWN, name="Gone"), command))
        return may_have_made(RegisterCompetitors(items=items), (ERASED, event))

    command = command_of(event)
    assert repeats(command)
    if isinstance(command.name, str):
        assert repeats(msgspec.structs.replace(command, name=f" {command.name} "))
    for name, other in NOT_THESE.items():
        assert not repeats(msgspec.structs.replace(command, **{name: other}))


def test_what_was_erased_may_have_been_anything_but_of_another_parent() -> None:
    for name, other in NOT_THESE.items():
        command = RegisterCompetitor(competitor_id=UNKNOWN, **{"name": "Gone"} | {name: other})
        assert may_have_made(command, (ERASED,)) is (name != "parent_id")
