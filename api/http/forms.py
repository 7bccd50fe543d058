"""The fields of a request: the bytes of a form become named texts, those of a JSON object named values.

Pure. Strict and within bounds. A body that cannot be read at all is `Unreadable`. The operations define the values that
fields may have, and the form text that each JSON value stands for (`api/interface/fields.py`).
"""

import re
from binascii import a2b_qp
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from api.http.errors import BodyTooLarge
from engine.domain.errors import Fault, Unreadable
from engine.domain.faults import shortened, unacceptable

BODY_BYTES_MAX: Final = 1_048_576
FORM_FIELDS_MAX: Final = 2_048
"""Fields of one form or JSON object. More performances than that fit into the one field `result`, as a JSON object."""

JSON_UNNAMED: Final = "The body looks like JSON; send it with the header Content-Type: application/json."
_NOT_A_FORM: Final = "The form cannot be read; send fields as name=value, joined by &."

Form = Mapping[str, str]
"""The decoded fields of a form by their names."""
JsonFields = Mapping[str, bytes]
"""The values of a JSON object by their names, each as it was sent: JSON in UTF-8, without white space around it."""


def parse_form(body: bytes, lists: frozenset[str] = frozenset()) -> dict[str, str]:
    """The fields of an application/x-www-form-urlencoded `body` in UTF-8, in the order sent; none if it is empty. Those
    in `lists` may be sent several times: their texts are joined by commas.

    Raises `BodyTooLarge`; `Unreadable` for anything but FORM_FIELDS_MAX pairs name=value joined by `&`, strictly
    percent-encoded and without U+0000; `Unacceptable` naming each other field that is sent more than once.
    """
    if not body:
        return {}
    if len(body) > BODY_BYTES_MAX:
        raise BodyTooLarge(f"The body is larger than {BODY_BYTES_MAX} bytes; send less at a time.")
    pairs = body.split(b"&", FORM_FIELDS_MAX)
    if len(pairs) > FORM_FIELDS_MAX:
        raise Unreadable(f"The form has more than {FORM_FIELDS_MAX} fields; send fewer.")
    form: dict[str, str] = {}
    repeated: list[tuple[str, str]] = []
    for pair in pairs:
        encoded_name, equals, value = pair.partition(b"=")
        if not encoded_name or not equals:
            raise Unreadable(JSON_UNNAMED if body.startswith(b"{") else _NOT_A_FORM)
        name = _decoded(encoded_name)
        if name not in form:
            form[name] = _decoded(value)
        else:
            repeated.append((name, _decoded(value)))
    if repeated:
        _join(form, repeated, lists)
    return form


def _join(form: dict[str, str], repeated: list[tuple[str, str]], lists: frozenset[str]) -> None:
    """Adds the repeated fields to those in the form. Raises Unacceptable."""
    texts: dict[str, list[str]] = {}
    faults = []
    for name, text in repeated:
        if name in lists or name.endswith("[]"):  # that is no field, and should be refused as one
            texts.setdefault(name, [form[name]]).append(text)
        else:
            faults.append(Fault(shortened(name), "is sent more than once"))
    if faults:
        raise unacceptable(faults)
    form |= {name: ",".join(its) for name, its in texts.items()}


