"""The interface for people, on one page: a table from nothing, what all requests have in common, each operation with an
example, statuses, and words. Made from the OpenAPI document and from what was recorded.

At first sight it is short: an operation is a line that opens. An address with the id of an operation opens it, without
scripts too, because the id stands on what is inside.
"""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Final

from api.interface import openapi
from api.web.docs.examples import Example, recorded
from api.web.docs.glossary import WORDS
from api.web.docs.operations_part import command_shown, example_shown, group_shown
from api.web.files import StaticFiles
from api.web.html import Child, Html, document, element, joined
from api.web.page import head_of

_LEAD: Final = (
    "Tallybook keeps the rankings of tournaments. Every change is an event, which is never lost or altered. So it can "
    "tell who stands where, now or at any past moment, and why."
)
_ABOUT_EXAMPLES: Final = (
    "The examples continue with the table above, in a shell that has its variables. Their answers were recorded from "
    "a running service."
)
_STEPS: Final = (
    (
        "Register competitors",
        "registerCompetitor",
        "Three at once. The answer to a change shows everything it changed; with `Prefer: return=minimal`, only the "
        "ids of what it created.",
    ),
    ("Create a ranking", "createRanking", "It has a main unity, the column that decides: here, points."),
    (
        "Add points",
        "addPoints",
        "The answer comes once they are on disk, here as event 6. You choose the `Idempotency-Key`. If you send the "
        "request again with the same key, nothing is added twice.",
    ),
    ("Read the standings", "showStandings", "They are always current. All times are UTC, even without a zone."),
    ("Ask why", "explain", "Why is Ben second? Because of these events, which are kept permanently."),
)
"""The steps to a first table: a heading, an operation, and a note."""
_SETUP: Final = """HOST=http://localhost:8080
SLUG=chess-club-ladder
TOKEN=tb_…
TOURNAMENT=$HOST/tournament/$SLUG
BOARD=$HOST/board/$SLUG"""
_MADE_BY_OPERATORS: Final = (
    'tallybook tournament create "Chess Club Ladder"\n'
    "tallybook token create newcomer --scope admin --tournament chess-club-ladder"
)
_PARTS: Final = {
    "begin": "A first table",
    "requests": "All requests",
    "operations": "Operations",
    "statuses": "Statuses",
    "words": "Words",
}
"""The parts of the page, by their ids."""
_REQUESTS: Final = {
    "Token": (
        "Send it as `Authorization: Bearer …`. Its scope is read, write or admin; each includes the ones before it."
    ),
    "Bodies": (
        "JSON objects (`application/json`), or forms (`application/x-www-form-urlencoded`, UTF-8) with the same "
        "fields: lists with commas, deltas as JSON text."
    ),
    "Answers": (
        "JSON with `status`, `message` and the data requested. In a refusal, `errors` names every field that is wrong."
    ),
    "Times": (
        "All are UTC. Times of the form `2026-05-02 17:00:00` have no zone: append `Z` before you pass them to "
        "JavaScript, which would take them for local time. Times you send may end in `Z` or an offset such as `+02:00`."
    ),
    "Retries": (
        "Send an `Idempotency-Key` of your own with every change. After a 500, or no answer at all, send the change "
        "again with the same key: it is applied once."
    ),
    "Ids": (
        "Ids of competitors, competitions, rankings and unities are unique within their tournament, which every path "
        "names. They, and totals, are integers of 64 bits."
    ),
    "Unchanged": (
        "Reads have an `ETag`. Send it as `If-None-Match` to get 304 while nothing has changed. Send it as `If-Match` "
        "with a change to get 412 if something has."
    ),
    "Short answers": (
        "The answer to a change shows everything it changed. `Prefer: return=minimal` asks for the ids of what was "
        "created only."
    ),
}
"""The rules common to all requests."""
_STATUSES: Final = {
    200: "Done. A change is on disk, once; Tallybook-Sequence names its event, the last one of several.",
    304: "Nothing has changed since the answer whose ETag you sent.",
    400: "The request cannot be understood: message says why.",
    401: "The token is missing or invalid.",
    403: "The token's scope does not allow this.",
    404: "It does not exist, or this token has no access to it.",
    406: "The stream has no format that Accept allows.",
    408: "The request arrived too slowly.",
    409: "It conflicts with the current state, for example a closed ranking.",
    412: "The resource has changed since its ETag was read: read it again, then decide.",
    413: "The body is too large.",
    414: "The address is too long.",
    415: "The media type of the body is not supported.",
    422: "Some fields are not acceptable; errors lists each.",
    429: "Too many requests; send it again after Retry-After.",
    431: "The headers of the request are too large.",
    500: "It may or may not have been done. Send it again with the same Idempotency-Key: it is done once.",
    503: "Not done by this attempt; send it again after Retry-After.",
}


