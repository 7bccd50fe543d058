"""What the public sees, on the command line."""

import pytest

from tests.api.cli.conftest import Tallybook
from tests.service import Season, deltas


async def test_publish_freeze_reveal_and_unpublish(tallybook: Tallybook, season: Season) -> None:
    slug = season.client.tournament
    shown = await tallybook.json("tournament", "publish", slug)
    assert shown["public_end"] == shown["sequence"]
    held = await tallybook.json("freeze", slug)
    assert held == {"sequence": shown["sequence"] + 1, "public_end": shown["sequence"]}
    line = {"participants_delta": deltas((season.ids[0], season.unity_id, 3)), "competition_id": season.competition_id}
    await season.client.put(f"{season.path}/add.json", line)
    await season.client.put(f"{season.path}/add.json", line)
    given = held["sequence"] + 1
    assert (await tallybook.json("reveal", slug, "--to", str(given)))["public_end"] == given
    assert (await tallybook.json("reveal", slug, "--next"))["public_end"] == given + 1
    everything = await tallybook.json("reveal", slug, "--all")
    assert everything["public_end"] == everything["sequence"]
    said = await tallybook("tournament", "unpublish", slug)
    assert (said.code, said.out, said.err) == (0, "", "the public sees nothing of it\n")


async def test_a_freeze_begins_at_the_named_event(tallybook: Tallybook, season: Season) -> None:
    slug = season.client.tournament
    await tallybook.done("freeze", slug, "--at", "3")
    said = await tallybook("tournament", "publish", slug)
    assert said.err == f"the public sees it up to event 3; its board is at /board/{slug}\n"


async def test_refused(tallybook: Tallybook, season: Season, subtests: pytest.Subtests) -> None:
    for command, why in [
        (("tournament", "unpublish"), "is not published"),
        (("reveal", "--all"), "Nothing is held back"),
        (("reveal", "--next"), "Nothing is held back"),
        (("reveal", "--to", "3"), "Nothing is held back"),
        (("freeze", "--at", "100000"), "ends there"),
    ]:
        with subtests.test(str(command)):
            name = command[:2] if command[0] == "tournament" else command[:1]
            said = await tallybook.refused(*name, season.client.tournament, *command[len(name) :])
            assert any(why in line for line in said)


@pytest.mark.parametrize(
    "arguments",
    [("reveal",), ("reveal", "--next", "--all"), ("reveal", "--to", "3", "--all"), ("reveal", "--to", "0")],
)
async def test_a_reveal_says_how_far_and_no_more(
    tallybook: Tallybook, season: Season, arguments: tuple[str, ...]
) -> None:
    command, *options = arguments
    assert (await tallybook(command, season.client.tournament, *options)).code == 2
