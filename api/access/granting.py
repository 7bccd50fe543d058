"""What the holder of a token may do about tokens: see them, make them, end them, each within the reach of their own."""

import hmac
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from api.access import auth
from api.access.auth import Scope, ScorerPart, Token, unacceptable_token
from engine.database.pool import Database
from engine.domain.errors import Conflict, Fault, NotFound
from engine.domain.faults import refuse_if_any
from engine.domain.ids import parse_id
from engine.domain.terms import TournamentId, name_fault
from engine.log import registry

LINK: Final = "/console/score?link="
"""The address of a scorer's link, before the text of the token."""
TOKEN_TOURNAMENTS_MAX: Final = 50
"""Tournaments that are named for a new token."""


def reaches(mine: Token, theirs: Token) -> bool:
    """Whether the holder of one token may see another and end it: an admin may if their tournaments include all of the
    other's, and whoever may write a scorer's. Everybody may end their own."""
    if mine.token_id == theirs.token_id:
        return True
    if mine.scope < (Scope.WRITE if theirs.part is not None else Scope.ADMIN):
        return False
    if mine.tournament_ids is None:
        return True
    return theirs.tournament_ids is not None and theirs.tournament_ids <= mine.tournament_ids


async def within_reach(database: Database, mine: Token) -> list[Token]:
    """The tokens that the holder of this one may see, newest first."""
    async with database.connection() as connection:
        return [token for token in reversed(await auth.listed(connection)) if reaches(mine, token)]


async def in_use(database: Database, mine: Token, token_id: int | None) -> Token:
    """The token within reach that has this id and was not revoked. Raises NotFound."""
    for token in await within_reach(database, mine):
        if token.token_id == token_id and token.revoked_at is None:
            return token
    raise NotFound("There is no such token in use.")


async def revoke(database: Database, mine: Token, token_id: int | None) -> Token:
    """Ends a token within reach. Raises NotFound."""
    token = await in_use(database, mine, token_id)
    async with database.writing() as connection:
        return await auth.revoke(connection, token.token_id) or token  # somebody else has just ended it


async def grant(
    database: Database, mine: Token, *, name: str, scope: Scope, slugs: Collection[str], expires_in_days: int | None
) -> tuple[Token, str]:
    """Makes a token for tournaments of one's own, by their `slugs`, or, if those are empty, for all of them. It does
    not outlive one's own. Raises Unacceptable."""
    async with database.writing() as connection:
        tournament_ids: list[TournamentId] | None = [*mine.tournament_ids] if mine.tournament_ids is not None else None
        if slugs:
            found = [(slug, await registry.tournament_named(connection, slug)) for slug in slugs]
            strange = [slug for slug, one in found if one is None or not mine.allows(one)]
            if strange:
                faults = [Fault("tournaments", f"{slug!r} is not a tournament of your token") for slug in strange]
                raise unacceptable_token(*faults)
            tournament_ids = [one for _, one in found if one is not None]
        _refuse_longer_life(mine, expires_in_days)
        return await auth.create(
            connection, name=name, scope=scope, tournament_ids=tournament_ids, expires_in_days=expires_in_days
        )


def secret_for(of: bytes, key: str, sent: Mapping[str, str]) -> str:
    """The secret of the link that a form makes, the same each time it is sent. `of`: the secret of the tournament."""
    said = "\n".join([key, *[f"{name}={sent[name]}" for name in sorted(sent)]])
    number, found = int.from_bytes(hmac.digest(of, said.encode(errors="surrogateescape"), "sha256")), ""
    while len(found) < auth.SECRET_CHARACTERS:
        number, digit = divmod(number, len(auth.BASE62))
        found += auth.BASE62[digit]
    return found


async def grant_scoring(
    database: Database,
    mine: Token,
    tournament_id: TournamentId,
    *,
    name: str,
    part: ScorerPart,
    until: datetime,
    secret: str,
) -> tuple[Token, str]:
    """Makes a token for entering results of a part of the tournament. It ends at `until`, and does not outlive one's
    own. With the secret of an earlier link, returns that one. Raises Unacceptable, and Conflict if it was ended."""
    ends = until if mine.expires_at is None else min(until, mine.expires_at)
    async with database.writing() as connection:
        token, text = await auth.create(
            connection,
            name=name,
            scope=Scope.SCORE,
            tournament_ids=[tournament_id],
            expires_in_days=None,
            expires_at=ends,
            part=part,
            secret=secret,
        )
    if token.revoked_at is not None:
        raise Conflict("This link was ended; send the form again to make another one.")
    return token, text


def asked_link(sent: Mapping[str, str], zone: tzinfo, now: datetime) -> tuple[ScorerPart, datetime]:
    """The part of a link, and when it ends. Raises Unacceptable, naming every fault."""
    faults, until = list[Fault](), now
    if fault := name_fault(sent.get("name", "").strip()):
        faults.append(Fault("name", fault))
    round_key, division = sent.get("round", ""), sent.get("division", "").strip()
    if not round_key and not division:
        faults.append(Fault("round", "must be chosen, or a division"))
    if round_key and (fault := name_fault(round_key.removeprefix("name:"))):
        faults.append(Fault("round", fault))
    if division not in ("", "0") and parse_id(division) is None:
        faults.append(Fault("division", "must be a whole number"))
    try:
        day = datetime.strptime(sent.get("until", "").strip(), "%Y-%m-%d")
        until = (day + timedelta(days=1)).replace(tzinfo=zone).astimezone(UTC)
        if until <= now:
            faults.append(Fault("until", "must be today or later"))
    except (ValueError, OverflowError):
        faults.append(Fault("until", "must be a day, such as 2026-05-09"))
    refuse_if_any(faults)
    return ScorerPart(int(division) if division else None, round_key or None), until


def _refuse_longer_life(mine: Token, expires_in_days: int | None) -> None:
    if mine.expires_at is None:
        return
    if expires_in_days is None or datetime.now(UTC) + timedelta(days=expires_in_days) > mine.expires_at:
        raise unacceptable_token(Fault("expires_in_days", f"must end before yours, which ends {mine.expires_at:%F %T}"))
