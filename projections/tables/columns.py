"""The columns of the tables that store a board. Each is declared once, as a field of the struct that a row stores, or
here. Statements, and the arrays sent with them, are made from the declarations.

Statements are made at their first use, only from names in the code, never from values. The code that turns rows into
structs is written out below: code made from the declarations took a third longer.

Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import UTC
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import Struct, inspect

from engine.domain.awards import Scoring
from engine.domain.events import Criterion
from engine.domain.options import OPTIONS, UnityOptions
from engine.domain.terms import CompetitorId, Sequence, Sort, UnityId
from projections.board.board import (
    Competition,
    Competitor,
    Ranking,
    ReplacedLines,
    Unity,
    counting_results,
    replaced_by,
    replaced_lines,
    special,
    unity_with,
)
from projections.board.publication import Presentation, Publication
from projections.columns.enrolment import Enrolment, Totals
from projections.columns.packed import packed


class Column(Struct, frozen=True):
    """`type`: the type of the parameter. A row stores a struct, and the column's name is that of its attribute."""

    name: str
    type: str
    fixed: bool = False
    """The value never changes while the row exists."""
    taken: Callable[[Any], object] | None = None
    """Converts a struct to the parameter; None: the attribute is sent unchanged."""
    stored: str | None = None
    """SQL that converts the parameter to the stored value; None: they are equal."""
    read: str | None = None
    """SQL that reads the value; None: the column."""


class Table:
    """`ids` identify the subject of a row, `columns` are its values. `key`: the primary key, if it is not all of `ids`.
    `order`: the order in which rows are read. `joined`: SQL for values of other tables that are read with a row.
    `structs`: a row shows a struct, and is written from its ids and that; otherwise from a tuple of its columns.
    """

    def __init__(
        self,
        name: str,
        *,
        ids: tuple[Column, ...],
        columns: tuple[Column, ...],
        key: tuple[str, ...] = (),
        order: tuple[str, ...] = (),
        joined: tuple[str, ...] = (),
        structs: bool = True,
    ) -> None:
        self.name = name
        self.columns = ids + columns
        self.key = key or _names(ids)
        self._order = order
        self._joined = joined
        self._structs = structs
        self._changing = [column.name for column in columns if not column.fixed]
        self._takers = [column.taken or attrgetter(column.name) for column in columns]

    def arrays(self, rows: Iterable[tuple[object, ...]]) -> list[Items[object]]:
        """The parameters for rows: one array per column."""
        if not self._structs:
            return list(zip(*rows, strict=True))
        *ids, structs = zip(*rows, strict=True)
        return [*ids, *[list(map(taken, structs)) for taken in self._takers]]

    @cached_property
    def select(self) -> str:
        """The statement that reads all rows of some tournaments: ids, then columns, then joined values."""
        read = [f"{column.read} AS {column.name}" if column.read else column.name for column in self.columns]
        return _lines(
            f"SELECT {_list([*read, *self._joined])}",
            f"FROM {self.name}",
            "WHERE tournament_id = ANY($1::bigint[])",
            f"ORDER BY {_list(self._order)}" if self._order else "",
        )

    @cached_property
    def insert(self) -> str:
        """The statement that writes rows, also of many tournaments, as one array for each column. In an existing row,
        it updates the columns that are not fixed; if all are fixed, no row may exist."""
        names = _list(_names(self.columns))
        return _lines(
            f"INSERT INTO {self.name} ({names})",
            f"SELECT {_list(column.stored or column.name for column in self.columns)}",
            f"FROM unnest({_list(f'${n}::{column.type}[]' for n, column in enumerate(self.columns, start=1))})",
            f"    AS sent ({names})",
            self._or_change(),
        )

    @cached_property
    def insert_of_one(self) -> str:
        """As `insert`, for rows of the tournament $1, which is sent once. A distributed database executes it in that
        tournament's shard, where its row of `append_lock` is as well. On one server, it takes an eighth longer."""
        tournament_id, *columns = self.columns
        sent = _list(f"${n}::{column.type}[]" for n, column in enumerate(columns, start=2))
        return _lines(
            f"INSERT INTO {self.name} ({_list(_names(self.columns))})",
            f"SELECT l.{tournament_id.name}, {_list(column.stored or f'sent.{column.name}' for column in columns)}",
            "FROM append_lock AS l",
            f"CROSS JOIN unnest({sent}) AS sent ({_list(_names(tuple(columns)))})",
            f"WHERE l.{tournament_id.name} = $1",
            self._or_change(),
        )

    def _or_change(self) -> str:
        changes = _list(f"{name} = excluded.{name}" for name in self._changing)
        return changes and f"ON CONFLICT ({_list(self.key)}) DO UPDATE\nSET {changes}"

    @cached_property
    def delete(self) -> str:
        """The statement that removes all rows of some tournaments."""
        return _lines(
            f"DELETE FROM {self.name}",  # noqa: S608 # a name that is written down below
            "WHERE tournament_id = ANY($1::bigint[])",
        )


