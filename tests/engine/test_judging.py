"""Decisions as tables: given what has happened, when this is asked, then that is recorded, or refused for this."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from time import thread_time
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from engine.domain import commands, events
from engine.domain.awards import Award, Scoring
from engine.domain.commands import Command
from engine.domain.errors import Conflict, Fault, Forbidden, IdTaken, NotFound, Refusal, Unacceptable
from engine.domain.events import Criterion, Delta, Event
from engine.domain.faults import judged_result
from engine.domain.judging import decide
from engine.domain.rejudging import impossible
from engine.domain.terms import (
    BEST_MAX,
    COMPETITIONS_MAX,
    COMPETITORS_MAX,
    CRITERIA_MAX,
    DELTA_MAX,
    DELTAS_MAX,
    DESCRIPTION_CHARACTERS_MAX,
    DROPS_MAX,
    ENROLLED_MAX,
    ITEMS_MAX,
    NAME_CHARACTERS_MAX,
    PARTICIPANTS_MAX,
    RANKINGS_MAX,
    REVERSED_LINES_MAX,
    SCORINGS_MAX,
    TAGS_MAX,
    UNDONE_MAX,
    UNITIES_MAX,
    Sequence,
    Sort,
    UnityId,
)
from projections.board.board import Board
from projections.board.publication import Publication
from tests.bounds import Bounds
from tests.histories import EVENTS, LOGO, commands_for, copied, fold_events, histories, judged_by, unhurried

ANNA, BEN, CARA, DORA, EMIL = 1, 2, 3, 4, 5
NOBODY = 99
FRIENDLY, DUEL, RACE, RIGGED = 20, 21, 22, 23  # of none, of two, of four, of two and voided
TIMED = 24  # of three, two of whom have a performance
OVERALL, FINISHED = 30, 31
POINTS, GOALS, TIMES = 40, 41, 42
NEW, NEW_TOO = 50, 51
KICK_OFF = datetime(2024, 5, 4, 18, 30, tzinfo=UTC)

# ── Given ───────────────────────────────────────────────────────────────────────────────────────────────

GIVEN: Final[tuple[Event, ...]] = (
    events.TournamentOpened(name="Spring Open", slug="spring-open"),
    events.CompetitorRegistered(competitor_id=ANNA, name="Anna"),
    events.CompetitorRegistered(competitor_id=BEN, name="Ben", parent_id=ANNA),
    events.CompetitorRegistered(competitor_id=CARA, name="Cara", parent_id=BEN),
    events.CompetitorRegistered(competitor_id=DORA, name="Dora"),
    events.CompetitorRegistered(competitor_id=EMIL, name="Emil"),
    events.CompetitionAdded(competition_id=FRIENDLY, group_id=1),
    events.CompetitionAdded(competition_id=DUEL, group_id=1, participants=(ANNA, BEN)),
    events.CompetitionAdded(competition_id=RACE, group_id=1, participants=(ANNA, BEN, CARA, DORA)),
    events.RankingCreated(
        ranking_id=OVERALL,
        name="Overall",
        participants=(ANNA, BEN, CARA),
        main_unity_id=POINTS,
        main_unity_name="Points",
    ),
    events.UnityAdded(ranking_id=OVERALL, unity_id=GOALS, name="Goals"),
    events.RankingCreated(
        ranking_id=FINISHED,
        name="Finished",
        participants=(ANNA, DORA),
        main_unity_id=TIMES,
        main_unity_name="Times",
    ),
    events.RankingClosed(ranking_id=FINISHED),
    events.CompetitionAdded(competition_id=RIGGED, group_id=1, participants=(ANNA, BEN)),
    events.PointsAdded(ranking_id=OVERALL, deltas=(Delta(ANNA, POINTS, 3),), competition_id=RIGGED),
    events.CompetitionVoided(competition_id=RIGGED),
    events.PointsReversed(ranking_id=OVERALL, deltas=(Delta(ANNA, POINTS, -3),), competition_id=RIGGED, reverses=15),
    events.CompetitorsStruck(competition_id=RACE, competitors=(CARA, DORA)),
    events.CompetitorsUnstruck(competition_id=RACE, competitors=(DORA,)),
    events.CompetitionAdded(
        competition_id=TIMED,
        group_id=1,
        participants=(ANNA, BEN, CARA),
        result={ANNA: "9.58", BEN: "9.69"},
        winner_id=ANNA,
    ),
)
"""Anna is above Ben, who is above Cara. The ranking Overall is open, Finished is closed."""

CROWD: Final = tuple(range(1_000, 1_000 + PARTICIPANTS_MAX + 1))


def board_after(history: Iterable[Event]) -> Board:
    board = Board()
    fold_events(board, *history)
    return board


CROWDED: Final = Board(competitors=dict.fromkeys(CROWD, board_after(GIVEN).competitors[ANNA]))
"""A tournament of one competitor more than a list may name."""


@pytest.fixture
def board() -> Board:
    return board_after(GIVEN)


def register(**said: Any) -> Command:
    return commands.RegisterCompetitor(**{"competitor_id": NEW, "name": "Finn"} | said)


def registered(**facts: Any) -> Event:
    return events.CompetitorRegistered(**{"competitor_id": NEW, "name": "Finn"} | facts)


def change(**said: Any) -> Command:
    return commands.ChangeCompetitor(**{"competitor_id": BEN} | said)


def changed(**facts: Any) -> Event:
    return events.CompetitorChanged(**{"competitor_id": BEN} | facts)


def compete(*participants: int, **said: Any) -> Command:
    return commands.AddCompetition(competition_id=NEW, group_id=7, participants=participants, **said)


def competed(*participants: int, **facts: Any) -> Event:
    return events.CompetitionAdded(competition_id=NEW, group_id=7, participants=participants, **facts)


def record(**said: Any) -> Command:
    return commands.RecordResult(competition_id=NEW, **said)


def record_all(*items: Command) -> Command:
    return commands.RecordResults(items=items)  # type: ignore[arg-type]


def report(competition_id: int, **said: Any) -> Command:
    return commands.ChangeCompetition(competition_id=competition_id, **said)


def reported(competition_id: int, **facts: Any) -> Event:
    return events.CompetitionChanged(competition_id=competition_id, **facts)


def create(*participants: int, **said: Any) -> Command:
    usual = {"ranking_id": NEW, "main_unity_id": NEW_TOO, "name": "Juniors", "main_unity_name": "Points"}
    return commands.CreateRanking(participants=participants, **usual | said)


def created(*participants: int, **facts: Any) -> Event:
    usual = {"ranking_id": NEW, "main_unity_id": NEW_TOO, "name": "Juniors", "main_unity_name": "Points"}
    return events.RankingCreated(participants=participants, **usual | facts)


def modify(*participants: int, **said: Any) -> Command:
    usual = {"ranking_id": OVERALL, "main_unity_name": "Points"}
    return commands.ModifyRanking(participants=participants, **usual | said)


def modified(*participants: int, **facts: Any) -> Event:
    usual = {"ranking_id": OVERALL, "main_unity_name": "Points"}
    return events.RankingModified(participants=participants, **usual | facts)


def inform(**said: Any) -> Command:
    return commands.ChangeRankingInformation(**{"ranking_id": OVERALL} | said)


def informed(**facts: Any) -> Event:
    return events.RankingInformationChanged(**{"ranking_id": OVERALL} | facts)


def enrol(*added: int, removed: tuple[int, ...] = ()) -> Command:
    return commands.ChangeParticipants(ranking_id=OVERALL, added=added, removed=removed)


def enrolled(*added: int, removed: tuple[int, ...] = ()) -> Event:
    return events.ParticipantsChanged(ranking_id=OVERALL, added=added, removed=removed)


def remove(*competitor_ids: int) -> Command:
    return enrol(removed=competitor_ids)


def removed(*competitor_ids: int) -> Event:
    return enrolled(removed=competitor_ids)


def measure(name: str, **said: Any) -> Command:
    return commands.AddUnity(**{"ranking_id": OVERALL, "unity_id": NEW, "name": name} | said)


def measured(name: str, **facts: Any) -> Event:
    return events.UnityAdded(**{"ranking_id": OVERALL, "unity_id": NEW, "name": name} | facts)


def redefine(unity_id: int = GOALS, **said: Any) -> Command:
    return commands.ChangeUnity(**{"ranking_id": OVERALL, "unity_id": unity_id} | said)


def redefined(unity_id: int = GOALS, **facts: Any) -> Event:
    return events.UnityChanged(**{"ranking_id": OVERALL, "unity_id": unity_id} | facts)


def declare(*criteria: Criterion, ranking_id: int = OVERALL) -> Command:
    return commands.DeclareClassification(ranking_id=ranking_id, criteria=criteria)


def score(*scorings: Scoring, ranking_id: int = OVERALL) -> Command:
    return commands.DeclareScoring(ranking_id=ranking_id, scorings=scorings)


def scored(*scorings: Scoring) -> Event:
    return events.ScoringDeclared(ranking_id=OVERALL, scorings=scorings)


def declared(*criteria: Criterion) -> Event:
    return events.ClassificationDeclared(ranking_id=OVERALL, criteria=criteria)


NO_DROP: Final = f"must be pairs of a number of competitions, at most {BEST_MAX}, and a lower number of those dropped"
NO_ORDER: Final = "must be pairs in ascending order, both numbers higher than in the pair before"
BY_POINTS: Final = Criterion(unity_id=POINTS)
BY_OUTCOME: Final = Scoring(awards=(Award(unity_id=POINTS, value="outcome", table={"win": 3, "draw": 1, "loss": 0}),))
BY_GOALS: Final = Criterion(unity_id=GOALS, best=BEST_MAX)
AMONG_THE_TIED: Final = Criterion(unity_id=POINTS, among="tied")


def add(*deltas: tuple[int, int, int], **said: Any) -> Command:
    lines = tuple(Delta(*delta) for delta in deltas)
    return commands.AddPoints(**{"ranking_id": OVERALL, "deltas": lines} | said)


def added(*deltas: tuple[int, int, int], **facts: Any) -> Event:
    lines = tuple(Delta(*delta) for delta in deltas)
    return events.PointsAdded(**{"ranking_id": OVERALL, "deltas": lines} | facts)


def register_all(*items: Command) -> Command:
    return commands.RegisterCompetitors(items=items)  # type: ignore[arg-type]


def compete_all(*items: Command) -> Command:
    return commands.AddCompetitions(items=items)  # type: ignore[arg-type]


def add_to_rankings(*rankings: tuple[int, tuple[tuple[int, int, int], ...]], **said: Any) -> Command:
    its = [commands.RankingDeltas(r, tuple(Delta(*delta) for delta in deltas)) for r, deltas in rankings]
    return commands.AddPointsToRankings(rankings=tuple(its), **said)


def void(competition_id: int = DUEL, caused: commands.CausedPoints | None = None) -> Command:
    return commands.VoidCompetition(competition_id=competition_id, caused=caused or {})


def unvoid(competition_id: int = RIGGED, caused: commands.CausedPoints | None = None) -> Command:
    return commands.UnvoidCompetition(competition_id=competition_id, caused=caused or {})


LONGEST_NAME: Final = "é" * NAME_CHARACTERS_MAX
LONGEST_DESCRIPTION: Final = "é" * DESCRIPTION_CHARACTERS_MAX
MOST_TAGS: Final = tuple(f"tag {number}" for number in range(TAGS_MAX))

# ── What is accepted ────────────────────────────────────────────────────────────────────────────────────


def strike(*competitors: int, competition_id: int = DUEL, caused: commands.CausedPoints | None = None) -> Command:
    return commands.StrikeCompetitors(competition_id=competition_id, competitors=competitors, caused=caused or {})


def unstrike(*competitors: int, competition_id: int = RACE, caused: commands.CausedPoints | None = None) -> Command:
    return commands.UnstrikeCompetitors(competition_id=competition_id, competitors=competitors, caused=caused or {})


def struck(*competitors: int, competition_id: int = DUEL, back: bool = False) -> Event:
    kind = events.CompetitorsUnstruck if back else events.CompetitorsStruck
    return kind(competition_id=competition_id, competitors=competitors)


def reverse(
    event: Event,
    number: int = 30,
    points: commands.CausedPoints | None = None,
    *,
    ranking_id: int = OVERALL,
    only_of: int | None = None,
) -> Command:
    """Reverses the event `number`, which token 7 added or reversed."""
    if points is None:
        points = {events.root(number, event): event} if isinstance(event, events.PointsAdded) else {30: GIVEN_POINTS}
    named = commands.NamedEvent(event, 7, points)
    return commands.ReversePoints(ranking_id=ranking_id, sequence=number, only_of=only_of, named=named)


def reversal(**facts: Any) -> Event:
    """Of event 30, by undoing it."""
    deltas = Delta(ANNA, POINTS, -3), Delta(BEN, GOALS, 1)
    given = {"ranking_id": OVERALL, "competition_id": DUEL, "deltas": deltas, "reverses": 30, "undone": True}
    return events.PointsReversed(**given | facts)


GIVEN_POINTS: Final = added((ANNA, POINTS, 3), (BEN, GOALS, -1), competition_id=DUEL)


ACCEPTED: Final[dict[str, tuple[Command, Event]]] = {
    "a result with a key that no competition has adds one": (
        record(group_id=7, participants=(ANNA, BEN), result="2:1", key="M7"),
        competed(ANNA, BEN, result="2:1", key="M7"),
    ),
    "several results may be of a competition by its id": (
        record_all(record(of=DUEL, result="2:1")),
        reported(DUEL, result="2:1"),
    ),
    "a main unity may have times, of which the lowest is the best": (
        create(ANNA, main_unity_sort=Sort.ASC, main_unity_time="ms"),
        created(ANNA, main_unity_sort=Sort.ASC, main_unity_time="ms"),
    ),
    "a main unity may have decimals": (create(ANNA, main_unity_decimals=1), created(ANNA, main_unity_decimals=1)),
    "a unity may have 6 decimals": (measure("Score", decimals=6), measured("Score", decimals=6)),
    "a unity may have times": (measure("Lap", time="s"), measured("Lap", time="s")),
    "a ranking may be hidden": (
        commands.ChangeVisibility(ranking_id=OVERALL, hidden=True),
        events.RankingHidden(ranking_id=OVERALL),
    ),
    "also a closed one": (
        commands.ChangeVisibility(ranking_id=FINISHED, hidden=True),
        events.RankingHidden(ranking_id=FINISHED),
    ),
    "rankings may be ordered": (
        commands.OrderRankings(rankings=(FINISHED, OVERALL)),
        events.RankingsOrdered(rankings=(FINISHED, OVERALL)),
    ),
    "an order may name some of them": (
        commands.OrderRankings(rankings=(FINISHED,)),
        events.RankingsOrdered(rankings=(FINISHED,)),
    ),
    "a tournament's new name is trimmed": (
        commands.RenameTournament(name=" Summer Open "),
        events.TournamentRenamed(name="Summer Open"),
    ),
    "a tournament presents itself": (
        commands.ChangePresentation(zone="Europe/Berlin", language="de", accent="C0FFEE", logo=LOGO, listed=True),
        events.PresentationChanged(zone="Europe/Berlin", language="de", accent="c0ffee", logo=LOGO, listed=True),
    ),
    "a tournament presents itself like every other": (
        commands.ChangePresentation(zone=None, language=None, accent=None, logo=None),
        events.PresentationChanged(zone=None, language=None, accent=None, logo=None),
    ),
    # competitors
    "a competitor needs nothing but a name": (register(), registered()),
    "a competitor's name is trimmed": (register(name=" \tFinn\n"), registered(name="Finn")),
    "a name may have 255 characters": (register(name=LONGEST_NAME), registered(name=LONGEST_NAME)),
    "a name is measured after trimming": (register(name=f" {LONGEST_NAME} "), registered(name=LONGEST_NAME)),
    "a name may be another competitor's": (register(name="Anna"), registered(name="Anna")),
    "a name may be of any script": (
        register(name="Łukasz 選手 \N{FOX FACE}"),
        registered(name="Łukasz 選手 \N{FOX FACE}"),
    ),
    "tags are trimmed and keep their order": (register(tags=("u18", " north ")), registered(tags=("u18", "north"))),
    "a competitor may have 100 tags": (register(tags=MOST_TAGS), registered(tags=MOST_TAGS)),
    "a color has either case": (register(color="fF00aA"), registered(color="fF00aA")),
    "without a color it is the default": (register(color=None), registered(color="000000")),
    "a competitor may be below another": (register(parent_id=CARA), registered(parent_id=CARA)),
    "a change may say nothing": (change(), changed()),
    "a change trims names": (change(name=" Benjamin "), changed(name="Benjamin")),
    "a change may replace the tags": (change(tags=("u21 ",)), changed(tags=("u21",))),
    "a change may take all tags away": (change(tags=()), changed(tags=())),
    "a change may empty the tags": (change(tags=None), changed(tags=())),
    "a change may empty the color": (change(color=None), changed(color="000000")),
    "a competitor may be put below nobody": (change(parent_id=None), changed(parent_id=None)),
    "a change may set the color": (change(color="00ff00"), changed(color="00ff00")),
    "a competitor may move below another": (change(parent_id=DORA), changed(parent_id=DORA)),
    "a competitor may stay where it is": (change(parent_id=ANNA), changed(parent_id=ANNA)),
    "one without a parent may be put below another": (
        change(competitor_id=ANNA, parent_id=DORA),
        changed(competitor_id=ANNA, parent_id=DORA),
    ),
    "one competitor may come by itself among many": (register_all(register(name=" Finn ")), registered()),
    # competitions
    "a competition needs nothing but a group": (compete(), competed()),
    "participants keep the order sent": (compete(CARA, ANNA, BEN), competed(CARA, ANNA, BEN)),
    "a competition may have a time and a place": (
        compete(started_at=KICK_OFF, location=" Hall 2 "),
        competed(started_at=KICK_OFF, location="Hall 2"),
    ),
    "a competition may have an empty place": (compete(location=""), competed(location="")),
    "of none, the result is a score": (compete(result="cancelled"), competed(result="cancelled")),
    "of one, the result is a score": (compete(ANNA, result="9.58"), competed(ANNA, result="9.58")),
    "of two, the result is a score": (compete(ANNA, BEN, result="3-1"), competed(ANNA, BEN, result="3-1")),
    "a score is trimmed": (compete(ANNA, BEN, result=" 3-1\n"), competed(ANNA, BEN, result="3-1")),
    "of two, a score that begins like JSON is a score": (
        compete(ANNA, BEN, result='{"1": "3"'),
        competed(ANNA, BEN, result='{"1": "3"'),
    ),
    "of three, the result is a performance each": (
        compete(ANNA, BEN, CARA, result={ANNA: "9.58", BEN: "9.69", CARA: "9.72"}),
        competed(ANNA, BEN, CARA, result={ANNA: "9.58", BEN: "9.69", CARA: "9.72"}),
    ),
    "of three, the result may be JSON text": (
        compete(ANNA, BEN, CARA, result=' {"1": "9.58", "2": "9.69"} '),
        competed(ANNA, BEN, CARA, result={ANNA: "9.58", BEN: "9.69"}),
    ),
    "of three, not all need a performance": (
        compete(ANNA, BEN, CARA, result={CARA: "9.72"}),
        competed(ANNA, BEN, CARA, result={CARA: "9.72"}),
    ),
    "performances are trimmed": (
        compete(ANNA, BEN, CARA, result={CARA: " 9.72 "}),
        competed(ANNA, BEN, CARA, result={CARA: "9.72"}),
    ),
    "an object without performances is no result": (compete(ANNA, BEN, CARA, result={}), competed(ANNA, BEN, CARA)),
    "a participant may be the winner": (compete(ANNA, BEN, winner_id=BEN), competed(ANNA, BEN, winner_id=BEN)),
    "a report may say nothing": (report(DUEL), reported(DUEL)),
    "a result may come later": (
        report(DUEL, result="3-1", winner_id=ANNA),
        reported(DUEL, result="3-1", winner_id=ANNA),
    ),
    "a fixture may move": (
        report(FRIENDLY, started_at=KICK_OFF, location=" Hall 2"),
        reported(FRIENDLY, started_at=KICK_OFF, location="Hall 2"),
    ),
    "a place may be taken away": (report(DUEL, location=""), reported(DUEL, location="")),
    "a report may empty everything": (
        report(DUEL, started_at=None, location=None, result=None, winner_id=None),
        reported(DUEL, started_at=None, location="", result=None, winner_id=None),
    ),
    "a scale, a round and its name may be given": (
        compete(ANNA, BEN, scale=" sprint ", round=-3, round_name=" Final "),
        competed(ANNA, BEN, scale="sprint", round=-3, round_name="Final"),
    ),
    "they and the group may change": (
        report(DUEL, group_id=-2, scale=" sprint ", round=0, round_name=" Final "),
        reported(DUEL, group_id=-2, scale="sprint", round=0, round_name="Final"),
    ),
    "they may be taken away": (
        report(DUEL, scale=None, round=None, round_name=""),
        reported(DUEL, scale="", round=None, round_name=""),
    ),
    "others may take part": (report(DUEL, participants=(CARA, BEN)), reported(DUEL, participants=(CARA, BEN))),
    "nobody may take part": (report(RACE, participants=None), reported(RACE, participants=())),
    "others may take part with a result of theirs": (
        report(DUEL, participants=(ANNA, CARA, DORA), result={CARA: "9.58"}, winner_id=DORA),
        reported(DUEL, participants=(ANNA, CARA, DORA), result={CARA: "9.58"}, winner_id=DORA),
    ),
    "who was struck may leave": (report(RACE, participants=(ANNA,)), reported(RACE, participants=(ANNA,))),
    "a result that fits the others stays": (
        report(TIMED, participants=(BEN, ANNA, EMIL)),
        reported(TIMED, participants=(BEN, ANNA, EMIL)),
    ),
    "performances may be emptied": (report(RACE, result={}), reported(RACE, result=None)),
    "performances may come later": (
        report(RACE, result={BEN: "9.69", ANNA: "9.58"}),
        reported(RACE, result={BEN: "9.69", ANNA: "9.58"}),
    ),
    "performances may come later as JSON text": (
        report(RACE, result='{"4": "10.1"}', winner_id=DORA),
        reported(RACE, result={DORA: "10.1"}, winner_id=DORA),
    ),
    "one competition may come by itself among many": (compete_all(compete(ANNA, BEN)), competed(ANNA, BEN)),
    # rankings
    "a ranking needs a name, a main unity and one competitor": (create(ANNA), created(ANNA)),
    "a ranking's list keeps the order sent": (create(CARA, ANNA, EMIL), created(CARA, ANNA, EMIL)),
    "a ranking's names are trimmed": (create(ANNA, name=" Juniors ", main_unity_name="\tPoints "), created(ANNA)),
    "a ranking may have another's names": (create(ANNA, name="Overall"), created(ANNA, name="Overall")),
    "a ranking may have a description": (create(ANNA, description="U18"), created(ANNA, description="U18")),
    "a description may have lines and tabs": (
        create(ANNA, description="one\r\n\ttwo "),
        created(ANNA, description="one\r\n\ttwo "),
    ),
    "a description may have 10,000 characters": (
        create(ANNA, description=LONGEST_DESCRIPTION),
        created(ANNA, description=LONGEST_DESCRIPTION),
    ),
    "a classification may have a chain of criteria": (
        declare(BY_POINTS, AMONG_THE_TIED, BY_GOALS),
        declared(BY_POINTS, AMONG_THE_TIED, BY_GOALS),
    ),
    "a classification may drop ever more": (
        declare(Criterion(unity_id=POINTS, best=9, drop=((2, 1), (BEST_MAX, BEST_MAX - 1)))),
        declared(Criterion(unity_id=POINTS, best=9, drop=((2, 1), (BEST_MAX, BEST_MAX - 1)))),
    ),
    "a classification may have 20 criteria": (
        declare(*[AMONG_THE_TIED] * CRITERIA_MAX),
        declared(*[AMONG_THE_TIED] * CRITERIA_MAX),
    ),
    "a classification may be declared no more": (declare(), declared()),
    "a ranking may have scorings": (score(BY_OUTCOME), scored(BY_OUTCOME)),
    "a ranking may have 20 scorings": (score(*[BY_OUTCOME] * SCORINGS_MAX), scored(*[BY_OUTCOME] * SCORINGS_MAX)),
    "a ranking may have no scorings any more": (score(), scored()),
    "a ranking may be modified into what it is": (modify(ANNA, BEN, CARA), modified(ANNA, BEN, CARA)),
    "a modification replaces the list": (modify(DORA, ANNA), modified(DORA, ANNA)),
    "a modification may name the ranking": (modify(ANNA, name=" All "), modified(ANNA, name="All")),
    "a modification may name the main unity": (
        modify(ANNA, main_unity_name=" Score "),
        modified(ANNA, main_unity_name="Score"),
    ),
    "a modification may describe the ranking": (modify(ANNA, description="U18"), modified(ANNA, description="U18")),
    "a modification may take the description away": (modify(ANNA, description=None), modified(ANNA, description=None)),
    "a modification need not speak of the description": (modify(ANNA), modified(ANNA, description=UNSET)),
    "a modification may set 10,000 characters": (
        modify(ANNA, description=LONGEST_DESCRIPTION),
        modified(ANNA, description=LONGEST_DESCRIPTION),
    ),
    "a change of information may say nothing": (inform(), informed()),
    "a change of information may take the description away": (inform(description=None), informed(description=None)),
    "a unity's sort may be emptied": (redefine(sort=None), redefined(sort=Sort.DESC)),
    "a ranking may be renamed": (inform(name=" All "), informed(name="All")),
    "a ranking may be described": (inform(description="U18\n"), informed(description="U18\n")),
    "a description may be taken away": (inform(description=None), informed(description=None)),
    "zones may be written in many ways": (
        inform(zones=" 1-4 Promotion Cup;5..5 neutral:  Stay in \r\n\n-3\N{EN DASH}-1 relegation: a: b"),
        informed(zones="1..4 promotion: Cup\n5 neutral: Stay in\n-3..-1 relegation: a: b"),
    ),
    "zones may be taken away": (inform(zones=" ; "), informed(zones=None)),
    "competitors may be enrolled, in the order sent": (enrol(EMIL, DORA), enrolled(EMIL, DORA)),
    "competitors may be removed": (remove(BEN, ANNA), removed(BEN, ANNA)),
    "some may come as others go": (enrol(DORA, removed=(BEN,)), enrolled(DORA, removed=(BEN,))),
    "all may go if somebody comes": (
        enrol(DORA, removed=(ANNA, BEN, CARA)),
        enrolled(DORA, removed=(ANNA, BEN, CARA)),
    ),
    "who is in the ranking may be enrolled again": (enrol(ANNA), enrolled(ANNA)),
    "who is not in the ranking may be removed": (remove(DORA), removed(DORA)),
    "a unity sorts descending unless it is said": (measure("Fair play"), measured("Fair play", sort=Sort.DESC)),
    "a unity may sort ascending": (measure("Strokes", sort=Sort.ASC), measured("Strokes", sort=Sort.ASC)),
    "a unity's name is trimmed": (measure("\nStrokes "), measured("Strokes")),
    "a unity may have the name of another ranking's": (measure("Times"), measured("Times")),
    "a change of a unity may say nothing": (redefine(), redefined()),
    "a unity may be renamed": (redefine(name=" Strokes"), redefined(name="Strokes")),
    "a unity may keep its name": (redefine(name="Goals "), redefined(name="Goals")),
    "another sort may be better": (redefine(sort=Sort.ASC), redefined(sort=Sort.ASC)),
    "the main unity may be changed": (
        redefine(POINTS, name="Places", sort=Sort.ASC),
        redefined(POINTS, name="Places", sort=Sort.ASC),
    ),
    "an open ranking may be closed": (
        commands.CloseRanking(ranking_id=OVERALL),
        events.RankingClosed(ranking_id=OVERALL),
    ),
    "a competitor may be erased": (
        commands.EraseCompetitor(competitor_id=BEN),
        events.CompetitorErased(competitor_id=BEN),
    ),
    "a closed ranking may be reopened": (
        commands.ReopenRanking(ranking_id=FINISHED),
        events.RankingReopened(ranking_id=FINISHED),
    ),
    # competitions that do not count
    "a competition without points may be voided": (void(), events.CompetitionVoided(competition_id=DUEL)),
    "a voided competition may be unvoided": (unvoid(), events.CompetitionUnvoided(competition_id=RIGGED)),
    "a voided competition may be reported": (report(RIGGED, result="0-0"), reported(RIGGED, result="0-0")),
    # striking
    "a competitor may be struck from a competition": (strike(ANNA), struck(ANNA)),
    "from a voided one too": (
        strike(ANNA, BEN, competition_id=RIGGED),
        struck(ANNA, BEN, competition_id=RIGGED),
    ),
    "and be unstruck": (unstrike(CARA), struck(CARA, competition_id=RACE, back=True)),
    # undoing
    "points may be undone": (reverse(GIVEN_POINTS), reversal()),
    "points of a voided competition are undone without a line": (
        reverse(added((ANNA, POINTS, 3), competition_id=RIGGED)),
        reversal(competition_id=RIGGED, deltas=()),
    ),
    # points
    "points may be added": (add((ANNA, POINTS, 5)), added((ANNA, POINTS, 5))),
    "points may be taken": (add((ANNA, POINTS, -5)), added((ANNA, POINTS, -5))),
    "no points are recorded too": (add((ANNA, POINTS, 0)), added((ANNA, POINTS, 0))),
    "a delta may be as large as it gets": (add((ANNA, POINTS, DELTA_MAX)), added((ANNA, POINTS, DELTA_MAX))),
    "a delta may be as small as it gets": (add((ANNA, POINTS, -DELTA_MAX)), added((ANNA, POINTS, -DELTA_MAX))),
    "several may get points in several unities": (
        add((CARA, GOALS, 2), (ANNA, POINTS, 3), (CARA, POINTS, 1)),
        added((CARA, GOALS, 2), (ANNA, POINTS, 3), (CARA, POINTS, 1)),
    ),
    "both lines of the same competitor and unity are kept": (
        add((ANNA, POINTS, 3), (ANNA, POINTS, 3)),
        added((ANNA, POINTS, 3), (ANNA, POINTS, 3)),
    ),
    "a competition may be the cause": (
        add((ANNA, POINTS, 3), competition_id=DUEL),
        added((ANNA, POINTS, 3), competition_id=DUEL),
    ),
    "the cause may be a competition of others": (
        add((CARA, POINTS, 3), competition_id=FRIENDLY),
        added((CARA, POINTS, 3), competition_id=FRIENDLY),
    ),
    "points may be added to one ranking as to many": (
        add_to_rankings((OVERALL, ((ANNA, POINTS, 3),)), competition_id=DUEL),
        added((ANNA, POINTS, 3), competition_id=DUEL),
    ),
    "points may have a reason": (
        add((ANNA, POINTS, -10), reason=" licence\n"),
        added((ANNA, POINTS, -10), reason="licence"),
    ),
    "points for a competition may have one too": (
        add((ANNA, POINTS, 1), competition_id=DUEL, reason="four tries"),
        added((ANNA, POINTS, 1), competition_id=DUEL, reason="four tries"),
    ),
    "a reason may have 255 characters": (
        add((ANNA, POINTS, 1), reason=LONGEST_NAME),
        added((ANNA, POINTS, 1), reason=LONGEST_NAME),
    ),
    "points of one ranking among many have the reason of all": (
        add_to_rankings((OVERALL, ((ANNA, POINTS, 3),)), reason=" licence"),
        added((ANNA, POINTS, 3), reason="licence"),
    ),
    "10,000 deltas may be added at once": (
        add(*[(ANNA, POINTS, 1)] * DELTAS_MAX),
        added(*[(ANNA, POINTS, 1)] * DELTAS_MAX),
    ),
}


@pytest.mark.parametrize(("when", "then"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(board: Board, when: Command, then: Event) -> None:
    assert decide(board, when) == (then,)


def test_many_are_decided_as_each_would_be_and_in_order() -> None:
    board = board_after([*GIVEN, events.RankingReopened(ranking_id=FINISHED)])
    names = ["Finn", " Gus", "Finn"]
    each = [register(competitor_id=NEW + n, name=name, parent_id=BEN) for n, name in enumerate(names)]
    assert decide(board, register_all(*each)) == tuple(decide(board, one)[0] for one in each)
    each = [commands.AddCompetition(competition_id=NEW + n, group_id=n, participants=(ANNA, BEN)[:n]) for n in range(3)]
    assert decide(board, compete_all(*each)) == tuple(decide(board, one)[0] for one in each)
    points = {FINISHED: ((DORA, TIMES, 1), (DORA, TIMES, 1)), OVERALL: ((ANNA, GOALS, -2),)}
    assert decide(board, add_to_rankings(*points.items(), competition_id=RACE)) == (
        added(*points[FINISHED], ranking_id=FINISHED, competition_id=RACE, part=(1, 2)),
        added(*points[OVERALL], competition_id=RACE, part=(2, 2)),
    )
    assert decide(board, add_to_rankings((OVERALL, points[OVERALL]))) == (added(*points[OVERALL]),)


def test_a_key_is_kept_in_one_form_of_unicode_and_its_owner_may_keep_it() -> None:
    board = board_after([*GIVEN, changed(competitor_id=ANNA, key="\u00c9 7"), reported(DUEL, key="\u00c9 7")])
    assert decide(board, change(competitor_id=ANNA, key=" E\u0301 7 ")) == (
        changed(competitor_id=ANNA, key="\u00c9 7"),
    )
    assert decide(board, report(DUEL, key="E\u0301 7")) == (reported(DUEL, key="\u00c9 7"),)
    duel = board.competitions[DUEL]
    same = record(group_id=duel.group_id, participants=duel.participants, location="Cork", key="E\u0301 7")
    assert decide(board, same) == (reported(DUEL, location="Cork"),)
    assert decide(board, change(competitor_id=ANNA, key=None)) == (changed(competitor_id=ANNA, key=None),)
    for command in (
        register(key="E\u0301 7"),
        change(key="E\u0301 7"),
        compete(key="E\u0301 7"),
        report(RACE, key="E\u0301 7"),
    ):
        with pytest.raises(Unacceptable) as refused:
            decide(board, command)
        owner = DUEL if "Competition" in type(command).__name__ else ANNA
        assert refused.value.faults == (Fault("key", f"{owner} has this key already"),)


def test_a_key_is_free_again_once_its_owner_has_another_or_is_erased() -> None:
    board = board_after([*GIVEN, changed(competitor_id=ANNA, key="A7"), changed(competitor_id=BEN, key="B7")])
    fold_events(board, changed(competitor_id=ANNA, key="A8"), events.CompetitorErased(competitor_id=BEN))
    both = register_all(register(key="A7"), register(competitor_id=NEW_TOO, key="B7"))
    assert decide(board, both) == (registered(key="A7"), registered(competitor_id=NEW_TOO, key="B7"))


def test_a_request_creates_up_to_the_limit(board: Board) -> None:
    each = [register(competitor_id=1_000 + n) for n in range(ITEMS_MAX + 1)]
    assert len(decide(board, register_all(*each[:-1]))) == ITEMS_MAX == 1_000
    duels = [commands.AddCompetition(competition_id=1_000 + n, group_id=1) for n in range(ITEMS_MAX + 1)]
    assert len(decide(board, compete_all(*duels[:-1]))) == ITEMS_MAX
    for when in (register_all(*each), compete_all(*duels)):
        with pytest.raises(Unacceptable) as refusal:
            decide(board, when)
        assert refusal.value.faults == (Fault("items", "must contain at most 1000 items"),)
    with pytest.raises(IdTaken):
        decide(board, register_all(each[0], each[0]))
    with pytest.raises(IdTaken):
        decide(board, compete_all(duels[0], duels[0]))


@pytest.mark.parametrize("taken", [ANNA, DUEL, FINISHED, POINTS, TIMES])
def test_an_id_is_given_once_in_a_tournament_to_whatever_kind_of_thing(board: Board, taken: int) -> None:
    adding = commands.AddCompetition(competition_id=taken, group_id=7)
    for command in (
        *(register(competitor_id=taken), register_all(register(), register(competitor_id=taken))),
        *(adding, compete_all(compete(), adding)),
        *(create(ANNA, ranking_id=taken), create(ANNA, main_unity_id=taken), measure("Fouls", unity_id=taken)),
    ):
        with pytest.raises(IdTaken):
            decide(board, command)
    for made in (
        registered(competitor_id=taken),
        events.CompetitionAdded(competition_id=taken, group_id=7),
        *(created(ANNA, ranking_id=taken), events.UnityAdded(ranking_id=OVERALL, unity_id=taken, name="Fouls")),
    ):
        assert "an id that exists" in (impossible(board, len(GIVEN) + 1, made) or "")


def test_the_competitions_of_one_request_name_10_000_participants_and_no_more() -> None:
    def competitions(*sizes: int) -> Command:
        return compete_all(
            *[
                commands.AddCompetition(competition_id=NEW + n, group_id=1, participants=CROWD[:size])
                for n, size in enumerate(sizes)
            ]
        )

    assert len(decide(CROWDED, competitions(PARTICIPANTS_MAX - 1, 1))) == 2
    with pytest.raises(Unacceptable) as refusal:
        decide(CROWDED, competitions(PARTICIPANTS_MAX - 1, 2))
    assert refusal.value.faults == (Fault("items", "must name at most 10000 participants in total"),)


def test_the_deltas_of_all_rankings_are_counted_together(board: Board) -> None:
    fold_events(board, events.RankingReopened(ranking_id=FINISHED))
    half = ((ANNA, POINTS, 1),) * (DELTAS_MAX - 1)
    assert decide(board, add_to_rankings((OVERALL, half), (FINISHED, ((DORA, TIMES, 1),))))
    with pytest.raises(Unacceptable) as refusal:
        decide(board, add_to_rankings((OVERALL, half), (FINISHED, ((DORA, TIMES, 1),) * 2)))
    assert refusal.value.faults == (Fault("rankings_delta", f"must contain at most {DELTAS_MAX} deltas"),)


def test_closed_rankings_among_many_are_all_named(board: Board) -> None:
    fold_events(board, events.RankingClosed(ranking_id=OVERALL))
    with pytest.raises(Conflict, match=r"reopen them first: 'Finished', 'Overall'\."):
        decide(board, add_to_rankings((FINISHED, ()), (NOBODY, ()), (OVERALL, ())))


def test_a_unity_may_not_have_the_name_of_another_in_another_form_of_unicode(board: Board) -> None:
    fold_events(board, events.UnityAdded(ranking_id=OVERALL, unity_id=NEW, name="Qualit\u00e9"))
    with pytest.raises(Unacceptable) as refusal:
        decide(board, measure("Qualite\u0301", unity_id=NEW_TOO))
    assert [fault.field for fault in refusal.value.faults] == ["name"]


def test_a_list_may_name_10_000_competitors() -> None:
    assert decide(CROWDED, compete(*CROWD[1:])) == (competed(*CROWD[1:]),)
    assert decide(CROWDED, create(*CROWD[1:])) == (created(*CROWD[1:]),)


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────

EMPTY: Final = "must not be empty"
TOO_LONG: Final = "must have at most 255 characters"
NOT_SEEN: Final = "must contain a character that can be seen"
UNSEEN: Final = "\u200b\u3164\u2800\u00ad"
NUL: Final = "must not contain the control character U+0000"
NEXT_LINE: Final = "must not contain the control character U+0085"
NO_COLOR: Final = "must be 6 hexadecimal characters, without a leading #"
NO_OBJECT: Final = "must be an object of strings by competitor id if there are more than two participants"
NO_SCORE: Final = "must be a string, the score, if there are at most two participants"

UNACCEPTABLE: Final[dict[str, tuple[Command, list[tuple[str, str]]]]] = {
    "a result without a group that no competition has the key of": (
        record(result="2:1", key="M7"),
        [("group_id", "is required for a new competition")],
    ),
    "no result, where several are taken": (record_all(), [("items", "must contain at least one item")]),
    "several results of the same competition": (
        record_all(record(of=DUEL, result="2:1"), record(of=DUEL, result="2:2")),
        [("items", f"competition {DUEL} is named more than once")],
    ),
    "several results, one of an unknown competition": (
        record_all(record(of=DUEL, result="2:1"), record(of=999, result="2:2")),
        [("items[1].competition", "competition 999 is not in this tournament")],
    ),
    "several results with the same new key": (
        record_all(record(group_id=1, key="M8"), commands.RecordResult(competition_id=NEW_TOO, group_id=1, key="M8")),
        [("items", "'M8' is the key of more than one")],
    ),
    "a unity with 7 decimals": (measure("Score", decimals=7), [("decimals", "must be from 0 to 6")]),
    "a unity with times and decimals": (
        measure("Score", decimals=1, time="s"),
        [("time", "must not be sent with decimals: a time has its own")],
    ),
    "a main unity with times and decimals": (
        create(ANNA, main_unity_decimals=1, main_unity_time="s"),
        [("main_unity_time", "must not be sent with main_unity_decimals: a time has its own")],
    ),
    "an order of nothing": (commands.OrderRankings(rankings=()), [("order", "must name at least one ranking")]),
    "an order with a ranking twice, and one that is not there": (
        commands.OrderRankings(rankings=(OVERALL, OVERALL, NOBODY)),
        [
            ("order", f"ranking {NOBODY} is not in this tournament"),
            ("order", f"ranking {OVERALL} is named more than once"),
        ],
    ),
    # names
    "a tournament renamed to nothing": (commands.RenameTournament(name=" "), [("name", EMPTY)]),
    "a presentation of things that are none": (
        commands.ChangePresentation(zone="Berlin!", language="it", accent="#c0ffee", logo="R0lGODlh"),
        [
            ("zone", "must be the name of a time zone, such as Europe/Berlin"),
            ("language", "must be one of en, de, fr, es"),
            ("accent", "must be 6 hexadecimal characters, without a leading #"),
            ("logo", "must be a complete PNG with nothing after it"),
        ],
    ),
    "a logo with something after it": (
        commands.ChangePresentation(logo=b64encode(b64decode(LOGO) + b"<svg>").decode()),
        [("logo", "must be a complete PNG with nothing after it")],
    ),
    "a logo that is damaged": (
        commands.ChangePresentation(logo=b64encode(b64decode(LOGO)[:-1] + b"x").decode()),
        [("logo", "must be a complete PNG with nothing after it")],
    ),
    "a logo of too many bytes": (
        commands.ChangePresentation(logo=b64encode(bytes(12_289)).decode()),
        [("logo", "must have at most 12,288 bytes")],
    ),
    "a logo that is no base64": (commands.ChangePresentation(logo="€"), [("logo", "must be a PNG in base64")]),
    "a competitor without a name": (register(name=""), [("name", EMPTY)]),
    "a name of nothing but blanks": (register(name=" \t\n"), [("name", EMPTY)]),
    "a name of 256 characters": (register(name=LONGEST_NAME + "e"), [("name", TOO_LONG)]),
    "a name with a control character": (register(name="Fi\0nn"), [("name", NUL)]),
    "a name with a control character that is not ASCII": (register(name="Fi\x85nn"), [("name", NEXT_LINE)]),
    "a name of two lines": (register(name="Fi\nnn"), [("name", "must not contain the control character U+000A")]),
    "a name that no UTF-8 can hold": (
        register(name="Finn \ud800"),
        [("name", "must not contain the control character U+D800")],
    ),
    "a key of blanks": (register(key=" "), [("key", EMPTY)]),
    "a key with a comma": (compete(key="1,2"), [("key", "must not contain a comma")]),
    "a key twice in a request": (
        register_all(register(key="A7"), register(competitor_id=NEW_TOO, key=" A7")),
        [("items", "'A7' is the key of more than one")],
    ),
    "a key of two competitions of a request": (
        compete_all(compete(key="A7"), commands.AddCompetition(competition_id=NEW_TOO, group_id=1, key="A7")),
        [("items", "'A7' is the key of more than one")],
    ),
    "a change to an empty name": (change(name=" "), [("name", EMPTY)]),
    "a change to a name too long": (change(name=LONGEST_NAME + "e"), [("name", TOO_LONG)]),
    "a ranking without a name": (create(ANNA, name=" "), [("name", EMPTY)]),
    "a ranking with a name too long": (create(ANNA, name=LONGEST_NAME + "e"), [("name", TOO_LONG)]),
    "a ranking without a main unity": (create(ANNA, main_unity_name=""), [("main_unity_name", EMPTY)]),
    "a main unity with a name too long": (
        create(ANNA, main_unity_name=LONGEST_NAME + "e"),
        [("main_unity_name", TOO_LONG)],
    ),
    "a modification to an empty name": (modify(ANNA, name=""), [("name", EMPTY)]),
    "a modification to no main unity": (modify(ANNA, main_unity_name=" "), [("main_unity_name", EMPTY)]),
    "a modification to a control character": (modify(ANNA, main_unity_name="a\0"), [("main_unity_name", NUL)]),
    "a unity without a name": (measure(" "), [("name", EMPTY)]),
    "a unity with a name too long": (measure(LONGEST_NAME + "e"), [("name", TOO_LONG)]),
    "a unity with a control character": (measure("a\0b"), [("name", NUL)]),
    # unity names
    "a unity named as the main one": (measure("Points"), [("name", "this ranking already has a unity 'Points'")]),
    "a unity named as another": (measure("Goals"), [("name", "this ranking already has a unity 'Goals'")]),
    "a unity named as another but for blanks": (
        measure(" Goals "),
        [("name", "this ranking already has a unity 'Goals'")],
    ),
    "a main unity renamed to another's name": (
        modify(ANNA, main_unity_name=" Goals"),
        [("main_unity_name", "this ranking already has a unity 'Goals'")],
    ),
    "a ranking renamed to nothing": (inform(name=" "), [("name", EMPTY)]),
    "a ranking described with a control character": (inform(description="a\0"), [("description", NUL)]),
    "zones with a control character": (inform(zones="1 neutral: a\0"), [("zones", NUL)]),
    "a zone that goes up": (
        inform(zones="4..1 promotion: Up"),
        [
            (
                "zones",
                "must go from the better place to the worse one, both counted from the same end, unlike 4..1",
            )
        ],
    ),
    "a zone of no kind": (
        inform(zones="1 up: Cup"),
        [
            (
                "zones",
                "must be lines like 1..4 promotion: Champions League, or -3..-1 relegation: Down; of the kinds "
                "promotion, play-off, relegation, neutral",
            )
        ],
    ),
    "too much about a zone": (
        inform(zones=f"1 neutral: {'a' * 81}"),
        [("zones", "must say what a zone is in at most 80 characters")],
    ),
    "too many zones": (inform(zones="1 neutral: a;" * 11), [("zones", "must be at most 10 zones")]),
    "a unity renamed to nothing": (redefine(name=""), [("name", EMPTY)]),
    "a competitor whose name cannot be seen": (register(name=UNSEEN), [("name", NOT_SEEN)]),
    "a change to a name that cannot be seen": (change(name=UNSEEN), [("name", NOT_SEEN)]),
    "a tag that cannot be seen": (change(tags=("ok", UNSEEN)), [("tags", NOT_SEEN)]),
    "a ranking whose name cannot be seen": (
        create(ANNA, name=UNSEEN, main_unity_name=UNSEEN),
        [("name", NOT_SEEN), ("main_unity_name", NOT_SEEN)],
    ),
    "a ranking renamed to what cannot be seen": (inform(name=UNSEEN), [("name", NOT_SEEN)]),
    "a unity whose name cannot be seen": (measure(UNSEEN), [("name", NOT_SEEN)]),
    "a unity renamed to what cannot be seen": (redefine(name=UNSEEN), [("name", NOT_SEEN)]),
    "a tournament renamed to what cannot be seen": (commands.RenameTournament(name=UNSEEN), [("name", NOT_SEEN)]),
    "a unity renamed to another's name": (
        redefine(name=" Points"),
        [("name", "this ranking already has a unity 'Points'")],
    ),
    "a main unity that takes another's name": (
        redefine(POINTS, name="Goals"),
        [("name", "this ranking already has a unity 'Goals'")],
    ),
    # many at once
    "no competitors at all": (register_all(), [("items", "must contain at least one item")]),
    "no competitions at all": (compete_all(), [("items", "must contain at least one item")]),
    "some competitors who are not right": (
        register_all(
            register(name="", color="red"), register(competitor_id=NEW_TOO), register(competitor_id=60, parent_id=NEW)
        ),
        [
            ("items[0].name", EMPTY),
            ("items[0].color", NO_COLOR),
            ("items[2].parent", f"competitor {NEW} is not in this tournament"),
        ],
    ),
    "a competition of many that is not right": (
        compete_all(compete(), commands.AddCompetition(competition_id=60, group_id=1, winner_id=ANNA)),
        [("items[1].winner", f"competitor {ANNA} is not a participant")],
    ),
    "points for no ranking": (add_to_rankings(), [("rankings_delta", "must name at least one ranking")]),
    "points for rankings that are not right": (
        add_to_rankings(
            (OVERALL, ((ANNA, POINTS, 1), (DORA, TIMES, 1))), (NOBODY, ()), (OVERALL, ()), competition_id=1
        ),
        [
            ("rankings_delta", f"ranking {OVERALL} is named more than once"),
            ("rankings_delta[0].participants_delta", f"competitor {DORA} is not in this ranking"),
            ("rankings_delta[0].participants_delta", f"unity {TIMES} is not in this ranking"),
            ("rankings_delta[1].ranking_id", f"ranking {NOBODY} is not in this tournament"),
            ("rankings_delta[2].participants_delta", "must contain at least one delta"),
            ("competition_id", "competition 1 is not in this tournament"),
        ],
    ),
    # participants
    "a change of no participants": (enrol(), [("add", "must name at least one competitor, unless remove does")]),
    "an unknown newcomer": (enrol(NOBODY, DORA), [("add", f"competitor {NOBODY} is not in this tournament")]),
    "an unknown competitor who is to leave": (
        remove(NOBODY),
        [("remove", f"competitor {NOBODY} is not in this tournament")],
    ),
    "a newcomer named twice": (enrol(DORA, DORA), [("add", f"competitor {DORA} is named more than once")]),
    "a competitor who is to leave twice": (remove(BEN, BEN), [("remove", f"competitor {BEN} is named more than once")]),
    "one who is to come and to leave": (
        enrol(DORA, removed=(DORA,)),
        [("remove", f"competitor {DORA} is also to be added")],
    ),
    "the removal of the last one": (
        remove(CARA, ANNA, BEN),
        [("remove", "must leave at least one competitor in the ranking")],
    ),
    # descriptions
    "a description too long": (
        create(ANNA, description=LONGEST_DESCRIPTION + "e"),
        [("description", "must have at most 10000 characters")],
    ),
    "a description with a control character": (create(ANNA, description="a\0b"), [("description", NUL)]),
    "a modification to a description too long": (
        modify(ANNA, description=LONGEST_DESCRIPTION + "e"),
        [("description", "must have at most 10000 characters")],
    ),
    "a modification to a description with a control character": (
        modify(ANNA, description="a\x85b"),
        [("description", NEXT_LINE)],
    ),
    # tags, colors, parents
    "an empty tag": (register(tags=("u18", " ")), [("tags", EMPTY)]),
    "several empty tags": (change(tags=("", "u18")), [("tags", EMPTY)]),
    "a tag too long": (register(tags=(LONGEST_NAME + "e",)), [("tags", TOO_LONG)]),
    "a tag with a control character": (register(tags=("a\0b",)), [("tags", NUL)]),
    "a repeated tag": (register(tags=("a", "b", "a", "a")), [("tags", "tag 'a' is given more than once")]),
    "a tag repeated but for blanks": (change(tags=("a", " a")), [("tags", "tag 'a' is given more than once")]),
    "101 tags": (register(tags=(*MOST_TAGS, "one more")), [("tags", "must be at most 100")]),
    "a color with a hash": (register(color="#ff000"), [("color", NO_COLOR)]),
    "a color of 5 characters": (register(color="ff000"), [("color", NO_COLOR)]),
    "a color of 7 characters": (change(color="ff00000"), [("color", NO_COLOR)]),
    "a color and a new line": (change(color="ff0000\n"), [("color", NO_COLOR)]),
    "a color of other digits": (register(color="\u0661" * 6), [("color", NO_COLOR)]),
    "a color that is none": (change(color="orange"), [("color", NO_COLOR)]),
    "an unknown parent": (
        register(parent_id=NOBODY),
        [("parent", "competitor 99 is not in this tournament")],
    ),
    "a change to an unknown parent": (
        change(parent_id=NOBODY),
        [("parent", "competitor 99 is not in this tournament")],
    ),
    "a new competitor below itself": (
        register(parent_id=NEW),
        [("parent", f"competitor {NEW} is not in this tournament")],
    ),
    "a competitor below itself": (
        change(competitor_id=DORA, parent_id=DORA),
        [("parent", "must be another competitor")],
    ),
    "a circle of two": (
        change(competitor_id=ANNA, parent_id=BEN),
        [("parent", f"competitor {BEN} is below competitor {ANNA}")],
    ),
    "a circle of three": (
        change(competitor_id=ANNA, parent_id=CARA),
        [("parent", f"competitor {CARA} is below competitor {ANNA}")],
    ),
    # striking
    "nobody struck": (strike(), [("competitors", "must name at least one competitor")]),
    "a stranger struck, and somebody twice": (
        strike(NOBODY, ANNA, ANNA),
        [
            ("competitors", "competitor 99 is not in this tournament"),
            ("competitors", f"competitor {ANNA} is named more than once"),
        ],
    ),
    "a stranger unstruck": (unstrike(NOBODY), [("competitors", "competitor 99 is not in this tournament")]),
    "points for a struck competitor": (
        add((ANNA, POINTS, 1), (CARA, POINTS, 1), competition_id=RACE),
        [("competition_id", f"competitor {CARA} is struck from competition {RACE}")],
    ),
    "points for a struck competitor in several rankings": (
        add_to_rankings((OVERALL, ((CARA, POINTS, 1),)), competition_id=RACE),
        [("competition_id", f"competitor {CARA} is struck from competition {RACE}")],
    ),
    # undoing
    "an event without points undone": (
        reverse(reported(DUEL), points={}),
        [("sequence", "event 30 neither adds points nor undoes any")],
    ),
    "points of another ranking undone": (
        reverse(GIVEN_POINTS, ranking_id=FINISHED),
        [("sequence", f"event 30 is about ranking {OVERALL}")],
    ),
    # competitions
    "a participant nobody knows": (
        compete(ANNA, NOBODY),
        [("participants", "competitor 99 is not in this tournament")],
    ),
    "a participant named thrice": (
        compete(ANNA, BEN, ANNA, ANNA),
        [("participants", f"competitor {ANNA} is named more than once")],
    ),
    "a winner who did not take part": (
        compete(ANNA, BEN, winner_id=CARA),
        [("winner", f"competitor {CARA} is not a participant")],
    ),
    "a winner of nobody": (compete(winner_id=ANNA), [("winner", f"competitor {ANNA} is not a participant")]),
    "a place with a control character": (compete(location="Hall\0"), [("location", NUL)]),
    "a place too long": (compete(location=LONGEST_NAME + "e"), [("location", TOO_LONG)]),
    "a place of nothing but blanks": (report(DUEL, location=" "), [("location", EMPTY)]),
    "an empty score": (compete(ANNA, BEN, result=" "), [("result", EMPTY)]),
    "a score too long": (compete(ANNA, BEN, result="3" * 256), [("result", TOO_LONG)]),
    "a score with a control character": (compete(ANNA, BEN, result="3\0001"), [("result", NUL)]),
    "performances of none": (compete(result={}), [("result", NO_SCORE)]),
    "performances of one": (compete(ANNA, result={ANNA: "9.58"}), [("result", NO_SCORE)]),
    "performances of two": (compete(ANNA, BEN, result={ANNA: "3", BEN: "1"}), [("result", NO_SCORE)]),
    "performances of two as JSON text": (compete(ANNA, BEN, result=' {"1": "3"}'), [("result", NO_SCORE)]),
    "a score of three": (compete(ANNA, BEN, CARA, result="3-1"), [("result", NO_OBJECT)]),
    "a number of three": (compete(ANNA, BEN, CARA, result="3"), [("result", NO_OBJECT)]),
    "a list of three": (compete(ANNA, BEN, CARA, result='["9.58"]'), [("result", NO_OBJECT)]),
    "performances by name": (compete(ANNA, BEN, CARA, result='{"Anna": "9.58"}'), [("result", NO_OBJECT)]),
    "performances that are numbers": (compete(ANNA, BEN, CARA, result='{"1": 9.58}'), [("result", NO_OBJECT)]),
    "performances nested without end": (compete(ANNA, BEN, CARA, result="[" * 100_000), [("result", NO_OBJECT)]),
    "performances that no UTF-8 can hold": (
        compete(ANNA, BEN, CARA, result='{"1": "\ud800"}'),
        [("result", NO_OBJECT)],
    ),
    "a performance of who did not take part": (
        compete(ANNA, BEN, CARA, result={DORA: "1", ANNA: "2"}),
        [("result", f"competitor {DORA} is not a participant")],
    ),
    "two performances of one, in JSON text": (
        compete(ANNA, BEN, CARA, result='{"1": "a", "1": "b"}'),
        [("result", "names a competitor more than once")],
    ),
    "a performance, in JSON text, of who did not take part": (
        compete(ANNA, BEN, CARA, result='{"99": "1"}'),
        [("result", "competitor 99 is not a participant")],
    ),
    "an empty performance": (compete(ANNA, BEN, CARA, result={ANNA: ""}), [("result", EMPTY)]),
    "a performance with a control character": (
        compete(ANNA, BEN, CARA, result='{"1": "a\\u0000"}'),
        [("result", NUL)],
    ),
    "a report of a winner who did not take part": (
        report(DUEL, winner_id=CARA),
        [("winner", f"competitor {CARA} is not a participant")],
    ),
    "others who take part twice, or are unknown": (
        report(DUEL, participants=(ANNA, ANNA, NOBODY)),
        [
            ("participants", f"competitor {NOBODY} is not in this tournament"),
            ("participants", f"competitor {ANNA} is named more than once"),
        ],
    ),
    "others than the performances and the winner that stay": (
        report(TIMED, participants=(CARA, BEN, EMIL)),
        [
            ("result", f"must be sent, too: it has a performance of competitor {ANNA}, who does not take part"),
            ("winner", f"competitor {ANNA} is not a participant"),
        ],
    ),
    "so few that performances cannot stay": (
        report(TIMED, participants=(ANNA, BEN)),
        [("result", "must be sent, too: up to two participants have a score, more have a performance each")],
    ),
    "a scale and the name of a round with control characters": (
        report(DUEL, scale="\0", round_name="\0"),
        [("scale", NUL), ("round_name", NUL)],
    ),
    "a report of performances of two": (report(DUEL, result={ANNA: "3"}), [("result", NO_SCORE)]),
    "a report of a score of four": (report(RACE, result="3-1"), [("result", NO_OBJECT)]),
    "a report of a performance of who did not take part": (
        report(RACE, result={EMIL: "1"}),
        [("result", f"competitor {EMIL} is not a participant")],
    ),
    # lists of rankings
    "a ranking of nobody": (create(), [("participants", "must name at least one competitor")]),
    "a modification to nobody": (modify(), [("participants", "must name at least one competitor")]),
    "a ranking of one nobody knows": (
        create(ANNA, NOBODY),
        [("participants", "competitor 99 is not in this tournament")],
    ),
    "a ranking that names one twice": (
        create(ANNA, BEN, ANNA),
        [("participants", f"competitor {ANNA} is named more than once")],
    ),
    "a modification to one nobody knows": (
        modify(98, NOBODY, ANNA),
        [
            ("participants", "competitor 98 is not in this tournament"),
            ("participants", "competitor 99 is not in this tournament"),
        ],
    ),
    "a modification that names two twice": (
        modify(BEN, ANNA, BEN, ANNA),
        [
            ("participants", f"competitor {BEN} is named more than once"),
            ("participants", f"competitor {ANNA} is named more than once"),
        ],
    ),
    # points
    "points of nobody": (add(), [("participants_delta", "must contain at least one delta")]),
    "10,001 deltas": (
        add(*[(ANNA, POINTS, 1)] * (DELTAS_MAX + 1)),
        [("participants_delta", "must contain at most 10000 deltas")],
    ),
    "points of one who is not in the ranking": (
        add((DORA, POINTS, 1)),
        [("participants_delta", f"competitor {DORA} is not in this ranking")],
    ),
    "points in another ranking's unity": (
        add((ANNA, TIMES, 1)),
        [("participants_delta", f"unity {TIMES} is not in this ranking")],
    ),
    "points for an unknown competition": (
        add((ANNA, POINTS, 1), competition_id=NOBODY),
        [("competition_id", "competition 99 is not in this tournament")],
    ),
    "points for a reason too long": (add((ANNA, POINTS, 1), reason=LONGEST_NAME + "e"), [("reason", TOO_LONG)]),
    "points for a reason with a control character": (add((ANNA, POINTS, 1), reason="li\0cence"), [("reason", NUL)]),
    "points for a reason of nothing but blanks": (add((ANNA, POINTS, 1), reason=" "), [("reason", EMPTY)]),
    "points of rankings for a reason too long": (
        add_to_rankings((OVERALL, ((ANNA, POINTS, 1),)), reason=LONGEST_NAME + "e"),
        [("reason", TOO_LONG)],
    ),
    "a delta too large": (
        add((ANNA, POINTS, DELTA_MAX + 1)),
        [("participants_delta", "delta 2147483648 is not within ±2147483647")],
    ),
    "a delta too small": (
        add((ANNA, POINTS, -DELTA_MAX - 1)),
        [("participants_delta", "delta -2147483648 is not within ±2147483647")],
    ),
    # every fault, each once, in the order of the fields
    "a competitor with everything wrong": (
        register(name="", tags=("a", "a", ""), color="red", parent_id=NOBODY),
        [
            ("name", EMPTY),
            ("tags", EMPTY),
            ("tags", "tag 'a' is given more than once"),
            ("color", NO_COLOR),
            ("parent", "competitor 99 is not in this tournament"),
        ],
    ),
    "a change with everything wrong": (
        change(competitor_id=ANNA, name="", tags=("",), color="red", parent_id=CARA),
        [
            ("name", EMPTY),
            ("tags", EMPTY),
            ("color", NO_COLOR),
            ("parent", f"competitor {CARA} is below competitor {ANNA}"),
        ],
    ),
    "a competition with everything wrong": (
        compete(ANNA, NOBODY, ANNA, NOBODY, location="\0", result={EMIL: ""}, winner_id=EMIL),
        [
            ("participants", "competitor 99 is not in this tournament"),
            ("participants", f"competitor {ANNA} is named more than once"),
            ("participants", "competitor 99 is named more than once"),
            ("location", NUL),
            ("result", f"competitor {EMIL} is not a participant"),
            ("result", EMPTY),
            ("winner", f"competitor {EMIL} is not a participant"),
        ],
    ),
    "a report with everything wrong": (
        report(DUEL, location="\0", result={}, winner_id=EMIL),
        [("location", NUL), ("result", NO_SCORE), ("winner", f"competitor {EMIL} is not a participant")],
    ),
    "a ranking with everything wrong": (
        create(NOBODY, name="", main_unity_name="\0", description="\0"),
        [
            ("name", EMPTY),
            ("main_unity_name", NUL),
            ("participants", "competitor 99 is not in this tournament"),
            ("description", NUL),
        ],
    ),
    "a modification with everything wrong": (
        modify(name="", main_unity_name="Goals", description="\0"),
        [
            ("name", EMPTY),
            ("main_unity_name", "this ranking already has a unity 'Goals'"),
            ("participants", "must name at least one competitor"),
            ("description", NUL),
        ],
    ),
    "a scoring that gives nothing, and one in a unity of another ranking": (
        score(Scoring(awards=()), Scoring(awards=(Award(unity_id=TIMES, value="outcome"),))),
        [
            ("scorings[0].awards", "must be 1 to 100"),
            ("scorings[1].awards[0].unity", f"unity {TIMES} is not in this ranking"),
        ],
    ),
    "points for a competition that does not count": (
        add((ANNA, POINTS, 1), competition_id=RIGGED),
        [("competition_id", "competition 23 is voided")],
    ),
    "more criteria than there may be": (
        declare(*[AMONG_THE_TIED] * (CRITERIA_MAX + 1)),
        [("criteria", f"must be at most {CRITERIA_MAX}")],
    ),
    "a criterion with more drops than there may be": (
        declare(Criterion(unity_id=POINTS, drop=tuple((one + 2, one + 1) for one in range(DROPS_MAX + 1)))),
        [("criteria[0].drop", f"must be at most {DROPS_MAX} pairs")],
    ),
    "drops of as many as there are, of none, and of too many": (
        declare(*[Criterion(unity_id=POINTS, drop=(one,)) for one in ((3, 3), (3, 0), (BEST_MAX + 1, 1))]),
        [(f"criteria[{number}].drop", NO_DROP) for number in range(3)],
    ),
    "drops out of order": (
        declare(*[Criterion(unity_id=POINTS, drop=one) for one in (((4, 1), (4, 2)), ((4, 1), (8, 1)))]),
        [(f"criteria[{number}].drop", NO_ORDER) for number in range(2)],
    ),
    "the first of what is dropped": (
        declare(Criterion(unity_id=POINTS, drop=((4, 1),), first=True)),
        [("criteria[0].first", "must be sent without best, among and drop")],
    ),
    "criteria with everything wrong": (
        declare(
            BY_POINTS,
            Criterion(unity_id=TIMES),
            Criterion(unity_id=GOALS, best=0),
            Criterion(unity_id=GOALS, best=BEST_MAX + 1),
            BY_POINTS,
        ),
        [
            ("criteria[1].unity", f"unity {TIMES} is not in this ranking"),
            ("criteria[2].best", f"must be from 1 to {BEST_MAX}"),
            ("criteria[3].best", f"must be from 1 to {BEST_MAX}"),
            ("criteria[4]", "repeats an earlier criterion, so it cannot separate anyone"),
        ],
    ),
    "points with everything wrong": (
        add((DORA, POINTS, 1), (ANNA, TIMES, 1), (DORA, TIMES, DELTA_MAX + 1), competition_id=NOBODY, reason="\0"),
        [
            ("participants_delta", f"competitor {DORA} is not in this ranking"),
            ("participants_delta", f"unity {TIMES} is not in this ranking"),
            ("participants_delta", "delta 2147483648 is not within ±2147483647"),
            ("competition_id", "competition 99 is not in this tournament"),
            ("reason", NUL),
        ],
    ),
}


@pytest.mark.parametrize(("when", "then"), UNACCEPTABLE.values(), ids=UNACCEPTABLE.keys())
def test_unacceptable(board: Board, when: Command, then: list[tuple[str, str]]) -> None:
    with pytest.raises(Unacceptable) as refused:
        decide(board, when)
    assert refused.value.faults == tuple(Fault(*fault) for fault in then)


def test_10_000_performances_of_10_000_participants_are_judged_at_once() -> None:
    performances = dict.fromkeys(CROWD[:PARTICIPANTS_MAX], "9.8 s")
    began = thread_time()
    (event,) = decide(CROWDED, compete(*performances, result=performances))
    assert thread_time() - began < 0.2, "as if each had been looked for among all: 0.5 seconds and more"
    assert isinstance(event, events.CompetitionAdded)
    assert event.result == performances


def test_more_performances_than_there_may_be_participants_are_refused_in_one_sentence() -> None:
    with pytest.raises(Unacceptable) as refusal:
        decide(CROWDED, compete(*CROWD[:3], result=dict.fromkeys(range(1, PARTICIPANTS_MAX + 2), "9.8 s")))
    assert refusal.value.faults == (Fault("result", f"must name at most {PARTICIPANTS_MAX} competitors"),)


def test_performances_that_are_too_many_are_not_searched_for_repeats() -> None:
    text = ",".join(f'"{number}":"9.8 s"' for number in [*range(1, PARTICIPANTS_MAX + 2), 1])
    _, faults = judged_result(f"{{{text}}}", CROWD[:3])
    assert faults == [Fault("result", f"must name at most {PARTICIPANTS_MAX} competitors")]


def test_too_many_deltas_are_refused_in_one_sentence(board: Board) -> None:
    with pytest.raises(Unacceptable) as refusal:
        decide(board, add(*[(NOBODY, NOBODY, 1)] * (DELTAS_MAX + 1)))
    assert refusal.value.faults == (Fault("participants_delta", f"must contain at most {DELTAS_MAX} deltas"),)


@pytest.mark.parametrize(
    ("what", "most", "when"),
    [
        ("rankings", RANKINGS_MAX, create(ANNA)),
        ("competitors", COMPETITORS_MAX, register()),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (
                ("competitors", COMPETITORS_MAX, register_all(register())),
                (
                    "competitions",
                    COMPETITIONS_MAX,
                    compete_all(commands.AddCompetition(competition_id=NEW, group_id=1)),
                ),
                ("competitions", COMPETITIONS_MAX, commands.AddCompetition(competition_id=NEW, group_id=1)),
            )
        ),
    ],
)
def test_the_number_in_a_tournament_is_limited(board: Board, what: str, most: int, when: Command) -> None:
    those = getattr(board, what)
    first = next(iter(those.values()))
    for number in range(1_000, 1_000 + most - 1 - len(those)):
        those[number] = first
    fold_events(board, *decide(board, when))
    assert len(those) == most
    with pytest.raises(Unacceptable) as refused:
        decide(board, when)
    assert refused.value.message == f"This tournament has {most:,} {what}; it can have no more than {most:,}."


def test_a_ranking_can_have_100_unities_and_no_more(board: Board) -> None:
    for number in range(UNITIES_MAX - len(board.rankings[OVERALL].unities)):
        when = commands.AddUnity(ranking_id=OVERALL, unity_id=UnityId(1_000 + number), name=f"U{number}")
        fold_events(board, *decide(board, when))
    assert len(board.rankings[OVERALL].unities) == UNITIES_MAX == 100
    with pytest.raises(Unacceptable) as refused:
        decide(board, measure("One more"))
    assert refused.value.message == "This ranking has 100 unities; it can have no more than 100."


def test_a_list_may_not_name_10_001_competitors() -> None:
    for when in (compete(*CROWD), create(*CROWD)):
        with pytest.raises(Unacceptable) as refused:
            decide(CROWDED, when)
        assert refused.value.faults == (Fault("participants", "must be at most 10000"),)


@pytest.mark.parametrize(
    "when",
    [
        pytest.param(change(competitor_id=NOBODY), id="a competitor to change"),
        pytest.param(change(competitor_id=NOBODY, name=""), id="a competitor, whatever else is wrong"),
        pytest.param(report(NOBODY), id="a competition to change"),
        pytest.param(report(NOBODY, winner_id=NOBODY), id="a competition, whatever else is wrong"),
        pytest.param(void(NOBODY), id="a competition to void"),
        pytest.param(unvoid(NOBODY), id="a competition to unvoid"),
        pytest.param(modify(ANNA, ranking_id=NOBODY), id="a ranking to modify"),
        pytest.param(modify(ranking_id=NOBODY), id="a ranking, whatever else is wrong"),
        pytest.param(inform(ranking_id=NOBODY), id="a ranking to rename"),
        pytest.param(measure("Strokes", ranking_id=NOBODY), id="a ranking to add a unity to"),
        pytest.param(redefine(ranking_id=NOBODY), id="a ranking whose unity is to change"),
        pytest.param(redefine(NOBODY, name=""), id="a unity, whatever else is wrong"),
        pytest.param(redefine(TIMES), id="a unity of another ranking"),
        pytest.param(declare(ranking_id=NOBODY), id="a ranking to classify"),
        pytest.param(add((ANNA, POINTS, 1), ranking_id=NOBODY), id="a ranking to add points to"),
        pytest.param(commands.EraseCompetitor(competitor_id=NOBODY), id="a competitor to erase"),
        pytest.param(commands.CloseRanking(ranking_id=NOBODY), id="a ranking to close"),
        pytest.param(commands.ChangeVisibility(ranking_id=NOBODY, hidden=True), id="a ranking to hide"),
        pytest.param(commands.ChangeVisibility(ranking_id=NOBODY, hidden=False), id="a ranking to show"),
        pytest.param(commands.ReopenRanking(ranking_id=NOBODY), id="a ranking to reopen"),
    ],
)
def test_what_does_not_exist_is_not_found(board: Board, when: Command) -> None:
    with pytest.raises(NotFound, match=r"This tournament has no (competitor|competition|ranking|unity) (99|42)\."):
        decide(board, when)


@pytest.mark.parametrize(
    "when",
    [
        pytest.param(modify(ANNA, ranking_id=FINISHED, main_unity_name="Times"), id="modified"),
        pytest.param(inform(ranking_id=FINISHED), id="renamed"),
        pytest.param(measure("Strokes", ranking_id=FINISHED), id="given another unity"),
        pytest.param(redefine(TIMES, ranking_id=FINISHED), id="given another sort"),
        pytest.param(declare(ranking_id=FINISHED), id="given another classification"),
        pytest.param(add((ANNA, TIMES, 1), ranking_id=FINISHED), id="given points"),
        pytest.param(commands.CloseRanking(ranking_id=FINISHED), id="closed again"),
    ],
)
def test_until_it_is_reopened_a_closed_ranking_cannot_be(board: Board, when: Command) -> None:
    with pytest.raises(Conflict, match=r"is (already )?closed"):
        decide(board, when)
    fold_events(board, events.RankingReopened(ranking_id=FINISHED))
    assert decide(board, when)


def test_that_a_ranking_is_closed_comes_before_whatever_else_is_wrong(board: Board) -> None:
    with pytest.raises(Conflict) as refused:
        decide(board, add((NOBODY, NOBODY, DELTA_MAX + 1), ranking_id=FINISHED))
    assert refused.value.faults == ()


def test_an_open_ranking_cannot_be_reopened(board: Board) -> None:
    with pytest.raises(Conflict, match="is already open"):
        decide(board, commands.ReopenRanking(ranking_id=OVERALL))


# ── Competitions that do not count ──────────────────────────────────────────────────────────────────────

CAUSED: Final[commands.CausedPoints] = {
    30: events.PointsAdded(
        ranking_id=OVERALL, deltas=(Delta(ANNA, POINTS, 3), Delta(BEN, GOALS, -1)), competition_id=DUEL
    ),
    32: events.PointsAdded(ranking_id=OVERALL, deltas=(Delta(EMIL, POINTS, 5),), competition_id=DUEL),
}
"""Emil is in no ranking: he has left."""


@pytest.mark.parametrize(
    ("when", "fact", "sign"),
    [
        pytest.param(void(DUEL, CAUSED), events.CompetitionVoided(competition_id=DUEL), -1, id="void"),
        pytest.param(unvoid(RIGGED, CAUSED), events.CompetitionUnvoided(competition_id=RIGGED), 1, id="unvoid"),
    ],
)
def test_all_points_are_reversed_by_events_that_name_them(board: Board, when: Command, fact: Event, sign: int) -> None:
    competition_id = fact.competition_id
    assert decide(board, when) == (
        fact,
        events.PointsReversed(
            ranking_id=OVERALL,
            deltas=(Delta(ANNA, POINTS, 3 * sign), Delta(BEN, GOALS, -sign)),
            competition_id=competition_id,
            reverses=30,
        ),
        events.PointsReversed(
            ranking_id=OVERALL, deltas=(Delta(EMIL, POINTS, 5 * sign),), competition_id=competition_id, reverses=32
        ),
    )


def test_the_largest_delta_can_be_reversed(board: Board) -> None:
    extremes = Delta(ANNA, POINTS, DELTA_MAX), Delta(ANNA, POINTS, -DELTA_MAX)
    added_ = events.PointsAdded(ranking_id=OVERALL, deltas=extremes, competition_id=DUEL)
    _, reversal = decide(board, void(DUEL, {30: added_}))
    assert reversal.deltas == extremes[::-1]


def test_a_competition_is_voided_once_and_unvoided_once(board: Board) -> None:
    with pytest.raises(Conflict, match="Competition 23 is already voided"):
        decide(board, void(RIGGED))
    with pytest.raises(Conflict, match="Competition 21 is not voided"):
        decide(board, unvoid(DUEL))


@pytest.mark.parametrize("when", [void, unvoid])
def test_every_closed_ranking_that_it_gave_points_in_is_named(board: Board, when: Any) -> None:
    fold_events(board, events.RankingClosed(ranking_id=OVERALL))
    caused = {
        30: events.PointsAdded(ranking_id=FINISHED, deltas=(Delta(ANNA, TIMES, 3),), competition_id=DUEL),
        31: events.PointsAdded(ranking_id=OVERALL, deltas=(Delta(ANNA, POINTS, 3),), competition_id=DUEL),
        32: events.PointsAdded(ranking_id=FINISHED, deltas=(Delta(ANNA, TIMES, 3),), competition_id=DUEL),
    }
    with pytest.raises(Conflict, match=r"reopen them first: 'Finished', 'Overall'\."):
        decide(board, when(caused=caused))


def test_100_000_lines_can_be_reversed_and_no_more(board: Board) -> None:
    line = Delta(ANNA, POINTS, 1)
    full = events.PointsAdded(ranking_id=OVERALL, deltas=(line,) * DELTAS_MAX, competition_id=DUEL)
    caused: dict[int, Event] = {30 + n: full for n in range(REVERSED_LINES_MAX // DELTAS_MAX)}
    assert len(decide(board, void(DUEL, caused))) == 1 + len(caused)
    caused[50] = added((ANNA, POINTS, 1), competition_id=DUEL)
    with pytest.raises(Unacceptable, match="more than 100000 lines"):
        decide(board, void(DUEL, caused))


# ── Points that are undone ──────────────────────────────────────────────────────────────────────────────


def test_what_is_undone_is_redone_by_naming_what_undid_it(board: Board) -> None:
    with pytest.raises(Conflict, match="Event 31 undid event 30, which was redone after it"):
        decide(board, reverse(reversal(), 31))
    (undo,) = decide(board, reverse(GIVEN_POINTS))
    fold_events(board, undo, first=31)
    with pytest.raises(Conflict, match=r"Event 30 is already undone. To redo it, name the event that undid it: 31"):
        decide(board, reverse(GIVEN_POINTS))
    (redo,) = decide(board, reverse(undo, 31))
    assert redo == reversal(deltas=GIVEN_POINTS.deltas, undone=False)
    fold_events(board, redo, first=32)
    with pytest.raises(Conflict, match=r"Event 32 redid event 30. To undo that again, name it"):
        decide(board, reverse(redo, 32))
    assert decide(board, reverse(GIVEN_POINTS)) == (undo,)


def test_a_voiding_and_an_undoing_can_come_in_any_order(board: Board) -> None:
    (undo,) = decide(board, reverse(GIVEN_POINTS))
    fold_events(board, undo, first=31)
    assert decide(board, void(DUEL, {30: GIVEN_POINTS})) == (events.CompetitionVoided(competition_id=DUEL),)
    fold_events(board, events.CompetitionVoided(competition_id=DUEL), first=32)
    (redo,) = decide(board, reverse(undo, 31))
    assert redo == reversal(deltas=(), undone=False)
    fold_events(board, redo, first=33)
    _, given_back = decide(board, unvoid(DUEL, {30: GIVEN_POINTS}))
    assert given_back == reversal(deltas=GIVEN_POINTS.deltas, undone=None)


def test_a_request_over_several_rankings_is_undone_whole_and_the_named_ranking_comes_first(board: Board) -> None:
    parts = {
        30: added((ANNA, TIMES, 1), ranking_id=FINISHED, part=(1, 2)),
        31: added((ANNA, POINTS, 2), part=(2, 2)),
    }
    command = reverse(parts[31], 31, parts)
    with pytest.raises(Conflict, match=r"in closed rankings; reopen them first: 'Finished'\."):
        decide(board, command)
    fold_events(board, events.RankingReopened(ranking_id=FINISHED))
    assert decide(board, command) == (
        reversal(competition_id=None, deltas=(Delta(ANNA, POINTS, -2),), reverses=31),
        reversal(competition_id=None, deltas=(Delta(ANNA, TIMES, -1),), reverses=30, ranking_id=FINISHED),
    )


def test_a_reversal_by_voiding_is_not_undone_but_unvoided(board: Board) -> None:
    with pytest.raises(Conflict, match="Event 17 came with the voiding or unvoiding of competition 23; unvoid or void"):
        decide(board, reverse(GIVEN[-4], 17))


def test_without_scope_admin_only_what_the_same_token_did_is_reversed(board: Board) -> None:
    (undo,) = decide(board, reverse(GIVEN_POINTS, only_of=7))
    with pytest.raises(Forbidden, match="Event 30 came from another sender; reversing it needs a token of scope admin"):
        decide(board, reverse(GIVEN_POINTS, only_of=8))
    fold_events(board, undo, first=31)
    assert decide(board, reverse(undo, 31, only_of=7))
    with pytest.raises(Forbidden, match="Event 31 came from another sender"):
        decide(board, reverse(undo, 31, only_of=8))


def test_20_000_events_of_a_ranking_can_be_undone_at_the_same_time_and_no_more(board: Board) -> None:
    board.rankings[OVERALL].undone.update({n: n for n in range(100, 100 + UNDONE_MAX)})
    with pytest.raises(Unacceptable, match="has 20,000 undone events, the most it can have"):
        decide(board, reverse(GIVEN_POINTS))
    del board.rankings[OVERALL].undone[100]
    assert decide(board, reverse(GIVEN_POINTS)) == (reversal(),)


# ── Competitors for whom a competition does not count ───────────────────────────────────────────────────


def test_striking_takes_back_only_the_lines_that_count(board: Board) -> None:
    points = {
        30: added((ANNA, POINTS, 3), (BEN, POINTS, 1), (ANNA, GOALS, 2), competition_id=DUEL),
        31: added((BEN, POINTS, 5), competition_id=DUEL),
        32: added((ANNA, POINTS, 7), competition_id=DUEL),
    }
    board.rankings[OVERALL].undone[32] = 33
    hers = Delta(ANNA, POINTS, -3), Delta(ANNA, GOALS, -2)
    taken = events.PointsReversed(ranking_id=OVERALL, competition_id=DUEL, deltas=hers, reverses=30, struck=True)
    assert decide(board, strike(ANNA, caused=points)) == (struck(ANNA), taken)
    fold_events(board, struck(ANNA))
    with pytest.raises(Conflict, match="These competitors are already struck: 1"):
        decide(board, strike(ANNA, BEN))
    with pytest.raises(Conflict, match="These competitors are not struck: 2"):
        decide(board, unstrike(ANNA, BEN, competition_id=DUEL))
    _, of_30, of_31 = decide(board, void(DUEL, points))
    assert (of_30.deltas, of_31.deltas) == ((Delta(BEN, POINTS, -1),), (Delta(BEN, POINTS, -5),))
    _, given = decide(board, unstrike(ANNA, competition_id=DUEL, caused=points))
    assert (given.deltas, given.struck) == ((Delta(ANNA, POINTS, 3), Delta(ANNA, GOALS, 2)), False)
    assert decide(board, reverse(points[30], 30))[0].deltas == (Delta(BEN, POINTS, -1),)
    with pytest.raises(Conflict, match="Event 34 came with a change of who is struck from competition 21"):
        decide(board, reverse(taken, 34, {30: points[30]}))
    fold_events(board, events.CompetitionVoided(competition_id=DUEL))
    assert decide(board, unstrike(ANNA, competition_id=DUEL, caused=points)) == (struck(ANNA, back=True),)


class Unscanned(tuple[Any, ...]):
    """Must not be asked whether it contains something: with 10,000 competitors on both sides, that takes a second."""

    def __contains__(self, _: object) -> bool:
        raise AssertionError


def test_struck_competitors_are_looked_up_and_not_scanned(board: Board) -> None:
    points = {Sequence(9): added((ANNA, POINTS, 3), (BEN, POINTS, 2), competition_id=DUEL)}
    for asked in (
        strike(ANNA, BEN, caused=points),
        unstrike(ANNA, competition_id=DUEL, caused=points),
        add((ANNA, POINTS, 1), competition_id=DUEL),
        strike(ANNA, caused=points),
    ):
        of_some = isinstance(asked, commands.StrikeCompetitors | commands.UnstrikeCompetitors)
        command = replace(asked, competitors=Unscanned(asked.competitors)) if of_some else asked
        fold_events(board, *decide(board, command))
        duel = board.competitions[DUEL]
        board.competitions[DUEL] = replace(duel, struck=Unscanned(duel.struck))
    assert duel.struck == (ANNA, BEN)


def test_a_closed_ranking_refuses_a_strike_only_where_it_would_change(board: Board) -> None:
    points = {30: added((ANNA, TIMES, 1), (DORA, TIMES, 2), ranking_id=FINISHED, competition_id=DUEL)}
    with pytest.raises(Conflict, match=r"gave points in closed rankings; reopen them first: 'Finished'\."):
        decide(board, strike(ANNA, caused=points))
    assert decide(board, strike(BEN, caused=points)) == (struck(BEN),)


# ── What the public sees ────────────────────────────────────────────────────────────────────────────────

HEAD: Final = 20
HIDDEN, SHOWN = Publication(), Publication(published=True)
WITHOUT_ONE: Final = Publication(hidden=frozenset({OVERALL}))
HELD, HELD_BACK = Publication(published=True, frozen_at=12), Publication(frozen_at=12)
TAKEN_AWAY: Final = Publication(seen_before=15)
ARCHIVED, DELETED = Publication(stage="archived"), Publication(stage="deleted")


def publish(published: bool = True) -> Command:
    return commands.ChangePublication(published=published, head=HEAD)


def freeze(at: Any = "now") -> Command:
    return commands.ChangePublication(freeze=at, head=HEAD)


def reveal(to: Any, last: int | None = None, *, held: int = 12) -> Command:
    return commands.ChangePublication(reveal=to, head=HEAD, next_reveal=commands.NextReveal(held, last))


def frozen(at: int) -> Event:
    return events.PublicationFrozen(at=at)


def revealed(to: int | None = None) -> Event:
    return events.PublicationRevealed(to=to)


PUBLISHING: Final[dict[str, tuple[Publication, Command, Event]]] = {
    "what nobody saw": (HIDDEN, publish(), events.TournamentPublished()),
    "what is held back": (HELD_BACK, publish(), events.TournamentPublished()),
    "a ranking that was hidden": (
        WITHOUT_ONE,
        commands.ChangeVisibility(ranking_id=OVERALL, hidden=False),
        events.RankingShown(ranking_id=OVERALL),
    ),
    "what was taken away": (TAKEN_AWAY, publish(), events.TournamentPublished()),
    "what is shown is taken away": (SHOWN, publish(False), events.TournamentUnpublished()),
    "what is held is taken away": (HELD, publish(False), events.TournamentUnpublished()),
    "frozen where it is": (SHOWN, freeze(), frozen(HEAD)),
    "frozen where it is, by number": (SHOWN, freeze(HEAD), frozen(HEAD)),
    "frozen before it is published": (HIDDEN, freeze(), frozen(HEAD)),
    "frozen at the beginning before it is published": (HIDDEN, freeze(1), frozen(1)),
    "frozen again where it was seen last": (TAKEN_AWAY, freeze(15), frozen(15)),
    "revealed up to the next event": (HELD, reveal(13), revealed(13)),
    "revealed up to the head": (HELD, reveal(HEAD), revealed(HEAD)),
    "revealed before it is published": (HELD_BACK, reveal(13), revealed(13)),
    "revealed through the next competition": (HELD, reveal("next", 17), revealed(17)),
    "revealed for good": (HELD, reveal("all"), revealed()),
    "archived": (HELD, commands.ArchiveTournament(), events.TournamentArchived()),
    "restored": (ARCHIVED, commands.RestoreTournament(), events.TournamentRestored()),
    "deleted": (SHOWN, commands.DeleteTournament(), events.TournamentDeleted()),
    "deleted when it was archived": (ARCHIVED, commands.DeleteTournament(), events.TournamentDeleted()),
    "restored when it was deleted": (DELETED, commands.RestoreTournament(), events.TournamentRestored()),
}
NOT_PUBLISHING: Final[dict[str, tuple[Publication, Command, type[Refusal], str]]] = {
    "published twice": (SHOWN, publish(), Conflict, "already published"),
    "unpublished before": (HIDDEN, publish(False), Conflict, "is not published"),
    "unpublished twice": (TAKEN_AWAY, publish(False), Conflict, "is not published"),
    "frozen twice": (HELD, freeze(), Conflict, "already frozen at event 12"),
    "frozen elsewhere": (HELD, freeze(15), Conflict, "already frozen at event 12"),
    "frozen before what is shown": (SHOWN, freeze(HEAD - 1), Unacceptable, "freeze: must be at least 20"),
    "frozen before what was shown": (TAKEN_AWAY, freeze(14), Unacceptable, "freeze: must be at least 15"),
    "frozen beyond the head": (SHOWN, freeze(HEAD + 1), Unacceptable, "freeze: must be at most 20"),
    "revealed without a freeze": (SHOWN, reveal(13), Conflict, "Nothing is held back"),
    "the rest revealed without a freeze": (SHOWN, reveal("all"), Conflict, "Nothing is held back"),
    "the next revealed without a freeze": (HIDDEN, reveal("next", 13), Conflict, "Nothing is held back"),
    "revealed up to where it is": (HELD, reveal(12), Unacceptable, "reveal: must be more than 12"),
    "revealed backwards": (HELD, reveal(3), Unacceptable, "reveal: must be more than 12"),
    "revealed beyond the head": (HELD, reveal(HEAD + 1), Unacceptable, "reveal: must be at most 20"),
    "no next competition": (HELD, reveal("next"), Conflict, "No competition has given points after event 12"),
    "nothing said": (
        *(SHOWN, commands.ChangePublication(head=HEAD)),
        *(Unacceptable, "published: is required, unless freeze or reveal is sent"),
    ),
    "two things said": (
        *(HIDDEN, commands.ChangePublication(published=True, freeze="now", head=HEAD)),
        *(Unacceptable, "published: must be sent alone"),
    ),
    "two other things said": (
        *(HELD, commands.ChangePublication(freeze="now", reveal="all", head=HEAD)),
        *(Unacceptable, "freeze: must be sent alone"),
    ),
    "archived twice": (ARCHIVED, commands.ArchiveTournament(), Conflict, "is archived; restore it first"),
    "published when it is archived": (ARCHIVED, publish(), Conflict, "is archived; restore it first"),
    "deleted twice": (DELETED, commands.DeleteTournament(), NotFound, "is deleted"),
    "archived when it is deleted": (DELETED, commands.ArchiveTournament(), NotFound, "is deleted"),
    "restored without need": (SHOWN, commands.RestoreTournament(), Conflict, "neither archived nor deleted"),
    "somebody was faster": (HELD, reveal("next", 17, held=11), Conflict, "Someone else has just revealed"),
}


@pytest.mark.parametrize(("given_", "when", "then"), PUBLISHING.values(), ids=PUBLISHING.keys())
def test_what_the_public_sees_may_be(board: Board, given_: Publication, when: Command, then: Event) -> None:
    board.publication = given_
    assert decide(board, when) == (then,)
    assert impossible(board, Sequence(HEAD + 1), then) is None


@pytest.mark.parametrize(("given_", "when", "why", "said"), NOT_PUBLISHING.values(), ids=NOT_PUBLISHING.keys())
def test_what_the_public_sees_may_not_be(given_: Publication, when: Command, why: type[Refusal], said: str) -> None:
    with pytest.raises(why) as refusal:
        decide(Board(publication=given_), when)
    faults = [f"{fault.field}: {fault.message}" for fault in refusal.value.faults]
    assert said in (faults[0] if faults else refusal.value.message)


# ── What facts change for later decisions ───────────────────────────────────────────────────────────────

REMEMBERED: Final[list[tuple[str, Event, Command]]] = [
    ("a competitor that was registered", registered(competitor_id=60), create(60)),
    ("a competitor that moved", changed(parent_id=DORA), change(competitor_id=ANNA, parent_id=CARA)),
    ("a competition that was voided", events.CompetitionVoided(competition_id=DUEL), unvoid(DUEL)),
    (
        "a competition that was unvoided",
        events.CompetitionUnvoided(competition_id=RIGGED),
        add((ANNA, POINTS, 1), competition_id=RIGGED),
    ),
    ("a competition that was added", competed(ANNA, BEN), report(NEW, result="3-1", winner_id=BEN)),
    ("a ranking that was created", created(EMIL), add((EMIL, NEW_TOO, 1), ranking_id=NEW)),
    ("a ranking's new list", modified(EMIL), add((EMIL, POINTS, 1))),
    ("a ranking's newcomer", enrolled(EMIL), add((EMIL, POINTS, 1))),
    ("a main unity's new name, and its old one is free", modified(ANNA, main_unity_name="Score"), measure("Points")),
    ("a unity's new name, and its old one is free", redefined(name="Strokes"), measure("Goals")),
    ("a unity that was added", measured("Strokes"), add((ANNA, NEW, 1))),
    ("a ranking that was closed", events.RankingClosed(ranking_id=OVERALL), commands.ReopenRanking(ranking_id=OVERALL)),
    (
        "a ranking that was reopened",
        events.RankingReopened(ranking_id=FINISHED),
        add((ANNA, TIMES, 1), ranking_id=FINISHED),
    ),
    (
        "that a ranking was hidden",
        events.RankingHidden(ranking_id=OVERALL),
        commands.ChangeVisibility(ranking_id=OVERALL, hidden=False),
    ),
    ("that it was published", events.TournamentPublished(), publish(False)),
    ("that it was frozen", frozen(12), reveal("next", 13)),
    ("that it was archived", events.TournamentArchived(), commands.RestoreTournament()),
    ("that it was deleted", events.TournamentDeleted(), commands.RestoreTournament()),
]


@pytest.mark.parametrize(("fact", "when"), [row[1:] for row in REMEMBERED], ids=[row[0] for row in REMEMBERED])
def test_remembered(board: Board, fact: Event, when: Command) -> None:
    with pytest.raises(Refusal):
        decide(board, when)
    fold_events(board, fact)
    assert decide(board, when)


def test_a_competitor_that_left_a_ranking_cannot_be_given_points_until_it_is_back(board: Board) -> None:
    fold_events(board, modified(ANNA))
    with pytest.raises(Unacceptable):
        decide(board, add((BEN, POINTS, 1)))
    fold_events(board, modified(BEN, ANNA))
    assert decide(board, add((BEN, POINTS, 1)))


def test_a_modification_leaves_the_other_unities(board: Board) -> None:
    fold_events(board, modified(ANNA, main_unity_name="Score"))
    assert decide(board, add((ANNA, GOALS, 1), (ANNA, POINTS, 1)))
    assert next(iter(board.rankings[OVERALL].unities)) == POINTS


@pytest.mark.parametrize(
    "fact",
    [
        pytest.param(GIVEN[0], id="the opening"),
        pytest.param(added((ANNA, POINTS, 1)), id="points"),
        pytest.param(GIVEN[-4], id="points taken back"),
        pytest.param(
            reported(DUEL, location="Hall", scale="sprint", round=3), id="the place and round of a competition"
        ),
        pytest.param(informed(name="All", description=None), id="a ranking's information"),
        pytest.param(redefined(sort=Sort.ASC), id="a unity's sort"),
        pytest.param(changed(name="Benjamin", tags=(), color="ff0000"), id="a competitor's new name"),
    ],
)
def test_no_decision_depends_on(board: Board, fact: Event) -> None:
    before = judged_by(board)
    fold_events(board, fact)
    assert judged_by(board) == before


# ── Rules of all decisions ──────────────────────────────────────────────────────────────────────────────


def laid_out(board: Board) -> object:
    """All that the board holds, in the order in which it is held."""
    rankings = [(ranking_id, list(ranking.unities)) for ranking_id, ranking in board.rankings.items()]
    return copied(board), list(board.competitors), list(board.competitions), rankings


def outcome(board: Board, command: Command) -> tuple[Event, ...] | Refusal:
    try:
        return decide(board, command)
    except Refusal as refusal:
        return refusal


def told(said: tuple[Event, ...] | Refusal) -> object:
    return (type(said), said.message, said.faults) if isinstance(said, Refusal) else said


@settings(unhurried, max_examples=20)
@given(history=histories(), data=st.data())
def test_deciding_changes_nothing_and_decides_the_same_again(history: list[Event], data: st.DataObject) -> None:
    board = board_after(history)
    command = data.draw(commands_for(board))
    before = laid_out(board)
    first = outcome(board, command)
    assert laid_out(board) == before
    assert told(outcome(board, command)) == told(first)


@settings(unhurried, max_examples=20)
@given(history=histories(), data=st.data())
def test_a_refusal_names_each_fault_once(history: list[Event], data: st.DataObject) -> None:
    board = board_after(history)
    command = data.draw(commands_for(board))
    match outcome(board, command):
        case tuple() as decided:
            assert decided
        case Unacceptable(faults=faults):
            assert faults
            assert len(set(faults)) == len(faults)
        case Refusal(faults=faults):
            assert not faults


@settings(unhurried, max_examples=20)
@given(history=histories(), data=st.data())
def test_an_event_that_is_not_structural_overtakes_no_decision(history: list[Event], data: st.DataObject) -> None:
    """Why the log may accept a block that was judged before another process's points landed."""
    board = board_after(history)
    asked = data.draw(st.lists(commands_for(board), min_size=8, max_size=8))
    decided = [(command, said) for command in asked if isinstance(said := outcome(board, command), tuple)]
    for overtaking, landed in decided:
        if any(event.structural for event in landed):
            continue
        later = copied(board)
        fold_events(later, *landed)
        for command, said in decided:
            if command is not overtaking and not created_by(said) & created_by(landed):
                assert decide(later, command) == said


