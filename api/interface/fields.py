"""The fields of bodies and the parameters of queries: what each takes, how it is read, and how it is described.

Pure. An operation declares its fields; reading, refusals and the OpenAPI document follow from the declarations. A value
that cannot be read is a fault, listed under the name of its field. One refusal lists all faults.

JSON. A body of JSON becomes the form that says the same: a number its digits, a list its items with commas between
them, and for a field whose text is JSON, the JSON as it was sent. So the rules are those of forms, and a request is the
same in either form of body. null, "", and an empty list or object of the expected kind, are an empty field. The
document shows bodies of JSON alone, with natural types, because programs are made from it.

EMPTY. What an empty field says follows from what the command takes (`engine/domain/commands.py`). In a change, it
empties what is there, and is refused where that cannot be empty. Anywhere else it says nothing, as if it were absent.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum, auto
from itertools import takewhile
from operator import attrgetter
from types import NoneType
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Struct

from api.http.forms import Form, JsonFields, JsonObjects
from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.expiry import LASTS_FORM, LASTS_PATTERN, ExpiresOn
from engine.domain.faults import cited, shortened, unacceptable
from engine.domain.ids import ID_PATTERN, parse_id
from engine.domain.terms import (
    COLOR_PATTERN,
    DESCRIPTION_CHARACTERS_MAX,
    DESCRIPTION_PATTERN,
    ID_MAX,
    ITEMS_MAX,
    NAME_CHARACTERS_MAX,
    NAME_PATTERN,
    PARTICIPANTS_MAX,
    TAG_PATTERN,
    TAGS_MAX,
    CompetitionId,
    CompetitorId,
    Counts,
    Sort,
)
from projections.answers.zones import Day, skipped_time

_T = TypeVar("_T")
Schema = Mapping[str, Any]
"""JSON Schema."""
SCHEMAS: Final = "#/components/schemas/"
"""Where the document has those with a name."""


class FieldMisread(ValueError):
    """The text of a field is not what the field takes. `faults` say what is wrong, one for each part."""

    def __init__(self, *faults: str) -> None:
        super().__init__(*faults)
        self.faults = faults


class SkippedTime(FieldMisread):
    """A local time that clocks skip."""


def _of_string(value: bytes) -> str:
    if not value.startswith(b'"'):
        raise FieldMisread("must be a string")
    return _decoded(value, str)


class FieldType(Struct, frozen=True):
    """What a text must be. `read` returns its value, or raises FieldMisread. `schema`, for other programs, is that of
    a JSON value and of a parameter. Neither admits what the other refuses, apart from rules beyond JSON Schema.
    How many items a list may have stands in the words about a field, because programs that make up requests would make
    up the longest ones.

    `of_json` returns the text that a JSON value other than null stands for, or raises FieldMisread.

    `is_list`: a text has several values with commas between them, and the field may be sent several times instead.
    `indexed`: the field may also be sent as several, `name[<competitor id>]=text`. They become a dictionary by id.
    """

    read: Callable[[str], Any]
    schema: Schema
    of_json: Callable[[bytes], str] = _of_string
    is_list: bool = False
    indexed: bool = False


def text_type(pattern: str, read: Callable[[str], Any] = str, **more: Any) -> FieldType:
    """A text of this pattern. `more` is about it, for the document."""
    return FieldType(read, {"type": "string", "pattern": f"^(?:{pattern})$", **more})


def parsed_type(pattern: str, expected: str, value: Callable[[re.Match[str]], Any], **more: Any) -> FieldType:
    """A text of this pattern; `value` is made of what it finds. `expected` says in words what the text must be."""
    compiled = re.compile(pattern)

    def read(text: str) -> Any:
        found = compiled.fullmatch(text)
        if found is None:
            raise misread(text, expected)
        return value(found)

    return text_type(pattern, read, **more)


def misread(text: str, expected: str) -> FieldMisread:
    """The error for an unexpected text."""
    return FieldMisread(f"{cited(text)} must be {expected}")


class Empty(Enum):
    """What a field of a form says if it is empty."""

    NOTHING = auto()
    EMPTIES = auto()
    REFUSED = auto()


class Field(Struct, frozen=True):
    """A field of a form, or a parameter of a query. `about`: what it is for, in a phrase. `argument`: what the command
    or question calls it, if that is not its name. `empty` is set by `fields_of`, and `names`: whether it names
    competitors or competitions, which may be done by key (`keys.py`)."""

    name: str
    type: FieldType
    about: str
    required: bool = False
    argument: str = ""
    empty: Empty = Empty.NOTHING
    names: Literal["competitor", "competition", ""] = ""

    @property
    def can_be_empty(self) -> bool:
        return not self.required and self.empty is not Empty.REFUSED


Fields = tuple[Field, ...]


def fields_of(command: Callable[..., Any], fields: Fields) -> Fields:
    """The fields of the form that this command is made of, with what they say if they are empty."""
    taken = {one.name: one for one in msgspec.structs.fields(command)}  # type: ignore[arg-type] # a Struct

    def empty(field: Field) -> Empty:
        argument = taken[field.argument or field.name]
        if argument.default is not UNSET:
            return Empty.NOTHING
        return Empty.EMPTIES if NoneType in get_args(argument.type) else Empty.REFUSED

    def names(field: Field) -> Literal["competitor", "competition", ""]:
        named = set(_types_in(taken[field.argument or field.name].type))
        return "competitor" if CompetitorId in named else "competition" if CompetitionId in named else ""

    return tuple([msgspec.structs.replace(one, empty=empty(one), names=names(one)) for one in fields])


def _types_in(annotation: Any) -> Iterator[Any]:
    """The types that a type is made of, fields of structs included."""
    yield annotation
    within = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        within = tuple([field.type for field in msgspec.structs.fields(annotation)])
    for one in within:
        yield from _types_in(one)


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────


class FormReader:
    """Reads forms of `fields`, and JSON objects as forms."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._types = {field.name: field.type for field in fields}
        self._names = frozenset(self._types)
        self.json_objects = JsonObjects(self._names)

    def form_of(self, values: JsonFields) -> Form:
        """The form that says the same as these values. Raises Unacceptable with every value of a wrong kind."""
        form: dict[str, str] = {}
        faults: list[Fault] = []
        for name, value in values.items():
            field_type = self._types.get(name)
            try:
                form[name] = "" if value == b"null" else _text_of(name, value, field_type, self._fields)
            except FieldMisread as error:
                faults += _faults_of(name, error)
        if faults:
            raise unacceptable(faults)
        return form

    def read(self, form: Form) -> dict[str, Any]:
        """The arguments that the form gives, by what the command calls them; what is absent has none.

        Raises Unacceptable with every fault, unknown and missing fields included.
        """
        arguments: dict[str, Any] = {}
        faults: list[Fault] = []
        undeclared = set() if self._names.issuperset(form) else form.keys() - self._names
        for field in self._fields:
            text = form.get(field.name)
            if text:
                try:
                    arguments[field.argument or field.name] = field.type.read(text)
                except FieldMisread as error:
                    faults += _faults_of(field.name, error)
            elif field.required:
                faults.append(Fault(field.name, "is required"))
            elif text is not None and field.empty is not Empty.NOTHING:
                _take_empty(field, arguments, faults)
            if undeclared and field.type.indexed:
                by_id = _indexed(field.name, form, undeclared, faults)
                if text and by_id:
                    fault = f"must be sent either as one field or as {field.name}[<competitor id>] pairs, not as both"
                    faults.append(Fault(field.name, fault))
                elif by_id:
                    arguments[field.argument or field.name] = by_id
                elif by_id is not None and not text and field.empty is not Empty.NOTHING:
                    _take_empty(field, arguments, faults)
        if undeclared:
            faults += self._unknown(name for name in form if name in undeclared)
        if faults:
            raise unacceptable(faults)
        return arguments

    def _unknown(self, names: Iterable[str]) -> list[Fault]:
        return [_undeclared(name, "field", self._fields) for name in names]


