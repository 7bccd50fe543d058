"""Bodies of JSON: the same fields, rules and requests as forms."""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.desk.fingerprints import fingerprint
from api.http.errors import BodyTooLarge
from api.http.forms import BODY_BYTES_MAX, FORM_FIELDS_MAX, JsonObjects
from api.interface.declarations import Write
from api.interface.fields import FormReader
from engine.domain.errors import Unacceptable, Unreadable
from engine.domain.terms import PARTICIPANTS_MAX, TAGS_MAX
from tests.api.asking import POSSIBLE, Log, example_of, keyed, path_of, refused, with_points
from tests.api.rendered import BY_NAME
from tests.service import FORM, Answer, Client, Season, listed

JSON: Final = {"Content-Type": "application/json"}


@pytest.fixture
async def season(season: Season) -> Season:
    return await with_points(season)


async def send(client: Client, name: str, path: str, body: object, headers: dict[str, str] | None = None) -> Answer:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await (client.post if name.startswith("POST") else client.put)(path, sent, JSON | (headers or {}))


# ── Whatever is asked ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", ["form", "texts", "natural"])
async def test_a_request_is_the_same_as_a_form_and_as_json(
    season: Season, log: Log, first: str, subtests: pytest.Subtests
) -> None:
    """With texts as in a form, and with numbers, lists and objects."""
    for name in POSSIBLE:
        with subtests.test(name):
            client, path, form = season.client, path_of(name, season), example_of(name)
            key, kinds = keyed(BY_NAME[name].operation_id), ["form", "texts", "natural"]
            kinds.sort(key=lambda kind: kind != first)
            answers = []
            for kind in kinds:
                if kind == "form":
                    put = client.post if name.startswith("POST") else client.put
                    answers.append(await put(path, form, key))
                else:
                    body = form if kind == "texts" else BY_NAME[name].example
                    answers.append(await send(client, name, path, body, key))
                length = await log.length()
            assert [answer.status for answer in answers] == [200] * 3
            assert ["Idempotency-Replayed" in answer.headers for answer in answers] == [False, True, True]
            assert len({answer.body for answer in answers}) == 1
            assert await log.length() == length


