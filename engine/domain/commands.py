"""What may be asked of a tournament: one frozen struct per kind of request, imperative.

Pure. Commands are well-typed but not yet judged: names may be empty, competitors unknown, rankings closed. A command
that creates something carries the new id, so judging needs no source of ids.

In a change, UNSET leaves the field's value, None empties it, and anything else replaces it. A field that does not take
None cannot be emptied: creation requires it, too. In all other commands, None as a default means that the field was not
given.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import ClassVar, Literal

from msgspec import UNSET, Struct, UnsetType

from engine.domain import events
from engine.domain.awards import Scoring
from engine.domain.events import Criterion, Delta, Event, PointsAdded, Result
from engine.domain.options import MainUnityOptions, UnityOptions
from engine.domain.terms import ActorId, CompetitionId, CompetitorId, RankingId, Sequence, Sort, UnityId


class CommandBase(Struct, frozen=True, kw_only=True):
    """`makes`: the event that it leads to, if that event has exactly the fields of the command."""

    makes: ClassVar[type[Event] | None] = None


class RenameTournament(CommandBase, frozen=True, kw_only=True):
    makes = events.TournamentRenamed
    name: str


class ArchiveTournament(CommandBase, frozen=True, kw_only=True):
    makes = events.TournamentArchived


class DeleteTournament(CommandBase, frozen=True, kw_only=True):
    """`slug`: that of the tournament, sent again; whoever takes the command compares it."""

    makes = events.TournamentDeleted
    slug: str = ""


class RestoreTournament(CommandBase, frozen=True, kw_only=True):
    makes = events.TournamentRestored


class ChangePresentation(CommandBase, frozen=True, kw_only=True):
    makes = events.PresentationChanged
    zone: str | None | UnsetType = UNSET
    language: str | None | UnsetType = UNSET
    accent: str | None | UnsetType = UNSET
    logo: str | None | UnsetType = UNSET
    listed: bool | UnsetType = UNSET


class RegisterCompetitor(CommandBase, frozen=True, kw_only=True):
    competitor_id: CompetitorId
    name: str
    tags: tuple[str, ...] = ()
    color: str | None = None
    parent_id: CompetitorId | None = None
    key: str | None = None


class RegisterCompetitors(CommandBase, frozen=True, kw_only=True):
    items: tuple[RegisterCompetitor, ...]


class ChangeCompetitor(CommandBase, frozen=True, kw_only=True):
    makes = events.CompetitorChanged
    competitor_id: CompetitorId
    name: str | UnsetType = UNSET
    tags: tuple[str, ...] | None | UnsetType = UNSET
    color: str | None | UnsetType = UNSET
    parent_id: CompetitorId | None | UnsetType = UNSET
    key: str | None | UnsetType = UNSET


class EraseCompetitor(CommandBase, frozen=True, kw_only=True):
    makes = events.CompetitorErased
    competitor_id: CompetitorId


class AddCompetition(CommandBase, frozen=True, kw_only=True):
    competition_id: CompetitionId
    group_id: int
    started_at: datetime | None = None
    location: str | None = None
    participants: tuple[CompetitorId, ...] = ()
    result: Result | None = None
    winner_id: CompetitorId | None = None
    scale: str | None = None
    round: int | None = None
    round_name: str | None = None
    key: str | None = None


class AddCompetitions(CommandBase, frozen=True, kw_only=True):
    items: tuple[AddCompetition, ...]


class _CompetitionChange(CommandBase, frozen=True, kw_only=True):
    competition_id: CompetitionId
    started_at: datetime | None | UnsetType = UNSET
    location: str | None | UnsetType = UNSET
    participants: tuple[CompetitorId, ...] | None | UnsetType = UNSET
    result: Result | None | UnsetType = UNSET
    winner_id: CompetitorId | None | UnsetType = UNSET
    group_id: int | UnsetType = UNSET
    scale: str | None | UnsetType = UNSET
    round: int | None | UnsetType = UNSET
    round_name: str | None | UnsetType = UNSET
    key: str | None | UnsetType = UNSET


class ChangeCompetition(_CompetitionChange, frozen=True, kw_only=True):
    makes = events.CompetitionChanged


class RecordResult(_CompetitionChange, frozen=True, kw_only=True):
    """Gives a result to the competition `of`, or to the one with this key; if there is none, adds it, with its id."""

    of: CompetitionId | None = None


class RecordResults(CommandBase, frozen=True, kw_only=True):
    """All of them, or none."""

    items: tuple[RecordResult, ...]


class ExpirePoints(CommandBase, frozen=True, kw_only=True):
    """Expires the points that are due in open rankings."""


class _OfRanking(CommandBase, frozen=True, kw_only=True):
    ranking_id: RankingId


class CreateRanking(CommandBase, MainUnityOptions, frozen=True, kw_only=True):
    makes = events.RankingCreated
    ranking_id: RankingId
    main_unity_id: UnityId
    name: str
    main_unity_name: str
    participants: tuple[CompetitorId, ...]
    description: str | None = None
    main_unity_sort: Sort = Sort.DESC


class ModifyRanking(_OfRanking, frozen=True, kw_only=True):
    makes = events.RankingModified
    main_unity_name: str
    participants: tuple[CompetitorId, ...]
    name: str | UnsetType = UNSET
    description: str | None | UnsetType = UNSET


class ChangeRankingInformation(_OfRanking, frozen=True, kw_only=True):
    """`zones`: as people write them."""

    makes = events.RankingInformationChanged
    name: str | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    zones: str | None | UnsetType = UNSET


class ChangeParticipants(_OfRanking, frozen=True, kw_only=True):
    makes = events.ParticipantsChanged
    added: tuple[CompetitorId, ...] = ()
    removed: tuple[CompetitorId, ...] = ()


class AddUnity(CommandBase, UnityOptions, frozen=True, kw_only=True):
    makes = events.UnityAdded
    ranking_id: RankingId
    unity_id: UnityId
    name: str
    sort: Sort = Sort.DESC


class ChangeUnity(_OfRanking, frozen=True, kw_only=True):
    makes = events.UnityChanged
    unity_id: UnityId
    name: str | UnsetType = UNSET
    sort: Sort | None | UnsetType = UNSET


class DeclareClassification(_OfRanking, frozen=True, kw_only=True):
    makes = events.ClassificationDeclared
    criteria: tuple[Criterion, ...]


class DeclareScoring(_OfRanking, frozen=True, kw_only=True):
    makes = events.ScoringDeclared
    scorings: tuple[Scoring, ...]


class AddPoints(_OfRanking, frozen=True, kw_only=True):
    deltas: tuple[Delta, ...]
    competition_id: CompetitionId | None = None
    reason: str | None = None


class RankingDeltas(Struct, frozen=True):
    """Deltas of one ranking."""

    ranking_id: RankingId
    deltas: tuple[Delta, ...]


class AddPointsToRankings(CommandBase, frozen=True, kw_only=True):
    rankings: tuple[RankingDeltas, ...]
    competition_id: CompetitionId | None = None
    reason: str | None = None


CausedPoints = Mapping[Sequence, PointsAdded]
"""The points that a competition caused, by sequence, ascending."""


class _Revaluing(CommandBase, frozen=True, kw_only=True):
    """Changes for whom a competition counts. `caused`: the competition's points in the state that the command is judged
    against. None: the desk fills them in."""

    competition_id: CompetitionId
    caused: CausedPoints | None = None


class VoidCompetition(_Revaluing, frozen=True, kw_only=True):
    """`only`: refuse the command if the competition holds points of any other event; None: accept any points."""

    only: Collection[Sequence] | None = None


class UnvoidCompetition(_Revaluing, frozen=True, kw_only=True):
    """Takes back a voiding."""


class StrikeCompetitors(_Revaluing, frozen=True, kw_only=True):
    competitors: tuple[CompetitorId, ...]


class UnstrikeCompetitors(_Revaluing, frozen=True, kw_only=True):
    competitors: tuple[CompetitorId, ...]


Revalue = VoidCompetition | UnvoidCompetition | StrikeCompetitors | UnstrikeCompetitors
"""The commands that change for whom a competition counts."""


class NamedEvent(Struct, frozen=True):
    """An event that a command names, and its sender. `points`: if the event adds or reverses points, all events of the
    request that added them, by sequence, ascending; empty: it does neither. `recorded_at`: when these were recorded."""

    event: Event
    actor: ActorId
    points: CausedPoints
    recorded_at: datetime | None = None


class ReversePoints(_OfRanking, frozen=True, kw_only=True):
    """Undoes the points that the event `sequence` added, or redoes those that it undid. The first resulting event is
    about the ranking. `only_of`: refuse the event unless this actor sent it; None: accept any sender. `named`: the
    event, read from the log; None: the desk fills it in."""

    sequence: Sequence
    only_of: ActorId | None = None
    named: NamedEvent | None = None


class CloseRanking(_OfRanking, frozen=True, kw_only=True):
    makes = events.RankingClosed


class ReopenRanking(_OfRanking, frozen=True, kw_only=True):
    makes = events.RankingReopened


class ChangeVisibility(_OfRanking, frozen=True, kw_only=True):
    """Hides a ranking from the public, or shows it again."""

    hidden: bool


class OrderRankings(CommandBase, frozen=True, kw_only=True):
    makes = events.RankingsOrdered
    rankings: tuple[RankingId, ...]


class NextReveal(Struct, frozen=True):
    """`last`: the last event of the next competition that gave points after the event `held`. None: there is none."""

    held: Sequence | None
    last: Sequence | None


class ChangePublication(CommandBase, frozen=True, kw_only=True):
    """Changes what the public sees, in one of three ways. `published`: whether the public sees the tournament at all.
    `freeze`: the event to hold the public end at; "now": at the current one. `reveal`: the event to move the held
    public end to; "next": to the end of the next competition; "all": release it.

    `head`: the last sequence of the log that the command is judged against. None: the desk fills it in. It also fills
    in `next_reveal` for "next".
    """

    published: bool | None = None
    freeze: Sequence | Literal["now"] | None = None
    reveal: Sequence | Literal["next", "all"] | None = None
    head: Sequence | None = None
    next_reveal: NextReveal | None = None


Previewed = (
    Revalue
    | ReversePoints
    | ChangeCompetition
    | RecordResults
    | DeclareScoring
    | ReopenRanking
    | ChangeParticipants
    | ModifyRanking
)
"""The commands whose effect can be shown before they are submitted."""
OneEvent = (
    RenameTournament
    | ArchiveTournament
    | DeleteTournament
    | RestoreTournament
    | ChangePresentation
    | RegisterCompetitor
    | ChangeCompetitor
    | EraseCompetitor
    | ChangeCompetition
    | CreateRanking
    | ModifyRanking
    | ChangeRankingInformation
    | ChangeParticipants
    | AddUnity
    | ChangeUnity
    | DeclareClassification
    | DeclareScoring
    | CloseRanking
    | ReopenRanking
    | ChangeVisibility
    | OrderRankings
    | ChangePublication
)
"""The commands that lead to one event, and are not about points."""

Command = (
    OneEvent
    | RegisterCompetitors
    | AddCompetition
    | AddCompetitions
    | RecordResult
    | RecordResults
    | AddPoints
    | AddPointsToRankings
    | ExpirePoints
    | Revalue
    | ReversePoints
)
