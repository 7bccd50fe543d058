"""`tallybook follow`: the stream on the command line."""

import json
import signal
from pathlib import Path

import pytest

from tests.api.cli.conftest import Tallybook
from tests.api.streams import add, heard, standings
from tests.desks import until
from tests.running import started
from tests.service import Season, Service
from tests.spectator import Spectator


async def test_the_command_prints_what_the_stream_says(tallybook: Tallybook, service: Service, season: Season) -> None:
    streamed = await heard(service, season.client)
    last, slug = str(streamed.sequence), season.client.tournament
    spectator = Spectator()
    spectator.feed((await tallybook.done("follow", slug, "--until", last, "--json")).encode() + b"\n")
    assert spectator.told == streamed.told[:-1]
    assert spectator.standings() == await standings(season.client)
    lines = (await tallybook.done("follow", slug, "--until", last)).splitlines()
    assert [line.split()[0] for line in lines] == [str(n) for n in range(1, streamed.sequence + 1)]
    assert lines[0].split(maxsplit=4)[3:] == ["TournamentOpened", lines[0][lines[0].index("{") :]]


async def test_it_begins_at_the_named_event_with_the_named_kinds(
    tallybook: Tallybook, service: Service, season: Season
) -> None:
    streamed = await heard(service, season.client)
    last, slug = str(streamed.sequence), season.client.tournament

    async def sequences(*options: str) -> list[int]:
        out = await tallybook.done("follow", slug, "--until", last, "--json", *options)
        return [json.loads(line)["data"]["sequence"] for line in out.splitlines()]

    assert await sequences("--after", "5") == list(range(6, streamed.sequence + 1))
    assert await sequences("--after", str(streamed.last_id)) == []
    assert await sequences("--after", "head") == []
    of_ranking = [data["sequence"] for _, data in streamed.told if data.get("ranking_id") == season.ranking_id]
    assert await sequences("--ranking", str(season.ranking_id)) == of_ranking
    assert await sequences("--ranking", "Season", "--speed", "1000000") == of_ranking


async def test_what_cannot_be_followed_is_refused(
    tallybook: Tallybook, season: Season, subtests: pytest.Subtests
) -> None:
    for options, reason in [
        (["--after", "nowhere"], "--after takes"),
        (["--after", "99"], "The log ends at sequence"),
        (["--after", "3-00000000"], "This id belongs to another log"),
        (["--ranking", "Nonsense"], "Nonsense"),
    ]:
        with subtests.test(str(options)):
            assert reason in " ".join(await tallybook.refused("follow", season.client.tournament, *options))


async def test_it_continues_with_what_is_committed_until_it_is_stopped(
    dsn: str, season: Season, tmp_path: Path
) -> None:
    with started(tmp_path, "follow", season.client.tournament, "--json", "--database-url", dsn) as following:
        for amount in range(1, 4):
            await add(season, amount)
        await until(lambda: following.out.count('"PointsAdded"') == 3)
        following.send(signal.SIGINT)
        assert following.process.wait(10) == 130
    spectator = Spectator()
    spectator.feed(following.out.encode())
    assert spectator.standings() == await standings(season.client)