class JsonObjects:
    """Reads JSON objects that have some of the fields `names`, or texts under other names.

    A decoder that takes any object would silently keep the last of several values of a key, and take long for an object
    with a hundred thousand keys. This one decodes only the fields in `names`, and goes through the keys itself.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._decoder = _decoder_of(self._names)

    def read_body(self, body: bytes) -> dict[str, bytes]:
        """The fields of an application/json `body` in UTF-8; none if it is empty.

        Raises `BodyTooLarge`; `Unreadable` for anything but a JSON object of at most FORM_FIELDS_MAX fields; and as
        `read`.
        """
        if not body:
            return {}
        if len(body) > BODY_BYTES_MAX:
            raise BodyTooLarge(f"The body is larger than {BODY_BYTES_MAX} bytes; send less at a time.")
        try:
            body.decode()  # the decoder passes over strings that it need not decode
            return self.read(body)
        except UnicodeDecodeError:
            raise Unreadable("The body cannot be read; send it in UTF-8.") from None
        except RecursionError:
            raise Unreadable("The body cannot be read; it is nested too deeply.") from None
        except ValueError as error:  # msgspec's errors are ValueErrors
            raise Unreadable(f"The body cannot be read as a JSON object: {shortened(str(error))}.") from None

    def read(self, text: bytes) -> dict[str, bytes]:
        """The fields of `text` in the order sent, each value as it was sent.

        An object or array under a name outside `names` ends the reading: only its first byte is returned.

        Raises ValueError and RecursionError if `text` is not a JSON object; `Unreadable` for more than FORM_FIELDS_MAX
        fields; `Unacceptable` naming fields that are sent more than once.
        """
        values = self._decoder.decode(text)
        fields: dict[str, bytes] = {}
        faults = []
        position = 0
        while begun := _KEY.match(text, position):
            name: str = _TEXT.decode(begun[1])
            position = begun.end()
            value = bytes(getattr(values, name)) if name in self._names else b""
            at_end = False
            if not (value and text.startswith(value, position) and _END.match(text, position + len(value))):
                scalar = _SCALAR.match(text, position)
                at_end = scalar is None  # nobody knows where it ends
                value = scalar[0] if scalar else text[position : position + 1]
                if name in self._names:  # the decoder has kept another value
                    faults.append(Fault(name, "is sent more than once"))
            if name in fields:
                faults.append(Fault(shortened(name), "is sent more than once"))
            fields[name] = value
            if at_end:
                break
            position += len(value)
            if len(fields) + len(faults) > FORM_FIELDS_MAX:
                raise Unreadable(f"The body has more than {FORM_FIELDS_MAX} fields; send fewer.")
        if faults:
            raise unacceptable(faults)
        return fields


@cache  # defining a structure takes longer than everything else at the start of a service
def _decoder_of(names: frozenset[str]) -> msgspec.json.Decoder[Any]:
    fields = [(name, msgspec.Raw, msgspec.Raw(b"")) for name in names]
    return msgspec.json.Decoder(msgspec.defstruct("Fields", fields))


_TEXT: Final = msgspec.json.Decoder(str)
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
"""The group is possessive to save memory. Where Python before 3.11.5 misreads it (see `preferences.py`), nothing could
match anyway: a repetition can only fail before a line feed or at the end."""
_KEY: Final = re.compile(rb"\s*+[{,]\s*+(%b)\s*+:\s*+" % _STRING)
_SCALAR: Final = re.compile(rb"%b|[^\s,}{\[]++" % _STRING)
_END: Final = re.compile(rb"\s*+[,}]")


# ── Text ────────────────────────────────────────────────────────────────────────────────────────────────

# Quoted-printable (RFC 2045) has = for %, and its decoder is in C: some 15 times as fast as `urllib.parse`. There, =
# and line breaks have a meaning that they do not have here, so they become U+0000, which is looked for anyway.
_AS_QUOTED_PRINTABLE: Final = bytes.maketrans(b"+%=\n\r", b" =\0\0\0")


def _decoded(encoded: bytes) -> str:
    """`encoded` without its percent-encoding. Raises `Unreadable`."""
    decoded = encoded.translate(_AS_QUOTED_PRINTABLE)
    if b"=" in decoded:
        decoded = a2b_qp(decoded)
        # It makes a = of a bad escape, and nothing of a % at the end. The others are counted only then, byte by byte.
        if (b"=" in decoded or encoded.endswith(b"%")) and len(encoded) - len(decoded) != 2 * encoded.count(b"%"):
            raise Unreadable("The form cannot be read; write two hexadecimal digits after each %.")
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        raise Unreadable("The form cannot be read; send it in UTF-8.") from None
    if "\0" in text:
        escaped = encoded.replace(b"=", b"%3D").replace(b"\n", b"%0A").replace(b"\r", b"%0D")
        if escaped == encoded:
            raise Unreadable("The form cannot be read; it must not contain the character U+0000.")
        return _decoded(escaped)
    return text
