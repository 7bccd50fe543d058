"""Competitions that were played: what the rows of a file say of them.

The columns `date`, `participants` and `score` are needed; `winner` (a participant), `key`, `group`, `round` (a number
or a name), `scale` and `location` are optional; each other column is a unity of the ranking, by id or name.
Participants stand in one field, separated by `|`. So do values for each participant, in the same order: points, and
with more than two participants performances.

What a score gives, the scorings of the ranking say. A column overrides it: its points are given alongside, less those
of the scoring. An empty score is that of a fixture.
"""

import re
from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from api.imports.dates import DateOrder, is_no_day, spoilt, year_first
from api.imports.kinds import CORRECT_OR_LEAVE_OUT
from api.imports.rows import FileRow, parted
from api.interface.fields import DAY_CHARACTERS, FieldMisread, SkippedTime, begin_of_time, misread
from api.interface.names import Names
from engine.domain.errors import Fault, NotFound, Unacceptable, existing
from engine.domain.events import Delta, Result
from engine.domain.faults import cited, refuse_if_any, unacceptable
from engine.domain.names import name_key
from engine.domain.notation import Notation
from engine.domain.scoring import (
    NotRead,
    ScoredAmounts,
    Undecided,
    choose,
    named_winner_faults,
    wanted,
    winner_by_score,
)
from engine.domain.steps import Steps, collected
from engine.domain.terms import (
    DELTA_MAX,
    DELTAS_MAX,
    PARTICIPANTS_MAX,
    RESULT_MAX,
    SCORE_PARTICIPANTS_MAX,
    CompetitorId,
    RankingId,
    UnityId,
)
from projections.answers.lookup import ranking_of
from projections.answers.zones import zone_of
from projections.board.board import Board

NEEDED: Final = ("date", "participants", "score")
OPTIONAL: Final = ("winner", "key", "group", "round", "scale", "location")
_OF_RESULTS: Final = ("score", "winner")
FORM_OF_DATES: Final = (
    "a day or time, such as 2026-05-02 15:30, in the tournament's zone unless an offset such as +02:00 follows"
)
PlayedRow = FileRow[dict[str, str]]
"""The fields by column."""
_GROUP: Final = re.compile(r"[0-9]{1,18}")


class Played(Struct, frozen=True, kw_only=True):
    """The content of a row: a competition, with the points in `columns`. `typed_at`: its date as it was typed, in UTC
    unless an offset was: the same in every zone of the tournament. `is_day`: no time was. `has_group`: a group was
    typed. `gives`: all its points, by competitor and unity; `deltas`: those that have to be added to the points of the
    scoring."""

    key: str | None
    started_at: datetime
    typed_at: datetime
    is_day: bool
    group_id: int
    has_group: bool
    round: int | None
    round_name: str
    scale: str
    location: str
    participants: tuple[CompetitorId, ...]
    result: Result | None
    winner_id: CompetitorId | None = None
    columns: tuple[Delta, ...]
    gives: ScoredAmounts = {}
    deltas: tuple[Delta, ...] = ()

    @property
    def winner_by_score(self) -> CompetitorId | None:
        return winner_by_score(self.participants, self.result)

    @property
    def is_fixture(self) -> bool:
        return self.result is None and self.winner_id is None


