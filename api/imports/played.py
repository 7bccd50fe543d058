"""Competitions that were played: what the rows of a file say of them, and which points they give.

The columns `date`, `participants` and `score` are needed; `group`, `round` (a number or a name), `scale` and `location`
are optional; each other column is a unity of the ranking, by id or name. Participants stand in one field, separated by
`|`. So do values for each participant, in the same order: points, and with more than two participants performances.

A score of two numbers, such as 2:1 or ½:½, gives points as `ScoreRule` says, in unities that have no column. A word may
follow that says that it was awarded. An empty score is that of a fixture.
"""

import re
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct

from api.imports.dates import is_date_of_score, is_time_of_score
from api.imports.kinds import CORRECT_OR_LEAVE_OUT
from api.imports.rows import FileRow, parted
from api.interface.fields import FieldMisread, begin_of_time, misread
from api.interface.kinds import KindName, kinds
from api.interface.names import Names
from engine.domain.errors import Fault, NotFound, Unacceptable
from engine.domain.events import Delta, Result
from engine.domain.faults import refuse_if_any, unacceptable
from engine.domain.notation import Notation, with_point
from engine.domain.steps import Steps, collected
from engine.domain.terms import (
    DELTAS_MAX,
    PARTICIPANTS_MAX,
    SCORE_PARTICIPANTS_MAX,
    CompetitorId,
    RankingId,
    UnityId,
)
from projections.answers.lookup import ranking_of
from projections.answers.zones import zone_of
from projections.board.board import Board, Unity

NEEDED: Final = ("date", "participants", "score")
OPTIONAL: Final = ("group", "round", "scale", "location")
_NUMBER: Final = r"([0-9]{1,9}(?:[.,][0-9]{1,3}|½)?|½|1/2)"
_AWARDED: Final = r"(\(?(?:wo|w/o|w\.o\.|walkover|awarded)\)?)?"
_SCORE: Final = re.compile(rf"{_NUMBER}\s*[:–-]\s*{_NUMBER}\s*{_AWARDED}", re.IGNORECASE)  # noqa: RUF001 - a dash is one, too
_BYE: Final = "bye"
FORM_OF_DATES: Final = (
    "a day or time, such as 2026-05-02 15:30, in the tournament's zone unless an offset such as +02:00 follows"
)
FORM_OF_SPOILT: Final = "a score such as 2-1 or 21:19; format the column as text there, and type the score again"
PlayedRow = FileRow[dict[str, str]]
"""The fields by column."""
_Rule = Callable[[Decimal, Decimal], Decimal | int]
"""What a score counts, from what a participant and the other one scored."""
_Counting = Callable[[Decimal, Decimal], int]
"""The same, in the smallest unit of a unity."""
_Goals = tuple[Decimal, Decimal]
_GROUP: Final = re.compile(r"[0-9]{1,18}")


class Played(Struct, frozen=True, kw_only=True):
    """The content of a row: a competition, with the points that it gives. `typed_at`: its date as it was typed, in
    UTC unless an offset was: the same in every zone of the tournament."""

    started_at: datetime
    typed_at: datetime
    group_id: int
    round: int | None
    round_name: str
    scale: str
    location: str
    participants: tuple[CompetitorId, ...]
    result: Result | None
    winner_id: CompetitorId | None
    deltas: tuple[Delta, ...]


class ScoreRule(Struct, frozen=True, kw_only=True):
    """The points that a score of two numbers gives. `win`, `draw` and `loss` are in the main unity, in its notation,
    unless a column or another field gives that. The other fields name the unities that get goals, or count
    competitions."""

    win: str = "3"
    draw: str = "1"
    loss: str = "0"
    goal_difference: str | None = None
    goals_for: str | None = None
    goals_against: str | None = None
    played: str | None = None
    won: str | None = None
    drawn: str | None = None
    lost: str | None = None

    @staticmethod
    def like(kind: KindName) -> dict[str, str]:
        """The fields that fill the unities of a ranking of this kind."""
        rule = {"chess": {"win": "1", "draw": "0.5"}}.get(kind, {})
        names = {unity.name.replace(" ", "_"): unity.name for unity in kinds()[kind].unities}
        return rule | {field: names[field] for field in ScoreRule.__struct_fields__ if field in names}

    def result_points(self, notation: Notation) -> _Counting:
        """Returns a function that gives the points for a score. Raises Unacceptable if one of these is not a number in
        the notation."""
        points, faults = [], []
        for name in ("win", "draw", "loss"):
            try:
                points.append(_points(getattr(self, name), notation))
            except ValueError as error:
                faults.append(Fault(name, str(error)))
        if faults:
            raise Unacceptable("The points of a result cannot be read.", faults)
        win, draw, loss = points
        return lambda scored, conceded: win if scored > conceded else draw if scored == conceded else loss


