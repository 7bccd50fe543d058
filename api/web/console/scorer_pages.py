"""The pages of scorers' links: those of a tournament, a new one with its QR code, and what opens first for a scorer."""

from collections.abc import Sequence as Items
from functools import partial
from typing import Final

import segno

from api.access.auth import ScorerPart, Token
from api.interface.direction import isolated
from api.web.console.frame import CONSOLE, Venue, Viewer, console_page, data_table, narrow_page, way, ways
from api.web.console.inputs import Filling, complaint, form, own_input
from api.web.console.sheet_page import round_text
from api.web.files import StaticFiles
from api.web.html import Child, Html, element
from api.web.page import name_text
from projections.answers.rounds import Round

FIELDS_OF_LINKS: Final = ("name", "round", "division", "until")
_NAME: Final = "the name under which results are saved"
_DIVISION: Final = "a number; empty: all in that round"
_UNTIL: Final = "the last day on which it works"
_QUIET: Final = 4
"""Modules around a QR code that stay light."""
_LINK_CHARACTERS_DRAWN: Final = 300


def scorers_page(viewer: Viewer, venue: Venue, rounds: Items[Round], links: Items[Token], filling: Filling) -> bytes:
    """The links in use, and the form for a new one."""
    given = {name: filling.given.get(name, "") for name in FIELDS_OF_LINKS}
    chosen = [
        element("option", text, value=key, selected=key == given["round"])
        for key, text in (("", "All rounds of a division"), *[(one.key, round_text(venue, one)) for one in rounds])
    ]
    box = partial(own_input, "input")
    heads: list[tuple[Child, str]] = [("Who", "name"), ("For", ""), ("Until", "when"), ("Actions", "action")]
    return console_page(
        viewer,
        "Scorers",
        element(
            "p",
            venue.sport(
                "With a link, somebody can enter the results of its {matches} until that day, and do nothing else."
            ),
        ),
        data_table("Links in use", heads, [_link(venue, one) for one in links]) if links else None,
        complaint(filling, FIELDS_OF_LINKS),
        form(
            filling,
            venue.address("/scorers"),
            "Make a link",
            box("name", "For whom", filling, _NAME, value=given["name"], required=True, autocomplete="off"),
            own_input("select", "round", "Round", filling, "", *chosen),
            box("division", "Division", filling, _DIVISION, value=given["division"], inputmode="numeric"),
            box("until", "Until", filling, _UNTIL, value=given["until"], required=True, type="date"),
        ),
        ways(way("Back", venue.address("/matchday"))),
        venue=venue,
    )


def _link(venue: Venue, token: Token) -> list[Child]:
    return [
        name_text(token.name),
        _part_text(token.part or ScorerPart()),
        None if token.expires_at is None else venue.words.time_element(token.expires_at),
        element(
            "form",
            element("button", "End", element("span", f" the link of {token.name}", class_="unseen")),
            method="post",
            action=venue.address(f"/scorers/{token.token_id}/revoke"),
        ),
    ]


def _part_text(part: ScorerPart) -> str:
    texts = [] if part.round is None else [f"round {part.round}"]
    texts += [] if part.group_id is None else [f"division {part.group_id}"]
    return ", ".join(texts)


def made_link_page(viewer: Viewer, venue: Venue, token: Token, link: str) -> bytes:
    """Shows a new link, once."""
    return console_page(
        viewer,
        "The link is made",
        element("p", f"{isolated(token.name)}: {_part_text(token.part or ScorerPart())}", class_="subject"),
        element("p", "Let the phone read it now, or send the link. It is not shown again.", class_="warning"),
        drawn(link) if len(link) <= _LINK_CHARACTERS_DRAWN else None,
        element("p", element("code", link, class_="secret"), class_="card"),
        ways(way("Back to the scorers", venue.address("/scorers"))),
        venue=venue,
    )


def drawn(link: str) -> Html:
    """The QR code of a link."""
    rows = [bytes(row) for row in segno.make(link, micro=False).matrix]
    size = len(rows) + 2 * _QUIET
    dark = "".join(
        f"M{x + _QUIET} {y + _QUIET}h1v1h-1z" for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark
    )
    return element(
        "svg",
        element("path", d=dark),
        viewBox=f"0 0 {size} {size}",
        role="img",
        aria_label="QR code of the link",
        class_="qr",
    )


def link_page(static: StaticFiles, name: str, text: str) -> bytes:
    """What a scorer's link opens: one button leads to the matches."""
    return narrow_page(
        static,
        "Enter results",
        element("p", f"As {isolated(name)}"),
        element(
            "form",
            element("input", type="hidden", name="token", value=text),
            element("input", type="hidden", name="to", value=CONSOLE),
            element("p", element("button", "Enter results", class_="chief")),
            method="post",
            action=f"{CONSOLE}/sign-in",
        ),
    )