def docs_page(static: StaticFiles) -> bytes:
    """The page, in HTML."""
    return documentation(static, "The interface of Tallybook", _body())


@cache
def _body() -> Html:
    """What it shows. Making it takes long."""
    described = openapi.described()
    version = described["info"]["version"]
    return joined(
        (
            element("a", "Skip to the content", href="#content", class_="skip"),
            element(
                "header",
                element("p", f"Tallybook {version}", class_="tournament"),
                element("h1", "The interface"),
                element("p", _LEAD, class_="lead"),
                _contents(),
            ),
            element(
                "main",
                _first_table(),
                _requests(),
                element("h2", _PARTS["operations"], id="operations"),
                element("p", _ABOUT_EXAMPLES),
                *[group_shown(described, name, about) for name, about in openapi.RESOURCES.items()],
                _statuses(),
                _words(),
                id="content",
            ),
            element("p", role="status", class_="unseen", id="said"),
        )
    )


def documentation(static: StaticFiles, title: str, body: Html, *, kind: str = "docs") -> bytes:
    """A whole page of the documentation."""
    head = head_of(static, title, style="docs.css", script="docs.js")
    return document(head, element("body", body, class_=kind))


# ── Before the operations ───────────────────────────────────────────────────────────────────────────────


def _contents() -> Html:
    links = [element("a", text, href=f"#{to}") for to, text in _PARTS.items()]
    links.append(element("a", "openapi.json", href="openapi.json"))
    return element("nav", element("ul", *[element("li", a) for a in links]), class_="tabs", aria_label="On this page")


def _first_table() -> Html:
    steps = [
        element(
            "li",
            element("h3", title),
            element("p", marked(about), " ", _more(operation_id)),
            *example_shown(_first(operation_id)),
        )
        for title, operation_id, about in _STEPS
    ]
    return element(
        "section",
        element("h2", _PARTS["begin"], id="begin"),
        _paragraph(
            "You need a tournament and a token. The operator of the service creates both on the command line; tokens "
            "can also be created in the console:"
        ),
        command_shown("Create a tournament and a token", _MADE_BY_OPERATORS),
        _paragraph(
            "Tell the shell the service's address, the tournament and the token. After `make demo`, which prints a "
            "token, the tournament is `thursday-league`."
        ),
        command_shown("Set the variables", _SETUP),
        element("ol", *steps, class_="steps"),
    )


def _first(operation_id: str) -> Example:
    return recorded()[operation_id][0]


def _more(operation_id: str) -> Html:
    return element("a", "More", element("span", f" about {operation_id}", class_="unseen"), href=f"#{operation_id}")


def _requests() -> Html:
    said = _facts((name, marked(text)) for name, text in _REQUESTS.items())
    return element("section", element("h2", _PARTS["requests"], id="requests"), said)


def _facts(pairs: Iterable[tuple[Child, Child]]) -> Html:
    """Names with what is to be known of them."""
    return element("dl", *[element("div", element("dt", name), element("dd", said)) for name, said in pairs])


def marked(text: str) -> Html:
    """Text in which `what a program reads or writes` stands between backticks."""
    return joined([element("code", part) if number % 2 else part for number, part in enumerate(text.split("`"))])


def _paragraph(text: str) -> Html:
    return element("p", marked(text))


# ── After the operations ────────────────────────────────────────────────────────────────────────────────


def _statuses() -> Html:
    rows = [
        (element("span", element("strong", status), f" {HTTPStatus(status).phrase}", id=f"status-{status}"), said)
        for status, said in _STATUSES.items()
    ]
    return element("section", element("h2", _PARTS["statuses"], id="statuses"), _facts(rows))


def _words() -> Html:
    words = _facts((word, marked(meaning)) for word, meaning in WORDS.items())
    return element("section", element("h2", _PARTS["words"], id="words"), words)
