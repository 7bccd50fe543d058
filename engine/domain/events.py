"""What has happened in a tournament: one frozen struct per kind of fact, past tense, never changed.

Pure. An event holds everything that its folds need, ids and times included, so folding it needs no clock and no
look-up. In a change, UNSET leaves a field as it was; None or an empty value empties it. In any other event, a field
with its default value was not given. `engine/log/codec.py` encodes events. `projections/board/board.py` defines their
effects.
"""

from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from engine.domain.awards import Scoring
from engine.domain.options import MainUnityOptions, UnityOptions, options_of, options_of_main_unity
from engine.domain.terms import (
    BEST_MAX,
    CRITERIA_MAX,
    CUTS_MAX,
    DELTA_MAX,
    DROPS_MAX,
    ID_MAX,
    RANKINGS_MAX,
    RESULT_MAX,
    SCORINGS_MAX,
    SET_ASIDE_MAX,
    ActorId,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    Sort,
    Stage,
    TiebreakCode,
    TiebreakEdition,
    TiebreakPairing,
    UnityId,
)

_ID: Final = Meta(ge=1, le=ID_MAX)
_Competitor = Annotated[CompetitorId, _ID]
_Competition = Annotated[CompetitionId, _ID]
_Ranking = Annotated[RankingId, _ID]
_Unity = Annotated[UnityId, _ID]
_Integer = Annotated[int, Meta(ge=-ID_MAX - 1, le=ID_MAX)]

Result = str | dict[_Competitor, str]
"""The score of a competition. With more than two participants, the performance of each."""


COLOR_DEFAULT: Final = "000000"
PERSONAL: Final = ("name", "tags", "color", "key")
"""The personal fields of events about a competitor."""
Commitment = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""SHA-256 over a random salt and the personal fields of an event, in hexadecimal (`engine/log/codec.py`)."""
_Coded = Annotated[str, "not written by people"]
"""A text that is not searched for the names of competitors. Any other `str` is, unless it is personal
(`projections/past/mentions.py`)."""


Touchable = Literal["competitor", "competition", "ranking", "unity", "publication", "order"]


def _refuse_other_zones(moment: datetime | None | UnsetType) -> None:
    """Raises ValueError unless a time is in UTC, as all that are recorded are."""
    if isinstance(moment, datetime) and moment.utcoffset() != timedelta():
        raise ValueError(f"{moment} is not in UTC")


class MadeUnity(Struct, frozen=True, kw_only=True):
    """A unity that an event makes."""

    ranking_id: RankingId
    unity_id: UnityId
    sort: Sort
    options: UnityOptions


class SaidResult(Struct, frozen=True, kw_only=True):
    """The result of a competition, as an event says it. None: it has none. `winner_id`: None: none, or the same as
    before."""

    competition_id: CompetitionId
    result: Result | None
    winner_id: CompetitorId | None

    @property
    def is_empty(self) -> bool:
        return self.result is None and self.winner_id is None

    def stands(self, result: Result | None, winner_id: CompetitorId | None) -> bool:
        """Whether it is this result; without a score, the winner counts."""
        return self.result == result and (result is not None or self.winner_id == winner_id)


ResultAndWinner = tuple[Result | None, CompetitorId | None]
"""The result and the winner of a competition. None: it has none."""


class EventBase(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The base of all events. They are frozen, and their stored form omits fields that have their defaults. They cannot
    be part of a reference cycle, so the garbage collector skips them: a replay makes millions.

    `structural`: a command judged before this event might be judged differently after it. If another process appends
    such an event first, the block is judged again. `exact`: it depends on every event before it, including points, and
    is appended only at the sequence it was judged at. `creates`: the fields that hold the ids of what it creates.
    `personal`: the fields about a person. They follow all others, because they are stored apart
    (`engine/log/codec.py`). `tag`: the name it is stored under, written out so that renaming a class changes nothing
    stored. A tag is never changed or reused; an event with an empty tag is never stored. `touches`: the kinds of things
    that it changes among those whose ids it names, and the order of all rankings. `touch` in
    `projections/tables/tables.py` adds the lists and totals that it changes. `judged`: False: operators can append it
    to a tournament that cannot be judged, so points that were due before may still have to expire. `opens_or_closes`:
    whether it closes its ranking, or reopens it. Points do not expire in a closed one. `gives`: it gives points, and
    does not take back or restore them. `scores`: it gives the points of a result by a scoring, or takes them back.
    `deletes`: it deletes the tournament.
    """

    structural: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    creates: ClassVar[tuple[str, ...]] = ()
    personal: ClassVar[tuple[str, ...]] = ()
    judged: ClassVar[bool] = True
    gives: ClassVar[bool] = False
    scores: ClassVar[bool] = False
    opens_or_closes: ClassVar[bool] = False
    deletes: ClassVar[bool] = False
    tag: ClassVar[str] = ""
    touches: ClassVar[tuple[Touchable, ...]]

    @property
    def made_unity(self) -> MadeUnity | None:
        """The unity that it makes: its own, or the main one of the ranking that it creates."""
        return None

    @property
    def made_competition(self) -> CompetitionId | None:
        """The competition that it adds."""
        return None

    @property
    def said_result(self) -> SaidResult | None:
        """What it says of the result of a competition."""
        return None

    def result_after(self, before: ResultAndWinner) -> ResultAndWinner:
        """The result and the winner that its competition has after it, and had `before`."""
        return before

    @property
    def erases(self) -> CompetitorId | None:
        """The competitor whose name and other personal fields it erases, in all events."""
        return None

    @property
    def redates(self) -> bool:
        """Whether it gives a competition another date: points may expire, or count again."""
        return False

    @property
    def relists(self) -> CompetitionId | None:
        """The competition to which it gives other participants."""
        return None


