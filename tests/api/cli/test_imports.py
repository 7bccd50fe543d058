"""Competitors from files: all of them in the order of the file, nobody twice, and every wrong line named."""

import asyncio
import fcntl
import json
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from random import Random

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.cli.imports import _read
from api.desk.desk import Desk
from api.imports.competitors import CompetitorFields, Competitors, read_competitors
from api.imports.importer import (
    IMPORT_REQUESTS_MAX,
    BrokenOff,
    Imported,
    Interrupted,
    asked,
    import_lines,
)
from api.imports.kinds import Print
from api.imports.rows import FileRow
from engine.domain.commands import ChangeCompetitor, RegisterCompetitor
from engine.domain.errors import Refusal, Unacceptable, Unreadable
from engine.domain.events import CompetitorRegistered, EventSetAside
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, TAGS_MAX, CompetitorId, TournamentId
from engine.log import reading, registry
from projections.board.board import Board
from tests.api.cli.conftest import Tallybook
from tests.cut_imports import cut_import
from tests.desks import HOLD_HEAD, desk_at, desks_at, holding, record, recorded, until
from tests.running import TALLYBOOK, Said, environment, opened_by, said, started
from tests.tournaments import open_new_tournament

BOM = b"\xef\xbb\xbf"
TEXTS = st.sampled_from(["", "a", "b", "a b", "1"])
COLUMNS = "The first line must name the columns: name, then any of tags, color, parent."
CORRECT = "Nothing was imported; correct these lines."


def prints_of(fields: dict[int, CompetitorFields], secret: bytes) -> list[Print]:
    """What the lines of a file are known by."""
    kind = Competitors([FileRow(*one) for one in fields.items()])
    return [line.prints[0] for line in finished(asked(kind, Board(), secret))[0]]


class Import:
    """A tournament with nobody in it, and a folder for files."""

    def __init__(self, desk: Desk, tournament_id: TournamentId, folder: Path) -> None:
        self._desk = desk
        self._tournament_id = tournament_id
        self._folder = folder
        self.progress: list[tuple[int, int]] = []

    async def __call__(self, content: str | bytes, *, name: str = "file.csv") -> int:
        """Imports a file of this content, and returns how many were registered."""
        return (await self.result(content, name=name)).made

    async def result(self, content: str | bytes, *, name: str = "file.csv", stop_at: int | None = None) -> Imported:
        """With `stop_at`, interrupted when so many are registered."""
        file = self._folder / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return await self.file(file, stop_at=stop_at)

    async def file(self, file: Path, *, stop_at: int | None = None) -> Imported:
        self.progress.clear()
        stop = asyncio.Event()

        def progress(done: int, total: int) -> None:
            self.progress.append((done, total))
            if stop_at is not None and done >= stop_at:
                stop.set()

        if stop_at == 0:
            stop.set()
        async with self._desk.live_pool.pinned(self._tournament_id) as live:
            kind = read_competitors(_read(file))
            return await import_lines(self._desk, live, kind, actor=OPERATOR, stop=stop, progress=progress)

    async def ndjson(self, *rows: object) -> int:
        return (await self.lines(rows)).made

    async def lines(self, rows: Iterable[object]) -> Imported:
        content = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        return await self.result(content, name="file.ndjson")

    async def refused(self, content: str | bytes, *, name: str = "file.csv") -> list[tuple[str, str]]:
        """The faults, after which there must be nobody more than before."""
        before = await self.names()
        with pytest.raises(Refusal) as caught:
            await self(content, name=name)
        assert await self.names() == before
        if not caught.value.faults:
            return [("", caught.value.message)]
        assert caught.value.message == CORRECT
        return [(fault.field, fault.message) for fault in caught.value.faults]

    async def add(self, name: str) -> int:
        """Registers one by hand."""
        async with self._desk.live_pool.pinned(self._tournament_id) as live:
            competitor_id = CompetitorId(await self._desk.new_id())
            await self._desk.submit(live, RegisterCompetitor(competitor_id=competitor_id, name=name), actor=OPERATOR)
        return competitor_id

    async def rename(self, name: str, to: str) -> None:
        async with self._desk.live_pool.pinned(self._tournament_id) as live:
            (competitor_id,) = [i for i, c in live.board.competitors.items() if c.name == name]
            change = ChangeCompetitor(competitor_id=competitor_id, name=to)
            await self._desk.submit(live, change, actor=OPERATOR)

    def into(self, tournament_id: TournamentId) -> "Import":
        """The same for another tournament."""
        return Import(self._desk, tournament_id, self._folder)

    async def names(self) -> list[str]:
        return list(await self.parents())

    async def parents(self) -> dict[str, str | None]:
        """Who is below whom, in the order of registration; for names that nobody shares."""
        async with self._desk.live_pool.pinned(self._tournament_id) as live:
            await self._desk.live_pool.make_current(live)
            everybody = live.board.competitors
            return {c.name: None if c.parent_id is None else everybody[c.parent_id].name for c in everybody.values()}

    async def details(self) -> list[tuple[str, tuple[str, ...], str]]:
        """Name, tags and color."""
        async with self._desk.live_pool.pinned(self._tournament_id) as live:
            await self._desk.live_pool.make_current(live)
            return [(c.name, c.tags, c.color) for c in live.board.competitors.values()]


