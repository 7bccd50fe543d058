"""Competitors from files: all of them in the order of the file, nobody twice, and every wrong line named."""

import asyncio
import json
from typing import Any
from unicodedata import normalize

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.desk.desk import Desk
from api.imports.competitors import CompetitorFields, Competitors, read_competitors
from api.imports.importer import IMPORT_REQUESTS_MAX, Imported, Interrupted, asked
from api.imports.kinds import Print
from api.imports.rows import FileRow, Reader, read_csv, read_ndjson
from api.interface.names import Names
from engine.domain.commands import ChangeCompetitor, EraseCompetitor, RegisterCompetitor
from engine.domain.errors import Unacceptable, Unreadable
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, TAGS_MAX, CompetitorId, TournamentId
from engine.log import registry
from projections.board.board import Board
from tests.api.imports.importing import Importing
from tests.desks import desk_at, desks_at
from tests.tournaments import open_new_tournament

BOM = b"\xef\xbb\xbf"
TEXTS = st.sampled_from(["", "a", "b", "a b", "1"])
COLUMNS = "The first line must name the columns: name, then any of tags, color, parent, key."
CORRECT = "Nothing was imported; correct these lines."


def prints_of(fields: dict[int, CompetitorFields], secret: bytes) -> list[Print]:
    """What the lines of a file are known by."""
    kind = Competitors([FileRow(*one) for one in fields.items()])
    return [line.prints[0] for line in finished(asked(kind, Board(), secret))[0]]