class TournamentOpened(EventBase, frozen=True, kw_only=True):
    tag = "TournamentOpened"
    touches = ()
    name: str
    slug: _Coded


class TournamentRenamed(EventBase, frozen=True, kw_only=True):
    """The tournament has a new name. Its slug stays the same."""

    tag = "TournamentRenamed"
    touches = ()
    name: str


class PresentationChanged(EventBase, frozen=True, kw_only=True):
    """How the tournament presents itself. `logo`: a PNG in base64. None resets the zone, language or colour to its
    default, and removes the logo."""

    tag = "PresentationChanged"
    touches = ("publication",)
    zone: _Coded | None | UnsetType = UNSET
    language: _Coded | None | UnsetType = UNSET
    accent: _Coded | None | UnsetType = UNSET
    logo: _Coded | None | UnsetType = UNSET
    listed: bool | UnsetType = UNSET


class CompetitorRegistered(EventBase, frozen=True, kw_only=True):
    """`key`: the organiser's own id for it, which no other competitor has; None: it has none. With one it is
    structural. `commitment`: what remains of erased personal fields; UNSET: they are not erased. The same holds for a
    change."""

    tag = "CompetitorRegistered"
    touches = ("competitor",)
    creates = ("competitor_id",)
    personal = PERSONAL
    competitor_id: _Competitor
    parent_id: _Competitor | None = None
    name: str = ""
    tags: tuple[str, ...] = ()
    color: str = COLOR_DEFAULT
    key: str | None = None
    commitment: Commitment | UnsetType = UNSET

    @property
    def structural(self) -> bool:  # type: ignore[override]
        return self.key is not None


class CompetitorChanged(EventBase, frozen=True, kw_only=True):
    """Structural because of the parent: two changes that are harmless separately could form a circle. And because of
    the key: no two have the same."""

    tag = "CompetitorChanged"
    touches = ("competitor",)
    structural = True
    personal = PERSONAL
    competitor_id: _Competitor
    parent_id: _Competitor | None | UnsetType = UNSET
    name: str | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    color: str | UnsetType = UNSET
    key: str | None | UnsetType = UNSET
    commitment: Commitment | UnsetType = UNSET


class CompetitorErased(EventBase, frozen=True, kw_only=True):
    """The competitor has no name, tags, colour, key or parent, at any moment. Appending it erases the personal fields
    of all events about the competitor (`append_block` in `migrations/0001_log.sql`)."""

    tag = "CompetitorErased"
    touches = ("competitor",)
    structural = True
    judged = False
    competitor_id: _Competitor

    @property
    def erases(self) -> CompetitorId:
        return self.competitor_id


Naming = CompetitorRegistered | CompetitorChanged
"""The events that have personal fields."""