class PlayedReader:
    """Reads rows for a ranking. Raises NotFound if there is no such ranking, and Unacceptable for a column that names
    no unity of it, or if two give points in the same unity. `leave_out`: such columns are left out. `dates`: the order
    of those like 01/08/2026."""

    def __init__(
        self, board: Board, ranking_id: RankingId, columns: Items[str], *, leave_out: bool, dates: DateOrder
    ) -> None:
        self._names, self._known, self._dates = Names(board), board.competitors, dates
        self.zone = zone_of(board.publication.presentation.zone)
        self._columns: dict[UnityId, str] = {}
        self._ranking = ranking_of(board, ranking_id)
        self.left_out: dict[str, str] = {}  # columns, and why
        for column in parted(columns, NEEDED + OPTIONAL)[1]:
            try:
                unity_id = self._names.unity(ranking_id, column)
            except NotFound as error:
                self.left_out[column] = error.message
                continue
            if unity_id in self._columns:
                raise Unacceptable(f"Two columns give points in the unity {column!r}; leave one out.")
            self._columns[unity_id] = column
        if self.left_out and not leave_out:
            raise Unacceptable(f"{' '.join(self.left_out.values())} {CORRECT_OR_LEAVE_OUT}")

    @property
    def gives_points(self) -> bool:
        """Whether rows can give points: by a scoring of the ranking, or by columns."""
        return bool(self._ranking.scorings or self._columns)

    def played(self, row: PlayedRow) -> Steps[Played]:
        """The content of the row. Raises Unacceptable with every fault of it, by column."""
        faults: list[Fault] = []
        typed = row.fields["date"].strip()
        started_at, typed_at = (self._time(typed, zone, faults) for zone in (self.zone, UTC))
        group = row.fields.get("group", "").strip() or "1"
        if not _GROUP.fullmatch(group):
            faults.append(Fault("group", f"{group!r} is not a whole number"))
        in_round = row.fields.get("round", "").strip()
        named = _parts(row.fields["participants"])
        if len(named) > PARTICIPANTS_MAX:
            faults.append(Fault("participants", f"must name at most {PARTICIPANTS_MAX} competitors"))
            raise unacceptable(faults)
        participants = yield from self._participants(named, faults)
        winner = yield from self._winner(row.fields.get("winner", "").strip(), named, participants, faults)
        score = row.fields["score"].strip()
        of_columns = self._column_deltas(row, participants, faults)
        columns = yield from collected(islice(of_columns, DELTAS_MAX + 1))  # one too many is refused when it is judged
        parts = _parts(score)
        if (why := spoilt(score, len(participants))) is not None:
            faults.append(Fault("score", why))
        elif len(participants) > SCORE_PARTICIPANTS_MAX and parts and len(parts) != len(participants):
            faults.append(Fault("score", "must have a performance for each participant, separated by |"))
        result = result_of(score, participants)
        played = Played(
            started_at=started_at,
            key=name_key(row.fields.get("key", "")) or None,
            typed_at=typed_at,
            is_day=len(year_first(typed, self._dates)) == DAY_CHARACTERS,
            group_id=int(group) if _GROUP.fullmatch(group) else 0,
            has_group=bool(row.fields.get("group", "").strip()),
            round=int(in_round) if _GROUP.fullmatch(in_round) else None,
            round_name="" if _GROUP.fullmatch(in_round) else in_round,
            scale=row.fields.get("scale", "").strip(),
            location=row.fields.get("location", "").strip(),
            participants=participants,
            result=result,
            winner_id=winner_by_score(participants, result) if winner is None else winner,
            columns=tuple(columns),
        )
        return (yield from self._scored(played, faults))

    def _scored(self, played: Played, faults: list[Fault]) -> Steps[Played]:
        """The same with what has to be added to the points of the scoring. Without columns, its
        result must count if there is a scoring for it. Raises Unacceptable."""
        scoring = choose(self._ranking.scorings, played)
        given: ScoredAmounts = {}
        if not any(one.field in _OF_RESULTS for one in faults):
            faults += yield from named_winner_faults(played, filter(None, [scoring]))
        if scoring is not None and not any(one.field in _OF_RESULTS for one in faults):
            try:
                given = wanted(scoring, played, self._ranking)
            except NotRead as error:
                if not played.columns and not isinstance(error, Undecided):
                    faults.append(Fault("score", str(error)))
        refuse_if_any(faults)
        deltas = []
        for column in played.columns:
            amount = column.amount - given.get((column.competitor_id, column.unity_id), 0)
            if amount or (column.competitor_id, column.unity_id) not in given:
                of_results = column.unity_id in self._ranking.of_results
                deltas.append(column if of_results else replace(column, amount=amount))
        return replace(
            played,
            gives=given | {(one.competitor_id, one.unity_id): one.amount for one in played.columns},
            deltas=tuple(deltas),
        )

    def _time(self, text: str, zone: tzinfo, faults: list[Fault]) -> datetime:
        try:
            return begin_of_date(text, self._dates, zone)
        except FieldMisread as error:
            faults += [Fault("date", fault) for fault in error.faults]
            return datetime.min

    def _participants(self, named: list[str], faults: list[Fault]) -> Steps[tuple[CompetitorId, ...]]:
        """An unknown one is 0, so that the rest of the row is read as if all were known."""
        found: list[CompetitorId] = []
        seen: set[CompetitorId] = set()
        for name in named:
            try:
                one = yield from self._names.competitor_in_steps(name)
                existing(self._known, "competitor", one)
                found.append(one)
                if one in seen:
                    faults.append(Fault("participants", f"{cited(name)} is named more than once"))
                seen.add(one)
            except (NotFound, Unacceptable) as refusal:
                faults.append(Fault("participants", refusal.message))
                found.append(CompetitorId(0))
            yield
        return tuple(found)

    def _winner(
        self, text: str, named: list[str], participants: tuple[CompetitorId, ...], faults: list[Fault]
    ) -> Steps[CompetitorId | None]:
        """The participant that the text means, as the row names participants; None: it is empty, or means none."""
        if not text:
            return None
        if text in named:
            return participants[named.index(text)]
        try:
            if (found := (yield from self._names.competitor_in_steps(text))) in participants:
                return found
        except (NotFound, Unacceptable) as refusal:
            faults.append(Fault("winner", refusal.message))
        else:
            faults.append(Fault("winner", f"{cited(text)} is not a participant"))
        return None

    def _column_deltas(
        self, row: PlayedRow, participants: tuple[CompetitorId, ...], faults: list[Fault]
    ) -> Iterator[Delta]:
        """An empty field gives no points, nor does an empty part between two `|`."""
        for unity_id, column in self._columns.items():
            parts = _parts(row.fields[column])
            if parts and len(parts) != len(participants):
                faults.append(Fault(column, "must have points for each participant, separated by |"))
                continue
            most = RESULT_MAX if unity_id in self._ranking.of_results else DELTA_MAX
            for competitor_id, points in zip(participants, parts, strict=False):
                if points:
                    try:
                        amount = _points(points, self._ranking.unities[unity_id].notation)
                    except ValueError as error:
                        faults.append(Fault(column, str(error)))
                        continue
                    if abs(amount) > most:
                        faults.append(Fault(column, f"{points!r} is not within ±{most}"))
                    yield Delta(competitor_id, unity_id, amount)


def _points(text: str, notation: Notation) -> int:
    """The points that a text means. Raises ValueError with what is wrong with it."""
    try:
        return notation.number(text)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


def _parts(field: str) -> list[str]:
    """The parts of a field, separated by `|`; none if it is empty."""
    return [part.strip() for part in field.split("|")] if field.strip() else []


def begin_of_date(text: str, order: DateOrder, zone: tzinfo) -> datetime:
    """When the day or time begins that a file has as `text`. Raises FieldMisread, with what the file says."""
    read = year_first(text, order)
    try:
        return begin_of_time(read, zone)
    except SkippedTime:
        raise
    except FieldMisread:
        if is_no_day(read):
            raise FieldMisread(f"there is no such day as {cited(text)}") from None
        raise misread(text, FORM_OF_DATES) from None


def result_of(score: str, participants: tuple[CompetitorId, ...]) -> Result | None:
    """The score; with more than two participants, the performance of each who has one."""
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        return score or None
    return {i: part for i, part in zip(participants, _parts(score), strict=False) if part} or None
