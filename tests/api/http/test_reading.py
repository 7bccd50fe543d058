"""What comes in over HTTP is read strictly and within bounds, into one command or a list of every fault."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, structs

from api.desk.fingerprints import fingerprint
from api.http import forms
from api.http.errors import BodyTooLarge
from api.http.forms import Form
from api.interface import operations, paging
from api.interface.declarations import Read, Recall, Write
from api.interface.fields import Field, FieldMisread, FormReader, read_query
from api.interface.paging import PageQuestion
from engine.domain import commands
from engine.domain.commands import Command
from engine.domain.errors import Refusal, Unacceptable, Unreadable
from engine.domain.events import Delta
from engine.domain.ids import parse_id
from engine.domain.terms import (
    DELTA_MAX,
    ID_MAX,
    PARTICIPANTS_MAX,
    RESULT_MAX,
    TAGS_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sort,
    UnityId,
)
from tests.api.asking import text_of
from tests.api.rendered import BY_NAME

OPERATIONS: dict[str, Write] = {one.operation_id: one for one in operations.OPERATIONS if isinstance(one, Write)}
LEAST: dict[str, Form] = {
    name: {field.name: text_of(operation.example[field.name]) for field in operation.fields if field.required}
    for name, operation in OPERATIONS.items()
}
"""The least that each operation asks for."""


def command_of(name: str, form: Form, **ids: int) -> Any:
    """The command that a form leads to; `ids` are those of the path and those that are new, by default 7 and 8."""
    operation = OPERATIONS[name]
    needed = (*re.findall(r"{(\w+)}", operation.path), *operation.new_ids.values())
    return operation.command(**dict(zip(needed, (7, 8), strict=False)) | ids, **FormReader(operation.fields).read(form))


def add_points(form: Form) -> Any:
    return command_of("addPoints", form, ranking_id=5)


def faults_of(read: Callable[[], object]) -> list[tuple[str, str]]:
    with pytest.raises(Unacceptable) as refusal:
        read()
    return [(fault.field, fault.message) for fault in refusal.value.faults]


def opening(value: object) -> str:
    """A short name of a case."""
    return ascii(value)[:30]


def faulty_fields(operation: str, form: Form) -> list[str]:
    return [field for field, _ in faults_of(lambda: command_of(operation, form))]


def said(command: Command) -> dict[str, Any]:
    """What `command` says beyond the ids that the path or the service gave it."""
    return {name: value for name, value in structs.asdict(command).items() if value not in (7, 8)}


# ── Form bodies ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b"", {}),
        (b"name=Ada", {"name": "Ada"}),
        (b"b=1&a=2", {"b": "1", "a": "2"}),
        (b"name=", {"name": ""}),
        (b"name=a=b", {"name": "a=b"}),
        (b"name=a;b=c", {"name": "a;b=c"}),
        (b"name=Ada+Byron%2b", {"name": "Ada Byron+"}),
        (b"result%5B12%5D=9.58", {"result[12]": "9.58"}),
        (b"result[12]=9.58", {"result[12]": "9.58"}),
        (b"name=%26%3D%25", {"name": "&=%"}),
        (b"name=%2541", {"name": "%41"}),
        (b"name=\\x41%5Cx41\\%41\\u0041\\", {"name": "\\x41\\x41\\A\\u0041\\"}),
        (b"name=%C3%A9\xc3\xa9%F0%9F%8F%86", {"name": "éé🏆"}),
        (b"name=\xc3%A9", {"name": "é"}),
        (b"name=e%CC%81&n%C3%A4=1", {"name": "e\u0301", "nä": "1"}),
        (b"name=a%0D%0Ab\nc", {"name": "a\r\nb\nc"}),
    ],
)
def test_a_form_is_read_byte_for_byte(body: bytes, form: dict[str, str]) -> None:
    assert forms.parse_form(body) == form


def test_a_form_keeps_the_order_sent() -> None:
    assert list(forms.parse_form(b"b=1&c=2&a=3")) == ["b", "c", "a"]


@pytest.mark.parametrize(
    "body",
    [
        b"name",
        b"=",
        b"=Ada",
        b"&",
        b"a=1&",
        b"&a=1",
        b"a=1&&b=2",
        b"a=1&b",
        b"a=%",
        b"a=%f",
        b"a=%zz",
        b"a=%0g",
        b"a=%%41",
        b"a=%4 1",
        b"a=%u0041",
        b"a=%+1",
        b"a=%-1",
        b"%4=1",
        b"a=%FF",
        b"a=\xff",
        b"a=%C3",
        b"a=%C0%80",
        b"a=%ED%A0%80",
        b"a=%F4%90%80%80",
        b"a=\x00",
        b"a=%00",
        b"a%00=1",
        "a=é".encode("utf-16"),
        "a=é".encode("latin-1"),
    ],
)
def test_what_is_no_strict_form_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        forms.parse_form(body)


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (b"a=%zz", "two hexadecimal digits after each %"),
        (b"a=%4", "two hexadecimal digits after each %"),
        (b"a=%FF", "send it in UTF-8"),
        (b"a=\xff", "send it in UTF-8"),
        (b"a=%00", r"U\+0000"),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_with_what_to_do(body: bytes, advice: str) -> None:
    with pytest.raises(Unreadable, match=advice):
        forms.parse_form(body)


def test_two_hexadecimal_digits_follow_each_percent_sign_and_nothing_else() -> None:
    hexadecimal = b"0123456789abcdefABCDEF"
    for first in range(256):
        for second in range(256):
            pair = bytes([first, second])
            if b"&" in pair:
                continue
            if first in hexadecimal and second in hexadecimal and 0 < int(pair, 16) < 128:
                assert forms.parse_form(b"a=%" + pair) == {"a": chr(int(pair, 16))}
            else:
                with pytest.raises(Unreadable):
                    forms.parse_form(b"a=%" + pair)


def test_repeated_fields_are_each_named() -> None:
    faults = faults_of(lambda: forms.parse_form(b"a=1&b=2&a=3&c=4&b=2&%61=5"))
    assert faults == [("a", "is sent more than once"), ("b", "is sent more than once")]


@pytest.mark.parametrize("pair", [b"a=1", b"", b"a", b"%00=", b"f=%zz"])
def test_a_flood_of_fields_is_refused(pair: bytes) -> None:
    with pytest.raises(Unreadable, match="fields"):
        forms.parse_form(b"&".join([pair] * 250_000)[: forms.BODY_BYTES_MAX])


def test_the_size_of_a_body_is_bounded() -> None:
    assert forms.parse_form(b"a=".ljust(forms.BODY_BYTES_MAX, b"x"))
    with pytest.raises(BodyTooLarge):
        forms.parse_form(b"a=".ljust(forms.BODY_BYTES_MAX + 1, b"x"))


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.dictionaries(texts.filter(bool), texts))
def test_what_was_encoded_is_what_is_read(form: dict[str, str]) -> None:
    assert forms.parse_form(urlencode(form).encode()) == form


@given(st.dictionaries(texts.filter(bool), texts, min_size=1))
def test_what_need_not_be_encoded_may_be_sent_as_it_is(form: dict[str, str]) -> None:
    bare = "".join(chr(c) for c in range(1, 128) if chr(c) not in "&=%+")
    pairs = [f"{quote(name, safe=bare)}={quote(value, safe=bare)}" for name, value in form.items()]
    assert forms.parse_form("&".join(pairs).encode()) == form


pieces = st.lists(st.sampled_from([b"%", b"&", b"=", b"a", b"4", b"%3D", b"\\", b"\xff", b"+", b"\r", b"\n"])).map(
    b"".join
)


@given(st.binary() | pieces)
def test_any_bytes_are_a_form_or_refused(body: bytes) -> None:
    try:
        form = forms.parse_form(body)
    except Refusal as refusal:
        assert refusal.message  # noqa: PT017
    else:
        assert all(name and "\0" not in name + value for name, value in form.items())


@given(pieces)
def test_a_value_is_read_as_its_definition_says(value: bytes) -> None:
    """An escape is % and two hexadecimal digits; a % that begins none is refused."""
    value = value.replace(b"&", b"")
    read = re.sub(rb"%([0-9A-Fa-f]{2})", lambda escape: bytes.fromhex(escape[1].decode()), value.replace(b"+", b" "))
    expected = None
    if re.fullmatch(rb"(?:[^%]|%[0-9A-Fa-f]{2})*", value):
        with suppress(UnicodeDecodeError):
            expected = {"name": read.decode()}
    try:
        assert forms.parse_form(b"name=" + value) == expected
    except Unreadable:
        assert expected is None


# ── Fingerprints ────────────────────────────────────────────────────────────────────────────────────────


def test_a_fingerprint_is_for_ever() -> None:
    """It is kept as long as the log: a changed one would turn retries into refusals."""
    digest = fingerprint("PUT", "/tournament/cup/rankings/7/add.json", {"b": "é", "a": ""})
    assert digest.hex() == "a782cfb59e7f0ebf38cd37dd1d67b3ba4bf85a392cf0ebd4022cb85a4fddf1b1"


@given(st.dictionaries(texts, texts), st.randoms())
def test_the_order_of_fields_makes_no_other_fingerprint(form: dict[str, str], random: Any) -> None:
    reordered = list(form.items())
    random.shuffle(reordered)
    assert fingerprint("POST", "/", dict(reordered)) == fingerprint("POST", "/", form)


requests = st.tuples(st.sampled_from(["PUT", "POST"]), texts, st.dictionaries(texts, texts))


@given(requests, requests)
def test_other_requests_have_other_fingerprints(one: tuple[str, str, Form], other: tuple[str, str, Form]) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("PUT", "/a", {"b": "c"}), ("PUT", "/ab", {"": "c"})),
        (("PUT", "/a", {"b": "c"}), ("PUT", "/a", {"bc": ""})),
        (("PUT", "/a", {"b": "c", "d": "e"}), ("PUT", "/a", {"b": "cde"})),
        (("PUT", "/a", {"a": "b", "c": "d"}), ("PUT", "/a", {"a": "d", "c": "b"})),
        (("PUT", "/a\udc80", {}), ("PUT", "/a\udc81", {})),
    ],
)
def test_fields_that_flow_together_keep_their_fingerprints_apart(one: Any, other: Any) -> None:
    assert fingerprint(*one) != fingerprint(*other)


# ── Queries and path ids ────────────────────────────────────────────────────────────────────────────────


def page_of(query: list[tuple[str, str]]) -> PageQuestion:
    return PageQuestion(**read_query(query, paging.FIELDS))


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ([], PageQuestion(None, 100)),
        ([("page", "3")], PageQuestion(3, 100)),
        ([("per_page", "1")], PageQuestion(None, 1)),
        ([("per_page", "200"), ("page", "2")], PageQuestion(2, 200)),
        ([("per_page", "201")], PageQuestion(None, 200)),
        ([("per_page", "9" * 18)], PageQuestion(None, 200)),
        ([("page", "9" * 18)], PageQuestion(10**18 - 1, 100)),
        ([("after", "0")], PageQuestion(None, 100, 0)),
        ([("after", "7"), ("per_page", "3")], PageQuestion(None, 3, 7)),
    ],
)
def test_a_page_is_asked_for(query: list[tuple[str, str]], page: PageQuestion) -> None:
    assert page_of(query) == page


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "+1", " 1", "1 ", "1\n", "1_0", "1.0", "1e3", "٣", "x", "NaN", "9" * 19, "9" * 5_000],
    ids=opening,
)
@pytest.mark.parametrize("name", ["page", "per_page"])
def test_a_page_that_is_no_positive_integer_is_unreadable(name: str, text: str) -> None:
    with pytest.raises(Unreadable) as refusal:
        page_of([(name, text)])
    assert [fault.field for fault in refusal.value.faults] == [name]


def takes_whole_numbers(field: Field) -> bool:
    """Whether it takes one, or a list of them."""
    schema = str(field.type.schema)
    return "'integer'" in schema and "'object'" not in schema


NUMBERS = [
    pytest.param(field, id=f"{name} {field.name}")
    for name, operation in BY_NAME.items()
    for field in operation.fields
    if takes_whole_numbers(field)
]


@pytest.mark.parametrize("field", NUMBERS)
def test_a_field_that_takes_a_whole_number_takes_no_other(field: Field) -> None:
    texts = ["0.5", "2.0", "1e3", "１", "0x1", "1_000", "+1", "01", "½"]  # noqa: RUF001
    if "'array'" not in str(field.type.schema):  # items may have white space around them
        texts.append(" 1")
    for text in texts:
        with pytest.raises(FieldMisread):
            field.type.read(text)


def test_every_fault_of_a_query_is_listed() -> None:
    with pytest.raises(Unreadable) as refusal:
        page_of([("page", "x"), ("page", "1"), ("sort", "name"), ("per_page", "-1"), ("q" * 5_000, "")])
    fields = sorted(fault.field for fault in refusal.value.faults)
    assert fields == sorted(["page", "page", "sort", "per_page", "q" * 80 + "…"])


def test_operations_without_a_query_refuse_any() -> None:
    read_query([], ())
    with pytest.raises(Unreadable) as refusal:
        read_query([("page", "1"), ("x", "")], ())
    assert [fault.field for fault in refusal.value.faults] == ["page", "x"]


NO_IDS = ["0", "-1", "+1", "01", "1_0", "1.0", "1e3", "٣", "²", "x", "NaN", "1 2", str(ID_MAX + 1), "9" * 5_000]


def test_an_id_has_one_spelling() -> None:
    assert [parse_id(text) for text in ["1", "10", str(ID_MAX)]] == [1, 10, ID_MAX]
    for text in ["", " 1", "1 ", "1\n", *NO_IDS]:
        assert parse_id(text) is None, text


@given(st.text())
def test_whatever_is_read_as_an_id_is_written_like_that(text: str) -> None:
    number = parse_id(text)
    assert number is None or (str(number) == text and 1 <= number <= ID_MAX)


# ── All operations ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", BY_NAME)
def test_what_an_operation_takes_is_what_its_command_or_question_is_made_of(name: str) -> None:
    operation = BY_NAME[name]
    made = operation.question if isinstance(operation, Read | Recall) else operation.command
    ids = {*re.findall(r"{(\w+)}", operation.path)}
    ids |= {*operation.new_ids.values()} if isinstance(operation, Write) else set()
    arguments = [field.argument or field.name for field in operation.fields]
    needed = {field.argument or field.name for field in operation.fields if field.required}
    fields = structs.fields(made)  # type: ignore[arg-type]
    assert len({*arguments}) == len(arguments)
    assert not ids & {*arguments}
    left = {"caused", "head", "next_reveal", "named", "only_of", "only"}  # which the desk fills in
    if name == "GET rankings/{ranking_id}/classification.json":
        left |= {"unity_id"}  # of standings alone, whose windows these are
    if name == "GET rankings/{ranking_id}/explain.json":
        left |= {"latest"}  # of pages
    sent_again = {"slug"} if name == "PUT delete.json" else set()
    assert ids | {*arguments} == {field.name for field in fields} - left | sent_again
    assert ids | needed == {field.name for field in fields if field.required} | sent_again


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_least_that_is_asked_for_is_accepted(operation: str) -> None:
    command_of(operation, LEAST[operation])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_required_field_may_be_neither_absent_nor_empty(operation: str) -> None:
    required = [(field, "is required") for field in LEAST[operation]]
    if required:
        assert faults_of(lambda: command_of(operation, {})) == required
        assert faults_of(lambda: command_of(operation, dict.fromkeys(LEAST[operation], ""))) == required


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "field", ["recorded_at", "digest", "version", "created_at", "scope", "id", "Name", "result[", "winner[1]", " name"]
)
def test_unknown_fields_are_refused_even_if_empty(operation: str, field: str) -> None:
    assert faulty_fields(operation, {**LEAST[operation], field: "1"}) == [field]
    assert faulty_fields(operation, {**LEAST[operation], field: ""}) == [field]


def test_the_refusal_of_an_unknown_field_says_which_there_are() -> None:
    takes = "is not a field of this operation; it takes name, sort, decimals, time, counts, lasts, expires_on, absent"
    assert faults_of(lambda: command_of("addUnity", {"name": "goals", "order": "1"})) == [("order", takes)]
    none = "is not a field of this operation; it takes none"
    assert faults_of(lambda: command_of("closeRanking", {"x": "1"})) == [("x", none)]


def test_an_answer_does_not_repeat_a_long_name() -> None:
    assert faulty_fields("closeRanking", {"x" * 1_000_000: ""}) == ["x" * 80 + "…"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_empty_optional_field_is_as_absent_where_nothing_is_changed(operation: str) -> None:
    optional = {
        "registerCompetitor": ["tags", "color", "parent", "key"],
        "addCompetition": ["started_at", "location", "participants", "result", "result[3]", "winner", "key"],
        "createRanking": ["description", "main_unity_sort", "main_unity_decimals", "main_unity_time"],
        "addUnity": ["sort", "decimals", "time"],
        "addPoints": ["competition_id"],
    }.get(operation, [])
    form = {**LEAST[operation], **dict.fromkeys(optional, "")}
    assert command_of(operation, form) == command_of(operation, LEAST[operation])


@pytest.mark.parametrize(
    ("operation", "emptied", "kept"),
    [
        ("changeCompetitor", {"tags": "tags", "color": "color", "parent": "parent_id", "key": "key"}, ["name"]),
        (
            "changeCompetition",
            {
                "started_at": "started_at",
                "location": "location",
                "result": "result",
                "winner": "winner_id",
                "key": "key",
            },
            [],
        ),
        ("modifyRanking", {"description": "description"}, ["name"]),
        ("changeRankingInformation", {"description": "description", "zones": "zones"}, ["name"]),
        ("changeUnity", {"sort": "sort"}, ["name"]),
    ],
)
def test_an_empty_field_of_a_change_empties_what_can_be_empty(
    operation: str, emptied: dict[str, str], kept: list[str]
) -> None:
    untouched = said(command_of(operation, LEAST[operation]))
    for field, argument in emptied.items():
        for sent in {field, f"{field}[3]"} if field == "result" else {field}:
            changed = said(command_of(operation, {**LEAST[operation], sent: ""}))
            assert changed == untouched | {argument: None}
            assert untouched[argument] is UNSET
    for field in kept:
        faults = faults_of(lambda field=field: command_of(operation, {**LEAST[operation], field: ""}))  # type: ignore[misc]
        assert faults == [(field, "must not be empty; leave the field out instead")]


FIELDS = [
    *("name", "tags", "color", "parent", "group_id", "started_at", "location", "participants", "result", "winner"),
    *("main_unity_name", "description", "sort", "participants_delta", "competition_id", "result[1]", "result[x]"),
]
VALUES = ["", "1", "1,2", "ASC", "2024-02-29 00:00:00", "[]", '[{"competitor_id":1,"unities":[]}]', "[[[", "\ud800"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("operation", OPERATIONS)
@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(), st.sampled_from(VALUES) | st.text()), st.booleans())
def test_any_form_is_a_command_or_refused(operation: str, form: dict[str, str], complete: bool) -> None:
    try:
        command = command_of(operation, LEAST[operation] | form if complete else form)
    except Refusal as refusal:
        assert refusal.faults  # noqa: PT017
    else:
        assert type(command).__name__.lower() == operation.lower()


# ── Competitors, competitions and rankings ──────────────────────────────────────────────────────────────


def test_a_competitor_is_registered() -> None:
    form = {"name": " Ada ", "tags": "red, blue hat ,é", "color": "ff0000", "parent": "3"}
    assert command_of("registerCompetitor", form, competitor_id=9) == commands.RegisterCompetitor(
        competitor_id=CompetitorId(9),
        name=" Ada ",
        tags=("red", "blue hat", "é"),
        color="ff0000",
        parent_id=CompetitorId(3),
    )
    assert command_of("registerCompetitor", {"name": "Ada"}, competitor_id=9) == commands.RegisterCompetitor(
        competitor_id=CompetitorId(9), name="Ada"
    )


def test_a_competitor_is_changed_in_what_is_sent() -> None:
    change = partial(command_of, "changeCompetitor", competitor_id=9)
    assert change({}) == commands.ChangeCompetitor(competitor_id=CompetitorId(9))
    assert change({"tags": "a", "name": "B"}) == commands.ChangeCompetitor(
        competitor_id=CompetitorId(9), name="B", tags=("a",)
    )


@pytest.mark.parametrize("tags", [",", "a,", ",a", "a,,b", "a, ,b", " "])
def test_an_empty_tag_is_a_fault(tags: str) -> None:
    assert faulty_fields("registerCompetitor", {"name": "Ada", "tags": tags}) == ["tags"]


def test_the_length_of_a_list_is_bounded_before_it_is_split() -> None:
    ids = ",".join(["1"] * PARTICIPANTS_MAX)
    assert len(said(command_of("addCompetition", {"group_id": "4", "participants": ids}))["participants"]) == 10_000
    for operation, field, longest in [
        ("addCompetition", "participants", ids),
        ("modifyRanking", "participants", ids),
        ("changeCompetitor", "tags", ",".join(["a"] * TAGS_MAX)),
    ]:
        command_of(operation, {**LEAST[operation], field: longest})
        for longer in (longest + ",1", "," * 1_000_000):
            assert len(faulty_fields(operation, {**LEAST[operation], field: longer})) == 1


def test_a_competition_is_added() -> None:
    form = {
        "group_id": "4",
        "started_at": "2024-02-29 23:59:59",
        "location": "Hall 1",
        "participants": "3, 1 ,2",
        "result": "3-1",
        "winner": "1",
        "scale": "sprint",
        "round": "12",
        "round_name": "Final",
    }
    assert command_of("addCompetition", form, competition_id=9) == commands.AddCompetition(
        competition_id=CompetitionId(9),
        group_id=4,
        started_at=datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
        location="Hall 1",
        participants=(CompetitorId(3), CompetitorId(1), CompetitorId(2)),
        result="3-1",
        winner_id=CompetitorId(1),
        scale="sprint",
        round=12,
        round_name="Final",
    )
    assert command_of("changeCompetition", form, competition_id=9) == commands.ChangeCompetition(
        competition_id=CompetitionId(9),
        group_id=4,
        started_at=datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
        location="Hall 1",
        participants=(CompetitorId(3), CompetitorId(1), CompetitorId(2)),
        result="3-1",
        winner_id=CompetitorId(1),
        scale="sprint",
        round=12,
        round_name="Final",
    )


@pytest.mark.parametrize(
    "text",
    [
        *(" 5", "5 ", "5\n", "+5", "05", "-0", "--5", "1_0", "1.5", "1e3", "٣٤", "NaN", "x"),
        *(str(ID_MAX + 1), str(-ID_MAX - 2), "9" * 5_000),
    ],
    ids=opening,
)
def test_another_group_is_a_fault(text: str) -> None:
    assert faulty_fields("addCompetition", {"group_id": text}) == ["group_id"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-12-31 00:00:00", datetime(2024, 12, 31, tzinfo=UTC)),
        ("0001-01-01 00:00:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31 23:59:59", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2024-12-31T00:00:00", datetime(2024, 12, 31, tzinfo=UTC)),
        ("2024-12-31T00:00:00Z", datetime(2024, 12, 31, tzinfo=UTC)),
        ("2024-12-31T00:00:00.250Z", datetime(2024, 12, 31, 0, 0, 0, 250_000, tzinfo=UTC)),
        ("2024-12-31 00:00:00+05:45", datetime(2024, 12, 30, 18, 15, tzinfo=UTC)),
        ("2024-12-31T00:00:00-23:59", datetime(2024, 12, 31, 23, 59, tzinfo=UTC)),
    ],
)
def test_a_time_is_in_utc(text: str, moment: datetime) -> None:
    started_at = said(command_of("changeCompetition", {"started_at": text}))["started_at"]
    assert (started_at, started_at.tzinfo) == (moment, UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("2023-02-29 00:00:00", "2024-13-01 00:00:00", "2024-00-01 00:00:00", "2024-01-32 00:00:00"),
        *("0000-01-01 00:00:00", "2024-01-01 24:00:00", "2024-01-01 23:60:00", "2024-01-01 23:59:60"),
        *("2024-1-1 00:00:00", "24-01-01 00:00:00", "2024-01-01 00:00", "2024-01-01Z", "2024-01-01"),
        *("2024-01-01 00:00:00+24:00", "2024-01-01 00:00:00 02:00", "0001-01-01 00:00:00+00:01"),
        *(" 2024-01-01 00:00:00", "2024-01-01 00:00:00\n", "2024-01-01 00:00:00.", "٢٠٢٤-01-01 00:00:00", "now"),
    ],
)
def test_what_is_no_time_is_a_fault(text: str) -> None:
    assert faulty_fields("changeCompetition", {"started_at": text}) == ["started_at"]


@pytest.mark.parametrize("operation", ["addCompetition", "changeCompetition"])
def test_performances_come_as_pairs_in_the_order_sent(operation: str) -> None:
    form = {**LEAST[operation], "result[20]": "9.58", "result[3]": "", "result[1]": "{", "result": ""}
    assert list(said(command_of(operation, form))["result"].items()) == [(20, "9.58"), (1, "{")]


def test_a_result_that_is_json_text_is_left_to_the_decision() -> None:
    form = {"result": '{"1": "9.58", "2": "9.69"}'}
    assert said(command_of("changeCompetition", form))["result"] == form["result"]


def test_a_result_comes_in_one_form_only() -> None:
    assert faulty_fields("changeCompetition", {"result": "3-1", "result[1]": "9.58"}) == ["result"]


@pytest.mark.parametrize("index", ["", *(text for text in NO_IDS if len(text) < 80)])
def test_a_performance_is_of_an_id(index: str) -> None:
    assert faulty_fields("changeCompetition", {f"result[{index}]": ""}) == [f"result[{index}]"]


@pytest.mark.parametrize("text", NO_IDS, ids=opening)
@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ("registerCompetitor", "parent"),
        ("changeCompetition", "winner"),
        ("addPoints", "competition_id"),
        ("createRanking", "participants"),
    ],
)
def test_what_is_no_id_is_a_fault_of_its_field(operation: str, field: str, text: str) -> None:
    [(named, message)] = faults_of(lambda: command_of(operation, {**LEAST[operation], field: text}))
    assert named == field
    assert "must be an id" in message
    assert len(message) < 200


@pytest.mark.parametrize("text", [",", "1,", ",1", "1,,2", " ", "1, ,2"])
def test_an_empty_item_of_a_list_is_a_fault(text: str) -> None:
    assert faulty_fields("createRanking", {**LEAST["createRanking"], "participants": text}) == ["participants"]


def test_a_ranking_is_created() -> None:
    form = {"name": "Season", "main_unity_name": "points", "participants": "2,1", "description": "of 2024"}
    assert command_of("createRanking", form, ranking_id=5, main_unity_id=6) == commands.CreateRanking(
        ranking_id=RankingId(5),
        main_unity_id=UnityId(6),
        name="Season",
        main_unity_name="points",
        participants=(CompetitorId(2), CompetitorId(1)),
        description="of 2024",
    )
    assert said(command_of("createRanking", {**form, "description": ""}))["description"] is None


@pytest.mark.parametrize(
    ("sent", "description"), [({}, UNSET), ({"description": ""}, None), ({"description": "x"}, "x")]
)
def test_a_description_is_left_taken_away_or_replaced(sent: dict[str, str], description: object) -> None:
    form = {"main_unity_name": "points", "participants": "2,1", "name": "Season", **sent}
    command = command_of("modifyRanking", form, ranking_id=5)
    assert command.description == description
    assert (command.name, command.participants) == ("Season", (2, 1))


def test_a_unity_is_sorted_descending_unless_said_otherwise() -> None:
    for sent, sort in [({}, Sort.DESC), ({"sort": "DESC"}, Sort.DESC), ({"sort": "ASC"}, Sort.ASC)]:
        command = command_of("addUnity", {"name": "goals", **sent}, ranking_id=5, unity_id=6)
        assert command == commands.AddUnity(ranking_id=RankingId(5), unity_id=UnityId(6), name="goals", sort=sort)
        assert type(command.sort) is Sort
    for text in ["asc", "ASC ", "up", "None"]:
        assert faulty_fields("addUnity", {"name": "goals", "sort": text}) == ["sort"]


def test_a_ranking_is_closed_and_reopened() -> None:
    closed = command_of("closeRanking", {}, ranking_id=5)
    assert closed == commands.CloseRanking(ranking_id=RankingId(5))
    reopened = command_of("reopenRanking", {}, ranking_id=5)
    assert reopened == commands.ReopenRanking(ranking_id=RankingId(5))


def test_every_fault_is_listed_in_the_order_of_the_operations_fields() -> None:
    form = {"winner": "x", "sequence": "1", "participants": "a,1,b,,a", "started_at": "now", "result[0]": "1"}
    assert faulty_fields("addCompetition", form) == [
        *("group_id", "started_at", "participants", "participants", "participants", "result[0]", "winner", "sequence")
    ]


# ── Points ──────────────────────────────────────────────────────────────────────────────────────────────


def points(delta: str, *, unity: str = "3", competitor: str = "1") -> dict[str, str]:
    """A form with one delta; the arguments are JSON text."""
    line = f'{{"competitor_id":{competitor},"unities":[{{"unity_id":{unity},"delta":{delta}}}]}}'
    return {"participants_delta": f"[{line}]"}


def test_deltas_are_flat_and_in_the_order_sent_repeated_ones_included() -> None:
    form = {
        "participants_delta": json.dumps(
            [
                {"competitor_id": 2, "unities": [{"unity_id": 3, "delta": "+5"}, {"delta": -1, "unity_id": 4}]},
                {"unities": [{"unity_id": 3, "delta": "0"}], "competitor_id": 1},
                {"competitor_id": 2, "unities": [{"unity_id": 3, "delta": "5"}]},
            ],
            indent=2,
        ),
        "competition_id": "8",
        "reason": "four tries",
    }
    assert add_points(form) == commands.AddPoints(
        ranking_id=RankingId(5),
        deltas=(
            Delta(CompetitorId(2), UnityId(3), 5),
            Delta(CompetitorId(2), UnityId(4), -1),
            Delta(CompetitorId(1), UnityId(3), 0),
            Delta(CompetitorId(2), UnityId(3), 5),
        ),
        competition_id=CompetitionId(8),
        reason="four tries",
    )


@pytest.mark.parametrize(
    ("delta", "amount"),
    [
        ('"5"', 5),
        ('"+5"', 5),
        ('"\\u002b5"', 5),
        ('"-5"', -5),
        ('"-0"', 0),
        ('"0000000007"', 7),
        (f'"{DELTA_MAX}"', DELTA_MAX),
        (f'"-{DELTA_MAX}"', -DELTA_MAX),
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        (str(DELTA_MAX), DELTA_MAX),
        (str(-DELTA_MAX), -DELTA_MAX),
    ],
)
def test_a_delta_is_a_string_or_an_integer(delta: str, amount: int) -> None:
    assert add_points(points(delta)).deltas == (Delta(CompetitorId(1), UnityId(3), amount),)


@pytest.mark.parametrize(
    "delta",
    [
        *('""', '"+"', '"-"', '"++5"', '"+-5"', '"5 "', '"5\\n"', '"1_0"', '"1.0"', '"1e3"', '"0x5"', '"٣"', '"²"'),
        *(
            '"00000000000000007"',
            '"12345678901234567"',
            '"NaN"',
            '"x:y"',
            f'"{RESULT_MAX + 1}"',
            f'"-{RESULT_MAX + 1}"',
        ),
        *(str(RESULT_MAX + 1), str(-RESULT_MAX - 1), "9" * 4_300, '"' + "9" * 64 + '"'),
    ],
    ids=opening,
)
def test_another_delta_is_a_fault_that_names_it(delta: str) -> None:
    [(field, message)] = faults_of(lambda: add_points(points(delta)))
    assert field == "participants_delta"
    assert message.startswith("delta ")
    assert "of competitor 1 must be a whole number within ±2147483647" in message
    assert len(message) < 250


def test_a_delta_of_too_many_digits_is_a_fault_that_says_how_many_there_may_be() -> None:
    most = len(str(RESULT_MAX))
    for digits, is_said in ((most, False), (most + 1, True)):
        [(_, message)] = faults_of(lambda digits=digits: add_points(points(f'"{"9" * digits}"')))
        assert (f", of at most {most} digits" in message) is is_said


@pytest.mark.parametrize("delta", ["1.0", "true", "null", "[]", "{}", "1e2", "-0.0"])
def test_a_delta_of_another_type_is_a_fault_that_says_where(delta: str) -> None:
    [(field, message)] = faults_of(lambda: add_points(points(delta)))
    assert field == "participants_delta"
    assert "; at [0].unities[0].delta: Expected `int | str`, got `" in message


def test_a_text_too_long_to_be_any_delta_is_a_fault_that_says_where() -> None:
    [(field, message)] = faults_of(lambda: add_points(points('"' + "9" * 65 + '"')))
    assert field == "participants_delta"
    assert message.endswith("; at [0].unities[0].delta: Expected `str` of length <= 64")


def test_an_unescaped_plus_is_explained() -> None:
    form = forms.parse_form(b"participants_delta=" + points('"+5"')["participants_delta"].encode())
    [(_, message)] = faults_of(lambda: add_points(form))
    assert message.startswith("delta ' 5' of competitor 1")
    assert message.endswith("a plus sign in a form body is sent as %2B")


def test_every_bad_delta_is_listed() -> None:
    lines = [{"competitor_id": i, "unities": [{"unity_id": 3, "delta": "x"}]} for i in range(1, 4)]
    faults = faults_of(lambda: add_points({"participants_delta": json.dumps(lines)}))
    assert [f"of competitor {i} " in message for i, (_, message) in enumerate(faults, 1)] == [True] * 3


@pytest.mark.parametrize(
    "text",
    [
        *("[]", " [ ] ", '[{"competitor_id":1,"unities":[]}]'),
        '[{"competitor_id":1,"unities":[]},{"competitor_id":2,"unities":[{"unity_id":3,"delta":"5"}]}]',
    ],
)
def test_at_least_one_delta_is_asked_for_everywhere(text: str) -> None:
    [(field, message)] = faults_of(lambda: add_points({"participants_delta": text}))
    assert field == "participants_delta"
    assert message.startswith("must contain at least one delta")


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[", "[1", "[1,]", "[] []", "[] x", "nul", "NaN", "[NaN]", "[Infinity]", "\ufeff[]", "'[]'", "[01]"),
        *("[{'a':1}]", '["\x00"]', '["\n"]', '["\\x"]', '["\ud800"]', "[1] // x", "[+1]", "[.5]"),
        *("[" * 400_000, "[" * 400_000 + "]" * 400_000, '{"a":' * 400_000, '[{"competitor_id":' * 50_000),
        '[{"competitor_id":"1","unities":[{"unity_id":3,"delta":"5"}]}',
        '[{"competitor_id":1.5,"unities":NaN}]',
        points("05")["participants_delta"],
        points("+5")["participants_delta"],
    ],
    ids=opening,
)
def test_what_is_no_json_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable) as refusal:
        add_points({"participants_delta": text})
    assert [fault.field for fault in refusal.value.faults] == ["participants_delta"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{}", "at its top: "),
        ("null", "at its top: "),
        ('"x"', "at its top: "),
        ("[1]", "at [0]: "),
        ("[[]]", "at [0]: "),
        ("[{}]", "at [0]: Object missing required field `competitor_id`"),
        ('[{"competitor_id":1}]', "at [0]: Object missing required field `unities`"),
        ('[{"competitor_id":1,"unities":{}}]', "at [0].unities: "),
        (
            '[{"competitor_id":1,"unities":[{"unity_id":3}]}]',
            "at [0].unities[0]: Object missing required field `delta`",
        ),
        ('[{"competitor_id":1,"unities":[],"name":"x"}]', "at [0]: Object contains unknown field `name`"),
        (f'[{{"{"x" * 5_000}":1}}]', "at [0]: Object contains unknown field `xxx"),
        *((points("1", competitor=bad)["participants_delta"], "at [0].competitor_id: ") for bad in ["0", "-1", '"1"']),
        *((points("1", unity=bad)["participants_delta"], "at [0].unities[0].unity_id: ") for bad in ["1.0", "true"]),
        (points("1", competitor=str(ID_MAX + 1))["participants_delta"], "at [0].competitor_id: "),
        (points("1e400")["participants_delta"], "at [0].unities[0]"),
        (points("9" * 5_000)["participants_delta"], "at [0]"),
    ],
    ids=opening,
)
def test_json_of_another_form_is_a_fault_that_says_where(text: str, place: str) -> None:
    [(field, message)] = faults_of(lambda: add_points({"participants_delta": text}))
    assert field == "participants_delta"
    assert message.startswith("must be of the form [{")
    assert place in message
    assert len(message) < 300


def test_ids_of_deltas_reach_to_the_last_one() -> None:
    [delta] = add_points(points("1", competitor=str(ID_MAX), unity=str(ID_MAX))).deltas
    assert delta == Delta(CompetitorId(ID_MAX), UnityId(ID_MAX), 1)


@pytest.mark.parametrize(
    "text",
    [
        points('"1","delta":"2"')["participants_delta"],
        points('"1","\\u0064elta":"2"')["participants_delta"],
        points('"1:2","delta":"2"')["participants_delta"],
        points('"1\\u003a","delta":"2"')["participants_delta"],
        points("1", unity='3,"unity_id":4')["participants_delta"],
        points("1", competitor='1,"competitor_\\u0069d":2')["participants_delta"],
        '[{"competitor_id":1,"unities":[{"unity_id":3,"delta":"5"}],"unities":[{"unity_id":3,"delta":"6"}]}]',
        '[{"competitor_id":1,"unities":[],"unities":[{"unity_id":3,"delta":"6"}]}]',
    ],
)
def test_no_key_is_dropped_without_a_word(text: str) -> None:
    faults = faults_of(lambda: add_points({"participants_delta": text}))
    assert faults == [("participants_delta", "must not repeat a key in one object")]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_lines_are_taken_together_if_each_is_alone(count: int) -> None:
    good = '{"competitor_id":1,"unities":[{"unity_id":3,"delta":"5"}]}'
    wrong = [
        '{"competitor_id":1,"unities":[]}',
        '{"competitor_id":1,"unities":[{"unity_id":3,"delta":"x"}]}',
        '{"competitor_id":1,"unities":[],"unities":[]}',
        '{"competitor_id":1,"competitor_id":1,"unities":[],"unities":[]}',
        '{"competitor_id":1,"unities":[{"unity_id":3,"delta":"5"}],"unities":[]}',
    ]
    for lines in product([good, *wrong], repeat=count):
        of_each = ",".join(f'{{"ranking_id":{n},"participants_delta":[{line}]}}' for n, line in enumerate(lines, 1))
        for operation, form in (
            ("addPoints", {"participants_delta": f"[{','.join(lines)}]"}),
            ("addPointsToRankings", {"rankings_delta": f"[{of_each}]"}),
        ):
            if {*lines} == {good}:
                command_of(operation, form)
            else:
                assert faulty_fields(operation, form)


def _spelled(key: str, escaped: list[bool]) -> str:
    """`key` as JSON text, some of its letters escaped."""
    pairs = zip(key, [*escaped, *[False] * len(key)], strict=False)
    return '"' + "".join(f"\\u{ord(c):04x}" if escape else c for c, escape in pairs) + '"'


escapes = st.lists(st.booleans(), max_size=6)
unity_objects = st.lists(
    st.tuples(st.sampled_from(["unity_id", "delta"]), escapes, st.sampled_from(["1", "2"])), min_size=2, max_size=4
)


@given(st.lists(unity_objects, min_size=1, max_size=3))
def test_what_is_accepted_is_all_that_was_sent(unities: list[list[tuple[str, list[bool], str]]]) -> None:
    text = ",".join("{" + ",".join(f"{_spelled(k, e)}:{v}" for k, e, v in unity) + "}" for unity in unities)
    try:
        command = add_points({"participants_delta": f'[{{"competitor_id":1,"unities":[{text}]}}]'})
    except Unacceptable:
        assert any(sorted(k for k, _, _ in unity) != ["delta", "unity_id"] for unity in unities)
    else:
        sent = [{k: int(v) for k, _, v in unity} for unity in unities]
        assert [len(unity) for unity in unities] == [2] * len(unities)
        assert [(d.unity_id, d.amount) for d in command.deltas] == [(u["unity_id"], u["delta"]) for u in sent]


amounts = st.integers(-DELTA_MAX, DELTA_MAX)
ids = st.integers(1, ID_MAX)


@given(st.lists(st.tuples(ids, st.lists(st.tuples(ids, amounts, st.booleans()), min_size=1)), min_size=1))
def test_what_is_sent_is_what_is_asked_for(lines: list[tuple[int, list[tuple[int, int, bool]]]]) -> None:
    sent = [
        {"competitor_id": c, "unities": [{"unity_id": u, "delta": str(a) if text else a} for u, a, text in unities]}
        for c, unities in lines
    ]
    form = forms.parse_form(urlencode({"participants_delta": json.dumps(sent)}).encode())
    deltas = [(delta.competitor_id, delta.unity_id, delta.amount) for delta in add_points(form).deltas]
    assert deltas == [(c, u, a) for c, unities in lines for u, a, _ in unities]


@given(st.text() | st.from_regex(r"[+-]?[0-9]{1,17}\n?", fullmatch=True))
def test_a_delta_is_as_strict_as_its_pattern(text: str) -> None:
    matches = re.fullmatch(r"[+-]?[0-9]{1,16}", text, re.ASCII) is not None and abs(int(text)) <= RESULT_MAX
    try:
        [delta] = add_points(points(json.dumps(text))).deltas
    except Unacceptable:
        assert not matches
    else:
        assert matches
        assert delta.amount == int(text)
