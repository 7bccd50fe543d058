"""The command that deletes a tournament."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.archives import lines_of
from api.cli.where import HERE, Json, Slug, Where, located
from api.interface.direction import isolated
from engine.database.migrator import as_owner
from engine.domain.errors import Unacceptable
from projections.verification.deletion import Doomed, delete_tournament


async def delete(
    slug: Slug,
    /,
    *,
    archive: Path | None = None,
    without_archive: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    archive
        File that `tallybook tournament export` wrote of the tournament as it is now.
    without_archive
        Delete it without an archive, for example because its log cannot be exported. Nothing can bring it back.
    yes
        Delete it. Without this option, the command only shows what would be deleted.
    """
    async with located(where) as dsn, as_owner(dsn) as owner:
        if without_archive == (archive is not None):
            raise Unacceptable("Name the file that it was exported to by --archive, or give --without-archive.")
        lines = None if archive is None else lines_of(archive)
        doomed = await delete_tournament(owner, slug, lines, dry_run=not yes)
    if json:
        printing.json({"deleted": yes, "tournament": doomed})
    else:
        _tell(doomed, is_done=yes, can_return=archive is not None)


def _tell(doomed: Doomed, *, is_done: bool, can_return: bool) -> None:
    printing.line(f"{doomed.slug} ({doomed.id}, {isolated(doomed.name)}) {'is' if is_done else 'would be'} deleted:")
    printing.line(f"  {doomed.sequence:,} events, up to the digest {doomed.digest or 'of an empty log'}")
    printing.line(f"  {doomed.webhooks} webhooks, and {doomed.tokens} tokens that are for it alone")
    if is_done:
        printing.say("`tallybook tournament import` restores it." if can_return else "It cannot be restored.")
    else:
        printing.say("Nothing was changed. With --yes it is deleted.")