def _take_empty(field: Field, arguments: dict[str, Any], faults: list[Fault]) -> None:
    """Takes a field of a change that is there, and empty."""
    if field.empty is Empty.EMPTIES:
        arguments[field.argument or field.name] = None
    else:
        faults.append(Fault(field.name, "must not be empty; leave the field out instead"))


def _text_of(name: str, value: bytes, field_type: FieldType | None, fields: Fields) -> str:
    """Raises FieldMisread."""
    if field_type is not None:
        return field_type.of_json(value)
    if value.startswith(b'"') or any(field.type.indexed and name.startswith(f"{field.name}[") for field in fields):
        return _of_string(value)
    return ""  # ignored: there is no field of this name


def _decoded(value: bytes, kind: type[_T]) -> _T:
    """The JSON value as a Python value of this kind. Raises FieldMisread."""
    try:
        found = msgspec.json.decode(value, type=kind)
    except (ValueError, RecursionError):
        raise FieldMisread("must be readable") from None
    if isinstance(found, str) and "\0" in found:
        raise FieldMisread("must not contain the character U+0000")
    return found


def _indexed(name: str, form: Form, undeclared: set[str], faults: list[Fault]) -> dict[int, str] | None:
    """The fields `name[<id>]=text` by their ids, in the order sent, without the empty ones; None: there is none. Takes
    them from `undeclared`."""
    texts: dict[int, str] = {}
    found = False
    for field, text in form.items():
        if field.startswith(f"{name}[") and field.endswith("]"):
            found = True
            undeclared.discard(field)
            try:
                index = _id(field[len(name) + 1 : -1])
            except FieldMisread as error:
                faults += _faults_of(field, error)
            else:
                if text:
                    texts[index] = text
    return texts if found else None