async def test_json_may_name_its_charset_and_an_empty_body_has_no_fields(season: Season) -> None:
    client, tournament = season.client, f"/tournament/{season.client.tournament}"
    for media_type in ("application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"'):
        answer = await client.post("competitors.json", '{"name":"Zoë"}'.encode(), {"Content-Type": media_type})
        assert answer.json["competitor"]["name"] == "Zoë"
    refused(await client.post("competitors.json", b"{}", {"Content-Type": "application/json; charset=utf-16"}), 415)
    refused(await client.post("competitors.json", b"{}", {"Content-Type": "text/json"}), 415)
    answer = await client.send("PUT", f"{tournament}/{season.path}/close.json", b"", JSON)
    assert answer.status == 200


async def test_json_without_its_media_type_is_told_which_to_send(client: Client) -> None:
    for body in b'{"name": "Ana"}', b'{"name": "a=b"}':
        for media_type, status in (FORM, 400 if b"=" not in body else 422), ("", 415), ("text/plain", 415):
            answer = await client.post("competitors.json", body, {"Content-Type": media_type})
            assert answer.status == status
            assert b"send" in answer.body
            assert b"with the header Content-Type: application/json" in answer.body


async def test_null_empties_what_can_be_empty(season: Season) -> None:
    path = f"{season.path}/information.json"
    answer = await send(season.client, "PUT", path, {"description": None})
    assert (answer.json["ranking"]["name"], answer.json["ranking"]["description"]) == ("Season", None)
    refused(await send(season.client, "PUT", path, {"name": None, "description": "x"}), 422, "name")


async def test_performances_are_an_object_or_its_text(season: Season) -> None:
    path = f"competitions/{season.competition_id}.json"
    one, two, _ = season.ids
    for result in ({str(one): "9.8", str(two): "9.9"}, json.dumps({str(one): "9.8", str(two): "9.9"})):
        answer = await send(season.client, "PUT", path, {"result": result})
        assert answer.json["competition"]["result"] == {str(one): "9.8", str(two): "9.9"}
    answer = await send(season.client, "PUT", path, {f"result[{one}]": "9.7"})
    assert answer.json["competition"]["result"] == {str(one): "9.7"}
    twice = f'{{"result": {{"{one}": "1", "{one}": "2"}}}}'.encode()
    refused(await send(season.client, "PUT", path, twice), 422, "result")


# ── What is no JSON object of fields ────────────────────────────────────────────────────────────────────

UNREADABLE: Final = [
    b" ",
    b"nul",
    b"null",
    b"[]",
    b'"name"',
    b"1",
    b"{'name':'Ada'}",
    b'{"name":"Ada"',
    b'{"name":"Ada"}}',
    b'{"name":"Ada",}',
    b'{"name":NaN}',
    b'{"name":01}',
    b'{"name":"\x01"}',
    b'{"name":"\\ud800"}',
    b'{"name":"\xff"}',
    b'{"other":["\xff"]}',
    b'\xef\xbb\xbf{"name":"Ada"}',
    '{"name":"Ada"}'.encode("utf-16"),
    b"name=Ada",
    b'{"name":' + b"[" * 100_000,
    b'{"name":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]


async def test_what_is_no_json_object_is_400(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for body in UNREADABLE:
        with subtests.test(ascii(body)[:30]):
            before = await log.length()
            refused(await send(season.client, "POST", "competitors.json", body), 400)
            assert await log.length() == before


MISREAD: Final[list[tuple[str, str, object, str]]] = [
    ("POST competitors.json", "name", 5, "must be a string"),
    ("POST competitors.json", "name", ["Ada"], "must be a string"),
    ("POST competitors.json", "name", True, "must be a string"),
    ("POST competitors.json", "name", "A\0", "must not contain the character U+0000"),
    ("POST competitors.json", "tags", [1], "must be an array of strings, or a string"),
    ("POST competitors.json", "tags", {"u18": 1}, "must be an array of strings, or a string"),
    ("POST competitors.json", "parent", 1.0, "must be a whole number"),
    ("POST competitors.json", "parent", 1e3, "must be a whole number"),
    ("POST competitors.json", "parent", [1], "must be a whole number"),
    ("POST competitors.json", "parent", False, "must be a whole number"),
    ("POST competitions.json", "participants", 1, "must be an array of ids, or a string"),
    ("POST competitions.json", "participants", [[1]], "must be an array of ids, or a string"),
    ("POST competitions.json", "participants", [None], "must be an array of ids, or a string"),
    ("POST competitions.json", "result", ["1", "2"], "must be a string"),
    ("POST competitions.json", "result[1]", 5, "must be a string"),
    ("POST competitions.json", "result[1]", {"a": 1}, "must be a string"),
    ("PUT rankings/{ranking_id}/add.json", "participants_delta", {}, "must be an array"),
    ("PUT rankings/{ranking_id}/add.json", "participants_delta", 5, "must be an array"),
]


async def test_a_value_of_a_wrong_kind_is_422_and_named(season: Season, subtests: pytest.Subtests) -> None:
    for name, field, value, fault in MISREAD:
        with subtests.test(name):
            body = dict(BY_NAME[name].example) | {field: value}
            answer = await send(season.client, name, path_of(name, season), body)
            assert refused(answer, 422, field) == [fault]


@pytest.mark.parametrize("items", [["a,b"], [""], [" "], ["a", "\0"]])
async def test_an_item_of_a_list_has_no_comma_and_is_not_empty(season: Season, items: list[str]) -> None:
    (fault,) = refused(
        await send(season.client, "POST", "competitors.json", {"name": "Ada", "tags": items}), 422, "tags"
    )
    assert fault.startswith("must not contain an item that is empty or has a comma")


async def test_an_unknown_field_is_named_whatever_it_holds(season: Season, subtests: pytest.Subtests) -> None:
    # The second one also takes result[<id>].
    for name, first in [("POST competitors.json", "name"), ("POST competitions.json", "group")]:
        for value in [1, "1", [], {}, [{"a": "]"}], None, True]:
            with subtests.test(name, value=value):
                body = dict(BY_NAME[name].example) | {"nickname": value}
                (fault,) = refused(await send(season.client, name, path_of(name, season), body), 422, "nickname")
                assert fault.startswith(f"is not a field of this operation; it takes {first}")


# ── Keys and bounds ─────────────────────────────────────────────────────────────────────────────────────

OBJECTS: Final = JsonObjects(["a", "b"])


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":12}',
        b'{"a":12,"a":1}',
        b'{"a":1,"a":1,"b":1}',
        b'{"b":2,"a":1,"c":"x","a":1}',
        b'{"a":1,"\\u0061":1}',
        b'{"a":[1],"a":[1]}',
        b'{"a":[1],"a":[2]}',
        b'{"a":{"b":1},"a":"x"}',
    ],
)
def test_a_key_that_is_sent_twice_is_named(body: bytes) -> None:
    with pytest.raises(Unacceptable) as refusal:
        OBJECTS.read_body(body)
    assert {(fault.field, fault.message) for fault in refusal.value.faults} == {("a", "is sent more than once")}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
names = st.sampled_from(["a", "b"]) | st.text()
blanks = st.text(" \t\n\r", max_size=2).map(str.encode)


@given(st.lists(st.tuples(names, values | scalars, st.booleans()), max_size=6), st.data())
def test_fields_are_those_that_were_sent_or_one_is_repeated(fields: list[tuple[str, Any, bool]], data: Any) -> None:
    """Whatever blanks and escapes they are written with."""
    read: dict[str, Any] = {}
    written = b"{"
    for number, (name, value, is_ascii) in enumerate(fields):
        if name not in ("a", "b") and isinstance(value, list | dict):
            value = "a string"  # noqa: PLW2901 # of an object under an unknown name only the beginning is read
        blank = data.draw(blanks)
        key, text = json.dumps(name, ensure_ascii=is_ascii), json.dumps(value, ensure_ascii=is_ascii)
        try:
            written += (b"," if number else b"") + blank + key.encode() + blank + b":" + blank + text.encode() + blank
        except UnicodeEncodeError:
            return
        read[name] = value
    written += b"}"
    if len(read) < len(fields):
        with pytest.raises(Unacceptable):
            OBJECTS.read_body(written)
    else:
        try:
            found = OBJECTS.read_body(written)
        except Unreadable:
            with pytest.raises(msgspec.DecodeError):  # half a character
                msgspec.json.decode(written)
        else:
            assert {name: json.loads(value) for name, value in found.items()} == read
            assert list(found) == list(read)


@given(
    st.binary()
    | st.lists(st.sampled_from([b"{", b"}", b'"a"', b":", b",", b"[", b"]", b"1", b'"', b"\\"])).map(b"".join)
)
def test_any_bytes_are_fields_or_refused(body: bytes) -> None:
    try:
        fields = OBJECTS.read_body(body)
    except (Unreadable, Unacceptable) as refusal:
        assert refusal.message  # noqa: PT017
    else:
        assert not body or isinstance(msgspec.json.decode(body), dict)
        assert all(fields.values())


def test_the_number_of_fields_and_the_size_are_bounded() -> None:
    fields = [b'"f%d":1' % number for number in range(FORM_FIELDS_MAX + 1)]
    assert len(OBJECTS.read_body(b"{" + b",".join(fields[:-1]) + b"}")) == FORM_FIELDS_MAX
    with pytest.raises(Unreadable, match=str(FORM_FIELDS_MAX)):
        OBJECTS.read_body(b"{" + b",".join(fields) + b"}")
    with pytest.raises(Unreadable, match=str(FORM_FIELDS_MAX)):
        OBJECTS.read_body(b"{" + b",".join([b'"a":1'] * 150_000) + b"}")
    full = b'{"a":"' + b"x" * (BODY_BYTES_MAX - 8) + b'"}'
    assert len(full) == BODY_BYTES_MAX
    assert OBJECTS.read_body(full)
    with pytest.raises(BodyTooLarge):
        OBJECTS.read_body(full + b" ")


def test_a_list_has_as_many_items_as_in_a_form_and_no_more() -> None:
    for name, field, most, item in (
        ("POST competitors.json", "tags", TAGS_MAX, "t"),
        ("POST competitions.json", "participants", PARTICIPANTS_MAX, 7),
    ):
        operation = BY_NAME[name]
        assert isinstance(operation, Write)
        reader = FormReader(operation.fields)
        for number in (most, most + 1):
            value = json.dumps([item] * number).encode()
            if number == most:
                assert reader.form_of({field: value}) == {field: listed([item] * number)}  # type: ignore[list-item]
                continue
            with pytest.raises(Unacceptable) as refusal:
                reader.form_of({field: value})
            assert [(f.field, f.message) for f in refusal.value.faults] == [(field, f"must be at most {most}")]


def test_the_text_of_json_is_what_was_sent() -> None:
    """So that it has one fingerprint, whichever body it comes in."""
    operation = BY_NAME["PUT rankings/{ranking_id}/add.json"]
    assert isinstance(operation, Write)
    text = '[ {"competitor_id":1, "unities" : [{"unity_id":3,"delta":"\\u0035"}]}]'
    reader = FormReader(operation.fields)
    fields = reader.json_objects.read_body(f'{{"participants_delta": {text} , "competition_id":7}}'.encode())
    form = reader.form_of(fields)
    assert form == {"participants_delta": text, "competition_id": "7"}
    assert fingerprint("PUT", "/", form) == fingerprint("PUT", "/", {"competition_id": "7", "participants_delta": text})
