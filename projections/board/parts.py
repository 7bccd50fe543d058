"""A board as bytes, in parts of about PART_BYTES, because a board of a million competitors takes some 100 MB.

Pure. A part is a list of runs, in MessagePack. The runs of a ranking are consecutive: the ranking, its places, then
each unity with its column. Competitors and competitions are packed as in memory.
"""

import sys
from array import array
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeVar, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

from engine.domain.awards import Scoring
from engine.domain.events import Criterion
from engine.domain.options import UnityOptions, options_of
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, Sort, Stage, UnityId
from projections.board.board import (
    Board,
    Competition,
    Competitor,
    Ranking,
    ReplacedLines,
    counting_results,
    note_expiry,
    note_struck,
    replaced_by,
    replaced_lines,
    special,
    unity_with,
)
from projections.board.publication import Presentation, Publication
from projections.columns.enrolment import Enrolment, Totals
from projections.columns.packed import Packed

PART_BYTES: Final = 1024 * 1024
"""Bytes of a part. It may exceed this by up to one run."""


class _Publication(Struct, tag="publication", array_like=True):
    """Left out if it is that of an empty log."""

    published: bool
    frozen_at: Sequence | None
    seen_before: Sequence
    hidden: list[RankingId]
    presentation: Presentation
    stage: Stage | None = None


class _Competitors(Struct, tag="competitors", array_like=True):
    """A run of competitors or of competitions, packed as in memory."""

    ids: list[CompetitorId]
    packed: list[Raw]


class _Competitions(Struct, tag="competitions", array_like=True):
    ids: list[CompetitionId]
    packed: list[Raw]


class _Ranking(Struct, tag="ranking", array_like=True):
    ranking_id: RankingId
    number: int
    place: int
    name: str
    description: str | None
    closed_at: datetime | None
    criteria: tuple[Criterion, ...]
    undone: dict[Sequence, Sequence]
    scorings: tuple[Scoring, ...]
    replaced: ReplacedLines
    updated_at: datetime
    revised: Sequence
    zones: str | None = None


class _Places(Struct, tag="places", array_like=True):
    """A run of the places of the last ranking, as 64-bit numbers, the lowest byte first."""

    places: bytes


class _Unity(UnityOptions, tag="unity", array_like=True, frozen=True):
    unity_id: UnityId
    number: int
    name: str
    sort: Sort
    version: int


class _Totals(Struct, tag="totals", array_like=True):
    """A run of the sums of the last unity, encoded like places, or as text if one of them needs more than 64 bits."""

    totals: bytes | list[str]


_Run = _Publication | _Competitors | _Competitions | _Ranking | _Places | _Unity | _Totals
_RUN_ITEMS: Final = 500
_RUN_NUMBERS: Final = 32_768

_encode: Final = msgspec.msgpack.Encoder().encode
_undecoded: Final = msgspec.msgpack.Decoder(list[Raw]).decode
_run: Final = msgspec.msgpack.Decoder(_Run).decode
_competitor: Final = msgspec.msgpack.Decoder(Competitor).decode
_competition: Final = msgspec.msgpack.Decoder(Competition).decode


_Id = TypeVar("_Id", bound=int)
_Item = TypeVar("_Item", bound=Struct)


def parts_of(board: Board) -> Iterator[bytes]:
    """The parts of a board, at least one."""
    gathered, gathered_bytes = [], 0
    for run in _runs(board):
        encoded = _encode(run)
        gathered.append(Raw(encoded))
        gathered_bytes += len(encoded)
        if gathered_bytes >= PART_BYTES:
            yield _encode(gathered)
            gathered, gathered_bytes = [], 0
    yield _encode(gathered)


def _runs(board: Board) -> Iterator[_Run]:
    if board.publication != Publication():
        published, frozen_at, seen_before, hidden, *others = astuple(board.publication)
        yield _Publication(published, frozen_at, seen_before, sorted(hidden), *others)
    for competitor_ids in _runs_of_ids(board.competitors):
        yield _Competitors(competitor_ids, [Raw(board.competitors.packed(c)) for c in competitor_ids])
    for competition_ids in _runs_of_ids(board.competitions):
        yield _Competitions(competition_ids, [Raw(board.competitions.packed(c)) for c in competition_ids])
    for ranking_id, ranking in board.rankings.items():
        yield _Ranking(
            ranking_id,
            ranking.number,
            ranking.place,
            ranking.name,
            ranking.description,
            ranking.closed_at,
            ranking.criteria,
            dict(sorted(ranking.undone.items())),
            ranking.scorings,
            replaced_lines(ranking),
            ranking.updated_at,
            ranking.revised,
            ranking.zones,
        )
        places = ranking.participants.places
        for start in range(0, len(places), _RUN_NUMBERS):
            yield _Places(_as_bytes(places[start : start + _RUN_NUMBERS]))
        for unity_id, unity in ranking.unities.items():
            yield _Unity(unity_id, unity.number, unity.name, unity.sort, unity.version, **options_of(unity))
            column = unity.totals.trimmed()
            for start in range(0, len(column), _RUN_NUMBERS):
                numbers = column[start : start + _RUN_NUMBERS]
                yield _Totals(_stored(numbers))


