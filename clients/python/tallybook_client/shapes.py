"""The shapes of requests and answers, with the names in the documentation.

Times are aware, in UTC, although answers write most of them without a zone. Fields that a later version adds are
ignored.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field


def utc_text(moment: datetime) -> str:
    """The time as it is sent, with its full precision; without a fraction, it means the whole second. Raises ValueError
    if it is not aware."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} must be aware: say its time zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


# ── Requests ────────────────────────────────────────────────────────────────────────────────────────────


class Delta(Struct, frozen=True):
    """Points for a competitor in a unity."""

    competitor_id: int
    unity_id: int
    delta: int


class NewCompetitor(Struct, frozen=True, omit_defaults=True):
    name: str
    tags: Items[str] = ()
    color: str | None = None
    parent: int | None = None
    key: str | None = None


class NewCompetition(Struct, frozen=True, omit_defaults=True):
    """`result` is a text, or one by competitor. `winner` is the id of a participant. `scale`: the name of a scoring.
    Raises ValueError if `started_at` is not aware."""

    group_id: int
    participants: Items[int] = ()
    started_at: datetime | None = None
    location: str | None = None
    result: str | Mapping[int, str] | None = None
    winner: int | None = None
    scale: str | None = None
    round: int | None = None
    round_name: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.started_at is not None:
            utc_text(self.started_at)


class Criterion(Struct, frozen=True, omit_defaults=True):
    """One criterion of a classification: the totals of a unity. `best`: only this many competitions count, the best
    ones. `drop`: ((4, 1), (8, 2)): from four competitions on without the worst, from eight without the two worst.
    `among`: only what the tied got among themselves counts. `first`: the competitor who reached their total first
    is ahead. `tiebreak`: not totals, but who met whom, by a tie-break of FIDE's regulations. `ratio`, `per`: instead of
    `unity`, two whose totals are divided."""

    unity: int | None = None
    best: int | None = None
    among: Literal["tied"] | None = None
    first: bool = False
    drop: tuple[tuple[int, int], ...] = ()
    tiebreak: str | None = None
    cut: int = 0
    median: int = 0
    limit: int = 0
    edition: str | None = None
    pairing: Literal["swiss", "predetermined"] | None = None
    ratio: tuple[int, int] | None = None
    per: tuple[int, int] | None = None


# ── Which lines, and when ───────────────────────────────────────────────────────────────────────────────


class Top(Struct, frozen=True):
    """The first lines."""

    top: int


class Around(Struct, frozen=True):
    """The line of a competitor, with `span` above it and `span` below it."""

    around: int
    span: int


class Only(Struct, frozen=True):
    """The lines of these competitors, in this order."""

    competitors: tuple[int, ...]


class Slice(Struct, frozen=True):
    """`limit` lines after the first `offset`."""

    offset: int
    limit: int


Window = Top | Around | Only | Slice


class AtVersion(Struct, frozen=True):
    """The moment at which a unity had this version."""

    unity_id: int
    version: int


Moment = int | datetime | AtVersion
"""After the event of this sequence; after all events of this time, which must be aware; at a version."""


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────


class _Shape(Struct, frozen=True):
    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, datetime) and value.tzinfo is None:
                msgspec.structs.force_setattr(self, name, value.replace(tzinfo=UTC))


class Tag(Struct, frozen=True):
    name: str


class Competitor(_Shape, frozen=True, kw_only=True):
    """`level`, `lft`, `rgt`: depth and nested-set bounds in the hierarchy of parents. `key`: the organiser's own id.
    `etag`: the value for `if_match`, if the competitor was requested individually."""

    id: int
    name: str
    tags: tuple[Tag, ...]
    color: str
    level: int
    lft: int
    rgt: int
    created_at: datetime
    updated_at: datetime
    key: str | None = None
    etag: str | None = None


class Mention(_Shape, frozen=True, kw_only=True):
    """A text of the event `sequence`, or its key, with a name of a competitor in it: the words around the name."""

    sequence: int
    kind: str
    field: str
    text: str


class Erasure(_Shape, frozen=True, kw_only=True):
    """The effect of erasing `competitor`: all of it except its id and times is erased, with all earlier names, tags and
    colours. `rankings` keep its points and places. `mentions`: texts that stay, although they contain a name of it;
    `mentions_left_out`: the number of further ones."""

    competitor: Competitor
    rankings: tuple[int, ...]
    mentions: tuple[Mention, ...] = ()
    mentions_left_out: int = 0


class ExportedEvent(_Shape, frozen=True, kw_only=True):
    """An event that touches a competitor. `event`: its fields, cut down to this competitor."""

    sequence: int
    recorded_at: datetime
    actor: int
    idempotency_key: str | None
    kind: str
    event: dict[str, Any]