def created_by(run: tuple[Event, ...]) -> set[int]:
    """The ids that the events bring, of which the log sees to it that nobody else has them."""
    return {getattr(event, name) for event in run for name in event.creates}


OVERTAKEN: Final[list[tuple[Event, Command]]] = [
    (changed(competitor_id=ANNA, parent_id=DORA), change(competitor_id=DORA, parent_id=CARA)),
    (registered(key="A7"), register(competitor_id=NEW_TOO, key="A7")),
    (changed(competitor_id=ANNA, key="A7"), change(competitor_id=BEN, key="A7")),
    (competed(key="M1"), report(DUEL, key="M1")),
    (reported(DUEL, key="M1"), compete(key="M1")),
    (modified(ANNA, BEN), add((CARA, POINTS, 1))),
    (modified(ANNA, main_unity_name="Score"), measure("Score")),
    (removed(CARA), add((CARA, POINTS, 1))),
    (measured("Strokes"), measure("Strokes", unity_id=NEW_TOO)),
    (redefined(name="Strokes"), measure("Strokes")),
    (measured("Score"), modify(ANNA, main_unity_name="Score")),
    (events.CompetitionVoided(competition_id=DUEL), add((ANNA, POINTS, 1), competition_id=DUEL)),
    (events.CompetitionUnvoided(competition_id=RIGGED), unvoid(RIGGED)),
    (struck(ANNA), add((ANNA, POINTS, 1), competition_id=DUEL)),
    (struck(CARA, competition_id=RACE, back=True), unstrike(CARA)),
    (reversal(), reverse(GIVEN_POINTS)),
    (events.CompetitorErased(competitor_id=BEN), change(name="Benjamin")),
    (events.RankingClosed(ranking_id=OVERALL), add((ANNA, POINTS, 1))),
    (events.RankingReopened(ranking_id=FINISHED), commands.ReopenRanking(ranking_id=FINISHED)),
    (events.RankingHidden(ranking_id=OVERALL), commands.ChangeVisibility(ranking_id=OVERALL, hidden=True)),
    (events.TournamentPublished(), publish()),
    (frozen(12), freeze()),
    (events.TournamentArchived(), add((ANNA, POINTS, 1))),
    (events.TournamentDeleted(), commands.RenameTournament(name="Cup")),
]