ITEMS: Final = "items"
"""The field that has several of what an operation creates."""


class ItemsReader:
    """Reads the field `items`: a JSON array of objects, each with these fields."""

    def __init__(self, fields: Fields) -> None:
        self._reader = FormReader(fields)

    def read(
        self, form: Form, changed: Callable[[Form], Form] = lambda form: form
    ) -> Generator[None, None, list[dict[str, Any]]]:
        """The arguments that each item, once it is `changed`, gives, as `FormReader.read` has them. Step by step.

        Raises Unreadable if the field is no JSON, and Unacceptable with every fault, those of an item named by its
        place: items[3].name.
        """
        faults = [
            Fault(shortened(name), f"must not be sent together with {ITEMS}")
            for name, text in form.items()
            if text and name != ITEMS
        ]
        read = []
        for number, item in enumerate(_items_of(form[ITEMS])):
            try:
                read.append(self._reader.read(changed(self._reader.form_of(self._reader.json_objects.read(item)))))
            except Unacceptable as refusal:
                faults += [Fault(f"{ITEMS}[{number}].{fault.field}", fault.message) for fault in refusal.faults]
            except ValueError:
                faults.append(Fault(f"{ITEMS}[{number}]", "must be an object"))
            yield
        if faults:
            raise unacceptable(faults)
        return read


def _items_of(text: str) -> list[bytes]:
    """The items of a JSON array as they stand there. Raises Unreadable, and Unacceptable if there are too
    many."""
    if not text.lstrip().startswith("["):
        raise unacceptable([Fault(ITEMS, "must be a JSON array of objects")])
    try:
        # Of a list, a decoder would make a hundred thousand items before it is found too long.
        decoded = msgspec.structs.astuple(_FIRST_ITEMS.decode(text))
    except (ValueError, RecursionError) as error:
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"must be JSON: {error}"
        fault = Fault(ITEMS, shortened(reason))
        raise Unreadable(f"The field {ITEMS} cannot be read; send a JSON array.", [fault]) from None
    items = list(takewhile(bool, map(bytes, decoded)))  # what follows the last item is empty
    if len(items) > ITEMS_MAX:
        raise unacceptable([Fault(ITEMS, f"must contain at most {ITEMS_MAX} items")])
    return items


_FIRST_ITEMS: Final = msgspec.json.Decoder(
    msgspec.defstruct(
        "FirstItems",
        [(f"item_{number}", msgspec.Raw, msgspec.Raw(b"")) for number in range(ITEMS_MAX + 1)],
        array_like=True,
    )
)


_IS_REQUIRED: Final = attrgetter("required")