class CompetitionAdded(EventBase, frozen=True, kw_only=True):
    """`started_at` None: it started when it was recorded. Times are UTC. `scale`: the name of the scoring that it uses;
    empty: none is named. `key`: as a competitor has one."""

    tag = "CompetitionAdded"
    touches = ("competition",)
    creates = ("competition_id",)
    competition_id: _Competition
    group_id: _Integer
    started_at: datetime | None = None
    location: str = ""
    participants: tuple[_Competitor, ...] = ()
    result: Result | None = None
    winner_id: _Competitor | None = None
    scale: str = ""
    round: _Integer | None = None
    round_name: str = ""
    key: str | None = None

    def __post_init__(self) -> None:
        _refuse_other_zones(self.started_at)

    @property
    def structural(self) -> bool:  # type: ignore[override]
        return self.key is not None

    @property
    def made_competition(self) -> CompetitionId:
        return self.competition_id

    @property
    def said_result(self) -> SaidResult:
        return SaidResult(competition_id=self.competition_id, result=self.result, winner_id=self.winner_id)

    def result_after(self, before: ResultAndWinner) -> ResultAndWinner:
        return self.result, self.winner_id


class CompetitionChanged(EventBase, frozen=True, kw_only=True):
    """`started_at` None: it started when the competition was recorded. A changed date is structural, because points may
    have expired by the old one; so is a changed key. A PointsExpired follows for points that stop or start counting
    because of the change. Other participants are structural, because results are judged by them, and exact, because
    they are judged by the result and the winner. `scored`: a ranking has
    scorings, and its points depend on the change. So it is structural, and is followed by the lines that differ."""

    tag = "CompetitionChanged"
    touches = ("competition",)
    competition_id: _Competition
    started_at: datetime | None | UnsetType = UNSET
    location: str | UnsetType = UNSET
    result: Result | None | UnsetType = UNSET
    winner_id: _Competitor | None | UnsetType = UNSET
    participants: tuple[_Competitor, ...] | UnsetType = UNSET
    group_id: _Integer | UnsetType = UNSET
    scale: str | UnsetType = UNSET
    round: _Integer | None | UnsetType = UNSET
    round_name: str | UnsetType = UNSET
    key: str | None | UnsetType = UNSET
    scored: bool = False

    def __post_init__(self) -> None:
        _refuse_other_zones(self.started_at)

    @property
    def redates(self) -> bool:
        return self.started_at is not UNSET

    @property
    def structural(self) -> bool:  # type: ignore[override]
        return self.redates or self.exact or self.key is not UNSET or self.scored

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.relists is not None

    @property
    def relists(self) -> CompetitionId | None:
        return None if self.participants is UNSET else self.competition_id

    @property
    def said_result(self) -> SaidResult | None:
        if self.result is UNSET:
            return None
        winner_id = None if self.winner_id is UNSET else self.winner_id
        return SaidResult(competition_id=self.competition_id, result=self.result, winner_id=winner_id)

    def result_after(self, before: ResultAndWinner) -> ResultAndWinner:
        result, winner_id = before
        return (
            result if self.result is UNSET else self.result,
            winner_id if self.winner_id is UNSET else self.winner_id,
        )


class RankingCreated(EventBase, MainUnityOptions, frozen=True):
    """Structural so that RANKINGS_MAX holds exactly. The options of its main unity are the last of its fields."""

    tag = "RankingCreated"
    touches = ("ranking",)
    structural = True
    creates = ("ranking_id", "main_unity_id")
    ranking_id: _Ranking
    name: str
    participants: tuple[_Competitor, ...]
    main_unity_id: _Unity
    main_unity_name: str
    description: str | None = None
    main_unity_sort: Sort = Sort.DESC

    @property
    def made_unity(self) -> MadeUnity:
        return MadeUnity(
            ranking_id=self.ranking_id,
            unity_id=self.main_unity_id,
            sort=self.main_unity_sort,
            options=options_of_main_unity(self),
        )


class _ChangeOfRanking(EventBase, frozen=True, kw_only=True):
    """An event that changes one ranking. It is structural."""

    structural = True
    ranking_id: _Ranking


class RankingModified(_ChangeOfRanking, frozen=True, kw_only=True):
    """`participants` is the whole new list."""

    tag = "RankingModified"
    touches = ("ranking",)
    participants: tuple[_Competitor, ...]
    main_unity_name: str
    name: str | UnsetType = UNSET
    description: str | None | UnsetType = UNSET


