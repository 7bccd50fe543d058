"""Competitions from files, with points of columns in a ranking: how a line is known again, and what it becomes.

A line is two requests: the competition, and its points. The key of a competition is made from its time as it was typed,
its group, its round, its participants, and the number of earlier lines with the same ones. The key of its points also
includes the ranking. The score and the points are not in the keys but in the fingerprints of the requests. So a line
whose score or points have changed since does not become another competition, which would count double. It is refused,
and the message says what to do instead. A line that looks like a match that no line of the file has made is asked
about: perhaps only its date was corrected.

A line with a key of its own is found by that alone, and corrects the competition that has the key: what differs and is
not empty, without its participants. Corrections are no part of the import that can be undone.

A line without a score is a fixture: a competition without a result. If a later file has its score, the result is a
request of its own.
"""

from collections.abc import Sequence as Items
from datetime import tzinfo
from typing import Any, Final

import msgspec

from api.desk.fingerprints import fingerprint
from api.imports.dates import DateOrder, order_of
from api.imports.fixtures import FixturePlan
from api.imports.kinds import CORRECTION, FileLine, Print, changes_of
from api.imports.matches import MatchKind
from api.imports.played import NEEDED, OPTIONAL, Played, PlayedReader, PlayedRow
from api.imports.rows import FileRows, parted, read_csv, taken
from api.interface.doubts import is_near
from api.interface.named_winners import refuse_wrong_winner
from api.interface.names import Names
from engine.domain.commands import AddCompetition, AddPoints, ChangeCompetition
from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.events import Event, Points, Recorded
from engine.domain.faults import unacceptable
from engine.domain.names import name_key
from engine.domain.steps import Steps, finished
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, RankingId
from projections.board.board import Board, Competition

IMPORT_COMPETITIONS_MAX: Final = 100_000
_OTHERS: Final = (
    "competition {} has the key {!r} and other participants, or in another order; correct them first, or give this "
    "line another key"
)
_COMPETITION, _RESULT, _POINTS = range(3)
"""The requests of a line: the result is one of its own if an earlier import has added the fixture."""


