"""The pages about access: tokens, for admins, and sessions."""

import re
from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from api.access.auth import EXPIRES_IN_DAYS_MAX, GRANTED, Scope, Token, unacceptable_token
from api.access.granting import TOKEN_TOURNAMENTS_MAX
from api.access.sessions import Session
from api.http.forms import Form
from api.interface.direction import isolated
from api.interface.fields import FROM_1, SHORT, Field, Fields, one_of
from api.web.console.frame import CONSOLE, Viewer, console_page, data_table, way, ways
from api.web.console.inputs import Filling, Option, boxes, complaint, form, inputs
from api.web.html import Child, Html, element
from api.web.page import name_text, time_element
from engine.domain.errors import Fault
from engine.domain.terms import ActorId, name_fault
from engine.log.registry import RegistryEntry

TOKENS_SHOWN: Final = 500
"""Tokens on the page, the newest."""
_TOURNAMENT: Final = re.compile(r"tournament\[([0-9a-z-]{1,200})\]", re.ASCII)
_DAYS: Final = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)


def tokens_page(viewer: Viewer, tokens: Items[Token]) -> bytes:
    """The tokens within reach, newest first."""
    heads = [
        ("Token", "name"),
        ("Rights", ""),
        ("For", ""),
        ("Created", "when"),
        ("Ends", "when"),
        ("Actions", "action"),
    ]
    rows = [_token(token) for token in tokens[:TOKENS_SHOWN]]
    return console_page(
        viewer,
        "Tokens",
        ways(way("Create a token", f"{CONSOLE}/tokens/new")),
        data_table("Tokens", heads, rows, stacked=True),
    )


def _token(token: Token) -> list[Child]:
    bound = token.tournament_ids
    ends: Child = "never" if token.expires_at is None else time_element(token.expires_at)
    action: Child = element("a", "Revoke", href=f"{CONSOLE}/tokens/{token.token_id}/revoke", class_="act")
    if token.revoked_at is not None:
        ends, action = time_element(token.revoked_at), "revoked"
    return [
        name_text(token.name),
        token.scope.text,
        "all tournaments" if bound is None else f"{len(bound)} {'tournament' if len(bound) == 1 else 'tournaments'}",
        time_element(token.created_at),
        ends,
        action,
    ]


# ── Making one ──────────────────────────────────────────────────────────────────────────────────────────

_SCOPES: Final = tuple([scope.text for scope in GRANTED])
_SCOPE_WORDS: Final = {
    Scope.READ: "read: sees",
    Scope.WRITE: "write: sees, adds and records",
    Scope.ADMIN: "admin: everything that you may do",
}
TOKEN_FIELDS: Final = (
    Field("name", SHORT, "the person or program that uses it", required=True),
    Field("scope", one_of(*_SCOPES), "what it may do", required=True),
    Field("tournaments", SHORT, "their addresses, separated by commas; empty: all of yours"),
    Field("expires_in_days", FROM_1, "days until it ends; empty: never, if yours never ends"),
)
TOKEN_DAYS: Final = 90
"""The number that the form suggests."""


class AskedToken(Struct, frozen=True, kw_only=True):
    """The token that a form asks for. `slugs` empty: for all of the maker's tournaments."""

    name: str
    scope: Scope
    slugs: tuple[str, ...]
    expires_in_days: int | None


def asked_token(sent: Form) -> AskedToken:
    """The requested token. Raises Unacceptable, naming every fault."""
    typed = sent.get("tournaments", "").strip()
    slugs = [slug.strip() for slug in typed.split(",")] if typed else []
    slugs += [found[1] for name in sent if (found := _TOURNAMENT.fullmatch(name))]
    scope, days = sent.get("scope", ""), sent.get("expires_in_days", "").strip()
    faults = []
    if fault := name_fault(sent.get("name", "").strip()):
        faults.append(Fault("name", fault))
    if scope not in _SCOPES:
        faults.append(Fault("scope", f"must be {', '.join(_SCOPES)}"))
    if len(slugs) > TOKEN_TOURNAMENTS_MAX:
        faults.append(Fault("tournaments", f"must be at most {TOKEN_TOURNAMENTS_MAX}"))
    if any(name_fault(slug) for slug in slugs):
        faults.append(Fault("tournaments", "must be addresses, separated by commas"))
    if days and not (_DAYS.fullmatch(days) and int(days) <= EXPIRES_IN_DAYS_MAX):
        faults.append(Fault("expires_in_days", f"must be from 1 to {EXPIRES_IN_DAYS_MAX}"))
    if faults:
        raise unacceptable_token(*faults)
    return AskedToken(
        name=sent["name"],
        scope=Scope[scope.upper()],
        slugs=tuple(slugs),
        expires_in_days=int(days) if days else None,
    )


