"""Forms made from the rows of operations: an input for each field, with its description, and the faults of a sent value
next to it."""

import re
import secrets
from collections.abc import Mapping
from collections.abc import Sequence as Items
from datetime import UTC, tzinfo
from typing import Final

from msgspec import Struct

from api.interface.fields import (
    BOOLEAN,
    COUNTS,
    DESCRIPTION,
    EXPIRES_ON,
    ID,
    IDS,
    LASTS,
    MOMENT,
    NO_TOTAL,
    SORT,
    Field,
    Fields,
    FieldType,
    is_number,
)
from api.interface.sports import ANY_SPORT, Sport
from api.web.console.field_words import COUNTS_TEXTS, FIELD_WORDS, FieldWords
from api.web.console.pickers import local_text
from api.web.html import Child, Html, Value, element, joined
from api.web.page import name_text
from engine.domain.errors import Fault
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import Sort

KEY: Final = "idempotency_key"
"""The hidden field that makes a form count once, however often it is sent."""
IF_MATCH: Final = "if_match"
"""The hidden field with the tag of the state from which the form was filled in."""
LOGO_FIELD: Final = "logo"
"""The field for a picture, in base64. A script offers to choose a file for it."""
JSON_FIELD: Final = "scorings"
"""The field for JSON of several lines."""
NAMES_FIELD: Final = "names"
"""The field for names, one a line."""
_KEY_BYTES: Final = 18
_OTHER: Final = re.compile(r"(\bbe sent with )(\w+)", re.ASCII)
"""A field, in what is wrong with another one."""


class Option(Struct, frozen=True):
    """A value that a field offers. `about`: what a short text does not say, below the field."""

    value: str
    text: str
    about: str = ""


_OPTIONS: Final[Items[tuple[FieldType, Items[Option]]]] = (
    (SORT, (Option("", ""), Option(Sort.DESC, "The highest is the best"), Option(Sort.ASC, "The lowest is the best"))),
    (COUNTS, (Option("", ""), *[Option(counts, text) for counts, text in COUNTS_TEXTS.items()])),
    (NO_TOTAL, (Option("", "A total of 0"), Option("none", "No total, behind all others"))),
    (BOOLEAN, (Option("", ""), Option("true", "Yes"), Option("false", "No"))),
    (LASTS, (Option("", "Ever"), *[Option(f"P{weeks}W", f"{weeks} weeks") for weeks in (4, 13, 26, 52, 104)])),
    (
        EXPIRES_ON,
        (
            Option("", ""),
            Option(ExpiresOn.MINUTE, "The same minute"),
            Option(ExpiresOn.DAY, "The end of the day (UTC)"),
            Option(ExpiresOn.WEEK, "The end of the week (UTC)"),
        ),
    ),
)
"""What a field of a type offers."""
_SAMPLES: Final = {"color": "1a56b0", "accent": "1a56b0"}


class Filling(Struct, frozen=True, kw_only=True):
    """A form as it is shown. `given`: the values of its fields; `faults`: what is wrong with them; `options`: the
    values that a field can be given. `labels`: of fields, in place of their names. `key`: its idempotency key.
    `sport`: whose words it is in. `zone`: of the times that are picked."""

    key: str
    given: Mapping[str, str] = {}
    if_match: str | None = None
    message: str | None = None
    faults: Items[Fault] = ()
    options: Mapping[str, Items[Option]] = {}
    labels: Mapping[str, str] = {}
    sport: Sport = ANY_SPORT
    zone: tzinfo = UTC

    def about(self, name: str) -> list[str]:
        """The faults of a field."""
        return [_in_words(fault.message, self) for fault in self.faults if fault.field == name]


class Beginning(Struct, frozen=True, kw_only=True):
    """The initial state of a form. `about`: what it changes. `if_match`: the tag of that. `fields`: replace the
    operation's. `labels`: of fields, in place of their names. `boxes`: the names of competitors to choose, by their
    fields. `shown`: above the form. `at_once`: the form is sent before its effects were seen."""

    about: str = ""
    shown: Html | None = None
    at_once: bool = False
    given: Mapping[str, str] = {}
    if_match: str | None = None
    options: Mapping[str, Items[Option]] = {}
    fields: Fields | None = None
    labels: Mapping[str, str] = {}
    boxes: Mapping[str, str] = {}


def new_key() -> str:
    """An idempotency key that no other form has."""
    return secrets.token_urlsafe(_KEY_BYTES)


def form(
    filling: Filling,
    address: str,
    button: str,
    *children: Child,
    is_chief: bool = True,
    is_final: bool = False,
    other: Html | None = None,
) -> Html:
    """The form, with the `button` that sends it to the address, and perhaps an `other` one. `is_final`: what it does
    cannot be taken back."""
    kind = ("chief danger" if is_final else "chief") if is_chief else None
    return element(
        "form",
        *children,
        element("input", type="hidden", name=KEY, value=filling.key),
        None if filling.if_match is None else element("input", type="hidden", name=IF_MATCH, value=filling.if_match),
        element("p", element("button", button, class_=kind), other, class_="actions"),
        method="post",
        action=address,
        class_="card fields" if any(children) else None,
    )


def complaint(filling: Filling, shown: Items[str]) -> Html | None:
    """The fault of the form as a whole, and the faults of fields that are not `shown`; None: it was not refused."""
    if filling.message is None:
        return None
    rest = [fault for fault in filling.faults if fault.field not in shown]
    told = [f"{_named(one.field, filling)}: {_in_words(one.message, filling)}" for one in rest]
    listed = element("ul", *[element("li", text) for text in told]) if rest else None
    return element("div", element("p", filling.message), listed, class_="fault summary", role="alert", tabindex=-1)


