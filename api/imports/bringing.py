"""Bringing the file of another program: what it would make in a tournament, judged as a whole, and then done.

    competitors ──► rankings ──► competitions, whose results the scorings of the rankings turn into points

Competitors and competitions are lines of the importer (`importer.py`). They are known again by their keys: a line
whose competition has another score in the tournament corrects it. So the next state of a file corrects and adds, and an
interrupted bringing continues when the file is brought again. What the file leaves empty stays. Competitors without a
key are known by their name, as are rankings. The competitions that were added can be undone as an import.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from api.desk.desk import Desk
from api.imports.dates import DateOrder, order_of
from api.imports.importer import Imported, Importer, asked, chunks, judged
from api.imports.kinds import CORRECTION, FileKind, FileLine, Print, changes_of
from api.imports.matches import MatchKind
from api.imports.played import begin_of_date, result_of
from api.imports.readers.brought import Brought, BroughtRanking, Entrant, Meeting, bounded
from api.imports.rows import FileRow
from api.interface.direction import isolated
from api.interface.fields import FieldMisread
from api.interface.kinds import Kind, KindName, KindUnity, create_ranking, kinds
from engine.domain.awards import Scoring
from engine.domain.commands import (
    AddCompetition,
    ChangeCompetition,
    ChangeCompetitor,
    ChangeParticipants,
    Command,
    RegisterCompetitor,
    UnvoidCompetition,
)
from engine.domain.errors import Fault, Unacceptable
from engine.domain.faults import refuse_if_any, repeated
from engine.domain.names import name_key
from engine.domain.notation import Notation
from engine.domain.rescoring import ChangedRanking, CorrectedCompetition
from engine.domain.scoring import choose, named_winner_faults, why_nothing, winner_by_score
from engine.domain.state import UnityState
from engine.domain.steps import Steps, finished
from engine.domain.terms import (
    ID_MAX,
    NAME_CHARACTERS_MAX,
    PARTICIPANTS_MAX,
    ActorId,
    CompetitionId,
    CompetitorId,
    RankingId,
    UnityId,
)
from engine.process.time_slices import in_time_slices
from projections.answers.zones import zone_of
from projections.board.board import Board
from projections.columns.enrolment import Enrolment
from projections.live.tournament import LiveTournament

_ADD, _UNVOID = 0, 2
_L = TypeVar("_L", bound=FileLine)


def _key(text: str) -> str:
    """A key of the file as keys are here: without commas, and no longer than a name."""
    key = " ".join(text.replace(",", " ").replace("|", " ").split())
    return key if len(key) <= NAME_CHARACTERS_MAX else f"{key[:200]} {sha256(key.encode()).hexdigest()[:32]}"


class _Line(FileLine):
    """A line that is known by what is in the tournament. Its prints are those of this bringing alone: what was brought
    before is found on the board. `at`: names the bringing."""

    change: Mapping[str, Any] = {}
    _occurrence = 1

    def __init__(self, number: int, said: Struct, at: str) -> None:
        super().__init__(number)
        self._said, self._at = said, at

    @property
    def alike(self) -> Hashable:
        return self._said

    @property
    def prints(self) -> tuple[Print, ...]:  # type: ignore[override]
        """Made when they are needed: those of 100,000 lines would take much memory."""
        content = sha256(b"%s %d" % (msgspec.json.encode(self._said), self._occurrence)).digest()
        steps = (_ADD, CORRECTION, _UNVOID)
        return tuple(
            [Print(sha256(f"bring {self._at} {step} ".encode() + content).digest(), content) for step in steps]
        )

    def set_prints(self, occurrence: int) -> None:
        self._occurrence = occurrence


class EntrantLine(_Line):
    def __init__(self, number: int, entrant: Entrant, at: str) -> None:
        super().__init__(number, entrant, at)
        self.entrant = entrant
        self.key = _key(entrant.key) or None
        self.tags = tuple([tag for tag in (" ".join(tag.replace(",", " ").split()) for tag in entrant.tags) if tag])

    def command(self, step: int) -> Command:
        competitor_id = CompetitorId(self.id)
        if step == CORRECTION and self.correction is not None:
            return self.correction
        return RegisterCompetitor(competitor_id=competitor_id, name=self.entrant.name, tags=self.tags, key=self.key)


class Entrants(FileKind[EntrantLine]):
    what = "competitor"
    done = "registered"
    steps = 2

    def __init__(self, entrants: Items[Entrant], at: str) -> None:
        super().__init__([FileRow(number, entrant) for number, entrant in enumerate(entrants, start=1)])
        self._at = at
        self._named: dict[str, list[CompetitorId]] = {}

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        yield

    def line(self, row: FileRow[Entrant]) -> Steps[EntrantLine]:
        yield
        return EntrantLine(row.number, row.fields, self._at)

    def count(self, board: Board) -> int:
        return len(board.competitors)

    def look(self, board: Board, lines: Items[EntrantLine], others_max: int) -> Steps[None]:
        wanted = {name_key(line.entrant.name) for line in lines}
        former: dict[str, list[CompetitorId]] = {}
        for competitor_id, competitor in board.competitors.run(1, len(board.competitors)):
            if (name := name_key(competitor.name)) in wanted:
                self._named.setdefault(name, []).append(competitor_id)
            for name in map(name_key, competitor.former):
                if name in wanted:
                    former.setdefault(name, []).append(competitor_id)
            yield
        self._named = former | self._named

    def resolve(self, line: EntrantLine, board: Board) -> None:
        """Finds the competitor by the key, or else by the name: one who has none yet gets the key of the file. Raises
        Unacceptable if several have the name."""
        known = None if line.key is None else board.competitors.by_key(name_key(line.key))
        named = self._named.get(name_key(line.entrant.name), [])
        if known is None and line.key is not None:
            named = [one for one in named if board.competitors[one].key is None]
            self._named[name_key(line.entrant.name)] = []  # of two with one name in the file, one can be it
            known = named[0] if len(named) == 1 else None
        elif known is None:
            if len(named) > 1:
                why = f"{line.entrant.name!r} is the name of {', '.join(map(str, named))}; give the competitors keys"
                raise Unacceptable("Several competitors have this name.", [Fault("name", why)])
            known = named[0] if named else None
        if known is None:
            return
        is_now, line.id = board.competitors[known], known
        tags = tuple(dict.fromkeys((*is_now.tags, *line.tags)))
        name = line.entrant.name.strip()
        if line.key in (None, _key(name)):  # without an id of its own, a former name is no correction
            name = ""
        wished: dict[str, Any] = {
            "name": name,
            "tags": tags,
            "key": line.key and name_key(line.key),
        }
        change = changes_of(wished, is_now)
        line.correction = ChangeCompetitor(competitor_id=known, **change) if change else None
        line.left = [CORRECTION] if change else []


class MeetingLine(_Line):
    """`participants` and `winner`: lines, whose competitors may have no id yet."""

    def __init__(
        self,
        meeting: Meeting,
        key: str,
        group: int,
        date: datetime | None,
        participants: tuple[EntrantLine, ...],
        winner: EntrantLine | None,
        at: str,
    ) -> None:
        super().__init__(meeting.number, meeting, at)
        self.key, self._group = key, group
        self._date, self._participants, self._winner = date, participants, winner

    def fields(self) -> dict[str, Any]:
        """Those of the competition."""
        meeting = self._said
        assert isinstance(meeting, Meeting)
        ids = tuple([CompetitorId(line.id) for line in self._participants])
        result = result_of(meeting.score.strip(), ids)
        return {
            "group_id": self._group,
            "started_at": self._date,
            "location": meeting.location.strip() or None,
            "participants": ids,
            "result": result,
            "winner_id": winner_by_score(ids, result) if self._winner is None else CompetitorId(self._winner.id),
            "round": meeting.round,
            "round_name": meeting.round_name.strip(),
        }

    def command(self, step: int) -> Command:
        competition_id = CompetitionId(self.id)
        if step == _UNVOID:
            return UnvoidCompetition(competition_id=competition_id)
        if step == CORRECTION and self.correction is not None:
            return self.correction
        return AddCompetition(competition_id=competition_id, key=self.key, **self.fields())


class Meetings(MatchKind[MeetingLine]):
    what = "competition"
    done = "brought"
    steps = 3
    named = True
    named_later = False

    def __init__(
        self,
        meetings: Items[Meeting],
        entrants: Mapping[str, EntrantLine],
        groups: Mapping[int, int],
        names: Mapping[int, str],
        order: DateOrder,
        scorings: Items[tuple[Scoring, ...]],
        at: str,
    ) -> None:
        """`groups` and `names` of the rankings: by the groups of the file. `scorings`: of each ranking."""
        super().__init__(meetings)
        self._entrants, self._groups, self._names, self._order, self._at = entrants, groups, names, order, at
        self._scorings = scorings
        self._alike: Counter[str] = Counter()

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        self.zone = zone_of(board.publication.presentation.zone)
        yield

    def line(self, row: Meeting) -> Steps[MeetingLine]:
        meeting, faults, date = row, list[Fault](), None
        yield
        if meeting.date:
            try:
                date = begin_of_date(meeting.date, self._order, self.zone)
            except FieldMisread as error:
                faults += [Fault("date", fault) for fault in error.faults]
        faults += [Fault("participants", f"{one!r} is named more than once") for one in repeated(meeting.participants)]
        if len(meeting.participants) > PARTICIPANTS_MAX:
            faults.append(Fault("participants", f"must be at most {PARTICIPANTS_MAX:,}"))
        unknown = [
            one for one in (*meeting.participants, *filter(None, (meeting.winner,))) if one not in self._entrants
        ]
        if unknown:
            faults.append(Fault("participants", f"{unknown[0]!r} is not a competitor in the file"))
        key = self._key(meeting)
        if meeting.key and self._alike[name_key(key)] > 1:
            faults.append(Fault("key", f"{key!r} is already the key of an earlier line"))
        if faults:
            raise Unacceptable("This line cannot be brought.", faults)
        participants = tuple([self._entrants[one] for one in meeting.participants])
        group = self._groups.get(meeting.group, meeting.group)
        winner = self._entrants.get(meeting.winner)
        return MeetingLine(meeting, key, group, date, participants, winner, self._at)

    def _key(self, meeting: Meeting) -> str:
        """That of the file, or else one of what distinguishes it in its ranking."""
        if meeting.key:
            key = _key(meeting.key)
            self._alike[name_key(key)] += 1
            return key
        of_ranking, in_round = self._names.get(meeting.group, ""), meeting.round or meeting.round_name
        key = _key(f"{of_ranking}: {in_round} {' - '.join(meeting.participants)}")
        self._alike[key] += 1
        return key if self._alike[key] == 1 else f"{key} ({self._alike[key]})"

    def resolve(self, line: MeetingLine, board: Board) -> None:
        """Raises Unacceptable if the file contradicts itself."""
        fields, known = line.fields(), board.competitions.by_key(name_key(line.key))
        competition = _as_corrected(fields)
        scorings = filter(None, [choose(one, competition) for one in self._scorings])
        refuse_if_any(finished(named_winner_faults(competition, scorings)))
        if known is None:
            return
        is_now, line.id = board.competitions[known], known
        change = changes_of(fields, is_now)
        if "result" in change:
            change["winner_id"] = fields["winner_id"]
        line.correction = ChangeCompetition(competition_id=known, **change) if change else None
        line.left = [CORRECTION] * bool(change) + [_UNVOID] * (is_now.voided_at is not None)


# ── The whole ────────────────────────────────────────────────────────────────────────────────────────────


class BringingPlan(Struct, frozen=True, kw_only=True):
    """What bringing a file would make. `rankings`: the kinds of new ones, by name; `known_rankings`: those that are
    there. `questions`: what is asked about lines, before they are brought. `notes`: what is left out, and what else to
    know, a sentence each."""

    format: str
    name: str
    competitors: int
    new_competitors: int
    corrected_competitors: int
    rankings: dict[str, str]
    known_rankings: list[str]
    competitions: int
    new_competitions: int
    corrected_competitions: int
    questions: tuple[Fault, ...]
    notes: tuple[str, ...]


def told(plan: BringingPlan) -> Iterator[str]:
    """What it would make, and what else to know, a sentence each. Questions are not among them."""
    yield _counted(plan.competitors, "competitor", plan.new_competitors, plan.corrected_competitors)
    for name, kind in plan.rankings.items():
        yield f"ranking {isolated(name)}, like {kind}"
    for name in plan.known_rankings:
        yield f"ranking {isolated(name)}, which already exists"
    yield _counted(plan.competitions, "competition", plan.new_competitions, plan.corrected_competitions)
    for sentence in plan.notes:
        yield f"note: {isolated(sentence)}"


def _counted(of: int, what: str, new: int, corrected: int) -> str:
    text = f"{of:,} {what}{'' if of == 1 else 's'}"
    return (
        text if new == of else f"{text}: {new:,} new, {corrected:,} to correct, and {of - new - corrected:,} unchanged"
    )


class _Planned(Struct, frozen=True, kw_only=True):
    """A ranking that is there, or the kind of one to create."""

    table: BroughtRanking
    ranking_id: RankingId | None = None
    kind: Kind | None = None


class Bringing:
    """Brings what a reader found in a file. `like`: the kind of its rankings, where the file does not tell. `name`: of
    its only ranking, instead of its own; an only ranking without a name is the tournament's only one, if it has one
    that scores. `dates`: the order of those like 01/08/2026; None: they tell."""

    def __init__(
        self, brought: Brought, *, like: KindName | None = None, name: str | None = None, dates: DateOrder | None = None
    ) -> None:
        only = name if len(brought.rankings) == 1 else None
        self._is_unnamed = len(brought.rankings) == 1 and not (only or brought.rankings[0].name)
        self._tables = [
            replace(table, name=only or table.name or brought.name or "Table", like=table.like or like or "")
            for table in brought.rankings
        ]
        self._brought = brought
        self._order = dates or order_of(meeting.date for meeting in brought.meetings)

    def judged(self, file_format: str, board: Board | None = None) -> Steps[BringingPlan]:
        """What it would make there; None: in a new tournament. Raises Unacceptable with what is wrong with the file."""
        board = Board() if board is None else board
        planned, groups = yield from self._planned(board)
        entrants = Entrants(self._brought.entrants, "")
        lines = yield from _asked(entrants, board)
        entered = yield from judged(entrants, board, lines, entrants.count(board))
        _refuse_if_any(entered.faults)
        rankings = {one.table.name: _as_scored(board, one, _by_reference(lines)) for one in planned}
        meetings = self._meetings(lines, planned, groups, rankings.values(), "")
        played = yield from _asked(meetings, entered.board, after=len(lines))
        met = yield from judged(meetings, entered.board, played, meetings.count(board))
        _refuse_if_any(met.faults)
        unread = yield from _unread(rankings, played)
        return BringingPlan(
            format=file_format,
            name=self._brought.name,
            competitors=len(lines),
            new_competitors=sum(_ADD in line.left for line in lines),
            corrected_competitors=sum(line.only_corrects for line in lines),
            rankings={one.table.name: one.table.like for one in planned if one.ranking_id is None},
            known_rankings=[one.table.name for one in planned if one.ranking_id is not None],
            competitions=len(played),
            new_competitions=sum(_ADD in line.left for line in played),
            corrected_competitions=sum(bool(line.left) and _ADD not in line.left for line in played),
            questions=tuple(met.questions),
            notes=(*self._brought.notes, *unread, *_notes(board, planned), *_renamed(board, lines)),
        )

    async def bring(
        self,
        desk: Desk,
        live: LiveTournament,
        *,
        actor: ActorId,
        stop: asyncio.Event,
        progress: Callable[[int, int], None],
    ) -> Imported:
        """Does it. Returns the import of the competitions. Raises as the importer does."""
        at = str(live.head.sequence)
        entrants = Importer(desk, live, Entrants(self._brought.entrants, at), stop)
        await entrants.judge()
        await entrants.submit(actor, progress)
        planned, groups = await in_time_slices(self._planned(live.board))
        rankings = [_as_scored(live.board, one, _by_reference(entrants.lines)) for one in planned]
        ids = {ref: CompetitorId(line.id) for ref, line in _by_reference(entrants.lines).items()}
        for one in planned:
            await _enrol(desk, live, one, [ids[ref] for ref in one.table.entrants], actor)
        meetings = Importer(desk, live, self._meetings(entrants.lines, planned, groups, rankings, at), stop)
        await meetings.judge()
        return await meetings.submit(actor, progress)

    def _planned(self, board: Board) -> Steps[tuple[list[_Planned], dict[int, int]]]:
        """The rankings, and the groups that competitions of a group of the file get: one of its own for each new
        ranking, where others have taken it. Raises Unacceptable if the kind of one is not known."""
        named = {name_key(ranking.name): ranking_id for ranking_id, ranking in board.rankings.items()}
        taken: set[int] = set()
        for competition_id in board.competitions:
            taken.add(board.competitions[competition_id].group_id)
            yield
        groups: dict[int, int] = {}
        planned = []
        for table in self._tables_in(board, named):
            ranking_id = named.get(name_key(table.name))
            scorings = () if ranking_id is None else board.rankings[ranking_id].scorings
            own = [group for scoring in scorings for group in scoring.groups]
            for group in table.groups:
                free = group if group not in taken else max(taken, default=0) + 1
                groups.setdefault(group, own[0] if own else group if ranking_id is not None else free)
            taken |= {groups[group] for group in table.groups}
            if ranking_id is not None and board.rankings[ranking_id].closed_at is not None:
                raise Unacceptable(f"The ranking {table.name!r} is closed; reopen it first.")
            kind = None if ranking_id is not None else _kind(table, tuple([groups[group] for group in table.groups]))
            planned.append(_Planned(table=table, ranking_id=ranking_id, kind=kind))
        return planned, groups

    def _tables_in(self, board: Board, named: Container[str]) -> Items[BroughtRanking]:
        """The rankings, with the names that they have there. `named`: the keys of the names that are taken. Raises
        Unacceptable if one could be any of several."""
        scored = [ranking.name for ranking in board.rankings.values() if ranking.scorings]
        if not self._is_unnamed or not scored or name_key(self._tables[0].name) in named:
            return self._tables
        if len(scored) > 1:
            shown = ", ".join(bounded([repr(name) for name in scored], "count results"))
            raise Unacceptable(f"Which ranking is the file for: {shown}? Name it (--as); a new name makes a new one.")
        return [replace(self._tables[0], name=scored[0])]

    def _meetings(
        self,
        lines: Items[EntrantLine],
        planned: Items[_Planned],
        groups: Mapping[int, int],
        rankings: Iterable[ChangedRanking],
        at: str,
    ) -> Meetings:
        scorings = [ranking.scorings for ranking in rankings]
        names = {group: one.table.name for one in planned for group in one.table.groups}
        return Meetings(self._brought.meetings, _by_reference(lines), groups, names, self._order, scorings, at)


def _kind(table: BroughtRanking, groups: tuple[int, ...]) -> Kind:
    """The kind of a new ranking, whose scorings are for these groups; none: for all."""
    if table.like not in kinds():
        raise Unacceptable(f"The file does not say how its results count: add --like {', '.join(kinds())}.")
    kind = kinds()[table.like]  # type: ignore[index]
    main = kind.unities[0]
    table_of_points = {"table": {outcome: _amount(main, points) for outcome, points in table.points.items()}}
    scorings = []
    for scoring in kind.scorings:
        awards = []
        for award in scoring["awards"]:
            is_outcome = award["unity"] == main.name and award["from"] == "outcome"
            factor = {"factor": table.factors[award["from"]]} if award["from"] in table.factors else {}
            awards.append({**award, **factor, **(table_of_points if table.points and is_outcome else {})})
        scorings.append({**scoring, "awards": awards} | ({} if scoring.get("name") else {"groups": groups}))
    return replace(kind, scorings=tuple(scorings), criteria=table.criteria or kind.criteria)


def _amount(main: KindUnity, points: str) -> int:
    """Raises Unacceptable if the main unity cannot hold these points."""
    try:
        return Notation(decimals=main.decimals, time=main.time).number(points)
    except ValueError as error:
        raise Unacceptable(
            "The points of the file do not fit the ranking.", [Fault(main.name, f"{points} {error}")]
        ) from error


def _notes(board: Board, planned: Items[_Planned]) -> Iterator[str]:
    """What results of the file give in rankings that are there."""
    known = {one.ranking_id for one in planned}
    for ranking_id, ranking in board.rankings.items():
        if ranking_id in known and not ranking.scorings:
            yield f"ranking {ranking.name!r} has no scoring, so results give no points in it"
        elif ranking_id not in known and any(not scoring.groups and not scoring.name for scoring in ranking.scorings):
            yield f"ranking {ranking.name!r} scores competitions of all groups, including these"


def _unread(rankings: Mapping[str, ChangedRanking], played: Iterable[MeetingLine]) -> Steps[list[str]]:
    """Which results will give no points in the rankings, by name, and why."""
    sentences = []
    for line in played:
        fields = line.fields()
        for name, ranking in rankings.items():
            supposed = _as_corrected(fields)
            why = yield from why_nothing(ranking.scorings, supposed, ranking)
            sentences += [] if why is None else [f"line {line.number} gives no points in {name}: {why}"]
        yield
    return bounded(sentences, "give no points")


def _as_corrected(fields: Mapping[str, Any]) -> CorrectedCompetition:
    said = {name: fields[name] for name in ("group_id", "participants", "result", "winner_id")}
    return CorrectedCompetition(**said, scale="")


def _as_scored(board: Board, planned: _Planned, entrants: Mapping[str, EntrantLine]) -> ChangedRanking:
    """The ranking with those of the file."""
    added = [CompetitorId(entrants[one].id) for one in planned.table.entrants]
    unities: Mapping[UnityId, UnityState]
    if planned.ranking_id is not None:
        ranking = board.rankings[planned.ranking_id]
        unities, scorings, added = ranking.unities, ranking.scorings, [*ranking.participants, *added]
    else:
        assert planned.kind is not None
        unities = {UnityId(number): unity for number, unity in enumerate(planned.kind.unities, start=1)}
        scorings = planned.kind.scorings_with({unity.name: number for number, unity in unities.items()})
    return ChangedRanking(scorings, Enrolment(dict.fromkeys(added)), unities, ())


def _renamed(board: Board, lines: Items[EntrantLine]) -> Iterator[str]:
    """Whom the file names otherwise: perhaps somebody else has their id there."""
    for line in lines:
        if (
            line.only_corrects
            and (before := board.competitors[CompetitorId(line.id)].name) != line.entrant.name.strip()
        ):
            yield f"{before!r} is named {line.entrant.name!r} in the file, under the same id"


async def _enrol(
    desk: Desk, live: LiveTournament, planned: _Planned, participants: list[CompetitorId], actor: ActorId
) -> None:
    """Creates the ranking with these participants, or adds those whom it lacks."""
    first = tuple(participants[:PARTICIPANTS_MAX])
    ranking_id = planned.ranking_id
    if planned.kind is not None:
        made, _ = await create_ranking(
            desk, live, planned.kind, name=planned.table.name, participants=first, actor=actor
        )
        ranking_id = made.ranking_id
    assert ranking_id is not None
    ranking = live.board.rankings[ranking_id]
    enrolled = ranking.participants.lookup()
    missing = [one for one in participants if one not in enrolled]
    for chunk in chunks(missing, PARTICIPANTS_MAX):
        await desk.submit(live, ChangeParticipants(ranking_id=ranking_id, added=tuple(chunk)), actor=actor)


def _by_reference(lines: Items[EntrantLine]) -> dict[str, EntrantLine]:
    """The lines by what competitions call them: the key, or else the name."""
    return {line.entrant.key or line.entrant.name: line for line in lines}


def _asked(kind: FileKind[_L], board: Board, *, after: int = 0) -> Steps[list[_L]]:
    """The lines, with ids that only the plan has. `after`: how many of these are given. Raises Unacceptable."""
    lines, faults = yield from asked(kind, board, b"")
    _refuse_if_any(faults)
    for number, line in enumerate(lines, start=after):
        line.id = ID_MAX - number
    return lines


def _refuse_if_any(faults: Items[Fault]) -> None:
    if faults:
        raise Unacceptable("Nothing was brought; correct these lines.", faults)