class Import(Importing):
    """A tournament with nobody in it."""

    def __init__(self, desk: Desk, tournament_id: TournamentId) -> None:
        super().__init__(desk, tournament_id, _read)

    async def ndjson(self, *rows: object) -> Imported:
        return await self("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), form=read_ndjson)

    async def faults(self, content: str | bytes, **how: Any) -> list[tuple[str, str]]:
        """Why it is refused: the faults, if there are any."""
        refusal = await self.refusal(content, **how)
        if not refusal.faults:
            return [("", refusal.message)]
        assert refusal.message == "Nothing was imported; correct these lines."
        return [(fault.field, fault.message) for fault in refusal.faults]

    async def add(self, name: str) -> int:
        """Registers one by hand."""
        competitor_id = CompetitorId(await self.desk.new_id())
        await self.submit(RegisterCompetitor(competitor_id=competitor_id, name=name))
        return competitor_id

    async def rename(self, name: str, to: str) -> None:
        async with self.live() as live:
            (competitor_id,) = [i for i, c in live.board.competitors.items() if c.name == name]
        await self.submit(ChangeCompetitor(competitor_id=competitor_id, name=to))

    async def names(self) -> list[str]:
        return list(await self.parents())

    async def parents(self) -> dict[str, str | None]:
        """The parent of each competitor, in the order of registration; for names that are not shared."""
        async with self.live() as live:
            everybody = live.board.competitors
            return {c.name: None if c.parent_id is None else everybody[c.parent_id].name for c in everybody.values()}

    async def details(self) -> list[tuple[str, tuple[str, ...], str]]:
        """Name, tags and color."""
        async with self.live() as live:
            return [(c.name, c.tags, c.color) for c in live.board.competitors.values()]


def _read(content: bytes, _: Names, form: Reader = read_csv, leave_out: bool = False) -> Competitors:
    return read_competitors(form(content), leave_out=leave_out)


@pytest.fixture
def imported(desk: Desk, tournament_id: TournamentId) -> Import:
    return Import(desk, tournament_id)


# ── What a file may hold ────────────────────────────────────────────────────────────────────────────────


async def test_names_alone_are_enough(imported: Import) -> None:
    assert (await imported("name\nAnn\n  Bob \nAnn of the Hill\n")).made == 3
    assert await imported.details() == [
        ("Ann", (), "000000"),
        ("Bob", (), "000000"),
        ("Ann of the Hill", (), "000000"),
    ]


async def test_csv_has_tags_color_and_parent_in_any_order(imported: Import) -> None:
    assert (await imported('name,parent,color,tags\nAnn,,,\n"Bob, ""B""",Ann,C0ffee,junior | left-handed|\n')).made == 2
    assert await imported.details() == [
        ("Ann", (), "000000"),
        ('Bob, "B"', ("junior", "left-handed"), "C0ffee"),
    ]
    assert (await imported.parents())['Bob, "B"'] == "Ann"


async def test_ndjson_has_the_same_with_tags_also_as_an_array(imported: Import) -> None:
    ann = {"name": "Ann", "tags": ["junior", "with | in it", " "], "color": "00ff00"}
    assert (await imported.ndjson(ann, {"tags": "a|b", "name": "Bob", "parent": "Ann"}, {"name": "Cid"})).made == 3
    assert await imported.details() == [
        ("Ann", ("junior", "with | in it"), "00ff00"),
        ("Bob", ("a", "b"), "000000"),
        ("Cid", (), "000000"),
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_csv_may_have_semicolons_as_spreadsheets_write_it(imported: Import, line_end: str) -> None:
    rows = ["name;tags;parent", "Ann;a|b;", '"Bob, the 2nd";;Ann', "Cid; c ;"]
    assert (await imported(f"\ufeff{line_end.join(rows)}{line_end}")).made == 3
    assert await imported.names() == ["Ann", "Bob, the 2nd", "Cid"]
    assert (await imported(line_end.join(rows).replace(";", ","))).made == 0, "they say the same"


async def test_csv_and_ndjson_of_the_same_people_are_the_same(imported: Import) -> None:
    names = ["Zoë", "李四", "🏆", "O'Neil; DROP", 'q"q', "a,b", "|", "#1"]
    await imported("name\n" + "".join('"{}"\n'.format(name.replace('"', '""')) for name in names))
    assert [name for name, _, _ in await imported.details()] == names
    assert (await imported.ndjson(*({"name": name} for name in names))).made == 0


@pytest.mark.parametrize("row", ['{"name":"Ann","name":"Bob"}', '{"name":"Ann","tags":["a"],"\\u0074ags":[]}'])
async def test_a_line_that_gives_a_field_twice_is_refused(imported: Import, row: str) -> None:
    ((place, message),) = await imported.faults(row, form=read_ndjson)
    assert place == "line 1"
    assert message in ("it has the field 'name' more than once", "it has the field 'tags' more than once")
    assert await imported.names() == []


@pytest.mark.parametrize("name", ["a\u2028b", "a\u2029b"])
async def test_only_line_ends_end_a_line(imported: Import, name: str) -> None:
    await imported(f"name\n{name}\n")
    await imported.ndjson({"name": f"json {name}"})
    assert await imported.names() == [name, f"json {name}"]


async def test_a_name_with_a_control_character_is_refused_and_not_split_or_joined(
    imported: Import, subtests: pytest.Subtests
) -> None:
    for character in ["\n", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\t", "\0"]:
        with subtests.test(character):
            ((_, message),) = await imported.faults(f'name\n"A{character}B"\n')
            assert message == f"must not contain the control character U+{ord(character[0]):04X}"
            row = json.dumps({"name": f"A{character}B"}, ensure_ascii=character < " ")
            assert await imported.faults(row, form=read_ndjson) == [("line 1, name", message)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_may_end_as_on_any_system_and_the_last_one_not_at_all(imported: Import, end: str) -> None:
    assert (await imported(end.join(["name,tags", "Ann,a", "", "Bob,b"]))).made == 2
    assert await imported.details() == [("Ann", ("a",), "000000"), ("Bob", ("b",), "000000")]


async def test_ndjson_lines_may_be_blank_and_end_with_a_carriage_return(imported: Import) -> None:
    assert (await imported('\r\n{"name": "Ann"}\r\n \n{"name": "Bob"}', form=read_ndjson)).made == 2
    assert await imported.names() == ["Ann", "Bob"]


@pytest.mark.parametrize(("content", "form"), [(b"name\nAnn\n", read_csv), (b'{"name":"Ann"}\n', read_ndjson)])
async def test_a_byte_order_mark_is_not_part_of_the_file(imported: Import, content: bytes, form: Reader) -> None:
    assert (await imported(BOM + content, form=form)).made == 1
    assert await imported.names() == ["Ann"]


@pytest.mark.parametrize(("content", "form"), [("name,tags\n", read_csv), ("", read_ndjson), ("\n \n", read_ndjson)])
async def test_a_file_of_nobody_registers_nobody(imported: Import, content: str, form: Reader) -> None:
    assert (await imported(content, form=form)).made == 0
    assert await imported.names() == []


# ── Parents ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_parent_is_a_name_or_an_id_of_the_tournament_or_a_name_of_an_earlier_line(imported: Import) -> None:
    club = await imported.add("Club")
    rows = ["name,parent", "Team A,Club", f"Team B,{club}", "Ann, Team A ", f"Bob,id:{club}"]
    assert (await imported("\n".join(rows))).made == 4
    assert (await imported.ndjson({"name": "Cid", "parent": club}, {"name": "Dan", "parent": "Cid"})).made == 2
    assert await imported.parents() == {
        "Club": None,
        "Team A": "Club",
        "Team B": "Club",
        "Ann": "Team A",
        "Bob": "Club",
        "Cid": "Club",
        "Dan": "Cid",
    }


async def test_a_parent_is_also_found_by_a_former_name_that_nobody_has_now(imported: Import) -> None:
    await imported.add("Reds")
    await imported.rename("Reds", "Blues")
    await imported("name,parent\nAnn,Reds\n")
    assert (await imported.parents())["Ann"] == "Blues"


async def test_a_number_that_is_an_id_and_the_name_of_another_is_refused_as_a_parent(imported: Import) -> None:
    club = await imported.add("Club")
    rows = f"name,parent\n{club},\nAnn,{{}}\n"
    ((place, message),) = await imported.faults(rows.format(club))
    assert place == "line 3, parent"
    assert message == (
        f"'{club}': {club} is the id of competitor 'Club' and the name of competitor on line 2; write id:{club} "
        f"or name:{club}."
    )
    other = await imported.add(str(club))
    ((_, message),) = await imported.faults(f"name,parent\nAnn,{club}\n")
    assert f"the name of competitor {other};" in message
    await imported(f"name,parent\nAnn,name:{club}\nBen,id:{club}\n")
    assert await imported.parents() == {
        **{"Club": None, str(club): None},
        **{"Ann": str(club), "Ben": "Club"},
    }


async def test_numbers_as_names_in_a_file_are_not_taken_for_the_ids_of_its_lines(imported: Import) -> None:
    """Whoever is called by the id of another line was so before there was that id: or nothing would resume."""
    first = await imported("name\nA\nB\n")
    drawn = range(max(first.ids) + 1, max(first.ids) + 40)
    content = "\n".join(["name,parent", *[f"{n}," for n in drawn], *[f"Kid {n},{n}" for n in drawn]])
    with pytest.raises(Interrupted):
        await imported(content, stop_at=len(drawn))
    await imported(content)
    parents = await imported.parents()
    assert {kid: parent for kid, parent in parents.items() if kid.startswith("Kid")} == {
        f"Kid {n}": str(n) for n in drawn
    }


async def test_a_file_with_composed_accents_is_that_with_decomposed_ones(imported: Import) -> None:
    rows = "name,tags,parent\nZo\u00eb,jun\u00edor,\nAnn,,Zoe\u0308\n"
    assert (await imported(rows)).made == 2
    assert (await imported(normalize("NFD", rows))).made == 0
    assert (await imported(normalize("NFD", "name,parent\nBob,Zo\u00eb\n"))).made == 1
    assert (await imported.parents())["Bob"] == "Zo\u00eb"


@pytest.mark.parametrize("name", ["\u200b", "\u3164\u3164", " \u2800 ", "\u00ad"])
async def test_a_name_that_cannot_be_seen_is_refused(imported: Import, name: str) -> None:
    fault = "must contain a character that can be seen"
    assert await imported.faults(f"name,tags\nAnn,\n{name},ok|{name}\n") == [
        ("line 3, name", fault),
        ("line 3, tags", fault),
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "parent",
    ["Nobody", "Later", "Ann", "7", "-1", "1.0", "٣", "9" * 19, "9" * 40, "1" + "0" * 5_000, "Dup"],
)
async def test_a_parent_that_is_not_one_competitor_is_refused(imported: Import, parent: str) -> None:
    for _ in range(2):
        await imported.add("Dup")
    ((field, message),) = await imported.faults(f"name,parent\nAnn,{parent}\nLater,\n")
    assert field == "line 2, parent"
    assert message.startswith(f"{parent!r}: ")
    assert ("give the id" in message) == (parent == "Dup")


async def test_a_chain_as_deep_as_many_windows_is_registered_in_its_order(imported: Import) -> None:
    depth = 200
    rows = [f"{n},{n - 1 if n else ''}" for n in range(depth)]
    assert (await imported("\n".join(["name,parent", *rows]))).made == depth
    assert await imported.parents() == {str(n): str(n - 1) if n else None for n in range(depth)}
    assert imported.progress == [(n + 1, depth) for n in range(depth)]


async def test_a_parent_may_stand_anywhere_in_the_window_before(imported: Import) -> None:
    """Families of one parent and as many children as leave a window's border in every place of a family."""
    names = [f"{family}.{child}" for family in range(2 * IMPORT_REQUESTS_MAX // 7) for child in range(7)]
    rows = [f"{name},{'' if name.endswith('.0') else name[:-1] + '0'}" for name in names]
    assert (await imported("\n".join(["name,parent", *rows]))).made == len(names)
    parents = await imported.parents()
    assert list(parents) == names
    assert parents == {name: None if name.endswith(".0") else name[:-1] + "0" for name in names}


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────


async def test_every_wrong_line_is_named_by_its_number_and_nobody_is_registered(imported: Import) -> None:
    await imported.add("Club")
    rows = ["name,tags,color,parent", "Ann,,,Club", ",,red,", "", "Bob,a|a,,Nobody", "Cid,,,Ann", f"{'x' * 256},,,"]
    assert await imported.faults("\n".join(rows)) == [
        ("line 3, name", "must not be empty"),
        ("line 3, color", "must be 6 hexadecimal characters, without a leading #"),
        ("line 5, parent", "'Nobody': no competitor has this name or id"),
        ("line 7, name", "must have at most 255 characters"),
    ]


async def test_tags_are_judged_as_everywhere(imported: Import) -> None:
    many = "|".join(map(str, range(TAGS_MAX + 1)))
    assert await imported.faults(f"name,tags\nAnn,a|b|a\nBob,{many}\n") == [
        ("line 2, tags", "tag 'a' is given more than once"),
        ("line 3, tags", f"must be at most {TAGS_MAX}"),
    ]


async def test_a_competitor_below_a_refused_one_is_not_named_for_that(imported: Import) -> None:
    assert await imported.faults("name,color,parent\nAnn,red,\nBob,,Ann\nCid,,Bob\n") == [
        ("line 2, color", "must be 6 hexadecimal characters, without a leading #"),
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "header",
    ["", "\n", ",", "tags,name", "Name", "name,tags,tags", "name,name", "\0"],
)
async def test_the_first_line_must_name_known_columns_once_and_name_first(imported: Import, header: str) -> None:
    assert await imported.faults(f"{header}\nAnn\n" if header else "") == [("", COLUMNS)]


async def test_columns_that_mean_nothing_are_named_and_left_out_on_request(imported: Import) -> None:
    content = "name;born;tags;E-mail;\nAnn;2001;a;ann@x;\nBob;;;;\n"
    assert await imported.faults(content) == [
        ("", "Competitors have no 'born', 'E-mail'. Correct the first line, or leave such columns out (--leave-out).")
    ]
    assert (await imported(content, leave_out=True)).made == 2
    assert (await imported("name,tags\nAnn,a\nBob,\n")).already == 2
    await imported.ndjson({"name": "Cid"})
    row = '{"name": "Cid", "born": 1}'
    assert [field for field, _ in await imported.faults(row, form=read_ndjson)] == ["line 1"]
    assert (await imported(row, form=read_ndjson, leave_out=True)).already == 1
    assert await imported.faults("born\n2001\n", leave_out=True) == [("", COLUMNS)]


async def test_a_row_of_too_many_or_too_few_fields_is_named(imported: Import) -> None:
    fault = "it has more or fewer fields than the first line has columns"
    rows = ["name,tags", "Ann", "Bob,a,b", "Cid,", "Dan,a,,x"]
    assert await imported.faults("\n".join(rows)) == [("line 2", fault), ("line 3", fault), ("line 5", fault)]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("name;tags;\r\nAnn;a;\r\nBob;;\r\n;;\r\nCid;b\r\n;;\r\n ; ;\r\n", 8),
        ("\ufeffsep=;\r\nname;tags\r\nAnn;a\r\nBob;\r\nCid;b\r\n", 6),
        ("sep=,\nname,tags\nAnn,a\nBob,\nCid,b\n", 6),
        ('"sep=;";\r\nname;tags;\r\nAnn;a;\r\nBob;;\r\nCid;b;;;\r\n', 6),
    ],
)
async def test_what_spreadsheets_add_to_csv_says_nothing(imported: Import, content: str, wrong: int) -> None:
    assert await imported.faults(f"{content}Dan\n") == [
        (f"line {wrong}", "it has more or fewer fields than the first line has columns")
    ]
    assert (await imported(content)).made == 3
    assert await imported.names() == ["Ann", "Bob", "Cid"]


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
    ((_, reason),) = await imported.faults(content)
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
    faults = await imported.faults("\n".join(rows), form=read_ndjson)
    assert [field for field, _ in faults] == [f"line {number}" for number in range(2, len(rows) + 1)]
    assert all(message for _, message in faults)


async def test_what_is_not_utf_8_is_refused_with_the_place(imported: Import, subtests: pytest.Subtests) -> None:
    for content, position in [
        (b"name\nAnn\xff\n", 8),
        ("name\nZoë\n".encode("latin-1"), 7),
        ("name\n".encode("utf-16"), 0),
        (b"\xc0\x80", 0),
    ]:
        with subtests.test(str(content)):
            assert await imported.faults(content) == [
                ("", f"The file is not UTF-8 (at byte {position}); save it as UTF-8.")
            ]


@pytest.mark.parametrize("form", [read_csv, read_ndjson])
async def test_as_many_competitors_as_the_limit_says_and_not_one_more(
    imported: Import, monkeypatch: pytest.MonkeyPatch, form: Reader
) -> None:
    monkeypatch.setattr(read_competitors, "__defaults__", (10,))
    rows = [str(n) if form is read_csv else f'{{"name": "{n}"}}' for n in range(11)]
    header = ["name"] if form is read_csv else []
    assert await imported.faults("\n".join([*header, *rows]), form=form) == [
        ("", "The file has more than 10 lines to import; import that many at a time.")
    ]
    assert (await imported("\n".join([*header, *rows[:10], ""]), form=form)).made == 10


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
        assert (await imported(content)).made == 20_000
    assert imported.progress[-1] == (20_000, 20_000)
    assert await imported.names() == [f"Player {n}" for n in range(20_000)]


async def test_the_refusal_of_what_is_readable_is_another_than_that_of_what_is_not(imported: Import) -> None:
    with pytest.raises(Unacceptable):
        await imported("name,color\nAnn,red\n")
    with pytest.raises(Unreadable):
        await imported("name\nAnn,a\n")


# ── Again ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_import_that_was_interrupted_anywhere_continues_where_it_was(imported: Import) -> None:
    rows = [f"{n},{n - 1 if n else ''}" for n in range(20)]
    content = "\n".join(["name,parent", *rows])
    for stop_at in range(0, 20, 3):
        with pytest.raises(Interrupted):
            await imported(content, stop_at=stop_at)
        assert await imported.names() == [str(n) for n in range(stop_at)]
    result = await imported(content)
    assert (result.made, result.already) == (2, 18)
    assert await imported.parents() == {str(n): str(n - 1) if n else None for n in range(20)}


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
@given(data=st.data())
async def test_a_competitor_registered_by_any_parts_of_a_file_is_registered_once(
    desk: Desk, data: st.DataObject
) -> None:
    """Lines of few names, so that many are alike; first some of them from the beginning, then all, in another form."""
    tournament = await open_new_tournament(desk.database, actor=OPERATOR)
    into = Import(desk, tournament)
    names = data.draw(st.lists(st.sampled_from(["Ann", "Bob", " Ann ", "Cid"]), max_size=8))
    rows = [{"name": name, "tags": ["a"] if name == "Cid" else []} for name in names]
    cut = data.draw(st.integers(min_value=0, max_value=len(rows)))
    part = await into.ndjson(*rows[:cut])
    csv = "name,tags\n" + "".join(f"{row['name']},{'|'.join(row['tags'])}\n" for row in rows)
    whole = await into(csv)
    assert (part.made, whole.made, whole.already) == (cut, len(rows) - cut, cut)
    assert whole.ids[:cut] == part.ids
    assert [name for name, _, _ in await into.details()] == [name.strip() for name in names]


async def test_lines_may_be_added_corrected_and_moved_and_only_new_ones_are_registered(imported: Import) -> None:
    with pytest.raises(Interrupted):
        await imported("name,parent\nClub,\nAnn,Club\nBob,Ann\nZoe,Bob\n", stop_at=2)
    changed = "\ufeffname,color,parent\r\nBob,,Ann\r\nDan,00ff00,\r\nClub,,\r\nAnn,,Club\r\nZoë,,Bob\r\n"
    result = await imported(changed)
    assert (result.made, result.already) == (3, 2)
    assert await imported.parents() == {"Club": None, "Ann": "Club", "Bob": "Ann", "Dan": None, "Zoë": "Bob"}


async def test_lines_of_another_file_that_say_the_same_are_the_same_competitors_and_one_by_hand_is_another(
    imported: Import,
) -> None:
    assert (await imported("name\nAnn\n")).made == 1
    result = await imported("name\nBob\nAnn\nAnn\n")
    assert (result.made, result.already) == (2, 1)
    await imported.add("Ann")
    assert [name for name, _, _ in await imported.details()] == ["Ann", "Bob", "Ann", "Ann"]


async def test_what_is_registered_is_not_judged_again(imported: Import) -> None:
    """Its parent's name is that of two by now, and it was itself renamed."""
    with pytest.raises(Interrupted):
        await imported("name,parent\nClub,\nAnn,Club\nBob,Ann\nCid,Bob\n", stop_at=3)
    await imported.add("Club")
    await imported.rename("Ann", "Anna")
    await imported.rename("Bob", "Robert")
    result = await imported("name,parent\nClub,\nAnn,Club\nBob,Ann\nCid,Bob\nDan,Robert\n")
    assert (result.made, result.already) == (2, 3)
    assert (await imported.parents())["Cid"] == (await imported.parents())["Dan"] == "Robert"


async def test_a_line_that_is_refused_after_others_were_registered_says_how_many_were(imported: Import) -> None:
    with pytest.raises(Interrupted):
        await imported("name,parent\nAnn,\nBob,Ann\nCid,Bob\n", stop_at=2)
    with pytest.raises(Unacceptable) as caught:
        await imported("name,color,parent\nAnn,,\nBob,,Ann\nCid,red,Bob\n")
    assert caught.value.message == (
        "Nothing was imported now; 2 of the file's 3 competitors were registered before; correct these lines."
    )
    assert [fault.field for fault in caught.value.faults] == ["line 4, color"]
    assert await imported.names() == ["Ann", "Bob"]


async def test_two_imports_of_one_file_at_once_register_everybody_once_and_below_whom_there_is(
    imported: Import, dsn: str, tournament_id: TournamentId
) -> None:
    rows = [f"{n},{n - 7 if n >= 7 else ''}" for n in range(400)]
    content = "\n".join(["name,parent", *rows])
    async with desks_at(dsn) as desks:
        both = await asyncio.gather(*(Import(one, tournament_id)(content) for one in desks))
    assert sum(result.made for result in both) == 400
    assert both[0].ids == both[1].ids
    parents = await imported.parents()
    assert len(parents) == 400
    assert parents == {str(n): str(n - 7) if n >= 7 else None for n in range(400)}


async def test_an_import_does_not_take_for_others_whom_another_import_of_the_file_has_just_registered(
    imported: Import, dsn: str, tournament_id: TournamentId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what it finds to be registered and what it judges by."""
    content = "name,parent\nAnn,\nBob,Ann\nCid,Bob\n"
    draw = registry.next_ids
    async with desk_at(dsn) as desk:
        other = Import(desk, tournament_id)

        async def after_the_other(connection: asyncpg.Connection, count: int) -> list[int]:
            monkeypatch.setattr(registry, "next_ids", draw)
            assert (await other(content)).made == 3
            return await draw(connection, count)

        monkeypatch.setattr(registry, "next_ids", after_the_other)
        assert (await imported(content)).already == 3
    assert await imported.parents() == {"Ann": None, "Bob": "Ann", "Cid": "Bob"}


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


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_line_with_a_key_corrects_the_competitor_that_has_it(imported: Import) -> None:
    async def outcome(content: str) -> tuple[int, int, int]:
        done = await imported(content)
        return done.made, done.corrected, done.already

    file = "name,tags,parent,key\nReds,,,T1\nAnn,u18,key:T1,7\nBob,,Reds,8\n"
    assert await outcome(file) == (3, 0, 0)
    assert await outcome(file) == (0, 0, 3)
    renamed = file.replace("Reds,,,", "Blues,,,").replace("Ann,u18", "Anna,u20|vip").replace(",Reds,", ",key:T1,")
    assert await outcome(renamed) == (0, 2, 1)
    assert await outcome(renamed) == (0, 0, 3)
    async with imported.live() as live:
        blues, anna, bob = live.board.competitors.values()
    assert (blues.name, anna.name, anna.tags, anna.key, bob.key) == ("Blues", "Anna", ("u20", "vip"), "7", "8")
    assert blues.former == ("Reds",)
    assert await imported.faults("name,key\nCy,9\nDee,9\n") == [("line 3, key", "an earlier line has this key")]


async def test_a_file_that_gets_keys_gives_them_to_those_with_the_names(imported: Import) -> None:
    ann, *others = await imported.add("Ann"), await imported.add("Bob"), await imported.add("Bob")
    done = await imported("name,key\nAnn,7\nCy,9\n")
    assert (done.made, done.corrected, done.ids[0]) == (1, 1, ann)
    ((line, why),) = await imported.faults("name,key\nBob,8\n")
    assert (line, why) == (
        "line 2, name",
        f"2 competitors have this name and no key; give one of them this key: {others[0]}, {others[1]}",
    )
    assert (await imported("name,key\nAnn,70\n")).made == 1, "the key tells her apart from the other Ann"


async def test_a_line_with_a_key_does_not_register_an_erased_competitor_again(imported: Import) -> None:
    (ann,) = (await imported("name,key\nAnn,7\n")).ids
    await imported.submit(EraseCompetitor(competitor_id=CompetitorId(ann)))
    done = await imported("name,key\nAnn,7\n")
    assert (done.made, done.corrected, done.ids) == (0, 0, [ann])
