"""The pages for bringing the file of another program: the file, then what it would make and the form that brings it."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final, get_args

from api.imports.bringing import BringingPlan
from api.imports.dates import DateOrder
from api.interface.fields import SHORT, Field
from api.web.console.beginnings import kind_texts
from api.web.console.frame import Venue, Viewer, console_page
from api.web.console.import_page import MAKE, STEP, asked_part, hidden
from api.web.console.inputs import Filling, Option, complaint, form, inputs
from api.web.html import element
from api.web.page import number_text

BELOW: Final = "/bring"
FILE: Final = "file"
"""The field that has the file: its text or, if it has a name, its bytes in base64."""
FILE_NAME: Final = "file_name"
BROUGHT_BYTES_MAX: Final = 716_800
"""Bytes of a file that the console brings: in base64 and percent-encoded, they fit into a body."""
LIKE_OPTION: Final = Field("like", SHORT, "what is played, if the file does not tell")
NAME_OPTION: Final = Field("as", SHORT, "the name of the file's only ranking; absent: that in the file")
DATES_OPTION: Final = Field("dates", SHORT, "the order of dates such as 01/08/2026, if none of them shows it")
_TITLE: Final = "Bring a file"
_FIELDS: Final = (LIKE_OPTION, NAME_OPTION, DATES_OPTION)


def command_text(slug: str, given: Mapping[str, str]) -> str:
    """The command that does what the form would do."""
    options = [f"--{field.name}={given[field.name]}" for field in _FIELDS if given.get(field.name)]
    return shlex.join(["tallybook", "bring", given.get(FILE_NAME) or "FILE", slug, *options])


def bring_page(viewer: Viewer, venue: Venue, filling: Filling) -> bytes:
    """The form for the file."""
    text = element("textarea", name=FILE, id="field-file", rows=12, spellcheck="false")
    beyond = f"A page brings up to {number_text(BROUGHT_BYTES_MAX)} bytes. Use the command line: "
    file = element(
        "div",
        element("label", "The file, or its text", for_="field-file"),
        text,
        element("input", type="hidden", name=FILE_NAME),
        class_="field",
        data_file=FILE,
        data_most=BROUGHT_BYTES_MAX,
        data_beyond=beyond + command_text(venue.slug, {}),
    )
    options = {
        LIKE_OPTION.name: [Option("", ""), *[Option(name, *texts) for name, *texts in kind_texts()]],
        DATES_OPTION.name: [
            Option("", ""),
            *[Option(one, one.replace("-", " ").capitalize()) for one in get_args(DateOrder)],
        ],
    }
    shown = Filling(
        key=filling.key,
        given={**filling.given, FILE: ""},
        message=filling.message,
        faults=filling.faults,
        options=options,
    )
    return console_page(
        viewer,
        _TITLE,
        element(
            "p",
            "A spreadsheet whose rows are competitions, IOF XML, LENEX, TRF, srk, football.json, or CLICS.",
        ),
        complaint(shown, [field.name for field in _FIELDS]),
        form(shown, venue.address(BELOW), "Show what it makes", file, inputs(_FIELDS, shown)),
        element("p", element("a", "Cancel", href=venue.address("/imports")), class_="ways"),
        venue=venue,
    )


def offer_page(viewer: Viewer, venue: Venue, plan: BringingPlan, told: Iterable[str], filling: Filling) -> bytes:
    """What the file would make, and the button that makes it."""
    carried = [hidden(name, filling.given.get(name, "")) for name in (FILE, FILE_NAME, *[one.name for one in _FIELDS])]
    return console_page(
        viewer,
        _TITLE,
        element("p", f"{plan.format}; it would make this. Nothing is recorded yet.", class_="subject"),
        element("ul", *[element("li", sentence) for sentence in told]),
        form(filling, venue.address(BELOW), "Bring it", *carried, hidden(STEP, MAKE), *asked_part(plan.questions)),
        element("p", element("a", "Start again", href=venue.address(BELOW)), class_="ways"),
        venue=venue,
    )