def _runs_of_ids(items: Packed[_Id, _Item]) -> Iterator[list[_Id]]:
    for first in range(1, len(items) + 1, _RUN_ITEMS):
        yield items.ids(first, first + _RUN_ITEMS - 1)


def take_part(part: bytes, board: Board) -> Iterator[None]:
    """Adds a part to a board that has the parts before it, step by step. Raises MsgspecError, ValueError, TypeError or
    LookupError if the bytes are not a part."""
    for raw in _undecoded(part):
        run = _run(raw)
        match run:
            case _Publication():
                board.publication = Publication(
                    published=run.published,
                    frozen_at=run.frozen_at,
                    seen_before=run.seen_before,
                    hidden=frozenset(run.hidden),
                    presentation=run.presentation,
                    stage=run.stage,
                )
            case _Competitors():
                for competitor_id, packed in zip(run.ids, run.packed, strict=True):
                    board.competitors.put(competitor_id, bytes(packed), _competitor(packed).key)
            case _Competitions():
                for competition_id, packed in zip(run.ids, run.packed, strict=True):
                    competition = _competition(packed)
                    board.competitions.put(competition_id, bytes(packed), competition.key)
                    if competition.voided_at is not None:
                        board.voided.add(competition_id)
                    note_struck(board, competition_id, competition.struck)
            case _Ranking():
                board.rankings[run.ranking_id] = Ranking(
                    number=run.number,
                    place=run.place,
                    name=run.name,
                    description=run.description,
                    closed_at=run.closed_at,
                    criteria=run.criteria,
                    undone=run.undone,
                    scorings=run.scorings,
                    replaced=replaced_by(run.replaced),
                    participants=Enrolment(),
                    unities={},
                    updated_at=run.updated_at,
                    revised=run.revised,
                    zones=run.zones,
                )
            case _Places():
                _last(board.rankings).participants.append_places(_as_numbers(run.places))
            case _Unity():
                _take_unity(run, board)
            case _Totals():
                _last(_last(board.rankings).unities).totals.append_column(_restored(run.totals))
            case _:
                assert_never(run)
        yield


def _take_unity(run: _Unity, board: Board) -> None:
    ranking = _last(board.rankings)
    ranking.unities[run.unity_id] = unity_with(
        run,
        number=run.number,
        name=run.name,
        sort=run.sort,
        version=run.version,
        totals=Totals(ranking.participants),
    )
    if run.counts_results or run.lasts is not None:
        ranking_id = next(reversed(board.rankings))
        board.rankings[ranking_id] = msgspec.structs.replace(
            ranking, of_results=counting_results(ranking.unities), special=special(ranking.unities)
        )
        note_expiry(board, ranking_id, run.unity_id)


_T = TypeVar("_T")


def _last(items: dict[Any, _T]) -> _T:
    """The item that was added last. Raises LookupError."""
    return items[next(reversed(items), None)]


def _stored(numbers: "array[int] | list[int]") -> bytes | list[str]:
    return _as_bytes(numbers) if isinstance(numbers, array) else list(map(str, numbers))


def _restored(stored: bytes | list[str]) -> "array[int] | list[int]":
    return _as_numbers(stored) if isinstance(stored, bytes) else list(map(int, stored))


def _as_bytes(numbers: "array[int]") -> bytes:
    return (numbers if sys.byteorder == "little" else _swapped(numbers)).tobytes()


def _as_numbers(stored: bytes) -> "array[int]":
    numbers = array("q", stored)
    return numbers if sys.byteorder == "little" else _swapped(numbers)


def _swapped(numbers: "array[int]") -> "array[int]":
    swapped = numbers[:]
    swapped.byteswap()
    return swapped