class PlayedReader:
    """Reads rows for a ranking. Raises NotFound if there is no such ranking, and Unacceptable for a column or an option
    that names no unity of it, or if two give points in the same unity. `leave_out`: such columns are left out."""

    def __init__(
        self, board: Board, ranking_id: RankingId, columns: Items[str], scoring: ScoreRule, *, leave_out: bool
    ) -> None:
        self._names = Names(board)
        self.zone = zone_of(board.publication.presentation.zone)
        self._columns: dict[UnityId, str] = {}
        self._by_score: dict[UnityId, _Counting] = {}
        self.unities = unities = ranking_of(board, ranking_id).unities
        self._main = next(iter(unities.values())).name
        self.left_out: dict[str, str] = {}  # columns, and why
        for column in parted(columns, NEEDED + OPTIONAL)[1]:
            try:
                self._columns[self._new(ranking_id, column)] = column
            except NotFound as error:
                self.left_out[column] = error.message
        if self.left_out and not leave_out:
            raise Unacceptable(f"{' '.join(self.left_out.values())} {CORRECT_OR_LEAVE_OUT}")
        named: list[tuple[str | None, _Rule]] = [
            (scoring.goal_difference, lambda scored, conceded: scored - conceded),
            (scoring.goals_for, lambda scored, _: scored),
            (scoring.goals_against, lambda _, conceded: conceded),
            (scoring.played, lambda *_: 1),
            (scoring.won, lambda scored, conceded: int(scored > conceded)),
            (scoring.drawn, lambda scored, conceded: int(scored == conceded)),
            (scoring.lost, lambda scored, conceded: int(scored < conceded)),
        ]
        for unity, points in named:
            if unity is not None:
                try:
                    unity_id = self._new(ranking_id, unity)
                except NotFound as error:
                    raise Unacceptable(error.message) from error
                self._by_score[unity_id] = partial(_counted_in, unities[unity_id], points)
        main = next(iter(unities))
        if main not in self._columns and main not in self._by_score:
            self._by_score[main] = scoring.result_points(unities[main].notation)

    def _new(self, ranking_id: RankingId, text: str) -> UnityId:
        unity_id = self._names.unity(ranking_id, text)
        if unity_id in self._columns or unity_id in self._by_score:
            raise Unacceptable(f"Two columns or options give points in the unity {text!r}; leave one out.")
        return unity_id

    def played(self, row: PlayedRow) -> Steps[Played]:
        """The content of the row. Raises Unacceptable with every fault of it, by column."""
        faults: list[Fault] = []
        started_at, typed_at = (_time(row.fields["date"], zone, faults) for zone in (self.zone, UTC))
        group = row.fields.get("group", "").strip() or "1"
        if not _GROUP.fullmatch(group):
            faults.append(Fault("group", f"{group!r} is not a whole number"))
        in_round = row.fields.get("round", "").strip()
        named = _parts(row.fields["participants"])
        if len(named) > PARTICIPANTS_MAX:
            faults.append(Fault("participants", f"must name at most {PARTICIPANTS_MAX} competitors"))
            raise unacceptable(faults)
        participants = yield from self._participants(named, faults)
        score = row.fields["score"].strip()
        goals = _goals(score, participants)
        of_columns = self._column_deltas(row, participants, faults)
        deltas = yield from collected(islice(of_columns, DELTAS_MAX + 1))  # one too many is refused when it is judged
        parts = _parts(score)
        duel = len(participants) == 2 and len(parts) == 1
        if any(map(is_date_of_score, parts)) or (duel and is_time_of_score(score)):
            faults.append(Fault("score", f"{score!r} is what a spreadsheet makes of {FORM_OF_SPOILT}"))
        elif len(participants) > SCORE_PARTICIPANTS_MAX and parts and len(parts) != len(participants):
            faults.append(Fault("score", "must have a performance for each participant, separated by |"))
        else:
            deltas += self._score_deltas(score, goals, participants, faults)
        refuse_if_any(faults)
        return Played(
            started_at=started_at,
            typed_at=typed_at,
            group_id=int(group),
            round=int(in_round) if _GROUP.fullmatch(in_round) else None,
            round_name="" if _GROUP.fullmatch(in_round) else in_round,
            scale=row.fields.get("scale", "").strip(),
            location=row.fields.get("location", "").strip(),
            participants=participants,
            result=_result(score, participants),
            winner_id=None if goals is None or goals[0] == goals[1] else participants[goals[0] < goals[1]],
            deltas=tuple(deltas),
        )

    def _participants(self, named: list[str], faults: list[Fault]) -> Steps[tuple[CompetitorId, ...]]:
        """An unknown one is 0, so that the rest of the row is read as if all were known."""
        found = []
        for name in named:
            try:
                found.append((yield from self._names.competitor_in_steps(name)))
            except (NotFound, Unacceptable) as refusal:
                faults.append(Fault("participants", refusal.message))
                found.append(CompetitorId(0))
            yield
        return tuple(found)

    def _column_deltas(
        self, row: PlayedRow, participants: tuple[CompetitorId, ...], faults: list[Fault]
    ) -> Iterator[Delta]:
        """An empty field gives no points, nor does an empty part between two `|`."""
        for unity_id, column in self._columns.items():
            parts = _parts(row.fields[column])
            if parts and len(parts) != len(participants):
                faults.append(Fault(column, "must have points for each participant, separated by |"))
                continue
            for competitor_id, points in zip(participants, parts, strict=False):
                if points:
                    try:
                        yield Delta(competitor_id, unity_id, _points(points, self.unities[unity_id].notation))
                    except ValueError as error:
                        faults.append(Fault(column, str(error)))

    def _score_deltas(
        self, score: str, goals: _Goals | None, participants: tuple[CompetitorId, ...], faults: list[Fault]
    ) -> Iterator[Delta]:
        if goals is None:
            is_bye = len(participants) == 1 and score.casefold() == _BYE
            if score and not is_bye and self._by_score:
                reason = "must be two numbers, such as 2:1, for two participants, to give points; or add a column"
                faults.append(Fault("score", f"{reason} {self._main!r}"))
            return
        for unity_id, points in self._by_score.items():
            for competitor_id, (scored, conceded) in zip(participants, (goals, goals[::-1]), strict=True):
                try:
                    yield Delta(competitor_id, unity_id, points(scored, conceded))
                except ValueError as error:
                    faults.append(Fault("score", f"{score!r} {error}"))
                    return