@pytest.fixture
def imported(desk: Desk, tournament_id: TournamentId, tmp_path: Path) -> Import:
    return Import(desk, tournament_id, tmp_path)


# ── What a file may hold ────────────────────────────────────────────────────────────────────────────────


async def test_names_alone_are_enough(imported: Import) -> None:
    assert await imported("name\nAnn\n  Bob \nAnn of the Hill\n") == 3
    assert await imported.details() == [
        ("Ann", (), "000000"),
        ("Bob", (), "000000"),
        ("Ann of the Hill", (), "000000"),
    ]


async def test_csv_has_tags_color_and_parent_in_any_order(imported: Import) -> None:
    assert await imported('name,parent,color,tags\nAnn,,,\n"Bob, ""B""",Ann,C0ffee,junior | left-handed|\n') == 2
    assert await imported.details() == [
        ("Ann", (), "000000"),
        ('Bob, "B"', ("junior", "left-handed"), "C0ffee"),
    ]
    assert (await imported.parents())['Bob, "B"'] == "Ann"


async def test_ndjson_has_the_same_with_tags_also_as_an_array(imported: Import) -> None:
    ann = {"name": "Ann", "tags": ["junior", "with | in it", " "], "color": "00ff00"}
    assert await imported.ndjson(ann, {"tags": "a|b", "name": "Bob", "parent": "Ann"}, {"name": "Cid"}) == 3
    assert await imported.details() == [
        ("Ann", ("junior", "with | in it"), "00ff00"),
        ("Bob", ("a", "b"), "000000"),
        ("Cid", (), "000000"),
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_csv_may_have_semicolons_as_spreadsheets_write_it(imported: Import, line_end: str) -> None:
    rows = ["name;tags;parent", "Ann;a|b;", '"Bob, the 2nd";;Ann', "Cid; c ;"]
    assert await imported(f"\ufeff{line_end.join(rows)}{line_end}") == 3
    assert await imported.names() == ["Ann", "Bob, the 2nd", "Cid"]
    assert await imported(line_end.join(rows).replace(";", ",")) == 0, "they say the same"


async def test_csv_and_ndjson_of_the_same_people_are_the_same(imported: Import) -> None:
    names = ["Zoë", "李四", "🏆", "O'Neil; DROP", 'q"q', "a,b", "|", "#1"]
    await imported("name\n" + "".join('"{}"\n'.format(name.replace('"', '""')) for name in names))
    assert [name for name, _, _ in await imported.details()] == names
    assert await imported.ndjson(*({"name": name} for name in names)) == 0


@pytest.mark.parametrize("row", ['{"name":"Ann","name":"Bob"}', '{"name":"Ann","tags":["a"],"\\u0074ags":[]}'])
async def test_a_line_that_gives_a_field_twice_is_refused(imported: Import, row: str) -> None:
    ((place, message),) = await imported.refused(row, name="file.ndjson")
    assert place == "line 1"
    assert message in ("it has the field 'name' more than once", "it has the field 'tags' more than once")
    assert await imported.names() == []


@pytest.mark.parametrize("name", ["a\u2028b", "a\u2029b"])
async def test_only_line_ends_end_a_line(imported: Import, name: str) -> None:
    await imported(f"name\n{name}\n")
    await imported.ndjson({"name": f"json {name}"})
    assert await imported.names() == [name, f"json {name}"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("character", ["\n", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\t", "\0"])
async def test_a_name_with_a_control_character_is_refused_and_not_split_or_joined(
    imported: Import, character: str
) -> None:
    ((_, message),) = await imported.refused(f'name\n"A{character}B"\n')
    assert message == f"must not contain the control character U+{ord(character[0]):04X}"
    row = json.dumps({"name": f"A{character}B"}, ensure_ascii=character < " ")
    assert await imported.refused(row, name="file.ndjson") == [("line 1, name", message)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_may_end_as_on_any_system_and_the_last_one_not_at_all(imported: Import, end: str) -> None:
    assert await imported(end.join(["name,tags", "Ann,a", "", "Bob,b"])) == 2
    assert await imported.details() == [("Ann", ("a",), "000000"), ("Bob", ("b",), "000000")]


async def test_ndjson_lines_may_be_blank_and_end_with_a_carriage_return(imported: Import) -> None:
    assert await imported('\r\n{"name": "Ann"}\r\n \n{"name": "Bob"}', name="file.ndjson") == 2
    assert await imported.names() == ["Ann", "Bob"]


@pytest.mark.parametrize(("content", "name"), [(b"name\nAnn\n", "a.csv"), (b'{"name":"Ann"}\n', "b.NDJSON")])
async def test_a_byte_order_mark_is_not_part_of_the_file(imported: Import, content: bytes, name: str) -> None:
    assert await imported(BOM + content, name=name) == 1
    assert await imported.names() == ["Ann"]


@pytest.mark.parametrize(("content", "name"), [("name,tags\n", "a.csv"), ("", "a.ndjson"), ("\n \n", "b.ndjson")])
async def test_a_file_of_nobody_registers_nobody(imported: Import, content: str, name: str) -> None:
    assert await imported(content, name=name) == 0
    assert await imported.names() == []


# ── Parents ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_parent_is_a_name_or_an_id_of_the_tournament_or_a_name_of_an_earlier_line(imported: Import) -> None:
    club = await imported.add("Club")
    rows = ["name,parent", "Team A,Club", f"Team B,{club}", "Ann, Team A ", f"Bob,0{club}"]
    assert await imported("\n".join(rows)) == 4
    assert await imported.ndjson({"name": "Cid", "parent": club}, {"name": "Dan", "parent": "Cid"}) == 2
    assert await imported.parents() == {
        "Club": None,
        "Team A": "Club",
        "Team B": "Club",
        "Ann": "Team A",
        "Bob": "Club",
        "Cid": "Club",
        "Dan": "Cid",
    }


async def test_a_name_is_stronger_than_an_id(imported: Import) -> None:
    club = await imported.add("Club")
    await imported(f"name,parent\n{club},\nAnn,{club}\n")
    assert (await imported.parents())["Ann"] == str(club)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "parent",
    ["Nobody", "Later", "Ann", "7", "-1", "1.0", "٣", "9" * 19, "9" * 40, "1" + "0" * 5_000, "Dup"],
)
async def test_a_parent_that_is_not_one_competitor_is_refused(imported: Import, parent: str) -> None:
    for _ in range(2):
        await imported.add("Dup")
    ((field, message),) = await imported.refused(f"name,parent\nAnn,{parent}\nLater,\n")
    assert field == "line 2, parent"
    assert message.startswith(f"{parent!r}: ")
    assert ("give the id" in message) == (parent == "Dup")


async def test_a_chain_as_deep_as_many_windows_is_registered_in_its_order(imported: Import) -> None:
    depth = 200
    rows = [f"{n},{n - 1 if n else ''}" for n in range(depth)]
    assert await imported("\n".join(["name,parent", *rows])) == depth
    assert await imported.parents() == {str(n): str(n - 1) if n else None for n in range(depth)}
    assert imported.progress == [(n + 1, depth) for n in range(depth)]


async def test_a_parent_may_stand_anywhere_in_the_window_before(imported: Import) -> None:
    """Families of one parent and as many children as leave a window's border in every place of a family."""
    names = [f"{family}.{child}" for family in range(2 * IMPORT_REQUESTS_MAX // 7) for child in range(7)]
    rows = [f"{name},{'' if name.endswith('.0') else name[:-1] + '0'}" for name in names]
    assert await imported("\n".join(["name,parent", *rows])) == len(names)
    parents = await imported.parents()
    assert list(parents) == names
    assert parents == {name: None if name.endswith(".0") else name[:-1] + "0" for name in names}


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────


async def test_every_wrong_line_is_named_by_its_number_and_nobody_is_registered(imported: Import) -> None:
    await imported.add("Club")
    rows = ["name,tags,color,parent", "Ann,,,Club", ",,red,", "", "Bob,a|a,,Nobody", "Cid,,,Ann", f"{'x' * 256},,,"]
    assert await imported.refused("\n".join(rows)) == [
        ("line 3, name", "must not be empty"),
        ("line 3, color", "must be 6 hexadecimal characters, without a leading #"),
        ("line 5, parent", "'Nobody': no competitor has this name or id"),
        ("line 7, name", "must have at most 255 characters"),
    ]


async def test_tags_are_judged_as_everywhere(imported: Import) -> None:
    many = "|".join(map(str, range(TAGS_MAX + 1)))
    assert await imported.refused(f"name,tags\nAnn,a|b|a\nBob,{many}\n") == [
        ("line 2, tags", "tag 'a' is given more than once"),
        ("line 3, tags", f"must be at most {TAGS_MAX}"),
    ]


async def test_who_is_below_somebody_refused_is_named_too(imported: Import) -> None:
    assert await imported.refused("name,color,parent\nAnn,red,\nBob,,Ann\n") == [
        ("line 2, color", "must be 6 hexadecimal characters, without a leading #"),
        ("line 3", "it needs line 2, which is refused"),
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "header",
    ["", "\n", "tags,name", "Name", "name,age", "name,tags,tags", "name,name", "name,", "\0"],
)
async def test_the_first_line_must_name_known_columns_once_and_name_first(imported: Import, header: str) -> None:
    assert await imported.refused(f"{header}\nAnn\n" if header else "") == [("", COLUMNS)]


async def test_a_row_of_too_many_or_too_few_fields_is_named(imported: Import) -> None:
    fault = "it has more or fewer fields than the first line has columns"
    rows = ["name,tags", "Ann", "Bob,a,b", "Cid,", "Dan,a,"]
    assert await imported.refused("\n".join(rows)) == [("line 2", fault), ("line 3", fault), ("line 5", fault)]


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ('name,"tags', 1),
        ('name\n"Ann', 2),
        ('name\n"Ann"x\n', 2),
        ("name\nAnn\n" + "x" * 200_000 + "\n", 3),
    ],
)
async def test_what_is_not_csv_is_refused_with_the_line(imported: Import, content: str, number: int) -> None:
    ((_, reason),) = await imported.refused(content)
    assert reason.startswith("The file is not CSV: ")
    assert reason.endswith(f" (line {number}).")


async def test_every_line_that_is_not_a_competitor_in_json_is_named(imported: Import) -> None:
    rows = [
        '{"name": "Ann"}',
        "Ann",
        '"Ann"',
        "[]",
        "{}",
        '{"name": 1}',
        '{"name": "Bob", "age": 3}',
        '{"name": "Bob", "tags": [1]}',
        '{"name": "Bob", "parent": 1.5}',
        '{"name": "Bob"} {"name": "Cid"}',
        '{"name": "' + "\\" + 'ud800"}',
        '{"name":' + "[" * 100_000,
        '{"name": "Bob", "parent": ' + "1" * 5_000 + "}",
    ]
    faults = await imported.refused("\n".join(rows), name="file.ndjson")
    assert [field for field, _ in faults] == [f"line {number}" for number in range(2, len(rows) + 1)]
    assert all(message for _, message in faults)


@pytest.mark.parametrize(
    ("content", "position"),
    [(b"name\nAnn\xff\n", 8), ("name\nZoë\n".encode("latin-1"), 7), ("name\n".encode("utf-16"), 0), (b"\xc0\x80", 0)],
)
async def test_what_is_not_utf_8_is_refused_with_the_place(imported: Import, content: bytes, position: int) -> None:
    assert await imported.refused(content) == [("", f"The file is not UTF-8 (at byte {position}); save it as UTF-8.")]


async def test_only_csv_and_ndjson_that_can_be_read_are_imported(imported: Import, tmp_path: Path) -> None:
    assert await imported.refused("name\nAnn\n", name="file.txt") == [
        ("", "The file must be .csv or .ndjson, or - for standard input.")
    ]
    (tmp_path / "folder.csv").mkdir()
    for name in ("folder.csv", "nowhere.csv"):
        with pytest.raises(Unreadable, match=r"^The file cannot be read: "):
            await imported.file(tmp_path / name)


@pytest.mark.parametrize("name", ["file.csv", "file.ndjson"])
async def test_as_many_competitors_as_the_limit_says_and_not_one_more(
    imported: Import, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(read_competitors, "__defaults__", (10,))
    rows = [f'{{"name": "{n}"}}' if name.endswith("json") else str(n) for n in range(11)]
    header = [] if name.endswith("json") else ["name"]
    assert await imported.refused("\n".join([*header, *rows]), name=name) == [
        ("", "The file has more than 10 lines to import; import that many at a time.")
    ]
    assert await imported("\n".join([*header, *rows[:10], ""]), name=name) == 10


# ── As a whole ──────────────────────────────────────────────────────────────────────────────────────────


async def test_ids_are_those_of_nobody_else(imported: Import, desk: Desk) -> None:
    before = await desk.new_id()
    await imported("name\n" + "".join(f"{n}\n" for n in range(100)))
    after = await desk.new_id()
    async with desk.database.connection() as connection:
        taken = await connection.fetch("SELECT body FROM event WHERE kind <> 'tournament-opened'")
        (fresh,) = await registry.next_ids(connection, 1)
    ids = [body["competitor_id"] for body in (json.loads(row["body"]) for row in taken) if "competitor_id" in body]
    assert len(set(ids)) == 100
    assert not {before, after, fresh} & set(ids)


@pytest.mark.long
async def test_twenty_thousand_competitors_are_imported_while_one_waits(imported: Import) -> None:
    rows = (f"Player {n},a|b,00ff00,{f'Player {n - 1000}' if n >= 1000 else ''}\n" for n in range(20_000))
    content = "name,tags,color,parent\n" + "".join(rows)
    async with asyncio.timeout(60):
        assert await imported(content) == 20_000
    assert imported.progress[-1] == (20_000, 20_000)
    assert await imported.names() == [f"Player {n}" for n in range(20_000)]


async def test_the_refusal_of_what_is_readable_is_another_than_that_of_what_is_not(imported: Import) -> None:
    with pytest.raises(Unacceptable):
        await imported("name\n \n")
    with pytest.raises(Unreadable):
        await imported("name\nAnn,\n")


# ── Again ───────────────────────────────────────────────────────────────────────────────────────────────


FAMILY = "name,tags,color,parent\nClub,,,\nAnn,junior,00ff00,Club\nBob,,,Ann\nAnn,,,\nCid,,,Bob\n"
FAMILY_PARENTS = [("Club", None), ("Ann", "Club"), ("Bob", "Ann"), ("Ann", None), ("Cid", "Bob")]


async def test_a_second_import_of_a_file_changes_nothing_and_says_what_is_there(
    imported: Import, desk: Desk, tournament_id: TournamentId
) -> None:
    first = await imported.result(FAMILY)
    before = await events(desk, tournament_id), await last_id(desk)
    second = await imported.result(FAMILY)
    assert (await events(desk, tournament_id), await last_id(desk)) == before
    assert (first.made, first.already) == (5, 0)
    assert (second.made, second.already) == (0, 5)
    assert second.ids == first.ids == [c.competitor_id for c in before[0]]


async def test_an_import_that_was_interrupted_anywhere_continues_where_it_was(imported: Import) -> None:
    rows = [f"{n},{n - 1 if n else ''}" for n in range(20)]
    content = "\n".join(["name,parent", *rows])
    for stop_at in range(0, 20, 3):
        with pytest.raises(Interrupted) as caught:
            await imported.result(content, stop_at=stop_at)
        assert caught.value.message == (
            f"Interrupted: {stop_at} of the file's 20 competitors are registered. "
            "Import it again: that adds the others, and none twice."
        )
        assert await imported.names() == [str(n) for n in range(stop_at)]
    result = await imported.result(content)
    assert (result.made, result.already) == (2, 18)
    assert await imported.parents() == {str(n): str(n - 1) if n else None for n in range(20)}


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
@given(data=st.data())
async def test_whoever_was_registered_by_whatever_parts_of_a_file_is_registered_once(
    imported: Import, desk: Desk, data: st.DataObject
) -> None:
    """Lines of few names, so that many are alike; first some of them from the beginning, then all, in another form."""
    tournament = await open_new_tournament(desk.database, actor=OPERATOR)
    into = imported.into(tournament)
    names = data.draw(st.lists(st.sampled_from(["Ann", "Bob", " Ann ", "Cid"]), max_size=8))
    rows = [{"name": name, "tags": ["a"] if name == "Cid" else []} for name in names]
    cut = data.draw(st.integers(min_value=0, max_value=len(rows)))
    part = await into.lines(rows[:cut])
    csv = "name,tags\n" + "".join(f"{row['name']},{'|'.join(row['tags'])}\n" for row in rows)
    whole = await into.result(csv)
    assert (part.made, whole.made, whole.already) == (cut, len(rows) - cut, cut)
    assert whole.ids[:cut] == part.ids
    assert [name for name, _, _ in await into.details()] == [name.strip() for name in names]


async def test_lines_may_be_added_corrected_and_moved_and_only_new_ones_are_registered(imported: Import) -> None:
    with pytest.raises(Interrupted):
        await imported.result("name,parent\nClub,\nAnn,Club\nBob,Ann\nZoe,Bob\n", stop_at=2)
    changed = "\ufeffname,color,parent\r\nBob,,Ann\r\nDan,00ff00,\r\nClub,,\r\nAnn,,Club\r\nZoë,,Bob\r\n"
    result = await imported.result(changed)
    assert (result.made, result.already) == (3, 2)
    assert await imported.parents() == {"Club": None, "Ann": "Club", "Bob": "Ann", "Dan": None, "Zoë": "Bob"}


async def test_lines_of_another_file_that_say_the_same_are_the_same_competitors_and_one_by_hand_is_another(
    imported: Import,
) -> None:
    assert await imported("name\nAnn\n") == 1
    result = await imported.result("name\nBob\nAnn\nAnn\n", name="other.csv")
    assert (result.made, result.already) == (2, 1)
    await imported.add("Ann")
    assert [name for name, _, _ in await imported.details()] == ["Ann", "Bob", "Ann", "Ann"]


async def test_what_is_registered_is_not_judged_again(imported: Import) -> None:
    """Its parent's name is that of two by now, and it was itself renamed."""
    with pytest.raises(Interrupted):
        await imported.result("name,parent\nClub,\nAnn,Club\nBob,Ann\nCid,Bob\n", stop_at=3)
    await imported.add("Club")
    await imported.rename("Ann", "Anna")
    await imported.rename("Bob", "Robert")
    result = await imported.result("name,parent\nClub,\nAnn,Club\nBob,Ann\nCid,Bob\nDan,Robert\n")
    assert (result.made, result.already) == (2, 3)
    assert (await imported.parents())["Cid"] == (await imported.parents())["Dan"] == "Robert"


async def test_a_line_that_is_refused_after_others_were_registered_says_how_many_were(imported: Import) -> None:
    with pytest.raises(Interrupted):
        await imported.result("name,parent\nAnn,\nBob,Ann\nCid,Bob\n", stop_at=2)
    with pytest.raises(Unacceptable) as caught:
        await imported("name,color,parent\nAnn,,\nBob,,Ann\nCid,red,Bob\n")
    assert caught.value.message == (
        "Nothing was imported now; 2 of the file's 3 competitors were registered before; correct these lines."
    )
    assert [fault.field for fault in caught.value.faults] == ["line 4, color"]
    assert await imported.names() == ["Ann", "Bob"]


async def test_two_imports_of_one_file_at_once_register_everybody_once_and_below_whom_there_is(
    imported: Import, dsn: str, tournament_id: TournamentId, tmp_path: Path
) -> None:
    rows = [f"{n},{n - 7 if n >= 7 else ''}" for n in range(400)]
    content = "\n".join(["name,parent", *rows])
    async with desks_at(dsn) as desks:
        imports_ = []
        for number, one in enumerate(desks):
            (tmp_path / str(number)).mkdir()
            imports_.append(Import(one, tournament_id, tmp_path / str(number)))
        both = await asyncio.gather(*(one.result(content) for one in imports_))
    assert sum(result.made for result in both) == 400
    assert both[0].ids == both[1].ids
    parents = await imported.parents()
    assert len(parents) == 400
    assert parents == {str(n): str(n - 7) if n >= 7 else None for n in range(400)}


async def test_an_import_does_not_take_for_others_whom_another_import_of_the_file_has_just_registered(
    imported: Import, dsn: str, tournament_id: TournamentId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what it finds to be registered and what it judges by."""
    content = "name,parent\nAnn,\nBob,Ann\nCid,Bob\n"
    draw = registry.next_ids
    async with desk_at(dsn) as desk:
        (tmp_path / "other").mkdir()
        other = Import(desk, tournament_id, tmp_path / "other")

        async def after_the_other(connection: asyncpg.Connection, count: int) -> list[int]:
            monkeypatch.setattr(registry, "next_ids", draw)
            assert (await other.result(content)).made == 3
            return await draw(connection, count)

        monkeypatch.setattr(registry, "next_ids", after_the_other)
        assert (await imported.result(content)).already == 3
    assert await imported.parents() == {"Ann": None, "Bob": "Ann", "Cid": "Bob"}


@pytest.mark.long
async def test_an_import_that_the_database_lets_down_says_so_and_continues_when_it_is_back(
    imported: Import, dsn: str, tournament_id: TournamentId
) -> None:
    with pytest.raises(Interrupted):
        await imported.result("name,parent\nAnn,\nBob,Ann\nCid,Bob\n", stop_at=1)
    async with holding(dsn, HOLD_HEAD, tournament_id):
        with pytest.raises(BrokenOff) as caught:
            await imported("name,parent\nAnn,\nBob,Ann\nCid,Bob\n")
    assert caught.value.message == (
        "The import failed (database_unavailable): at least 1 of the file's 3 competitors are registered. "
        "Import it again: that adds the others, and none twice."
    )
    assert await imported("name,parent\nAnn,\nBob,Ann\nCid,Bob\n") == 2
    assert await imported.parents() == {"Ann": None, "Bob": "Ann", "Cid": "Bob"}


async def test_a_line_whose_event_was_set_aside_is_named(
    imported: Import, desk: Desk, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    await imported("name\nAnn\n")
    sequence, digest = await owner.fetchrow(
        "SELECT last_sequence, digest FROM block WHERE tournament_id = $1 ORDER BY last_sequence DESC LIMIT 1",
        tournament_id,
    )
    await record(owner, tournament_id, EventSetAside(sequence=sequence, digest=digest.hex()))
    async with desk.live_pool.pinned(tournament_id) as live:
        desk.live_pool.drop(live)  # as in a process that has not folded the event
    assert await imported.refused("name\nBob\nAnn\n") == [
        ("line 3", f"it was registered as event {sequence}, which the operator has set aside")
    ]


async def test_a_key_that_was_used_for_something_else_is_named_with_its_line(
    imported: Import, desk: Desk, tournament_id: TournamentId
) -> None:
    async with desk.database.connection() as connection:
        secret = await reading.secret_of(connection, tournament_id)
    (ann,) = prints_of({3: CompetitorFields(name="Ann", tags="a|b", color="00ff00", parent=7)}, secret)
    async with desk.live_pool.pinned(tournament_id) as live:
        competitor_id = CompetitorId(await desk.new_id())
        other = RegisterCompetitor(competitor_id=competitor_id, name="Eve")
        await desk.submit(live, other, actor=OPERATOR, idempotency_key=ann.key, fingerprint=b"another")
    assert await imported.refused("name,tags,color,parent\nBob,,,\nAnn,a|b,00ff00,7\n") == [
        ("line 3", f"its key {ann.key} was used for another request")
    ]


SECRET = b"0123456789abcdef"  # of a tournament
ANN_KEY = "import-bac37ad369b327093c1dad728a1a83758a06d53009988840728778e8e404a169"


def test_the_key_of_a_line_is_for_ever_the_same() -> None:
    """Or the next version would register everybody again. Neither the file's form nor blanks make a difference."""
    ann = CompetitorFields(name=" Ann", tags="a | b|", color="00ff00", parent=7)
    prints = prints_of({2: ann, 5: CompetitorFields(name="Ann", tags=["a", "b"], color="00ff00", parent="7 ")}, SECRET)
    assert prints[0].key == ANN_KEY
    assert prints[1].key == "import-bac37ad369b32709b47bc70199409aee0dbe1a3cbd439747b4335d0334f20d25"
    assert [one.key for one in prints] == [f"import-{one.fingerprint.hex()}" for one in prints]


@given(
    st.lists(
        st.builds(CompetitorFields, name=TEXTS, tags=st.lists(TEXTS, max_size=2), color=TEXTS, parent=TEXTS), max_size=6
    )
)
def test_lines_that_say_something_else_have_other_keys(lines: list[CompetitorFields]) -> None:
    prints = prints_of(dict(enumerate(lines)), b"secret")
    assert len({one.key for one in prints}) == len(lines)


# ── As its users have it ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.timeout(300)
@pytest.mark.long
async def test_an_import_that_is_cut_off_at_random_registers_everybody_once_and_in_order(
    tallybook: Tallybook, dsn: str, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    cut = await cut_import(["--database-url", dsn], dsn, slug, tmp_path, Random(3), count=1_000, cuts=3)
    assert {one.how for one in cut.cuts if one.code} == {signal.SIGINT, signal.SIGKILL}
    assert cut.right, cut


@pytest.mark.timeout(300)
@pytest.mark.long
async def test_an_import_into_an_embedded_database_that_is_cut_off_continues(tmp_path: Path) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    slug = said("tournament", "create", "Cup", *where).out.strip()
    dsn = f"postgresql://tallybook@/tallybook?host={tmp_path / 'data' / 'socket.alone'}&port=5432"
    cut = await cut_import(where, dsn, slug, tmp_path, Random(1), count=300, cuts=1)
    assert cut.right, cut


async def test_ctrl_c_before_the_import_has_begun_says_that_nobody_was_registered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with (data / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with started(tmp_path, "competitor", "import", "cup", "a.csv", "--data-dir", str(data)) as waiting:
            await until(lambda: str(data / "lock") in opened_by(waiting.pid))
            waiting.press_ctrl_c()
            assert await waiting.ended() == 130
            assert (waiting.out, waiting.err) == ("", "Interrupted before this command imported anything.\n")


async def test_it_is_said_how_many_were_registered_and_with_json_also_their_ids(
    tallybook: Tallybook, dsn: str, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    file = tmp_path / "some.csv"
    command = ["competitor", "import", slug, str(file), "--database-url", dsn]
    file.write_text("name\nAnn\nBob\n")
    first = said(*command, "--json")
    ids = [one["id"] for one in await tallybook.json("competitor", "list", slug)]
    assert (first.json, first.err) == ({"registered": 2, "already_registered": 0, "ids": ids}, "")
    file.write_text("name\nAnn\nCid\nBob\n")
    second = said(*command)
    assert second == Said(0, "", "1 competitor registered; 2 of the file were already\n")
    assert said(*command) == Said(0, "", "nothing to do: all 3 competitors of the file are registered already\n")
    _, _, cid = [one["id"] for one in await tallybook.json("competitor", "list", slug)]
    third = said(*command, "--json")
    assert (third.json, third.err) == ({"registered": 0, "already_registered": 3, "ids": [ids[0], cid, ids[1]]}, "")


@pytest.mark.parametrize("content", ["name;tags\nAnn;a\nBob;\n", '\n{"name":"Ann","tags":"a"}\n{"name":"Bob"}\n'])
async def test_standard_input_may_have_either_form(tallybook: Tallybook, tmp_path: Path, content: str) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    file = tmp_path / "some"
    file.write_text(content)
    ended = said("competitor", "import", slug, "-", "--database-url", tallybook.dsn, stdin=file)
    assert ended == Said(0, "", "2 competitors registered\n")
    listed = await tallybook.json("competitor", "list", slug)
    assert [(one["name"], one["tags"]) for one in listed] == [("Ann", ["a"]), ("Bob", [])]


def test_ctrl_c_ends_a_command_that_waits_for_standard_input(dsn: str) -> None:
    slug = said("tournament", "create", "Cup", "--database-url", dsn).out.strip()
    command = [TALLYBOOK, "competitor", "import", slug, "-", "--database-url", dsn]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdin is not None
        process.stdin.write(b"name\n" * 100_000)  # more than a pipe holds: it is reading
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert said("competitor", "list", slug, "--json", "--database-url", dsn).json == []


async def events(desk: Desk, tournament_id: TournamentId) -> list[CompetitorRegistered]:
    found = await recorded(desk.database, tournament_id)
    return [event for event in found if isinstance(event, CompetitorRegistered)]


async def last_id(desk: Desk) -> int:
    """The last that was drawn; without drawing one."""
    async with desk.database.connection() as connection:
        drawn: int = await connection.fetchval("SELECT pg_sequence_last_value('resource_id')")
    return drawn