class RankingInformationChanged(_ChangeOfRanking, frozen=True, kw_only=True):
    """Structural because a change may be conditional on what it changes (`api/desk/conditions.py`)."""

    tag = "RankingInformationChanged"
    touches = ("ranking",)
    name: str | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    zones: str | None | UnsetType = UNSET


class ParticipantsChanged(_ChangeOfRanking, frozen=True, kw_only=True):
    """First `removed` leave the ranking, then `added` join at its end. Removing a competitor outside the ranking, or
    adding one already in it, changes nothing. Structural even when it only adds, so that ENROLLED_MAX holds exactly."""

    tag = "ParticipantsChanged"
    touches = ("ranking",)
    added: tuple[_Competitor, ...] = ()
    removed: tuple[_Competitor, ...] = ()


class UnityAdded(EventBase, UnityOptions, frozen=True):
    """Structural because the names of a ranking's unities are unique, and so that UNITIES_MAX holds exactly. Its
    options are the last of its fields."""

    tag = "UnityAdded"
    touches = ("ranking", "unity")
    structural = True
    creates = ("unity_id",)
    ranking_id: _Ranking
    unity_id: _Unity
    name: str
    sort: Sort = Sort.DESC

    @property
    def made_unity(self) -> MadeUnity:
        options = UnityOptions(**options_of(self))
        return MadeUnity(ranking_id=self.ranking_id, unity_id=self.unity_id, sort=self.sort, options=options)


MAKING_UNITIES: Final = (RankingCreated.tag, UnityAdded.tag)
"""The tags of events that make a unity."""


class UnityChanged(_ChangeOfRanking, frozen=True, kw_only=True):
    """Structural because the names of a ranking's unities are unique."""

    tag = "UnityChanged"
    touches = ("ranking", "unity")
    unity_id: _Unity
    name: str | UnsetType = UNSET
    sort: Sort | UnsetType = UNSET


_Results = Annotated[int, Meta(ge=1, le=BEST_MAX)]


class Criterion(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One criterion in the chain that orders a ranking's competitors: their totals in a unity, by its sort.

    `best`: how many of a competitor's best results in competitions count; points given without a competition always
    count. `drop`: pairs, both ascending: from the first number of results on, the second number of the worst ones does
    not count. `among` "tied": only points from competitions among the tied competitors count
    (`projections/board/classification.py`). `first`: a competitor who reached the total earlier stands ahead.

    `tiebreak`: not totals, but what follows from who met whom (`projections/board/tiebreaks.py`). `cut`, `median`: how
    many contributions are left out, of the lowest or of both ends. `limit`: by how many half points the limit of Koya
    is shifted. `edition`: that of the regulations, which the declaration fixes.

    `ratio`, `per`: not the totals, but these divided by the totals in this unity (`projections/board/quotients.py`).
    """

    unity_id: _Unity
    best: _Results | None = None
    among: Literal["tied"] | None = None
    first: bool = False
    drop: Annotated[tuple[tuple[_Results, _Results], ...], Meta(max_length=DROPS_MAX)] = ()
    tiebreak: TiebreakCode | None = None
    cut: Annotated[int, Meta(ge=0, le=CUTS_MAX)] = 0
    median: Annotated[int, Meta(ge=0, le=CUTS_MAX)] = 0
    limit: Annotated[int, Meta(ge=-CUTS_MAX, le=CUTS_MAX)] = 0
    edition: TiebreakEdition | None = None
    pairing: TiebreakPairing | None = None
    ratio: _Unity | None = None
    per: _Unity | None = None

    @property
    def divisor(self) -> UnityId | None:
        """The unity by whose totals those of `unity_id` are divided; None: they are not."""
        return self.per if self.ratio is None else self.ratio

    def kept(self, number: int) -> int:
        """How many of this number of results count."""
        left = number - max([dropped for start, dropped in self.drop if start <= number], default=0)
        return left if self.best is None else min(left, self.best)


class ClassificationDeclared(_ChangeOfRanking, frozen=True, kw_only=True):
    """The criteria by which a ranking is classified from now on. Empty: the declaration ends, and only the main unity
    decides. Structural because a change may be conditional on what it changes (`api/desk/conditions.py`)."""

    tag = "ClassificationDeclared"
    touches = ("ranking",)
    criteria: Annotated[tuple[Criterion, ...], Meta(max_length=CRITERIA_MAX)] = ()


class ScoringDeclared(_ChangeOfRanking, frozen=True, kw_only=True):
    """The scorings by which results give points in a ranking from now on. Empty: results give none. The lines of
    earlier results that differ follow it."""

    tag = "ScoringDeclared"
    touches = ("ranking",)
    scorings: Annotated[tuple[Scoring, ...], Meta(max_length=SCORINGS_MAX)] = ()


class Delta(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A signed integer credited to one competitor in one unity."""

    competitor_id: _Competitor
    unity_id: _Unity
    amount: Annotated[int, Meta(ge=-DELTA_MAX, le=DELTA_MAX)]


class Scored(Delta, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A result of one competitor, in a unity that counts results."""

    amount: Annotated[int, Meta(ge=-RESULT_MAX, le=RESULT_MAX)]


class Total(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The total of one competitor in a unity that counts results; None: no result counts."""

    competitor_id: _Competitor
    unity_id: _Unity
    total: Annotated[int, Meta(ge=-ID_MAX, le=ID_MAX)] | None


class PointsAdded(EventBase, frozen=True, kw_only=True):
    """`competition_id` None: a free modification. `reason`: what the points are for, in words; None: none was given.
    `part` (i, n): this is the i-th of n consecutive events of one request; None: the request led to this event only.
    `results`: the lines in unities that count results; `deltas`: all others.

    The competition stands before the deltas, because an index looks for it in the first characters (`CAUSE_HEAD` in
    `engine/log/codec.py`)."""

    tag = "PointsAdded"
    touches = ()
    gives = True
    ranking_id: _Ranking
    competition_id: _Competition | None = None
    deltas: tuple[Delta, ...]
    reason: str | None = None
    part: tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=2, le=RANKINGS_MAX)]] | None = None
    results: tuple[Scored, ...] = ()
    totals: ClassVar[tuple[Total, ...]] = ()
    replaced: ClassVar[tuple[tuple[CompetitorId, UnityId], ...]] = ()
    instead_of: ClassVar[Sequence | None] = None
    since: ClassVar[datetime | None] = None

    @property
    def given(self) -> tuple[Delta, ...]:
        """All lines that it gives in unities that count sums."""
        return self.deltas

    @property
    def given_results(self) -> tuple[Scored, ...]:
        """All lines that it gives in unities that count results."""
        return self.results


