"""The form of a request: bytes become named texts.

Pure. Strict and within bounds. A form that cannot be read at all is `Unreadable`. What the fields may hold is the
operations' affair (`api/interface/fields.py`).
"""

import struct
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

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
        raise unacceptable(repeated)
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


# ── Text ────────────────────────────────────────────────────────────────────────────────────────────────

_ID_DIGITS_MAX: Final = len(str(ID_MAX))


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


def unacceptable(faults: Iterable[Fault]) -> Unacceptable:
    """The refusal that lists these faults, each once."""
    return Unacceptable(
        "The request cannot be accepted as it is; correct the fields named.", list(dict.fromkeys(faults))
    )
