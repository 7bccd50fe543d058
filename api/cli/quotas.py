"""Commands about quotas."""

from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from api.access import auth
from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, database_at, known, writing_to
from api.desk.quotas import shares
from engine.database.pool import Database
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.terms import ActorId
from engine.log import quotas
from engine.log.quotas import ALL_TOKENS, ALL_TOURNAMENTS, BOUND_MAX, Quota, QuotaKey

_Bound = Annotated[int | None, Parameter(validator=Number(gte=1, lte=BOUND_MAX))]


async def quota_of_tournament(
    slug: Slug,
    /,
    *,
    events: _Bound = None,
    competitors: _Bound = None,
    size: Annotated[_Bound, Parameter(name="--bytes")] = None,
    none: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    events
        Events that its log may have.
    competitors
        Competitors that it may have.
    size
        Bytes that its events may take, as they are stored.
    none
        Remove all bounds.
    """
    async with database_at(where) as database:
        key = await known(database, slug), ALL_TOKENS
        await _set(database, key, Quota(events, competitors, size), none=none)
        await _show(database, key, as_json=json)


async def quota_of_token(
    token_id: int,
    /,
    *,
    events: _Bound = None,
    competitors: _Bound = None,
    size: Annotated[_Bound, Parameter(name="--bytes")] = None,
    none: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    events
        Events that it may write.
    competitors
        Competitors that it may register.
    size
        Bytes that its events may take, as they are stored.
    none
        Remove all bounds. A later quota counts from zero.
    """
    async with database_at(where) as database:
        async with database.connection() as connection:
            if token_id not in {token.token_id for token in await auth.listed(connection)}:
                raise NotFound(f"There is no token {token_id}; `tallybook token list` shows all tokens.")
        key = ALL_TOURNAMENTS, ActorId(token_id)
        await _set(database, key, Quota(events, competitors, size), none=none)
        await _show(database, key, as_json=json)


async def _set(database: Database, key: QuotaKey, given: Quota, *, none: bool) -> None:
    """Sets the bounds that are given; the others stay."""
    if none and given.bounds():
        raise Unacceptable("--none removes all bounds; give no other option with it.")
    if not none and not given.bounds():
        return
    async with writing_to(database) as connection:
        before = await quotas.quota_of(connection, key) or Quota()
        after = Quota() if none else Quota(**dict(before.bounds() + given.bounds()))
        await quotas.set_quota(connection, key, after)
        if key[1] == ALL_TOKENS and not none:
            await quotas.begin(connection, key[0], ALL_TOKENS, quotas.BEGINNING)


async def _show(database: Database, key: QuotaKey, *, as_json: bool) -> None:
    rows = [msgspec.structs.asdict(share) for share in await shares(database, key)]
    printing.rows(rows, ("what", "used", "bound"), as_json=as_json)