class PointsScored(PointsAdded, frozen=True, kw_only=True):
    """The points that a scoring of the ranking gives for the result of a competition, or for its correction: then only
    the lines that differ, at most one for each competitor and unity. It follows its cause in the same block.

    `instead_of`, `since`: the first such event for this competition in the ranking, and when it was recorded: these
    points took place with that one, and have its place in the order of the log. None: this is the first.
    `silent`, `silent_results`: lines that do not change totals by themselves: they do not count at present, or, in a
    correction, they are results. `totals`: in a correction, for each competitor with a result that counts, the total
    after the event.
    """

    tag = "PointsScored"
    touches = ()
    scores = True
    instead_of: Sequence | None = None  # type: ignore[misc] # a field instead of a constant
    since: datetime | None = None  # type: ignore[misc]
    silent: tuple[Delta, ...] = ()
    silent_results: tuple[Scored, ...] = ()
    totals: tuple[Total, ...] = ()  # type: ignore[misc]

    @property
    def given(self) -> tuple[Delta, ...]:
        return self.deltas + self.silent

    @property
    def given_results(self) -> tuple[Scored, ...]:
        return self.results + self.silent_results


class PointsReversed(_ChangeOfRanking, frozen=True, kw_only=True):
    """Takes back or restores, line by line, the points of the event `reverses`, a `PointsAdded` of the same ranking and
    competition.

    `undone`: True if the event was undone, False if it was redone. `struck`: True if competitors were struck from the
    competition, False if they were unstruck. `replaced`: the competitors and unities of the lines that a scoring takes
    back for good. None of these: the competition was voided or unvoided. The event has only the lines that start or
    stop counting, perhaps none. Unless it undoes or redoes points, it follows its cause in the same block. Structural
    because a voiding reverses only points that are not undone. `instead_of`: that of the event `reverses`.

    `totals`: for each competitor with a result that starts or stops counting, the total after the event.
    """

    tag = "PointsReversed"
    touches = ()
    competition_id: _Competition | None = None
    deltas: tuple[Delta, ...]
    reverses: Sequence
    undone: bool | None = None
    struck: bool | None = None
    totals: tuple[Total, ...] = ()
    replaced: tuple[tuple[_Competitor, _Unity], ...] = ()
    instead_of: Sequence | None = None
    results: ClassVar[tuple[Scored, ...]] = ()
    given_results: ClassVar[tuple[Scored, ...]] = ()
    since: ClassVar[None] = None
    reason: ClassVar[None] = None

    @property
    def scores(self) -> bool:  # type: ignore[override]
        return bool(self.replaced)