def inputs(fields: Items[Field], filling: Filling) -> Html:
    """An input for each field."""
    return joined([_field(field, filling) for field in fields])


def boxes(legend: str, field: str, texts: Mapping[str, str], filling: Filling) -> Html:
    """A checkbox for each of several things that can be chosen. `texts`: its text, by its field. `field`: all of them
    together."""
    wrong = filling.about(field)
    items = [
        element(
            "li",
            element(
                "label",
                element("input", type="checkbox", name=name, value="on", checked=name in filling.given),
                " ",
                name_text(text),
            ),
        )
        for name, text in texts.items()
    ]
    return element(
        "fieldset",
        element("legend", legend),
        element("p", f"{'; '.join(wrong)}.", class_="fault", id=f"fault-{field}") if wrong else None,
        element("ul", *items, class_="boxes"),
    )


def text_input(
    name: str, label: str, filling: Filling, about: str = "", *, required: bool = False, is_number: bool = False
) -> Html:
    """A one-line field that no row declares."""
    return _labelled(name, label, filling, about, required=required, sample=None, is_number=is_number)


def own_input(
    kind: str, name: str, label: str, filling: Filling, about: str, *children: Child, **attributes: Value
) -> Html:
    """An input, select or textarea that no row declares."""
    it = element(kind, *children, **attributes, **_attributes(name, filling, about))
    return _around(name, label, filling, about, it)


def _label(name: str, filling: Filling) -> str:
    words = FIELD_WORDS.get(name, FieldWords())
    return filling.labels.get(name) or filling.sport(words.label) or name.replace("_", " ").capitalize()


def _named(name: str, filling: Filling) -> str:
    """A name in a fault: that of a field as forms show it, or of anything else as it is."""
    return _label(name, filling) if name in FIELD_WORDS else name


def _in_words(message: str, filling: Filling) -> str:
    """What is wrong with a field, with the other one that it names as forms show that."""
    return _OTHER.sub(lambda found: f"{found[1]}“{_named(found[2], filling)}”", message)


def _field(field: Field, filling: Filling) -> Html:
    words = FIELD_WORDS.get(field.name, FieldWords())
    label = _label(field.name, filling)
    about = filling.sport(words.about) if field.name in FIELD_WORDS else field.about  # which may have a name in it
    options = filling.options.get(field.name) or next((offered for one, offered in _OPTIONS if one is field.type), None)
    if options is not None:
        return _chosen(field, label, about, options, filling)
    if field.name == LOGO_FIELD:
        text = element(
            "textarea",
            filling.given.get(LOGO_FIELD, ""),
            rows=3,
            spellcheck="false",
            **_attributes(LOGO_FIELD, filling, about),
        )
        return element("div", _around(LOGO_FIELD, label, filling, about, text), data_file=LOGO_FIELD)
    if field.type is DESCRIPTION or field.name == JSON_FIELD:
        rows = 14 if field.name in (JSON_FIELD, NAMES_FIELD) else 3
        given = filling.given.get(field.name, "")
        text = element("textarea", given, rows=rows, required=field.required, **_attributes(field.name, filling, about))
        return _around(field.name, label, filling, about, text)
    if field.type is MOMENT:
        picked = local_text(filling.given.get(field.name, ""), filling.zone)
        text = element("input", type="datetime-local", value=picked, **_attributes(field.name, filling, about))
        return _around(field.name, label, filling, about, text)
    takes_names = field.type is ID or field.type is IDS
    return _labelled(
        field.name,
        label,
        filling,
        about,
        required=not field.can_be_empty,
        sample=_SAMPLES.get(field.name),
        is_number=is_number(field.type) and not takes_names,
    )


def _labelled(
    name: str, label: str, filling: Filling, about: str, *, required: bool, sample: str | None, is_number: bool
) -> Html:
    line = element(
        "input",
        value=filling.given.get(name, ""),
        required=required,
        placeholder=sample,
        inputmode="numeric" if is_number else None,
        autocomplete="off",
        **_attributes(name, filling, about),
    )
    return _around(name, label, filling, about, line)


def _chosen(field: Field, label: str, about: str, options: Items[Option], filling: Filling) -> Html:
    given = filling.given.get(field.name, "")
    choices = [element("option", one.text, value=one.value, selected=one.value == given) for one in options]
    select = element("select", *choices, required=not field.can_be_empty, **_attributes(field.name, filling, about))
    told = [element("li", element("b", one.text), f": {one.about}") for one in options if one.about]
    more = element("details", element("summary", "What each means"), element("ul", *told)) if told else None
    return _around(field.name, label, filling, about, select, more)


def _attributes(name: str, filling: Filling, about: str) -> dict[str, str | None]:
    is_wrong = bool(filling.about(name))
    said = ([f"about-{name}"] if about else []) + ([f"fault-{name}"] if is_wrong else [])
    return {
        "name": name,
        "id": f"field-{name}",
        "aria_describedby": " ".join(said) or None,
        "aria_invalid": "true" if is_wrong else None,
    }


def _around(name: str, label: str, filling: Filling, about: str, *it: Html | None) -> Html:
    wrong = filling.about(name)
    return element(
        "div",
        element("label", label, for_=f"field-{name}"),
        *it,
        element("p", f"{'; '.join(wrong)}.", class_="fault", id=f"fault-{name}") if wrong else None,
        element("p", about, class_="about", id=f"about-{name}") if about else None,
        class_="field",
    )
