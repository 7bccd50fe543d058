"""The command about quotas."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.desk.quotas import use_of
from engine.domain.errors import Unacceptable
from engine.log import quotas
from engine.log.quotas import BOUND_MAX, Quota

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
    given = Quota(events, competitors, size)
    if none and given.bounds():
        raise Unacceptable("--none removes all bounds; give no other option with it.")
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        tournament_id = view.live.tournament_id
        if none or given.bounds():
            async with desk.database.writing() as connection:
                before = await quotas.quota_of(connection, tournament_id) or Quota()
                after = Quota() if none else Quota(**dict(before.bounds() + given.bounds()))
                await quotas.set_quota(connection, tournament_id, after)
        used, quota = await use_of(desk.database, view.live)
    bounds = dict(quota.bounds())
    rows = [{"what": what, "used": number, "bound": bounds.get(what)} for what, number in used.items()]
    printing.rows(rows, ("what", "used", "bound"), as_json=json)