@pytest.mark.parametrize(("fact", "when"), OVERTAKEN, ids=[type(fact).__name__ for fact, _ in OVERTAKEN])
def test_a_structural_event_may_overtake_a_decision(board: Board, fact: Event, when: Command) -> None:
    assert decide(board, when)
    fold_events(board, fact)
    assert fact.structural
    with pytest.raises(Refusal):
        decide(board, when)


def test_what_is_structural() -> None:
    """Whatever may overtake a decision. (Structural, too, though it cannot overtake: a new ranking, which
    nobody has named; a ranking's information, classification and place, which only conditions look at; and an event
    set aside, which every process that did not stop at it has folded. Points that expire overtake only where points
    do.)"""
    structural = {kind for kind in get_args(Event) if kind.structural}
    assert structural == {type(fact) for fact, _ in OVERTAKEN} | {
        events.RankingCreated,
        events.RankingInformationChanged,
        events.ClassificationDeclared,
        events.ScoringDeclared,  # nothing is refused because of it, but the points of a result depend on it
        events.EventSetAside,
        events.TournamentUnpublished,  # these are tried by what undoes them, see below
        events.PublicationRevealed,
        events.RankingShown,
        events.TournamentRestored,
        events.RankingsOrdered,
        events.PointsExpired,
    }