class Participant(_Shape, frozen=True, kw_only=True):
    competitor_id: int
    competitor: Competitor
    winner: bool
    result: str | None
    created_at: datetime
    updated_at: datetime


class Competition(_Shape, frozen=True, kw_only=True):
    """`voided_at`: the time since which it does not count; None: it counts. `struck`: the competitors for whom it does
    not count. `scale`: the name of the scoring that it uses. `key`, `etag`: as in Competitor."""

    id: int
    group_id: int
    started_at: datetime
    location: str
    participants: tuple[Participant, ...]
    result: str | dict[int, str] | None
    has_result: bool
    created_at: datetime
    updated_at: datetime
    voided_at: datetime | None
    struck: tuple[int, ...] = ()
    scale: str = ""
    round: int | None = None
    round_name: str = ""
    key: str | None = None
    etag: str | None = None


class Unity(Struct, frozen=True, kw_only=True):
    """`general`: it is the main one. `sort`: which totals are better, the highest (DESC) or the lowest (ASC).
    `decimals`, `time`: how pages show its totals. `counts`: the sum of points, the best result or the last. `lasts`,
    `expires_on`: when its points expire; None: they do not. `absent`: the total of who has no points; None: 0."""

    id: int
    name: str
    position: int
    general: bool
    sort: Literal["ASC", "DESC"]
    decimals: int = 0
    time: Literal["s", "ms"] | None = None
    counts: Literal["sum", "best", "last"] = "sum"
    lasts: str | None = None
    expires_on: Literal["minute", "day", "week"] | None = None
    absent: Literal["none"] | None = None


class Ranking(_Shape, frozen=True, kw_only=True):
    """`competitors`: None: they were not requested. `hidden`: from the public. `etag`: as in Competitor."""

    id: int
    name: str
    description: str | None
    closed_at: datetime | None
    general: bool
    position: str
    unities: tuple[Unity, ...]
    competitors: tuple[Competitor, ...] | None = None
    hidden: bool = False
    zones: str | None = None
    etag: str | None = None


class Standing(Struct, frozen=True, kw_only=True):
    """`overall`, in a sub-table: the position in the whole. `moved`, if requested: places gained since then; None:
    there was no such line. `placed`: False if there is no total."""

    competitor_id: int
    position: int
    total: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET
    placed: bool = True


class UnityStandings(Struct, frozen=True, kw_only=True):
    """`lines`, in a window: the total number of lines."""

    name: str
    version: int
    competitors_ranking: tuple[Standing, ...]
    general: bool
    lines: int | UnsetType = UNSET


class Standings(_Shape, frozen=True, kw_only=True):
    """A ranking with its standings after the event `sequence`."""

    id: int
    name: str
    description: str | None
    closed_at: datetime | None
    competitors: tuple[Competitor, ...]
    unities: tuple[UnityStandings, ...]
    sequence: int
    recorded_at: datetime
    on: datetime | None = None


class ClassificationLine(Struct, frozen=True, kw_only=True):
    """`values`: one for each criterion; None: it was not needed. `decided_by`: the number, from 0, of the criterion
    that separates the line from the one above it. The other fields: as in Standing."""

    competitor_id: int
    position: int
    values: tuple[int | None, ...]
    decided_by: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET
    placed: bool = True


class Classification(_Shape, frozen=True, kw_only=True):
    criteria: tuple[Criterion, ...]
    sequence: int
    recorded_at: datetime
    lines: int
    standings: tuple[ClassificationLine, ...]
    on: datetime | None = None


class CompetitionSum(Struct, frozen=True, kw_only=True):
    competition_id: int
    sum: int


class CompetitorForm(Struct, frozen=True, kw_only=True):
    competitor_id: int
    competitions: tuple[CompetitionSum, ...]


class CompetitorForms(_Shape, frozen=True, kw_only=True):
    """What competitors scored in their last competitions, newest last."""

    unity_id: int
    version: int
    sequence: int
    recorded_at: datetime
    lines: int
    form: tuple[CompetitorForm, ...]
    on: datetime | None = None


class ExpiringLine(Struct, frozen=True, kw_only=True):
    """`expires_at`: when the first points expire; None: none expire by the end."""

    competitor_id: int
    total: int | None
    total_then: int | None
    expires_at: datetime | None


class Expiring(_Shape, frozen=True, kw_only=True):
    """The current totals, and the totals left at the time `until` if nothing else happens."""

    unity_id: int
    version: int
    sequence: int
    recorded_at: datetime
    until: datetime
    lines: int
    expiring: tuple[ExpiringLine, ...]


