"""The form of a request: bytes become named texts, and named texts become ids, integers and times.

Pure. Strict and within bounds. A form that cannot be read at all is `Unreadable`. A field that is unknown, missing or
of the wrong type is `Unacceptable`; each fault is listed under the name of its form field. An empty field counts as
absent, unless an operation says otherwise.
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NoReturn, TypeVar

from msgspec import UNSET, UnsetType

from engine.domain.commands import Order
from engine.domain.errors import BodyTooLarge, Fault, Unacceptable, Unreadable
from engine.domain.terms import ID_MAX

BODY_BYTES_MAX: Final = 1_048_576
FORM_FIELDS_MAX: Final = 2_048
"""Fields of one form. More performances than that fit into the one field `result`, as a JSON object."""

Form = Mapping[str, str]
"""The decoded fields of a form by their names."""


def parse_form(body: bytes) -> dict[str, str]:
    """The fields of an application/x-www-form-urlencoded `body` in UTF-8, in the order sent; none if it is empty.

    Raises `BodyTooLarge`; `Unreadable` for anything but FORM_FIELDS_MAX pairs name=value joined by `&`, strictly
    percent-encoded and without U+0000; `Unacceptable` naming each field that is sent more than once.
    """
    if not body:
        return {}
    if len(body) > BODY_BYTES_MAX:
        raise BodyTooLarge(f"The body is larger than {BODY_BYTES_MAX} bytes; send less at a time.")
    if body.count(b"&") >= FORM_FIELDS_MAX:  # counted before anything is split: a flood of fields costs next to nothing
        raise Unreadable(f"The form has more than {FORM_FIELDS_MAX} fields; send fewer.")
    form: dict[str, str] = {}
    repeated = []
    for pair in body.split(b"&"):
        encoded_name, equals, value = pair.partition(b"=")
        if not encoded_name or not equals:
            raise Unreadable("The form cannot be read; send fields as name=value, joined by &.")
        name = _decoded(encoded_name)
        if name in form:
            repeated.append(Fault(shortened(name), "is sent more than once"))
        form[name] = _decoded(value)
    if repeated:
        _refuse(repeated)
    return form


def fingerprint(method: str, path: str, form: Form) -> bytes:
    """32 bytes that tell requests with the same idempotency key apart. They must stay the same for ever.

    SHA-256 of method, path, and the names and values of the fields in the order of their names. Each is UTF-8 after its
    length in bytes as a big-endian int32.
    """
    parts = [method, path]
    for name in sorted(form):
        parts += name, form[name]
    # "surrogatepass": a path may hold what is not UTF-8, and this function is not the one to refuse it.
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return sha256(b"".join([struct.pack(">i", len(part)) + part for part in encoded])).digest()


def parse_id(text: str) -> int | None:
    """`text` as an id, or None. An id has one spelling: ASCII digits without a leading zero."""
    if not 0 < len(text) <= _ID_DIGITS_MAX or not text.isascii() or not text.isdigit() or text[0] == "0":
        return None
    number = int(text)
    return number if number <= ID_MAX else None


# ── Fields ──────────────────────────────────────────────────────────────────────────────────────────────

_IdT = TypeVar("_IdT")
_CommandT = TypeVar("_CommandT", bound=Order)


class Fields:
    """A form while it is read. Each method returns one field, or notes a fault and returns a stand-in.

    The operation takes the fields that were asked for before `accept`.
    """

    def __init__(self, form: Form) -> None:
        self.faults: list[Fault] = []
        self._form = form
        self._taken: list[str] = []
        self._indexed: set[str] = set()

    def accept(self, command: _CommandT) -> _CommandT:
        """Returns `command` if its fields have no fault and the form has no others. Else raises `Unacceptable` with
        every fault."""
        for name in self._form:
            if name not in self._taken and name not in self._indexed:
                takes = f"it takes {', '.join(self._taken)}" if self._taken else "it takes none"
                self.fault(name, f"is not a field of this operation; {takes}")
        if self.faults:
            _refuse(self.faults)
        return command

    def fault(self, name: str, message: str) -> None:
        self.faults.append(Fault(shortened(name), message))

    def optional(self, name: str) -> str | None:
        self._taken.append(name)
        return self._form.get(name) or None

    def required(self, name: str) -> str:
        """The text of the field; the empty string, and a fault, if it is missing."""
        text = self.optional(name)
        if text is None:
            self.fault(name, "is required")
        return text or ""

    def clearable(self, name: str) -> str | None | UnsetType:
        """None if it is empty, UNSET if it is absent."""
        text = self.optional(name)
        return text if name in self._form else UNSET

    def id(self, name: str, kind: Callable[[int], _IdT]) -> _IdT | None:
        text = self.optional(name)
        return None if text is None else self.as_id(name, text, kind)

    def as_id(self, name: str, text: str, kind: Callable[[int], _IdT]) -> _IdT | None:
        """`text`, a part of the field, as an id; None, and a fault, if it is not one."""
        number = parse_id(text)
        if number is None:
            self.fault(name, f"{cited(text)} must be an id: a whole number from 1 up, in digits only")
            return None
        return kind(number)

    def required_integer(self, name: str) -> int:
        """A signed 64-bit integer; 0, and a fault, if the field is missing or not one."""
        text = self.required(name)
        number = int(text) if _INTEGER.fullmatch(text) else None
        if text and (number is None or not -ID_MAX - 1 <= number <= ID_MAX):
            self.fault(name, f"{cited(text)} must be a whole number of 64 bits")
        return number or 0

    def moment(self, name: str) -> datetime | None:
        """A time in UTC, written as yyyy-mm-dd HH:ii:ss; None if it is absent, and with a fault if it is not one."""
        text = self.optional(name)
        if text is None:
            return None
        if written := _MOMENT.fullmatch(text):
            year, month, day, hour, minute, second = map(int, written.groups())
            with suppress(ValueError):  # the 30th of February, 24 o'clock
                return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        self.fault(name, f"{cited(text)} must be a time in UTC of the form yyyy-mm-dd HH:ii:ss")
        return None

    def items(self, name: str, text: str, items_max: int) -> list[str]:
        """The items that commas separate in `text`, without white space around them; none in an empty text."""
        if not text:
            return []
        if text.count(",") >= items_max:  # judging would find this too, but only after work on every item
            self.fault(name, f"must be at most {items_max}")
            return []
        items = [item.strip() for item in text.split(",")]
        if "" in items:
            self.fault(name, "must not hold an empty item; put one comma between two items")
        return [item for item in items if item]

    def indexed(self, name: str, kind: Callable[[int], _IdT]) -> dict[_IdT, str]:
        """The fields name[<id>]=text by their ids, in the order sent; without the empty ones."""
        texts: dict[_IdT, str] = {}
        for field, text in self._form.items():
            if field.startswith(f"{name}[") and field.endswith("]"):
                self._indexed.add(field)
                index = self.as_id(field, field[len(name) + 1 : -1], kind)
                if text and index is not None:
                    texts[index] = text
        return texts


# ── Text ────────────────────────────────────────────────────────────────────────────────────────────────

_ID_DIGITS_MAX: Final = len(str(ID_MAX))
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MOMENT: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})")


def _decoded(encoded: bytes) -> str:
    """`encoded` without its percent-encoding. Raises `Unreadable`."""
    decoded = encoded.replace(b"+", b" ")
    try:
        if b"%" in decoded:
            # Python's escapes \xHH are exactly as strict as %HH must be. They are read in C, some three times as fast
            # as by `urllib.parse.unquote_to_bytes`, which lets bad ones pass.
            escaped = decoded.replace(b"\\", b"\\\\").replace(b"%", b"\\x")
            decoded = escaped.decode("unicode_escape").encode("latin-1")
        text = decoded.decode()
    except UnicodeDecodeError as error:
        if error.encoding == "utf-8":
            raise Unreadable("The form cannot be read; send it in UTF-8.") from None
        raise Unreadable("The form cannot be read; write two hexadecimal digits after each %.") from None
    if "\0" in text:
        raise Unreadable("The form cannot be read; it must not hold the character U+0000.")
    return text


_SHOWN_CHARACTERS_MAX: Final = 80


def shortened(text: str) -> str:
    """`text` as an answer may repeat it: never long."""
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else text[:_SHOWN_CHARACTERS_MAX] + "…"


def cited(value: int | str) -> str:
    """`value` as an answer may repeat it in a sentence: quoted if it is text, never long."""
    return repr(shortened(value)) if isinstance(value, str) else shortened(str(value))


def _refuse(faults: Sequence[Fault]) -> NoReturn:
    raise Unacceptable(
        "The request cannot be accepted as it is; correct the fields named.", list(dict.fromkeys(faults))
    )