class PointsExpired(_ChangeOfRanking, frozen=True, kw_only=True):
    """Points that have expired by `boundary` no longer count: it takes back their sum for each competitor and unity.
    After a changed date, it also restores points that, by the new date, have not expired.

    `totals`: for each competitor with a result that starts or stops counting, the total after the event.
    Structural because a reversal does not take back expired points."""

    tag = "PointsExpired"
    touches = ()
    competition_id: ClassVar[None] = None
    boundary: datetime
    deltas: tuple[Delta, ...]
    totals: tuple[Total, ...] = ()
    results: ClassVar[tuple[Scored, ...]] = ()
    replaced: ClassVar[tuple[tuple[CompetitorId, UnityId], ...]] = ()
    given_results: ClassVar[tuple[Scored, ...]] = ()
    instead_of: ClassVar[None] = None
    since: ClassVar[None] = None
    reason: ClassVar[None] = None

    def __post_init__(self) -> None:
        _refuse_other_zones(self.boundary)


Points = PointsAdded | PointsScored | PointsReversed | PointsExpired
"""The events that change totals."""


def changed_by(event: Points) -> tuple[Delta | Total, ...]:
    """The lines of the event. Their competitors and unities identify the totals that it changes."""
    more = event.results or event.totals
    return (*event.deltas, *more) if more else event.deltas


def lines_of(event: "Event") -> int:
    """The lines of points, or the participants of a competition; 1 for any other event."""
    match event:
        case PointsAdded():
            return len(event.deltas) or len(event.results)
        case CompetitionAdded():
            return len(event.participants)
        case _:
            return 1


def root(sequence: Sequence, event: Points) -> Sequence:
    """The sequence of the `PointsAdded` behind `event`, the event `sequence`: its own, or the one that it reverses."""
    return event.reverses if isinstance(event, PointsReversed) else sequence


def origin(sequence: Sequence, event: Points) -> Sequence:
    """The sequence that decides when the points of `event`, the event `sequence`, took place, and their order."""
    return root(sequence, event) if event.instead_of is None else event.instead_of


class _Revaluing(EventBase, frozen=True, kw_only=True):
    """An event that changes for whom a competition counts."""

    structural = True
    exact = True
    competition_id: _Competition


class CompetitionVoided(_Revaluing, frozen=True, kw_only=True):
    """The competition no longer counts: its points are reversed in the same block, and no new points can name it."""

    tag = "CompetitionVoided"
    touches = ("competition",)


class CompetitionUnvoided(_Revaluing, frozen=True, kw_only=True):
    """The competition counts again: its points are restored in the same block."""

    tag = "CompetitionUnvoided"
    touches = ("competition",)


class CompetitorsStruck(_Revaluing, frozen=True, kw_only=True):
    """The competition no longer counts for these competitors: the points that it gave them are reversed in the same
    block, and no new points for it can name them."""

    tag = "CompetitorsStruck"
    touches = ("competition",)
    competitors: tuple[_Competitor, ...]


class CompetitorsUnstruck(_Revaluing, frozen=True, kw_only=True):
    """The competition counts for these competitors again: the points that it gave them are restored in the same
    block."""

    tag = "CompetitorsUnstruck"
    touches = ("competition",)
    competitors: tuple[_Competitor, ...]


Revaluation = CompetitionVoided | CompetitionUnvoided | CompetitorsStruck | CompetitorsUnstruck
"""The events that change for whom a competition counts."""


class RankingClosed(_ChangeOfRanking, frozen=True, kw_only=True):
    tag = "RankingClosed"
    touches = ("ranking",)
    opens_or_closes = True


class RankingReopened(_ChangeOfRanking, frozen=True, kw_only=True):
    tag = "RankingReopened"
    touches = ("ranking",)
    opens_or_closes = True


class RankingHidden(_ChangeOfRanking, frozen=True, kw_only=True):
    """From now on, the public sees nothing of the ranking at any moment, whatever is published or frozen."""

    tag = "RankingHidden"
    touches = ("ranking", "publication")


