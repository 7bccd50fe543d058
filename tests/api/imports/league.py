"""A tournament of four clubs, with a table as in football."""

from typing import Any

from tests.api.cli.conftest import Tallybook
from tests.api.football import SORTS

CLUBS = ("Ajax", "Brest", "Celtic", "Dynamo")


async def open_league(tallybook: Tallybook) -> str:
    """The slug of a tournament of four clubs, in a ranking with the unities and the scoring of football."""
    slug = await tallybook.done("tournament", "create", "League")
    for name in CLUBS:
        await tallybook.done("competitor", "add", slug, name)
    await create_league(tallybook, slug)
    return slug


async def create_league(tallybook: Tallybook, slug: str) -> None:
    main, *others = SORTS
    await tallybook.done("ranking", "create", slug, "Table", "--unity", main)
    for unity in others:
        await tallybook.done("unity", "add", slug, "Table", unity, "--sort", SORTS[unity])
    assert (await tallybook("scoring", "declare", slug, "Table", "football")).code == 0


async def places(tallybook: Tallybook, slug: str, ranking: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Position and total by unity and name, in the order of the standing."""
    shown = await tallybook.json("standings", slug, ranking)
    names = {one["id"]: one["name"] for one in shown["competitors"]}
    return {
        unity["name"]: {
            names[line["competitor_id"]]: (line["position"], line["total"]) for line in unity["competitors_ranking"]
        }
        for unity in shown["unities"]
    }


class League:
    """What the command line shows of a league."""

    tallybook: Tallybook
    slug: str

    async def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.tallybook.json("competition", "list", self.slug)
        return found

    async def table(self, ranking: str = "Table") -> dict[str, dict[str, int]]:
        """Totals by unity and name."""
        return {
            unity: {name: total for name, (_, total) in lines.items()}
            for unity, lines in (await places(self.tallybook, self.slug, ranking)).items()
        }