def test_additions_without_a_key_change_nothing_for_other_commands() -> None:
    assert not any(event.structural for event in (registered(), competed(), reported(DUEL, result="2:1")))


def test_what_ends_a_publication_or_a_freeze_may_overtake_a_decision(board: Board) -> None:
    for begun, ended, when in (
        (events.TournamentPublished(), events.TournamentUnpublished(), publish(False)),
        (frozen(12), revealed(), reveal(13)),
        (
            events.RankingHidden(ranking_id=OVERALL),
            events.RankingShown(ranking_id=OVERALL),
            commands.ChangeVisibility(ranking_id=OVERALL, hidden=False),
        ),
        (events.TournamentArchived(), events.TournamentRestored(), commands.RestoreTournament()),
    ):
        fold_events(board, begun)
        assert decide(board, when)
        fold_events(board, ended)
        with pytest.raises(Conflict):
            decide(board, when)


@pytest.mark.long
def test_enrolment_ends_at_the_most_participants_and_nothing_else_does() -> None:
    *members, newcomer = range(1_000, 1_000 + ENROLLED_MAX + 1)
    board = Board()
    for competitor_id in (*members, newcomer):
        board.competitors[competitor_id] = CROWDED.competitors[CROWD[0]]
    fold_events(board, created(*members, ranking_id=NEW))

    def change(added: tuple[int, ...] = (), removed: tuple[int, ...] = ()) -> tuple[Event, ...]:
        return decide(board, commands.ChangeParticipants(ranking_id=NEW, added=added, removed=removed))

    with pytest.raises(Unacceptable) as refusal:
        change((newcomer,))
    assert [fault.field for fault in refusal.value.faults] == ["add"]
    assert change((members[0],))
    assert change((newcomer,), (members[0],))
    assert change((), (members[0],))