def read_query(query: Iterable[tuple[str, str]], fields: Fields) -> dict[str, Any]:
    """The arguments that the decoded parameters give, by what the question calls them; what is absent has none.

    Raises Unreadable with every fault, unknown, repeated and missing parameters included.
    """
    given: dict[str, str] = {}
    faults: list[Fault] = []
    for name, text in query:
        if name not in given:
            given[name] = text
        elif name in lists_of(fields) or name.endswith("[]"):  # that is none, and should be refused as that
            given[name] += f",{text}"
        else:
            faults.append(Fault(shortened(name), "is given more than once"))
    arguments: dict[str, Any] = {}
    if not given and not any(map(_IS_REQUIRED, fields)):  # nearly always
        return arguments
    for field in fields:
        if field.name in given:
            text = given.pop(field.name)
            try:
                if text or field.empty is Empty.NOTHING:
                    arguments[field.argument or field.name] = field.type.read(text)
                else:
                    _take_empty(field, arguments, faults)
            except FieldMisread as error:
                faults += _faults_of(field.name, error)
        elif field.required:
            faults.append(Fault(field.name, "is required"))
    faults += [_undeclared(name, "parameter", fields) for name in given]
    if faults and not fields:
        raise Unreadable("This operation takes no query parameters; leave them out.", faults)
    if faults:
        raise Unreadable("The query cannot be read; correct the parameters named.", faults)
    return arguments


def _faults_of(name: str, error: FieldMisread) -> list[Fault]:
    return [Fault(shortened(name), fault) for fault in error.faults]


def lists_of(fields: Fields) -> frozenset[str]:
    """The names of those that may be sent several times."""
    return frozenset([field.name for field in fields if field.type.is_list])


def _undeclared(name: str, kind: str, fields: Fields) -> Fault:
    if name.startswith("{"):
        return Fault(
            shortened(name), "is the beginning of JSON; send that with the header Content-Type: application/json"
        )
    taken = f"it takes {', '.join([field.name for field in fields]) or 'none'}"
    as_list = f"send {name[:-2]}=1,2; " if name.endswith("[]") and name[:-2] in lists_of(fields) else ""
    return Fault(shortened(name), f"is not a {kind} of this operation; {as_list}{taken}")


# ── Kinds: text ─────────────────────────────────────────────────────────────────────────────────────────
# What a name, a colour or a description may hold is decided when the command is judged.

NAME: Final = text_type(NAME_PATTERN, examples=["Ana"])
SHORT: Final = text_type(NAME_PATTERN)
OWN_KEY: Final = text_type(TAG_PATTERN)
"""What an organiser calls a thing that has an id here."""


def _of_string_or_object(value: bytes) -> str:
    if not value.startswith(b"{"):
        return _of_string(value)
    return value.decode() if value[1:-1].strip() else ""


MARK: Final = "key:"
"""What a key begins with in place of an id (`keys.py`)."""


def _result(text: str) -> str:
    if MARK in text and text.startswith("{"):
        by_id: dict[str, msgspec.Raw] = {}
        with suppress(ValueError, RecursionError):  # what is no object is refused when the command is judged
            by_id = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        if any(name.startswith(MARK) for name in by_id):
            raise FieldMisread("must have ids or keys of competitors")
    return text


RESULT: Final = FieldType(
    _result,
    {
        "anyOf": [
            SHORT.schema,
            {
                "type": "object",
                "propertyNames": {"pattern": f"^{ID_PATTERN}$"},
                "additionalProperties": SHORT.schema,
            },
        ]
    },
    _of_string_or_object,
    indexed=True,
)
DESCRIPTION: Final = text_type(DESCRIPTION_PATTERN, maxLength=DESCRIPTION_CHARACTERS_MAX)
COLOR: Final = text_type(COLOR_PATTERN, examples=["c0ffee"])


def _phrase(text: str) -> str:
    if not 1 <= len(text) <= NAME_CHARACTERS_MAX:
        raise misread(text, f"1 to {NAME_CHARACTERS_MAX} characters")
    return text


