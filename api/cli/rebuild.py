"""The command that rebuilds tables."""

from api.cli import printing
from api.cli.progress import progress
from api.cli.where import HERE, Json, Where, database_at, known
from engine.log import registry
from projections.tables.rebuild import Rebuilt, rebuild


async def rebuild_tables(slug: str | None = None, /, *, json: Json = False, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    slug
        Slug of the tournament. Without it, all.
    """
    rows: list[dict[str, object]] = []
    async with database_at(where) as database:
        only = None if slug is None else await known(database, slug)
        async with database.connection() as connection:
            registered = await registry.tournaments(connection)
        for tournament in registered:
            if only in (None, tournament.tournament_id):
                with progress(tournament.slug, total=tournament.sequence) as advance:
                    rebuilt = await rebuild(database, tournament.tournament_id, progress=advance)
                if json:
                    rows.append(_row(tournament, rebuilt))
                else:
                    _tell(tournament.slug, rebuilt)
    if json:
        printing.json(rows)


def _row(tournament: registry.RegistryEntry, rebuilt: Rebuilt) -> dict[str, object]:
    return {
        "id": tournament.tournament_id,
        "slug": tournament.slug,
        "sequence": rebuilt.sequence,
        "replaced": rebuilt.replaced,
        "differences": rebuilt.differences,
    }


def _tell(slug: str, rebuilt: Rebuilt) -> None:
    became = "replaced" if rebuilt.replaced else "match the log, left as they are"
    printing.line(f"{slug}: tables up to event {rebuilt.sequence} {became}")
    for difference in rebuilt.differences:
        printing.line(f"  {difference}")