class CompetitionLine(FileLine):
    def __init__(self, number: int, played: Played, ranking_id: RankingId) -> None:
        super().__init__(number, (_COMPETITION, _POINTS) if played.deltas else (_COMPETITION,))
        self.played = played
        self._ranking_id = ranking_id
        self._occurrence = 1
        self._was_fixture = False
        self._generations = [1, 1, 1]

    @property
    def alike(self) -> tuple[object, ...]:
        if self.played.key is not None:
            return (self.played.key,)
        return self.played.typed_at, self.played.group_id, self.played.round, self.played.participants

    def set_prints(self, occurrence: int) -> None:
        self._occurrence = occurrence
        played, (generation, of_result, of_points) = self.played, self._generations
        same = (
            {"key": played.key, "generation": str(generation)}
            if played.key is not None
            else {
                "started_at": played.typed_at.isoformat(),
                "group": str(played.group_id),
                "round": f"{played.round} {name_key(played.round_name)}",
                "participants": ",".join(map(str, played.participants)),
                "occurrence": str(occurrence),
                "generation": str(generation),
            }
        )
        named = {} if played.winner_id == played.winner_by_score else {"winner": str(played.winner_id)}
        result = {"result": msgspec.json.encode(played.result).decode()} | named
        texts = {"location": name_key(played.location), "scale": name_key(played.scale)}
        added = {} if played.key is not None else texts | ({"result": "null"} if self._was_fixture else result)
        points = same | {"ranking": str(self._ranking_id), "points generation": str(of_points)}
        deltas = {"deltas": ";".join(f"{d.competitor_id},{d.unity_id},{d.amount}" for d in played.columns)}
        self.prints = (
            _print("competition", same, added),
            _print("result", same | {"result generation": str(of_result)}, result),
            _print("points", points, deltas),
        )

    def move(self, step: int, generations: int) -> None:
        self._generations[step] += generations
        self.set_prints(self._occurrence)

    def continue_after(self, event: Event) -> None:
        said = event.said_result
        is_fixture = event.made_competition is not None and said is not None and said.is_empty
        if is_fixture and not self.played.is_fixture and self.played.key is None:
            self._was_fixture = True
            self.left.insert(_RESULT, _RESULT)
            self.set_prints(self._occurrence)

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier line has its key."""
        return self.played.key is not None and self._occurrence > 1

    def find(self, competition_id: CompetitionId, one: Competition, zone: tzinfo) -> None:
        """Takes the competition for that of the line, and corrects it. Raises Unacceptable."""
        self.id, played = competition_id, self.played
        if _COMPETITION in self.left:
            self.left.remove(_COMPETITION)
        if not _same_participants(one, played):
            raise unacceptable([Fault("participants", _OTHERS.format(competition_id, played.key))])
        if one.voided_at is None and (changes := _changes(one, played, zone)):
            said = {"key": str(played.key), "changes": repr(changes), "of": str(one.revised)}
            command = ChangeCompetition(competition_id=competition_id, **changes)
            self.correct(command, fingerprint("IMPORT", "correction", said))

    def command(self, step: int) -> AddCompetition | ChangeCompetition | AddPoints:
        played, competition_id = self.played, CompetitionId(self.id)
        if step == _POINTS:
            return AddPoints(ranking_id=self._ranking_id, deltas=played.deltas, competition_id=competition_id)
        if step == CORRECTION and isinstance(self.correction, ChangeCompetition):
            return self.correction
        if step == _RESULT:
            return ChangeCompetition(competition_id=competition_id, result=played.result, winner_id=played.winner_id)
        return AddCompetition(
            competition_id=competition_id,
            group_id=played.group_id,
            started_at=played.started_at,
            location=played.location or None,
            participants=played.participants,
            result=played.result,
            winner_id=played.winner_id,
            scale=played.scale,
            round=played.round,
            round_name=played.round_name,
            key=played.key,
        )


def _has_result(one: Competition) -> bool:
    return one.result is not None or one.winner_id is not None


def _same_participants(one: Competition, played: Played) -> bool:
    """Where they are two, a score follows their order."""
    if len(one.participants) <= SCORE_PARTICIPANTS_MAX:
        return one.participants == played.participants
    return {*one.participants} == {*played.participants}


_CORRECTED: Final = ("started_at", "location", "result", "group_id", "scale", "round", "round_name", "key")
"""The fields that a line with a key corrects."""


def _changes(one: Competition, played: Played, zone: tzinfo) -> dict[str, Any]:
    """What the line says, and the competition lacks."""
    same_day = played.is_day and played.started_at.astimezone(zone).date() == one.started_at.astimezone(zone).date()
    silent = {"started_at"} if same_day else set[str]()
    silent |= set() if played.has_group else {"group_id"}
    changes = changes_of({name: getattr(played, name) for name in _CORRECTED if name not in silent}, one)
    if "result" in changes or (played.result is not None and played.winner_id != one.winner_id):
        changes |= {"result": played.result, "winner_id": played.winner_id}
    elif played.winner_id not in (None, one.winner_id):
        changes["winner_id"] = played.winner_id
    return changes


def _print(what: str, same: dict[str, str], rest: dict[str, str]) -> Print:
    return Print(fingerprint("IMPORT", what, same), fingerprint("IMPORT", what, same | rest))


def read_competitions(
    file: FileRows,
    ranking_id: RankingId,
    lines_max: int = IMPORT_COMPETITIONS_MAX,
    *,
    leave_out: bool = False,
    dates: DateOrder | None = None,
) -> "Competitions":
    """`leave_out`: the columns that mean nothing. `dates`: the order of those like 01/08/2026; None: they tell. Raises
    Unreadable, naming every wrong line."""
    columns = file.columns or ()
    own, _ = parted(columns, NEEDED + OPTIONAL)
    if len(set(own)) < len(own) or not {*NEEDED} <= {*own}:
        raise Unreadable(
            "The first line must name the columns, each once: date, participants and score, then any of winner, key, "
            "group, round, scale, location, and unities of the ranking."
        )
    rows = taken(file.rows, lines_max, dict[str, str])
    order = dates or order_of(row.fields["date"].strip() for row in rows)
    return Competitions(ranking_id, columns, rows, leave_out=leave_out, dates=order)


def read_fixtures(plan: FixturePlan, names: Names, ranking_id: RankingId) -> "Competitions":
    """The fixtures of the competitors of a ranking. Raises NotFound and Unacceptable."""
    text = plan.csv(plan.of(names.enrolled(ranking_id)), names.text_of)
    return read_competitions(read_csv(text.encode()), ranking_id)


class Competitions(MatchKind[CompetitionLine]):
    what = "competition"
    done = "imported"
    steps = 3
    named = True
    columns = {  # noqa: RUF012
        "result": "score",
        "round_name": "round",
        "participants_delta": "points",
        "competition_id": "competition",
    }

    def __init__(
        self,
        ranking_id: RankingId,
        columns: Items[str],
        rows: Items[PlayedRow],
        *,
        leave_out: bool,
        dates: DateOrder,
    ) -> None:
        super().__init__(rows)
        self._leave_out, self._dates = leave_out, dates
        self._ranking_id = ranking_id
        self._columns = columns

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        self.reader = PlayedReader(board, self._ranking_id, self._columns, leave_out=self._leave_out, dates=self._dates)
        self.zone = self.reader.zone
        self.left_out = [*self.reader.left_out]
        if not self.reader.gives_points:
            why = "Scores give no points here: the ranking has no scoring, and no column names a unity of it."
            self.warning = f"{why} {self.warning}".strip()
        yield

    def line(self, row: PlayedRow) -> Steps[CompetitionLine]:
        return CompetitionLine(row.number, (yield from self.reader.played(row)), self._ranking_id)

    def resolve(self, line: CompetitionLine, board: Board) -> None:
        """Finds the competition of a line with a key. Refuses the score of a fixture that has a result by now."""
        if line.is_repeated:
            raise unacceptable([Fault("key", "an earlier line has this key")])
        if line.played.key is not None and (found := self._found(line, board)) is not None:
            line.find(found, board.competitions[found], self.zone)
            if isinstance(line.correction, ChangeCompetition):
                finished(refuse_wrong_winner(board, line.correction))
        elif _RESULT in line.left and _has_result(board.competitions[CompetitionId(line.id)]):
            why = f"competition {line.id} got a result by hand; leave this line out, or take that result back first"
            raise Unacceptable("This line cannot be imported.", [Fault("score", why)])

    def _found(self, line: CompetitionLine, board: Board) -> CompetitionId | None:
        """The competition of a line with a key: the one that has it; or the one that the line has made; or one of the
        same time without a key, unless the line gives points, which that one may have already."""
        played, zone = line.played, self.zone
        found = board.competitions.by_key(str(played.key))
        if found is not None or _COMPETITION not in line.left:
            return found or CompetitionId(line.id)
        near = self.others.get(frozenset(played.participants), ()) if not played.deltas else ()
        same = [of for of, one in near if one.key is None and is_near(one, played) and _same_participants(one, played)]
        same = [of for of in same if "started_at" not in _changes(board.competitions[of], played, zone)]
        return same[0] if len(same) == 1 else None

    def changed(self, recorded: Recorded) -> str | None:
        event = recorded.event
        if event.made_competition is not None:
            return (
                f"it was imported as competition {event.made_competition}, with another score, winner or location; "
                "undo that import first, or correct that competition and leave this line out"
            )
        if (said := event.said_result) is not None:
            return (
                f"competition {said.competition_id} was imported with another score or winner (event "
                f"{recorded.sequence}); undo that import first, or correct that competition and leave this line out"
            )
        if isinstance(event, Points):
            return (
                f"competition {event.competition_id} was imported with other points (event {recorded.sequence}); undo "
                "that import first, or correct them with `tallybook points add` and leave this line out"
            )
        return None

    def is_taken_back(self, board: Board, recorded: Recorded) -> bool:
        event = recorded.event
        if (made := event.made_competition) is not None:
            return board.competitions[made].voided_at is not None
        if (said := event.said_result) is not None:
            one = board.competitions[said.competition_id]
            return not said.stands(one.result, one.winner_id)
        return recorded.sequence in board.rankings[self._ranking_id].undone
