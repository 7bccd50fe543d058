"""The pages for importing from CSV: the text, its effects, and the form that imports it; and what they say of
competitors. Pure."""

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct

from api.desk.fingerprints import fingerprint
from api.imports.competitors import CompetitorLine
from api.imports.readers.brought import bounded
from api.interface.fields import BOOLEAN, Field
from api.web.console.frame import Venue, Viewer, console_page, data_table
from api.web.console.inputs import Filling, complaint, form, inputs
from api.web.html import Child, Html, element
from api.web.page import number_text
from engine.domain.errors import Fault
from engine.domain.terms import ITEMS_MAX
from projections.answers.names import NamesById

CSV: Final = "csv"
"""The field that has the text."""
STEP: Final = "step"
"""The hidden field that is set once the effects were seen."""
BACK: Final = "back"
"""What it is set to where the text is to be changed."""
MAKE: Final = "import"
"""What it is set to where the lines are to be made."""
LEAVE_OUT: Final = Field("leave_out", BOOLEAN, "whether columns that mean nothing here are left out")
SURE: Final = "sure"
"""The tick that accepts what was asked: its value names the questions, so it accepts no others."""
ROWS_SHOWN: Final = 200
"""Lines whose effects are shown."""


class Offer(Struct, frozen=True, kw_only=True):
    """An import that the console offers. `address`: of its pages; `back`: of the page that leads to them. `inputs`: of
    its form; `fields`: their names; `source`: what they hold."""

    title: str
    address: str
    back: str
    inputs: tuple[Html, ...]
    fields: tuple[str, ...]
    source: str = "text"


class Look(Struct, frozen=True, kw_only=True):
    """The effects of a form: the first new lines as `rows` of a table with `heads`, the sentence about all of them, and
    the button that makes them. `warning`: what should be looked at twice."""

    said: str
    button: str
    caption: str
    heads: Items[tuple[str, str]]
    rows: Items[list[Child]]
    warning: str | None = None


def import_page(viewer: Viewer, venue: Venue, offer: Offer, filling: Filling) -> bytes:
    """The form of the import."""
    return console_page(
        viewer,
        offer.title,
        complaint(filling, offer.fields),
        form(filling, offer.address, "Check them first", *offer.inputs),
        element("p", element("a", "Cancel", href=offer.back), class_="ways"),
        venue=venue,
    )


def csv_input(filling: Filling, label: str, about: Child) -> Html:
    """The field for the text, or for a file. `about`: what it looks like."""
    text = element(
        "textarea",
        filling.given.get(CSV, ""),
        name=CSV,
        id="field-csv",
        rows=12,
        required=True,
        spellcheck="false",
        aria_describedby="about-csv",
    )
    return element(
        "div",
        element("label", label, for_="field-csv"),
        text,
        element("p", about, class_="about", id="about-csv"),
        class_="field",
        data_file=CSV,
    )


def look_page(
    viewer: Viewer,
    venue: Venue,
    offer: Offer,
    look: Look,
    warning: str,
    filling: Filling,
    *,
    new: int,
    already: int,
    done: str,
    left_out: Items[str],
    questions: Items[Fault],
) -> bytes:
    """The effects of the form, and the button that makes them: `new` lines, apart from those that were `done` already.
    `left_out`: columns. `questions`: about lines."""
    rest = new - len(look.rows)
    carried = [hidden(name, filling.given[name]) for name in offer.fields if name in filling.given]
    return console_page(
        viewer,
        offer.title,
        element("p", f"{look.said} Nothing is recorded yet.", class_="subject"),
        element("p", f"{number_text(already)} in the {offer.source} are already {done}.") if already else None,
        element("p", f"Left out: {', '.join(left_out)}.") if left_out else None,
        *[element("p", text, class_="warning") for text in (look.warning, warning) if text],
        data_table(look.caption, look.heads, look.rows, stacked=True) if look.rows else None,
        element("p", f"{number_text(rest)} more are not shown here.") if rest else None,
        form(filling, offer.address, f"Back to the {offer.source}", *carried, hidden(STEP, BACK), is_chief=False),
        form(filling, offer.address, look.button, *carried, hidden(STEP, MAKE), *asked_part(questions))
        if new
        else None,
        venue=venue,
    )


def asked_part(questions: Items[Fault]) -> Iterator[Html]:
    """What is asked, and the tick without which nothing is sent."""
    if questions:
        said = [f"{one.field[0].upper()}{one.field[1:]}: {one.message}" for one in questions]
        box = element("input", type="checkbox", name=SURE, value=_named(questions), required=True)
        yield from [element("p", one, class_="warning") for one in bounded(said, "are asked about")]
        yield element("ul", element("li", element("label", box, " Yes, all of this is right")), class_="boxes")


def is_sure(given: Mapping[str, str], questions: Items[Fault]) -> bool:
    """Whether the form accepts these questions; with none, every form does."""
    return not questions or given.get(SURE) == _named(questions)


def _named(questions: Items[Fault]) -> str:
    said = "\n".join(f"{one.field}: {one.message}" for one in questions)
    return fingerprint("IMPORT", "sure", {"questions": said}).hex()


def hidden(name: str, value: str) -> Html:
    """A hidden field, which passes a value on."""
    return element("input", type="hidden", name=name, value=value)


def leaves_out(given: Mapping[str, str]) -> bool:
    """Whether the fields of the form say that columns are left out."""
    return given.get(LEAVE_OUT.name) == "true"


def competitors_offer(venue: Venue, filling: Filling) -> Offer:
    return Offer(
        title=venue.sport("Import {teams}"),
        address=venue.address("/competitors/import"),
        back=venue.address("/competitors"),
        inputs=(
            csv_input(
                filling,
                venue.sport("{Teams}, as CSV"),
                "The first line is name, or name,tags,color,parent,key. Tags are separated by |; a parent is the name "
                f"of another. Up to {number_text(ITEMS_MAX)} lines.",
            ),
            inputs((LEAVE_OUT,), filling),
        ),
        fields=(CSV, LEAVE_OUT.name),
    )


def competitors_look(names: NamesById, new: Items[CompetitorLine]) -> Look:
    namesakes = [one.name for one in new if one.is_namesake]
    named = ", ".join(namesakes[:3]) + (" …" if len(namesakes) > 3 else "")
    return Look(
        said=f"{number_text(len(new))} would be registered.",
        button=f"Register {number_text(len(new))}",
        caption="To register",
        heads=[("Name", "name"), ("Tags", ""), ("Color", ""), ("Parent", "")],
        rows=[[one.name, ", ".join(one.tags), one.color, _parent(names, one)] for one in new[:ROWS_SHOWN]],
        warning=f"There is already one with this name: {named}." if named else None,
    )


def _parent(names: NamesById, line: CompetitorLine) -> str:
    if isinstance(line.parent, CompetitorLine):
        return line.parent.name
    return "" if line.parent is None else names.competitor(line.parent).name