PHRASE: Final = FieldType(_phrase, {"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS_MAX})
"""A text to search names for."""


def _sort(text: str) -> Sort:
    if text not in (*Sort,):
        raise FieldMisread("must be ASC (the lowest total is the best) or DESC (the highest)")
    return Sort(text)


SORT: Final = FieldType(_sort, {"type": "string", "enum": [*map(str, Sort)]})


def _counts(text: str) -> Counts:
    if text not in (*Counts,):
        raise misread(text, "sum, best or last")
    return Counts(text)


COUNTS: Final = FieldType(_counts, {"type": "string", "enum": [*map(str, Counts)]})


LASTS: Final = parsed_type(LASTS_PATTERN, LASTS_FORM, lambda found: found[0])


def _expires_on(text: str) -> ExpiresOn:
    if text not in (*ExpiresOn,):
        raise misread(text, "minute, day or week")
    return ExpiresOn(text)


EXPIRES_ON: Final = FieldType(_expires_on, {"type": "string", "enum": [*map(str, ExpiresOn)]})


def one_of(*words: str) -> FieldType:
    """One of the words, spelled exactly."""

    def read(text: str) -> str:
        if text not in words:
            raise misread(text, " or ".join(words))
        return text

    return FieldType(read, {"type": "string", "enum": [*words]})


NO_TOTAL: Final = one_of("none")


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise misread(text, "true or false")
    return text == "true"


def _of_boolean(value: bytes) -> str:
    return value.decode() if value in (b"true", b"false") else _of_string(value)


BOOLEAN: Final = FieldType(_boolean, {"type": "boolean"}, _of_boolean)


# ── Kinds: numbers ──────────────────────────────────────────────────────────────────────────────────────

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,18}")


def _id(text: str) -> int:
    number = parse_id(text)
    if number is None:
        raise misread(text, f"an id: a whole number from 1 to {ID_MAX:,}, in digits only")
    return number


def _integer(text: str) -> int:
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not -ID_MAX - 1 <= number <= ID_MAX:
        raise misread(text, "a whole number of 64 bits")
    return number


def _number(text: str, least: int) -> int:
    number = int(text) if _DIGITS.fullmatch(text) else -1
    if not least <= number <= ID_MAX:
        raise misread(text, f"a whole number from {least} to {ID_MAX:,}, in digits only")
    return number


def _from_0(text: str) -> int:
    return _number(text, 0)


def _from_1(text: str) -> int:
    return _number(text, 1)


def _of_number(value: bytes) -> str:
    if value.startswith(b'"'):
        return _of_string(value)
    if not _WHOLE.fullmatch(value):
        raise FieldMisread("must be a whole number")
    return value.decode()


_WHOLE: Final = re.compile(rb"-?[0-9]++")
_ID_SCHEMA: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": ID_MAX}
ID: Final = FieldType(_id, _ID_SCHEMA, _of_number)
INTEGER: Final = FieldType(_integer, {"type": "integer", "minimum": -ID_MAX - 1, "maximum": ID_MAX}, _of_number)
FROM_0: Final = FieldType(_from_0, {"type": "integer", "minimum": 0, "maximum": ID_MAX})
FROM_1: Final = FieldType(_from_1, _ID_SCHEMA, _of_number)


def is_number(kind: FieldType) -> bool:
    """Whether a text of this kind is a whole number, or one of some words."""
    return any(one.get("type") == "integer" for one in kind.schema.get("anyOf", (kind.schema,)))


def number_or(*words: str) -> FieldType:
    """A number from 1 up, or one of these words."""
    form = f"{', '.join(words)} or a whole number from 1 up"

    def read(text: str) -> int | str:
        try:
            return text if text in words else _from_1(text)
        except FieldMisread:
            raise misread(text, form) from None

    def of_json(value: bytes) -> str:
        if not value.startswith(b'"') and not _WHOLE.fullmatch(value):
            raise FieldMisread(f"must be {form}")
        return _of_number(value)

    return FieldType(read, {"anyOf": [_ID_SCHEMA, {"type": "string", "enum": [*words]}]}, of_json)


def count(default: int, most: int) -> FieldType:
    """The number of items requested. A number above `most` means `most`; `default` applies if there is none."""
    return FieldType(
        lambda text: min(_number(text, 1), most),
        {**_ID_SCHEMA, "default": default, "description": f"{most} at most; a larger number means that many"},
    )


def number_up_to(least: int, most: int, default: int | None = None) -> FieldType:
    """A number within these bounds. A number above `most` is refused. `default` is what the question has if none is
    given, whatever else it has; None: nothing."""

    def read(text: str) -> int:
        number = _number(text, least)
        if number > most:
            raise misread(text, f"at most {most}")
        return number

    bounds: Schema = {"type": "integer", "minimum": least, "maximum": most}
    return FieldType(read, bounds if default is None else {**bounds, "default": default}, _of_number)


# ── Kinds: lists ────────────────────────────────────────────────────────────────────────────────────────


def _items(text: str, items_max: int, read: Callable[[str], _T]) -> tuple[_T, ...]:
    """The items that commas separate in `text`, each as `read` reads it without the white space around it."""
    if text.count(",") >= items_max:  # judging would find this too, but only after work on every item
        raise FieldMisread(f"must be at most {items_max}")
    texts = [item.strip() for item in text.split(",")]
    faults = ["must not contain an empty item; put one comma between two items"] if "" in texts else []
    items = []
    for item in texts:
        if item:
            try:
                items.append(read(item))
            except FieldMisread as error:
                faults += error.faults
    if faults:
        raise FieldMisread(*faults)
    return tuple(items)


def _ids(text: str) -> tuple[int, ...]:
    if text.count(",") < PARTICIPANTS_MAX and _PLAIN_IDS.fullmatch(text):
        return tuple(map(int, text.split(",")))
    return _items(text, PARTICIPANTS_MAX, _id)


_PLAIN_IDS: Final = re.compile("(?:[1-9][0-9]{0,17}+,)*[1-9][0-9]{0,17}+")
"""Ids as programs write them. An id may have one digit more. No group is possessive: see `api/http/preferences.py`."""


def ids_up_to(most: int) -> FieldType:
    """At most this many ids, each once."""

    def read(text: str) -> tuple[int, ...]:
        ids = _items(text, most, _id)
        if len(set(ids)) < len(ids):
            raise FieldMisread("must name each id once")
        return ids

    return FieldType(read, {"type": "array", "items": _ID_SCHEMA, "minItems": 1, "maxItems": most}, is_list=True)


def _of_list(items_max: int, kind: type[list[str]] | type[list[str | int]], what: str) -> Callable[[bytes], str]:
    """The text that separates the items of a JSON array by commas."""

    def of_json(value: bytes) -> str:
        if value.startswith(b'"'):
            return _of_string(value)
        if value.count(b",") >= items_max:
            raise FieldMisread(f"must be at most {items_max}")
        try:
            texts = [str(item) for item in _decoded(value, kind)]
        except ValueError:
            raise FieldMisread(f"must be an array of {what}, or a string") from None
        if any("," in text or "\0" in text or not text.strip() for text in texts):
            raise FieldMisread("must not contain an item that is empty or has a comma or the character U+0000 in it")
        return ",".join(texts)

    return of_json


def list_of_texts(items_max: int, pattern: str) -> FieldType:
    """At most this many texts of this pattern."""
    return FieldType(
        lambda text: _items(text, items_max, str),
        {"type": "array", "items": {"type": "string", "pattern": f"^(?:{pattern})$"}},
        _of_list(items_max, list[str], "strings"),
        is_list=True,
    )


TAGS: Final = list_of_texts(TAGS_MAX, TAG_PATTERN)
IDS: Final = FieldType(
    _ids, {"type": "array", "items": _ID_SCHEMA}, _of_list(PARTICIPANTS_MAX, list[str | int], "ids"), is_list=True
)


# ── Kinds: JSON ─────────────────────────────────────────────────────────────────────────────────────────


def json_text(read: Callable[[str], Any], schema: Schema) -> FieldType:
    """JSON text of an array of this `schema`: in a body of JSON, the array itself."""

    def of_json(value: bytes) -> str:
        if value.startswith(b"["):
            return value.decode()
        if value.startswith(b'"'):
            return _of_string(value)
        raise FieldMisread("must be an array")

    return FieldType(read, schema, of_json)


def items_field(item: Schema) -> Field:
    """The field `items` of an operation that takes such an item."""
    about = f"in place of all other fields, a JSON array of at most {ITEMS_MAX:,} objects; all are recorded, or none"
    return Field(ITEMS, json_text(_items_of, {"type": "array", "items": item, "minItems": 1}), about)


# ── Kinds: times ────────────────────────────────────────────────────────────────────────────────────────
# A time in a query is as exact as it is written: 12:30:00 is the whole of that second. So a query for the time that an
# answer shows, however exact that is, includes that event. A time without a zone is in UTC, as those are that answers
# show without one; a day is that of the tournament (`Day` in `projections/answers/zones.py`).

SECOND: Final = timedelta(seconds=1)
_TICK: Final = timedelta(microseconds=1)
DAY_CHARACTERS: Final = len("2026-05-02")
_DATE: Final = "([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOURS_AND_MINUTES: Final = "([01][0-9]|2[0-3]):([0-5][0-9])"
_SECONDS: Final = r":([0-5][0-9])(?:\.([0-9]{1,6})[0-9]{0,6})?"
"""What is finer than a µs is cut off."""
_ZONE: Final = f"(?:[Zz]|([+-]){_HOURS_AND_MINUTES})?"
_TIME_PATTERN: Final = f"{_DATE}(?:[ Tt]{_HOURS_AND_MINUTES}(?:{_SECONDS})?)?{_ZONE}"
_TIME: Final = re.compile(_TIME_PATTERN)
_FORM_OF_MOMENTS: Final = "a time of the form yyyy-mm-dd HH:ii:ss, in UTC unless an offset such as +02:00 follows"
FORM_OF_TIMES: Final = f"{_FORM_OF_MOMENTS}; or a day of the calendar, yyyy-mm-dd"


def _moment(text: str) -> datetime:
    begin, length = _time(text, UTC, _FORM_OF_MOMENTS)
    if length > SECOND:
        raise misread(text, _FORM_OF_MOMENTS)
    return begin


def begin_of_time(text: str, zone: tzinfo | None = None) -> datetime:
    """The first moment, in UTC, of the day, minute, second or fraction of a second that `text` names, in this zone
    unless it names one. Without a `zone`, a time is in UTC, and what names a day is a Day.

    Raises FieldMisread, and SkippedTime.
    """
    begin, _ = _time(text, zone or UTC)
    if zone is not None:
        return begin
    return _day(begin) if len(text) == DAY_CHARACTERS else begin


def end_of_time(text: str) -> datetime:
    """The last moment of the time that `text` names, to the µs; as `begin_of_time`."""
    begin, length = _time(text, UTC)
    end = datetime.max.replace(tzinfo=UTC)
    with suppress(OverflowError):
        end = begin + length - _TICK
    return _day(end) if len(text) == DAY_CHARACTERS else end


def _day(moment: datetime) -> datetime:
    return Day.combine(moment.date(), moment.timetz())


def _time(text: str, zone: tzinfo, form: str = FORM_OF_TIMES) -> tuple[datetime, timedelta]:
    """When the time in `text` begins, in `zone` unless it names one, and how long it lasts."""
    skipped = None
    if written := _TIME.fullmatch(text):
        year, month, day, hour, minute, second, fraction, sign, hours, minutes = written.groups()
        with suppress(ValueError, OverflowError):  # the 30th of February, 24 o'clock, before the year 1
            if sign:
                east = timedelta(hours=int(hours), minutes=int(minutes))
                zone = timezone(-east if sign == "-" else east)
            elif text[-1] in "Zz":
                zone = UTC
            local = datetime(
                int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
                int((fraction or "0").ljust(6, "0")), tzinfo=zone,
            )  # fmt: skip
            begin, skipped = local.astimezone(UTC), skipped_time(local) if hour else None
            if skipped is None:
                if fraction:
                    return begin, timedelta(microseconds=10 ** (6 - len(fraction)))
                return begin, SECOND if second else timedelta(minutes=1) if hour else timedelta(days=1)
    raise misread(text, form) if skipped is None else SkippedTime(skipped)


MOMENT: Final = text_type(
    f"{_DATE}[ Tt]{_HOURS_AND_MINUTES}{_SECONDS}{_ZONE}",
    _moment,
    examples=["2026-05-02 17:00:00", "2026-05-02T17:00:00Z", "2026-05-02T19:00:00+02:00"],
)
_TIME_EXAMPLES: Final = ("2026-05-02", "2026-05-02 17:04:11", "2026-05-02T19:04:11+02:00")
TIME_BEGIN: Final = text_type(_TIME_PATTERN, begin_of_time, examples=_TIME_EXAMPLES)
TIME_END: Final = text_type(_TIME_PATTERN, end_of_time, examples=_TIME_EXAMPLES)