class RankingShown(_ChangeOfRanking, frozen=True, kw_only=True):
    """A hidden ranking is as public as the others again."""

    tag = "RankingShown"
    touches = ("ranking", "publication")


class RankingsOrdered(EventBase, frozen=True, kw_only=True):
    """Lists of rankings begin with these, in this order; the others follow in the order they had. Structural because
    a change may be conditional on what it changes (`api/desk/conditions.py`)."""

    tag = "RankingsOrdered"
    touches = ("order",)
    structural = True
    rankings: tuple[_Ranking, ...]


class TournamentPublished(EventBase, frozen=True, kw_only=True):
    """The public sees the tournament from now on: a log that ends where `projections/board/publication.py` says."""

    tag = "TournamentPublished"
    touches = ("publication",)
    structural = True


class TournamentUnpublished(EventBase, frozen=True, kw_only=True):
    tag = "TournamentUnpublished"
    touches = ("publication",)
    structural = True


class PublicationFrozen(EventBase, frozen=True, kw_only=True):
    """The public end is held at the event `at`. Exact, because the public sees each event that is appended meanwhile,
    and nothing it has seen may be hidden again."""

    tag = "PublicationFrozen"
    touches = ("publication",)
    structural = True
    exact = True
    at: Annotated[Sequence, Meta(ge=1)]


class PublicationRevealed(EventBase, frozen=True, kw_only=True):
    """The public end is held at the event `to` from now on, which is later than before. None: it is no longer held."""

    tag = "PublicationRevealed"
    touches = ("publication",)
    structural = True
    to: Annotated[Sequence, Meta(ge=1)] | None = None


class _StageEvent(EventBase, frozen=True, kw_only=True):
    """An event after which the tournament has this `stage`; None: it can change."""

    structural = True
    stage: ClassVar[Stage | None]


class TournamentArchived(_StageEvent, frozen=True, kw_only=True):
    tag = "TournamentArchived"
    touches = ("publication",)
    stage = "archived"


class TournamentDeleted(_StageEvent, frozen=True, kw_only=True):
    """For clients, there is no such tournament any more. Its log stays until the operator deletes it."""

    tag = "TournamentDeleted"
    touches = ("publication",)
    stage = "deleted"
    deletes = True


class TournamentRestored(_StageEvent, frozen=True, kw_only=True):
    tag = "TournamentRestored"
    touches = ("publication",)
    stage = None


StageEvent = TournamentArchived | TournamentDeleted | TournamentRestored


class EventSetAside(EventBase, frozen=True, kw_only=True):
    """The earlier event `sequence` could not be folded. It has no effect at any moment, for any reader. `digest`: the
    digest, in hexadecimal, of the block that holds it."""

    tag = "EventSetAside"
    touches = ()
    structural = True
    exact = True
    judged = False
    sequence: Annotated[Sequence, Meta(ge=1, le=SET_ASIDE_MAX)]
    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Ignored(EventBase, frozen=True, kw_only=True):
    """Stands in for an event that was set aside: nothing happened. Created when the log is read, and never stored."""

    touches = ()
    judged = False


Event = (
    TournamentOpened
    | TournamentRenamed
    | PresentationChanged
    | CompetitorRegistered
    | CompetitorChanged
    | CompetitorErased
    | CompetitionAdded
    | CompetitionChanged
    | RankingCreated
    | RankingModified
    | RankingInformationChanged
    | ParticipantsChanged
    | UnityAdded
    | UnityChanged
    | ClassificationDeclared
    | ScoringDeclared
    | Points
    | Revaluation
    | RankingClosed
    | RankingReopened
    | RankingHidden
    | RankingShown
    | RankingsOrdered
    | TournamentPublished
    | TournamentUnpublished
    | PublicationFrozen
    | PublicationRevealed
    | StageEvent
    | EventSetAside
    | Ignored
)


class Recorded(Struct, frozen=True, gc=False):
    """An event as the log holds it.

    `sequence`: its number in its tournament. `recorded_at`: the time of its block in UTC, which never decreases within
    a tournament. `actor`: the sender of the request. `idempotency_key`: the key of that request, if it had one.
    """

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    idempotency_key: str | None
    event: Event

    @property
    def is_ignored(self) -> bool:
        """Whether the operator has set it aside."""
        return isinstance(self.event, Ignored)