def test_a_ranking_that_is_beyond_the_limit_may_become_smaller(bounds: Bounds) -> None:
    board = board_after(GIVEN)
    *members, newcomer = list(board.competitors)[:4]
    fold_events(board, created(*members, ranking_id=NEW))
    bounds(ENROLLED_MAX=1)
    assert decide(board, commands.ChangeParticipants(ranking_id=NEW, removed=(members[0],)))
    with pytest.raises(Unacceptable):
        decide(board, commands.ChangeParticipants(ranking_id=NEW, added=(newcomer,), removed=(members[0],)))


def test_a_list_of_10_000_may_be_replaced_and_a_longer_one_may_not() -> None:
    board = board_after(GIVEN)
    for competitor_id, competitor in CROWDED.competitors.items():
        board.competitors[competitor_id] = competitor
    *members, newcomer = CROWD
    fold_events(board, created(*members, ranking_id=NEW))
    assert decide(board, modify(newcomer, ranking_id=NEW)) == (modified(newcomer, ranking_id=NEW),)
    fold_events(board, events.ParticipantsChanged(ranking_id=NEW, added=(newcomer,)))
    with pytest.raises(Unacceptable) as refusal:
        decide(board, modify(newcomer, ranking_id=NEW))
    assert "has 10,001 competitors" in refusal.value.message
    for path in ("information.json", "unities/<unity id>.json", "participants.json"):
        assert f"rankings/{NEW}/{path}" in refusal.value.message
    assert decide(board, inform(ranking_id=NEW, name="All"))
    assert decide(board, redefine(NEW_TOO, ranking_id=NEW, sort=Sort.ASC))