class Reign(Struct, frozen=True, kw_only=True):
    """These competitors shared the first place; `until` None: to the end. No competitors: nobody led."""

    since: datetime
    until: datetime | None
    competitors: tuple[int, ...]


class TopRun(Struct, frozen=True, kw_only=True):
    since: datetime
    until: datetime


class TimeAtTop(Struct, frozen=True, kw_only=True):
    competitor_id: int
    seconds: int
    shared_seconds: int
    days: int
    weeks: int
    competitions: int
    runs: int
    longest: TopRun


class ClockDifference(Struct, frozen=True, kw_only=True):
    """The leaders by each clock, while they differ."""

    since: datetime
    until: datetime | None
    log: tuple[int, ...]
    world: tuple[int, ...]


class Leaders(_Shape, frozen=True, kw_only=True):
    unity_id: int
    clock: str
    sequence: int
    recorded_at: datetime
    until: datetime | None
    lines: int
    reigns: tuple[Reign, ...]
    led: int
    times: tuple[TimeAtTop, ...]
    differing: int
    differences: tuple[ClockDifference, ...]


class UnityStanding(Struct, frozen=True, kw_only=True):
    id: int
    name: str
    version: int
    position: int
    total: int | None
    lines: int
    placed: bool = True


class RankingStandings(Struct, frozen=True, kw_only=True):
    """The lines of one competitor in a ranking."""

    id: int
    name: str
    unities: tuple[UnityStanding, ...]


class HistoryLine(_Shape, frozen=True, kw_only=True):
    """One delta. A line with `criteria` is a declaration of the classification, and has no delta."""

    sequence: int
    recorded_at: datetime
    actor: int
    competitor_id: int | None
    unity_id: int | None
    competition_id: int | None
    delta: int | None
    total: int | None
    result: int | None = None
    position_before: int | None
    position_after: int | None
    reverses: int | None
    reversal: str | None
    reason: str | None
    criteria: tuple[Criterion, ...] | UnsetType = UNSET


class ExplanationPlace(_Shape, frozen=True, kw_only=True):
    sequence: int
    recorded_at: datetime | None
    position: int | None
    total: int | None


class Overtaking(Struct, frozen=True, kw_only=True):
    """`who` passed `whom`, or drew level with them if `level`."""

    who: int
    whom: int
    level: bool
    who_total: int | None
    whom_total: int | None


class RecordedResult(_Shape, frozen=True, kw_only=True):
    """A result and a winner of a competition, from the event `sequence` on; None: none."""

    sequence: int
    recorded_at: datetime
    actor: int
    result: str | Mapping[int, str] | None
    winner_id: int | None


class EarlierResult(_Shape, frozen=True, kw_only=True):
    """A result, until it was corrected."""

    result: str
    corrected_at: datetime


class ScoredFor(Struct, frozen=True, kw_only=True):
    """What a result gives: for a win, draw, loss, bye, place, absence, or something else of it. `result`: own score
    first. `against`: the other one of two. `earlier`: what it was before corrections."""

    kind: str
    amount: int
    result: str | None
    place: int | None
    against: int | None
    earlier: tuple[EarlierResult, ...]


class CorrectedResult(_Shape, frozen=True, kw_only=True):
    """What a result has become since; `earlier`: the scores before."""

    score: str | None
    scored: ScoredFor | None = None
    earlier: tuple[EarlierResult, ...]


class ExplanationStep(_Shape, frozen=True, kw_only=True):
    sequence: int
    recorded_at: datetime
    actor: int
    cause: str
    competition_id: int | None
    reverses: int | None
    reversal: str | None
    reason: str | None
    delta: int | None
    total_before: int | None
    total: int | None
    result: int | None = None
    position_before: int | None
    position_after: int | None
    overtakings: tuple[Overtaking, ...]
    overtakings_left_out: int = 0
    took_place: datetime
    scored: ScoredFor | None = None
    score: str | None = None
    corrected: CorrectedResult | None = None


class TiebreakPart(Struct, frozen=True, kw_only=True):
    """What a round adds to a tie-break: `amount` divided by `games`. `left_out`: why it does not count."""

    round: int
    kind: str
    opponent_id: int | None
    amount: int
    games: int
    dummy: bool
    score: int | None
    points: int | None
    left_out: str | None


class TiebreakValue(Struct, frozen=True, kw_only=True):
    """A value of the criterion with this number, from 0: the sum of the parts that count, divided by `divisor`."""

    criterion: int
    value: int
    divisor: int
    parts: tuple[TiebreakPart, ...]


