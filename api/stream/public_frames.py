"""Events as the public gets them: those up to the public end, in shapes of their own.

Pure. A shape names every field that it shows, except the options of a unity, which are all public. Other data of an
event, present or future, is not public until somebody adds it here. An event with nothing public is sent as `other`, so
that a client sees that none is missing; so is every event of a hidden ranking. Competitions appear by their ids, as the
causes of points.

An id reveals nothing of the log that the public does not know. The digest of a block would depend on keys and senders,
and, if the public end is within a block, on events beyond it. So the id has digits of the time in place of the digest.
They tell a log from one that has replaced it, because later events were recorded at other times.
"""

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from engine.domain import events
from engine.domain.options import MainUnityOptions, UnityOptions
from engine.domain.terms import RankingId, Sequence
from engine.domain.times import instant
from engine.log.digest import microseconds
from engine.log.heads import Head
from engine.log.undecoded import Stored
from projections.board.publication import Publication

OTHER: Final = "other"
"""The name of an event that shows nothing public."""


class _Public(Struct, kw_only=True):
    """The first fields of all shapes. A field that is absent from the stored event is absent here, too."""

    sequence: int
    recorded_at: str


class _TournamentNamed(_Public):
    name: str


class _CompetitorRegistered(_Public):
    competitor_id: int
    name: str | UnsetType = UNSET
    tags: tuple[str, ...] | None | UnsetType = UNSET
    color: str | None | UnsetType = UNSET


class _CompetitorChanged(_Public):
    competitor_id: int
    name: str | None | UnsetType = UNSET
    tags: tuple[str, ...] | None | UnsetType = UNSET
    color: str | None | UnsetType = UNSET


class _CompetitorErased(_Public):
    competitor_id: int


class _OfRanking(_Public):
    ranking_id: int


class _RankingCreated(MainUnityOptions, frozen=True):
    sequence: int
    recorded_at: str
    ranking_id: int
    name: str
    participants: tuple[int, ...]
    main_unity_id: int
    main_unity_name: str
    description: str | None | UnsetType = UNSET
    main_unity_sort: str | UnsetType = UNSET


class _RankingModified(_OfRanking):
    participants: tuple[int, ...]
    main_unity_name: str
    name: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET


class _RankingInformationChanged(_OfRanking):
    name: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    zones: str | None | UnsetType = UNSET


class _ParticipantsChanged(_OfRanking):
    added: tuple[int, ...] | None | UnsetType = UNSET
    removed: tuple[int, ...] | None | UnsetType = UNSET


class _UnityAdded(UnityOptions, frozen=True):
    sequence: int
    recorded_at: str
    ranking_id: int
    unity_id: int
    name: str
    sort: str | None | UnsetType = UNSET


class _UnityChanged(_OfRanking):
    unity_id: int
    name: str | None | UnsetType = UNSET
    sort: str | None | UnsetType = UNSET


class _Criterion(Struct):
    unity_id: int
    best: int | None | UnsetType = UNSET
    among: str | None | UnsetType = UNSET
    first: bool | UnsetType = UNSET
    drop: tuple[tuple[int, int], ...] | UnsetType = UNSET
    tiebreak: str | UnsetType = UNSET
    ratio: int | UnsetType = UNSET
    per: int | UnsetType = UNSET
    cut: int | UnsetType = UNSET
    median: int | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    edition: str | UnsetType = UNSET
    pairing: str | UnsetType = UNSET


class _ClassificationDeclared(_OfRanking):
    criteria: tuple[_Criterion, ...] | None | UnsetType = UNSET


class _PointsAdded(_OfRanking):
    """`deltas`: triples of competitor, unity and amount; `results`: of competitor, unity and result."""

    deltas: tuple[tuple[int, int, int], ...]
    results: tuple[tuple[int, int, int], ...] | UnsetType = UNSET
    competition_id: int | None | UnsetType = UNSET
    reason: str | None | UnsetType = UNSET


class _PointsScored(_PointsAdded):
    instead_of: int | None | UnsetType = UNSET
    totals: tuple[tuple[int, int, int | None], ...] | UnsetType = UNSET


class _PointsReversed(_OfRanking):
    deltas: tuple[tuple[int, int, int], ...]
    reverses: int
    competition_id: int | None | UnsetType = UNSET
    undone: bool | None | UnsetType = UNSET
    struck: bool | None | UnsetType = UNSET
    totals: tuple[tuple[int, int, int | None], ...] | UnsetType = UNSET


class _PointsExpired(_OfRanking):
    boundary: datetime
    deltas: tuple[tuple[int, int, int], ...]
    totals: tuple[tuple[int, int, int | None], ...] | UnsetType = UNSET


_SHAPES: Final[dict[str, type[Struct]]] = {
    events.TournamentOpened.tag: _TournamentNamed,
    events.TournamentRenamed.tag: _TournamentNamed,
    events.CompetitorRegistered.tag: _CompetitorRegistered,
    events.CompetitorChanged.tag: _CompetitorChanged,
    events.CompetitorErased.tag: _CompetitorErased,
    events.RankingCreated.tag: _RankingCreated,
    events.RankingModified.tag: _RankingModified,
    events.RankingInformationChanged.tag: _RankingInformationChanged,
    events.ParticipantsChanged.tag: _ParticipantsChanged,
    events.UnityAdded.tag: _UnityAdded,
    events.UnityChanged.tag: _UnityChanged,
    events.ClassificationDeclared.tag: _ClassificationDeclared,
    events.PointsAdded.tag: _PointsAdded,
    events.PointsScored.tag: _PointsScored,
    events.PointsReversed.tag: _PointsReversed,
    events.PointsExpired.tag: _PointsExpired,
    events.RankingClosed.tag: _OfRanking,
    events.RankingReopened.tag: _OfRanking,
}
PUBLIC_KINDS: Final = frozenset(_SHAPES)
"""Kinds of events that show something public."""


class PublicLog:
    """The log as the public sees it."""

    def end(self, publication: Publication, head: Sequence) -> Sequence | None:
        return publication.public_end(head)

    def is_held(self, publication: Publication) -> bool:
        return publication.frozen_at is not None

    def id_of(self, sequence: Sequence, digest: bytes, recorded_at: datetime) -> str:
        return f"{sequence}-{microseconds(recorded_at) % 2**32:08x}"

    def hidden(self, publication: Publication) -> frozenset[RankingId]:
        return publication.hidden

    def said(self, stored: Stored, hidden: frozenset[RankingId]) -> tuple[str, bytes]:
        shape = None if stored.kind is None else _SHAPES.get(stored.kind)
        body: dict[str, Any] = {} if shape is None else msgspec.json.decode(stored.body)
        if body.get("ranking_id") in hidden:
            shape, body = None, {}
        body |= {"sequence": stored.sequence, "recorded_at": instant(stored.recorded_at)}
        shown = msgspec.convert(body, _Public if shape is None else shape)
        return OTHER if shape is None else str(stored.kind), msgspec.json.encode(shown)

    def said_of_head(self, head: Head, *, is_held: bool) -> bytes:
        return b'{"head":%d%b}' % (head.sequence, b',"frozen":true' if is_held else b"")


PUBLIC_LOG: Final = PublicLog()