def test_every_command_has_cases() -> None:
    accepted = {type(when) for when, _ in ACCEPTED.values()} | {type(when) for _, when, _ in PUBLISHING.values()}
    refused = {type(when) for when, _ in UNACCEPTABLE.values()}
    refused |= {type(when) for _, when, why, _ in NOT_PUBLISHING.values() if why is Unacceptable}
    asked = set(get_args(Command)) - {commands.ExpirePoints}  # time asks for it: `tests/api/test_expiry.py`
    assert accepted == asked
    without_fields = {
        commands.EraseCompetitor,
        commands.CloseRanking,
        commands.ReopenRanking,
        commands.ChangeVisibility,
        commands.VoidCompetition,
        commands.UnvoidCompetition,
        commands.ArchiveTournament,
        commands.DeleteTournament,  # its slug is compared where it is sent
        commands.RestoreTournament,
    }
    assert refused == asked - without_fields


BESIDE_COMMANDS: Final = {events.EventSetAside, events.Ignored}
"""No command leads to them, and they change no decision."""


def test_every_event_has_cases() -> None:
    accepted = {type(then) for _, then in ACCEPTED.values()} | {type(then) for *_, then in PUBLISHING.values()}
    assert accepted == set(get_args(Event)) - {
        events.TournamentOpened,
        events.PointsExpired,  # `tests/api/test_expiry.py` has these
        events.PointsScored,  # `tests/engine/test_rescoring.py` has these
        *BESIDE_COMMANDS,
    }
    assert {type(fact) for fact in GIVEN} | {type(fact) for _, fact, _ in REMEMBERED} >= set(get_args(Event)) - {
        events.TournamentUnpublished,  # see above
        events.TournamentRestored,
        events.RankingShown,
        events.RankingsOrdered,
        events.PublicationRevealed,
        events.CompetitorErased,  # as in OVERTAKEN
        events.PointsExpired,
        events.PointsAdded,  # these are of no consequence for decisions, see above
        events.PointsScored,
        events.ScoringDeclared,
        events.CompetitionChanged,
        events.ClassificationDeclared,
        events.RankingInformationChanged,
        events.TournamentRenamed,
        events.PresentationChanged,
        *BESIDE_COMMANDS,
    }
    assert set(EVENTS) == set(get_args(Event)) - {events.Ignored}