class Neighbours(Struct, frozen=True, kw_only=True):
    criteria: tuple[Criterion, ...]
    standings: tuple[ClassificationLine, ...] | None
    tiebreaks: tuple[TiebreakValue, ...] | UnsetType = UNSET


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a competitor has this place. `next`: the `start` for the rest of the steps; None: there is none. `dropped`:
    competitions that a criterion in this unity leaves out."""

    competitor_id: int
    unity_id: int
    start: ExplanationPlace = field(name="from")
    end: ExplanationPlace = field(name="to")
    steps: tuple[ExplanationStep, ...]
    classification: Neighbours | None
    next: int | None
    on: datetime | None = None
    dropped: tuple[int, ...] = ()


class StandingMove(Struct, frozen=True, kw_only=True):
    competitor_id: int
    name: str
    position_before: int | None
    total_before: int | None
    position_after: int | None
    total_after: int | None


class ClassificationMove(Struct, frozen=True, kw_only=True):
    competitor_id: int
    name: str
    position_before: int | None
    position_after: int | None


class ComparedUnity(Struct, frozen=True, kw_only=True):
    id: int
    name: str
    moves: tuple[StandingMove, ...]


class ComparedRanking(Struct, frozen=True, kw_only=True):
    """The competitors who would move. `classification`: by its criteria, if it is declared."""

    id: int
    name: str
    unities: tuple[ComparedUnity, ...]
    classification: tuple[ClassificationMove, ...] | UnsetType = UNSET


class Kind(Struct, frozen=True, kw_only=True):
    """A well-known kind of ranking. `results`: examples of what a result says of a participant, or of two.
    `competitor`, `competition`: what its sport calls them. `unities`: the main one first. They, and `scorings` and
    `criteria`, have the fields of requests, with names of unities for ids."""

    about: str
    results: tuple[str, ...]
    unities: tuple[Mapping[str, Any], ...]
    competitor: str = "competitor"
    competition: str = "competition"
    scorings: tuple[Mapping[str, Any], ...] = ()
    criteria: tuple[Mapping[str, Any], ...] = ()


class Unscored(Struct, frozen=True, kw_only=True):
    """A result that gives nothing. `why`: a sentence, with the forms that count."""

    competition_id: int
    why: str


class DeclaredScoring(Struct, frozen=True, kw_only=True):
    """`scorings`: those of a ranking, with the fields of requests. `unscored`: the first 1,000."""

    scorings: tuple[Mapping[str, Any], ...]
    unscored: tuple[Unscored, ...]


class Presentation(Struct, frozen=True, kw_only=True):
    """`zone`: the IANA time zone of the tournament's days. `logo`: the event that contains it. None: none was
    declared."""

    zone: str
    language: str | None
    accent: str | None
    logo: int | None
    listed: bool


class TournamentState(Struct, frozen=True, kw_only=True):
    """How much there is after the event `sequence`. `public_end`: the last event that the public sees; None: it sees
    nothing. `stage`: "archived"; None: it can change."""

    id: int
    slug: str | None
    name: str
    sequence: int
    recorded_at: datetime
    competitors: int
    competitions: int
    rankings: int
    published: bool
    public_end: int | None
    stage: str | None


class Publication(Struct, frozen=True, kw_only=True):
    """`frozen_at`: the event at which the public view is frozen; None: it is not. `public_end`: the last event that the
    public sees; None: it sees nothing."""

    published: bool
    frozen_at: int | None
    public_end: int | None


class Ticket(_Shape, frozen=True, kw_only=True):
    ticket: str
    expires_at: datetime


class WebhookTest(_Shape, frozen=True, kw_only=True):
    """`answered`: the status that the receiver sent; None: it sent none. `problem`: why it did not accept the
    message."""

    accepted: bool
    answered: int | None
    problem: str | None


# ── Results of changes ──────────────────────────────────────────────────────────────────────────────────


class Done(Struct, frozen=True, kw_only=True):
    """A change is on disk. `sequence`: that of its event, the last one of several. `is_replay`: it was done before,
    under the same key."""

    sequence: int
    is_replay: bool


class Made(Done, frozen=True, kw_only=True):
    """`id`: what was made."""

    id: int


class MadeSeveral(Done, frozen=True, kw_only=True):
    """`ids`: what was made, in the order sent."""

    ids: tuple[int, ...]


class MadeResult(Made, frozen=True, kw_only=True):
    """`ranking`: the standings of the ranking that was named, as an answer to a change has them."""

    ranking: Mapping[str, Any] | None = None


class MadeRanking(Made, frozen=True, kw_only=True):
    """`unity_id`: its main unity."""

    unity_id: int
