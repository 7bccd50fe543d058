"""Tokens over HTTP, within the reach of the token that asks."""

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from api.access import granting
from api.access.auth import EXPIRES_IN_DAYS_MAX, GRANTED, Scope, Token
from api.access.granting import TOKEN_TOURNAMENTS_MAX
from api.interface.declarations import Acting, Action
from api.interface.fields import NAME, Empty, Field, list_of_texts, number_up_to, one_of
from api.interface.rendering import Answer, Instant
from engine.domain.terms import SLUG_PATTERN
from engine.domain.times import instant, instant_or_none

_SCOPES: Final = tuple([scope.text for scope in GRANTED])


class PartShape(Struct, kw_only=True):
    """The matches whose results a scorer may enter. `group_id`, `round`: null: all."""

    group_id: int | None
    round: str | None


class TokenShape(Struct, kw_only=True):
    """`tournaments`: the ids of those that it is for; null: all. `part`: of a scorer's link; null: it is none.
    `expires_at`, `revoked_at`: null: never. `text`: the token itself, only where it is made."""

    id: int
    name: str
    scope: str
    tournaments: list[int] | None
    part: PartShape | None
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    text: str | UnsetType = UNSET


def _shape(token: Token, text: str | UnsetType = UNSET) -> TokenShape:
    return TokenShape(
        id=token.token_id,
        name=token.name,
        scope=token.scope.text,
        tournaments=None if token.tournament_ids is None else sorted(token.tournament_ids),
        part=None if token.part is None else PartShape(group_id=token.part.group_id, round=token.part.round),
        created_at=instant(token.created_at),
        expires_at=instant_or_none(token.expires_at),
        revoked_at=instant_or_none(token.revoked_at),
        text=text,
    )


async def _list(acting: Acting) -> list[TokenShape]:
    return [*map(_shape, await granting.within_reach(acting.desk.database, acting.token))]


async def _create(
    acting: Acting, *, name: str, scope: str, tournaments: tuple[str, ...] = (), expires_in_days: int | None = None
) -> TokenShape:
    token, text = await granting.grant(
        acting.desk.database,
        acting.token,
        name=name,
        scope=Scope[scope.upper()],
        slugs=tournaments,
        expires_in_days=expires_in_days,
    )
    return _shape(token, text)


async def _revoke(acting: Acting, *, token_id: int) -> TokenShape:
    return _shape(await granting.revoke(acting.desk.database, acting.token, token_id))


TOKEN_ACTIONS: Final = (
    Action(
        "tokens.json",
        "List the tokens that this one reaches, the newest first",
        "listTokens",
        Answer("tokens", list[TokenShape]),
        _list,
        Scope.ADMIN,
        method="GET",
        of_service=True,
    ),
    Action(
        "tokens.json",
        "Make a token; only this answer has its text",
        "createToken",
        Answer("token", TokenShape, "Token created"),
        _create,
        Scope.ADMIN,
        of_service=True,
        fields=(
            Field("name", NAME, "the person or program that uses it", required=True),
            Field("scope", one_of(*_SCOPES), "what it may do; each includes those before it", required=True),
            Field(
                "tournaments",
                list_of_texts(TOKEN_TOURNAMENTS_MAX, SLUG_PATTERN),
                f"the slugs of its tournaments, at most {TOKEN_TOURNAMENTS_MAX}; absent: those of the token that asks",
                empty=Empty.REFUSED,
            ),
            Field("expires_in_days", number_up_to(1, EXPIRES_IN_DAYS_MAX), "the days until it expires; absent: never"),
        ),
        example={"name": "scoreboard", "scope": "read"},
    ),
    Action(
        "tokens/{token_id}/revoke.json",
        "Revoke a token: within five seconds it stops working everywhere",
        "revokeToken",
        Answer("token", TokenShape, "Token revoked"),
        _revoke,
        Scope.ADMIN,
        of_service=True,
    ),
)
