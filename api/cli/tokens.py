"""Commands about tokens."""

from collections.abc import Mapping
from typing import Annotated, Literal

from cyclopts import Parameter

from api.access import auth
from api.access.auth import Scope, Token
from api.access.granting import LINK
from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, database_at, desk_at, known, tournament_at
from api.interface.scorers import link_for
from engine.database.pool import Database
from engine.domain.errors import NotFound
from engine.domain.terms import ActorId, TournamentId
from engine.domain.times import instant_or_none
from engine.log import registry


async def create_token(
    name: str,
    /,
    *,
    scope: Literal["read", "write", "admin"],
    tournament: Annotated[list[str] | None, Parameter(negative="")] = None,
    expires_in_days: int | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    scope
        What the token may do. Each scope includes those before it.
    tournament
        Slug of a tournament that the token is for; may be given several times. Without it, all tournaments.
    expires_in_days
        Days until the token expires. Without it, never.
    """
    async with database_at(where) as database:
        slugs = tournament or []
        bound = [await known(database, slug) for slug in slugs] if slugs else None
        token, text = await make_token(database, name, Scope[scope.upper()], bound, expires_in_days=expires_in_days)
    if json:
        printing.json(
            {
                "id": token.token_id,
                "token": text,
                "scope": scope,
                "tournaments": tournament,
                "expires_at": instant_or_none(token.expires_at),
            }
        )
    else:
        printing.say("Keep this token; it is not shown again.")
        printing.line(text)


async def make_link(
    slug: Slug,
    name: Annotated[str, Parameter(help="For whom: results are saved under this name.")],
    /,
    *,
    until: str,
    only_round: Annotated[str, Parameter(name="--round")] = "",
    group: str = "",
    at: str = "",
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    until
        The last day on which the link works, in the tournament's time zone, such as 2026-05-09.
    only_round
        Only this round: a number, `name:Final`, or the day of its competitions.
    group
        Only this group.
    at
        Address of the service, such as https://scores.club.example, with which the link begins.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        part, ends = await link_for(view, {"name": name, "until": until, "round": only_round, "division": group})
        async with desk.database.writing() as connection:
            token, text = await auth.create(
                connection,
                name=name,
                scope=Scope.SCORE,
                tournament_ids=[view.live.tournament_id],
                expires_in_days=None,
                expires_at=ends,
                part=part,
            )
    link = f"{at.rstrip('/')}{LINK}{text}"
    if json:
        printing.json({"id": token.token_id, "link": link, "expires_at": instant_or_none(token.expires_at)})
    else:
        printing.say(f"Keep this link; it is not shown again. To end it: tallybook token revoke {token.token_id}")
        printing.line(link)


async def list_tokens(*, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database, database.connection() as connection:
        slugs = {t.tournament_id: t.slug for t in await registry.tournaments(connection)}
        rows = [_row(token, slugs) for token in await auth.listed(connection)]
    columns = ("id", "name", "scope", "tournaments", "group_id", "round", "created_at", "expires_at", "revoked_at")
    printing.rows(rows, columns, as_json=json)


async def revoke_token(token_id: int, /, *, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database, database.connection() as connection:
        if not await auth.revoke(connection, ActorId(token_id)):
            raise NotFound(f"There is no token {token_id} in use; `tallybook token list` shows all tokens.")
    printing.done(f"token {token_id} is revoked", {"id": token_id}, as_json=json)


async def make_token(
    database: Database,
    name: str,
    scope: Scope,
    tournament_ids: list[TournamentId] | None,
    *,
    expires_in_days: int | None,
) -> tuple[Token, str]:
    async with database.writing() as connection:
        return await auth.create(
            connection, name=name, scope=scope, tournament_ids=tournament_ids, expires_in_days=expires_in_days
        )


async def replace_token(database: Database, name: str, scope: Scope, *, expires_in_days: int) -> str:
    """Makes a token for all tournaments, and revokes all others of its name. Returns its text."""
    async with database.writing() as connection:
        for token in await auth.listed(connection):
            if token.name == name:
                await auth.revoke(connection, token.token_id)
    _, text = await make_token(database, name, scope, None, expires_in_days=expires_in_days)
    return text


def _row(token: Token, slugs: Mapping[TournamentId, str]) -> dict[str, object]:
    bound = None if token.tournament_ids is None else sorted(slugs.get(t, str(t)) for t in token.tournament_ids)
    return {
        "id": token.token_id,
        "name": token.name,
        "scope": token.scope.text,
        "tournaments": bound,
        "group_id": token.only_group,
        "round": token.only_round,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    }