def _names(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _list(items: Iterable[str]) -> str:
    return ", ".join(items)


def _lines(*clauses: str) -> str:
    return "\n".join(filter(None, clauses))


_TYPES: Final = {inspect.BoolType: "boolean", inspect.IntType: "bigint", inspect.DateTimeType: "timestamptz"}
"""Values of any other type are sent as text."""


def columns_of(
    kind: type[Struct], *special: Column, fixed: bool = False, apart: tuple[str, ...] = ()
) -> tuple[Column, ...]:
    """A column for each field of the struct, in its order, except those `apart`, which another table stores. Those not
    among `special` are stored as they are."""
    by_name = {column.name: column for column in special}
    return tuple(
        [
            by_name.get(field.name) or Column(field.name, _type_of(field.type), fixed=fixed)
            for field in msgspec.structs.fields(kind)
            if field.name not in apart
        ]
    )


def _type_of(annotation: object) -> str:
    """The type of a parameter for values of this type, or for these and None."""
    found = inspect.type_info(annotation)
    return _TYPES.get(type(found.types[0] if isinstance(found, inspect.UnionType) else found), "text")


def _score(competition: Competition) -> str | None:
    """Results of participants are in separate rows."""
    return competition.result if isinstance(competition.result, str) else None


def _of_participants(column: str) -> str:
    """A column of the participants of a competition, as an array. Without the first condition, a distributed database
    asks all shards."""
    return (
        f"ARRAY(SELECT p.{column} FROM participant AS p"  # noqa: S608 # a name that is written down below
        " WHERE p.tournament_id = ANY($1::bigint[])"
        " AND p.tournament_id = competition.tournament_id AND p.competition_id = competition.competition_id"
        " ORDER BY p.number)"
    )


# ── The tables ──────────────────────────────────────────────────────────────────────────────────────────

_TOURNAMENT_ID: Final = Column("tournament_id", "bigint")
_NUMBER: Final = Column("number", "int", fixed=True)
_CREATED_AT: Final = Column("created_at", "timestamptz", fixed=True)
# NULL takes the driver no time.
_UPDATED_AT: Final = Column("updated_at", "timestamptz", read="nullif(updated_at, created_at)")

PUBLICATION: Final = Table(
    "publication",
    ids=(_TOURNAMENT_ID,),
    columns=(
        Column("published", "boolean"),
        Column("frozen_at", "bigint"),
        Column("seen_before", "bigint"),
        Column(
            "hidden",
            "json",  # as tags
            taken=lambda publication: msgspec.json.encode(sorted(publication.hidden)).decode(),
            stored="ARRAY(SELECT json_array_elements_text(hidden)::bigint)",
        ),
        Column("zone", "text", taken=attrgetter("presentation.zone")),
        Column("language", "text", taken=attrgetter("presentation.language")),
        Column("accent", "text", taken=attrgetter("presentation.accent")),
        Column("logo", "bigint", taken=attrgetter("presentation.logo")),
        Column("listed", "boolean", taken=attrgetter("presentation.listed")),
        Column("stage", "text"),
    ),
)
COMPETITOR: Final = Table(
    "competitor",
    ids=(_TOURNAMENT_ID, Column("competitor_id", "bigint")),
    columns=columns_of(
        Competitor,
        _NUMBER,
        Column(
            "tags",
            "json",  # an array of arrays would need all of the same length
            taken=lambda competitor: msgspec.json.encode(competitor.tags).decode(),
            stored="ARRAY(SELECT json_array_elements_text(tags))",
        ),
        _CREATED_AT,
        _UPDATED_AT,
        Column(
            "former",
            "json",
            taken=lambda competitor: msgspec.json.encode(competitor.former).decode(),
            stored="ARRAY(SELECT json_array_elements_text(former))",
            read="nullif(former, '{}')",
        ),
    ),
    order=("tournament_id", "number"),
)
COMPETITION: Final = Table(
    "competition",
    ids=(_TOURNAMENT_ID, Column("competition_id", "bigint")),
    columns=columns_of(
        Competition,
        _NUMBER,
        Column("result", "text", taken=_score),
        _CREATED_AT,
        _UPDATED_AT,
        Column(
            "struck",
            "json",
            taken=lambda competition: msgspec.json.encode(competition.struck).decode(),
            stored="ARRAY(SELECT json_array_elements_text(sent.struck)::bigint)",
            read="nullif(struck, '{}')",
        ),
        apart=("participants",),
    ),
    order=("tournament_id", "number"),
    joined=(
        f"{_of_participants('competitor_id')} AS participants",
        f"CASE WHEN result IS NULL THEN {_of_participants('result')} END AS results",
    ),
)
RANKING: Final = Table(
    "ranking",
    ids=(_TOURNAMENT_ID, Column("ranking_id", "bigint")),
    columns=(
        _NUMBER,
        Column("place", "int"),
        Column("name", "text"),
        Column("description", "text"),
        Column("closed_at", "timestamptz"),
        Column("criteria", "json", taken=lambda ranking: msgspec.json.encode(ranking.criteria).decode()),
        Column(
            "undone",
            "json",
            taken=lambda ranking: msgspec.json.encode(ranking.undone).decode(),
            stored="sent.undone::jsonb",
        ),
        Column("scorings", "json", taken=lambda ranking: msgspec.json.encode(ranking.scorings).decode()),
        Column(
            "replaced",
            "json",
            taken=lambda ranking: msgspec.json.encode(replaced_lines(ranking)).decode(),
            stored="sent.replaced::jsonb",
        ),
        Column("zones", "text"),
        Column("updated_at", "timestamptz"),
        Column("revised", "bigint"),
    ),
    order=("tournament_id", "place"),
)
UNITY: Final = Table(
    "unity",
    ids=(_TOURNAMENT_ID, Column("unity_id", "bigint"), Column("ranking_id", "bigint")),
    columns=(
        _NUMBER,
        Column("name", "text"),
        Column("sort", "text", taken=lambda unity: unity.sort.value),
        *columns_of(UnityOptions, fixed=True),
        Column("version", "bigint"),
    ),
    key=("tournament_id", "unity_id"),
    order=("tournament_id", "ranking_id", "number"),
)


# ── Rows as structs ─────────────────────────────────────────────────────────────────────────────────────

Row = Mapping[str, Any]
"""A row as the driver gives it: values by the names of columns."""


def publication_of(row: Row) -> Publication:
    return Publication(
        published=row["published"],
        frozen_at=row["frozen_at"],
        seen_before=row["seen_before"],
        hidden=frozenset(row["hidden"]),
        presentation=Presentation(**{name: row[name] for name in Presentation.__struct_fields__}),
        stage=row["stage"],
    )


def packed_competitor(row: Iterable[Any]) -> bytes:
    """The competitor as the board keeps it. Its columns are in the order of its fields, so it needs no struct."""
    _, _, number, name, tags, color, parent_id, created_at, updated_at, *others, former = row
    updated_at = created_at if updated_at is None else updated_at
    return packed((number, name, tags, color, parent_id, created_at, updated_at, *others, former or ()))


def packed_competition(row: Iterable[Any]) -> bytes:
    """As `packed_competitor`. Its participants and their results are read with it."""
    _, _, number, group_id, *columns, participants, results = row
    date, location, result, winner_id, voided_at, created_at, updated_at, revised, struck, *others = columns
    # The driver writes the first moment of year 1 as -infinity, and reads that back without a time zone.
    date = None if date is None else date.replace(tzinfo=UTC)
    result = result if results is None else _results(participants, results)
    times = voided_at, created_at, updated_at or created_at
    own = number, group_id, date, location, participants, result, winner_id
    return packed((*own, *times, revised, struck or (), *others))


def ranking_of(row: Row, participants: Enrolment, unities: dict[UnityId, Unity]) -> Ranking:
    return Ranking(
        number=row["number"],
        place=row["place"],
        name=row["name"],
        description=row["description"],
        closed_at=row["closed_at"],
        participants=participants,
        unities=unities,
        criteria=_criteria(row["criteria"]),
        undone=_undone(row["undone"]),
        scorings=_scorings(row["scorings"]),
        replaced=replaced_by(_replaced(row["replaced"])),
        of_results=counting_results(unities),
        special=special(unities),
        updated_at=row["updated_at"],
        revised=row["revised"],
        zones=row["zones"],
    )


_criteria: Final = msgspec.json.Decoder(tuple[Criterion, ...]).decode
_undone: Final = msgspec.json.Decoder(dict[Sequence, Sequence]).decode
_scorings: Final = msgspec.json.Decoder(tuple[Scoring, ...]).decode
_replaced: Final = msgspec.json.Decoder(ReplacedLines).decode


def unity_of(row: Row, totals: Totals) -> Unity:
    return unity_with(
        msgspec.convert({name: row[name] for name in OPTIONS}, UnityOptions),
        number=row["number"],
        name=row["name"],
        sort=Sort(row["sort"]),
        version=row["version"],
        totals=totals,
    )


def _results(participants: list[CompetitorId], results: list[str | None]) -> dict[CompetitorId, str] | None:
    found = zip(participants, results, strict=True)
    return {competitor_id: result for competitor_id, result in found if result is not None} or None


# ── Tables without structs ──────────────────────────────────────────────────────────────────────────────
# A row of these shows no struct; `tables.py` makes it a tuple. Participants are read with their competition.
PARTICIPANT: Final = Table(
    "participant",
    ids=(_TOURNAMENT_ID, Column("competition_id", "bigint"), Column("number", "int")),
    columns=(Column("competitor_id", "bigint"), Column("result", "text")),
    structs=False,
)
ENROLMENT: Final = Table(
    "enrolment",
    ids=(_TOURNAMENT_ID, Column("ranking_id", "bigint"), Column("competitor_id", "bigint")),
    columns=(Column("number", "int"), Column("has_left", "boolean")),
    order=("tournament_id", "ranking_id", "number"),
    structs=False,
)
TOTAL: Final = Table(
    "total",
    ids=(_TOURNAMENT_ID, Column("unity_id", "bigint"), Column("competitor_id", "bigint")),
    columns=(Column("total", "bigint"),),
    structs=False,
)
TABLES: Final = (PUBLICATION, COMPETITOR, COMPETITION, PARTICIPANT, RANKING, ENROLMENT, UNITY, TOTAL)