def _points(text: str, notation: Notation) -> int:
    """The points that a text means. Raises ValueError with what is wrong with it."""
    try:
        return notation.number(text)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


def _counted_in(unity: Unity, points: _Rule, scored: Decimal, conceded: Decimal) -> int:
    """The points for a score, in the smallest unit of this unity. Raises ValueError with what is wrong with it."""
    text = f"{Decimal(points(scored, conceded)).normalize():f}"
    try:
        return unity.notation.number(text)
    except ValueError as error:
        raise ValueError(f"gives {text} in the unity {unity.name!r}, which {error}") from None


def _parts(field: str) -> list[str]:
    """The parts of a field, separated by `|`; none if it is empty."""
    return [part.strip() for part in field.split("|")] if field.strip() else []


def _time(text: str, zone: tzinfo, faults: list[Fault]) -> datetime:
    try:
        return begin_of_time(text, zone)
    except FieldMisread:
        faults += [Fault("date", fault) for fault in misread(text, FORM_OF_DATES).faults]
        return datetime.min


def _goals(score: str, participants: tuple[CompetitorId, ...]) -> _Goals | None:
    """None also for what was awarded to neither: both have lost then."""
    written = _SCORE.fullmatch(score) if len(participants) == 2 else None
    if written is None:
        return None
    goals = Decimal(with_point(written[1])), Decimal(with_point(written[2]))
    return None if written[3] and goals[0] == goals[1] else goals


def _result(score: str, participants: tuple[CompetitorId, ...]) -> Result | None:
    """The score; with more than two participants, the performance of each who has one."""
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        return score or None
    return {i: part for i, part in zip(participants, _parts(score), strict=False) if part} or None