def new_token_page(viewer: Viewer, tournaments: Items[RegistryEntry], filling: Filling) -> bytes:
    """The form for a new token. `tournaments`: those of its maker, to choose from if they are not too many."""
    fields: Fields = TOKEN_FIELDS
    choices = {f"tournament[{one.slug}]": one.name for one in tournaments}
    if len(choices) <= TOKEN_TOURNAMENTS_MAX:
        fields = tuple([field for field in fields if field.name != "tournaments"])
    else:
        choices = {}
    options = {"scope": [Option("", ""), *[Option(scope.text, _SCOPE_WORDS[scope]) for scope in GRANTED]]}
    given = filling.given or {"expires_in_days": str(TOKEN_DAYS)}
    filling = replace(filling, options=options, given=given, labels={"scope": "Rights"})
    return console_page(
        viewer,
        "Create a token",
        element(
            "p",
            "Anyone with the token may do what it allows, without user name or password, until it ends or is revoked. "
            "It is for no more tournaments than yours, and does not outlive yours.",
            class_="warning",
        ),
        complaint(filling, [field.name for field in TOKEN_FIELDS]),
        form(
            filling,
            f"{CONSOLE}/tokens/new",
            "Create it",
            inputs(fields, filling),
            boxes("Tournaments; none: all of yours", "tournaments", choices, filling) if choices else None,
        ),
        element("p", element("a", "Cancel", href=f"{CONSOLE}/tokens"), class_="ways"),
    )


def made_token_page(viewer: Viewer, token: Token, text: str) -> bytes:
    """Shows a new token, once."""
    return console_page(
        viewer,
        "The token is created",
        element("p", f"{isolated(token.name)}, token {token.token_id}", class_="subject"),
        element("p", "Copy it now. It is not shown again: the service does not keep it.", class_="warning"),
        element("p", element("code", text, class_="secret"), class_="card"),
        ways(way("Back to the tokens", f"{CONSOLE}/tokens")),
    )


# ── Ending one ──────────────────────────────────────────────────────────────────────────────────────────


def revoke_page(viewer: Viewer, token: Token) -> bytes:
    """Asks for confirmation before the token is revoked."""
    own = " You signed in with it, so you will be signed out." if _is_own(viewer, token) else ""
    return console_page(
        viewer,
        "Revoke a token",
        element("p", f"{isolated(token.name)}, token {token.token_id}", class_="subject"),
        element(
            "p",
            f"Within five seconds it stops working, and its sessions and streams end.{own} A revoked token cannot "
            "be restored.",
            class_="warning",
        ),
        element(
            "form",
            element("p", element("button", "Revoke it", class_="chief danger"), class_="actions"),
            method="post",
            action=f"{CONSOLE}/tokens/{token.token_id}/revoke",
        ),
        element("p", element("a", "Cancel", href=f"{CONSOLE}/tokens"), class_="ways"),
    )


def _is_own(viewer: Viewer, token: Token) -> bool:
    return viewer.token.token_id == token.token_id


def sessions_page(viewer: Viewer, sessions: Items[Session], names: Mapping[ActorId, str]) -> bytes:
    """The open sessions of the viewer's own token; for admins, of all tokens within reach."""
    heads = [("Token", "name"), ("Since", "when"), ("Until", "when"), ("Actions", "action")]
    rows: list[list[Child]] = [
        [
            names[one.token_id],
            time_element(one.created_at),
            time_element(one.expires_at),
            _end(viewer, one, names[one.token_id]),
        ]
        for one in sessions
    ]
    return console_page(viewer, "Sessions", data_table("Open sessions", heads, rows, stacked=True))


def _end(viewer: Viewer, session: Session, name: str) -> Html:
    is_this = session.session_id == viewer.session.session_id
    text = "End this session" if is_this else "End"
    return element(
        "form",
        element("button", text, element("span", f" of {name}", class_="unseen")),
        method="post",
        action=f"{CONSOLE}/sessions/{session.session_id}/end",
    )
