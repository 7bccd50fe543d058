"""Webhooks, on the command line."""

import json
from pathlib import Path

import pytest

from api.webhooks.deliverer import PAUSES_SECONDS
from engine.database.pool import Database
from projections.tables.worker import Worker
from tests.api.cli.conftest import Tallybook
from tests.api.receiver import delivering, receiver_on, verify
from tests.desks import until
from tests.service import Season

URL = "https://example.org/hook?for=all"


async def test_a_new_secret_is_put_out_alone(tallybook: Tallybook, season: Season) -> None:
    made = await tallybook("webhook", "add", season.client.tournament, URL)
    assert made.code == 0
    assert made.out.startswith("whsec_")
    assert made.out.count("\n") == 1
    assert "it is not shown again" in made.err


async def test_webhooks_are_listed_without_their_secrets(tallybook: Tallybook, season: Season) -> None:
    slug = season.client.tournament
    some = ("--kinds", "PointsAdded, RankingClosed", "--after", "3", "--allow-private")
    made = [await tallybook.json("webhook", "add", slug, URL), await tallybook.json("webhook", "add", slug, URL, *some)]
    listed = await tallybook.json("webhook", "list", slug)
    assert await tallybook.json("webhook", "list") == listed
    head = made[0]["sequence"]
    assert [
        (one["id"], one["url"], one["kinds"], one["allows_private"], one["state"], one["sequence"], one["behind"])
        for one in listed
    ] == [
        (made[0]["id"], URL, None, False, "active", head, 0),
        (made[1]["id"], URL, ["PointsAdded", "RankingClosed"], True, "active", 3, head - 3),
    ]
    shown = await tallybook.done("webhook", "list") + str(listed)
    assert not [one for one in made if one["secret"] in shown or one["secret"][6:] in shown]


async def test_a_webhook_receives_events_until_it_is_removed(
    tallybook: Tallybook, season: Season, database: Database
) -> None:
    slug = season.client.tournament
    async with receiver_on() as receiver, delivering(database, PAUSES_SECONDS):
        made = await tallybook.json("webhook", "add", slug, receiver.url, "--after", "0", "--allow-private")
        number = str(made["id"])
        [listed] = await tallybook.json("webhook", "list", slug)
        head = listed["sequence"] + listed["behind"]
        await Worker(database).catch_up()
        await until(lambda: receiver.sequences == list(range(1, head + 1)))
        last = receiver.got[-1]
        assert verify(made["secret"], last.headers, last.body) == last.message_id
        tried = await tallybook("webhook", "test", slug, number)
        assert tried.err == f"webhook {number} accepted the test message with status 204\n"
        assert receiver.got.pop().json["type"] == "test"
        receiver.statuses = [500]
        refused = await tallybook("webhook", "test", slug, number, "--json")
        assert (refused.code, json.loads(refused.out)) == (
            1,
            {"id": made["id"], "answered": 500, "problem": "answered 500"},
        )
        assert receiver.got.pop().message_id != last.message_id
        new = await tallybook.done("webhook", "rotate", slug, number)
        said = await tallybook("webhook", "resume", slug, number, "--after", str(last.sequence - 1))
        assert said.err == f"webhook {number} continues with the events after event {last.sequence - 1}\n"
        await until(lambda: receiver.sequences[-2:] == [last.sequence] * 2)
        again = receiver.got[-1]
        assert again.message_id == last.message_id
        assert verify(new, again.headers, again.body) == verify(made["secret"], again.headers, again.body)
        assert (await tallybook("webhook", "remove", slug, number)).err == f"webhook {number} is removed\n"
    assert await tallybook.json("webhook", "list") == []


async def test_refused(tallybook: Tallybook, season: Season, subtests: pytest.Subtests) -> None:
    for arguments, why in [
        (("add", "SLUG", "ftp://example.org/"), "  url: must begin with https:// or http:// and name a host"),
        (("add", "SLUG", "http://127.0.0.1/"), "  url: leads to 127.0.0.1, which is not a public address; --allow"),
        (("add", "SLUG", URL, "--kinds", "PointsAdded,Points"), "  kinds: 'Points' is not the name of an event"),
        (("add", "SLUG", URL, "--after", "100000"), "nothing follows 100000 yet"),
        (("add", "nowhere", URL), "There is no tournament 'nowhere'"),
        (("list", "nowhere"), "There is no tournament 'nowhere'"),
        (("remove", "SLUG", "99"), "This tournament has no webhook 99"),
        (("resume", "SLUG", "99"), "This tournament has no webhook 99"),
        (("test", "SLUG", "99"), "This tournament has no webhook 99"),
        (("rotate", "SLUG", "99"), "This tournament has no webhook 99"),
    ]:
        with subtests.test(str(arguments)):
            slug = season.client.tournament
            reason = await tallybook.refused(
                "webhook", *(slug if argument == "SLUG" else argument for argument in arguments)
            )
            assert any(why in line for line in reason)
            assert await tallybook.json("webhook", "list") == []


async def test_a_webhook_of_another_tournament_is_not_there(tallybook: Tallybook, season: Season) -> None:
    made = await tallybook.json("webhook", "add", season.client.tournament, URL)
    await tallybook.done("tournament", "create", "Other")
    for command in "remove", "resume", "rotate", "test":
        assert await tallybook.refused("webhook", command, "other", str(made["id"])) == [
            f"This tournament has no webhook {made['id']}."
        ]
    assert len(await tallybook.json("webhook", "list", season.client.tournament)) == 1


async def test_archives_hold_no_webhooks_and_the_public_sees_none(
    tallybook: Tallybook, season: Season, tmp_path: Path
) -> None:
    slug = season.client.tournament
    made = await tallybook.json("webhook", "add", slug, URL)
    await tallybook.done("tournament", "export", slug, "--output", str(tmp_path / "archive"))
    archive = (tmp_path / "archive").read_bytes()
    assert f'"slug":"{slug}"'.encode() in archive
    for told in b"example.org", made["secret"].encode(), made["secret"][6:].encode(), b"webhook":
        assert told not in archive
    await tallybook.done("tournament", "publish", slug)
    season.client.token = None
    for path in "/tournament.json", f"/{season.path}.json", f"/{season.path}/history.json":
        shown = await season.client.send("GET", f"/board/{slug}{path}")
        assert (path, shown.status) == (path, 200)
        assert b"webhook" not in shown.body
        assert b"example.org" not in shown.body
