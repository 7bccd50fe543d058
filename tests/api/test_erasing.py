"""Names that are forgotten: after an erasure nothing shows a name, at any moment, nor what it could be guessed by.

One season has a competitor with a name, tags and a colour that nothing else has. It is shown on every path, renamed and
erased. Then everything that the database and the service still say is searched.
"""

import asyncio
import base64
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
from prometheus_client import REGISTRY

from api.desk.fingerprints import fingerprint
from api.imports.competitors import read_competitors
from api.imports.importer import Imported, import_lines
from api.imports.rows import read_csv
from api.webhooks.webhooks import add_webhook
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.domain.terms import OPERATION_BYTES, OPERATOR, Sequence, TournamentId
from engine.log import undecoded
from projections.past.mentions import MENTIONS_MAX
from projections.tables import defects
from projections.tables.defects import DefectPart
from projections.tables.worker import Worker
from projections.verification.setting_aside import set_aside
from tests.api import streams
from tests.api.asking import READS, WRITES, ask, keyed, path_of, query_of, refused, with_points
from tests.api.cli.conftest import Tallybook
from tests.api.interface.public.test_public import paths_of
from tests.api.public_boards import Board, change
from tests.api.receiver import Receiver, delivering, receiver_on
from tests.api.stream.test_public_stream import heard as heard_by_public
from tests.api.stream.test_public_stream import listening
from tests.api.streams import heard
from tests.api.visitor import visiting
from tests.api.web.test_console import at
from tests.bounds import Bounds
from tests.desks import until
from tests.leftovers import forms_of, found_in, rows
from tests.poison import append_text
from tests.projections.verified import verified
from tests.restoring import backup
from tests.service import Answer, Client, Season, Service, deltas, totals
from tests.spectator import NDJSON, Spectator
from tests.tampering import keep_snapshot, tamper

PLACES: Final = {
    *("a table", "an answer", "a page of the console", "a message", "a command", "a stream", "a public stream"),
}
METRIC: Final = "tallybook_erased_competitors_total"
NAME: Final = "Zoë Quillfeather"
LATER: Final = "Wilhelmina Überwald"
TAG: Final = "left-handed-juggler"
COLOR: Final = "c0ffe7"
KEY: Final = "licence-quadruple-zero"
REQUEST: Final = {"name": NAME, "tags": TAG, "color": COLOR, "key": KEY}


def traces(slug: str = "") -> dict[str, bytes]:
    """What would give somebody away, by what it is. `slug`: of the tournament in which they were registered."""
    found = {what: form for text in (NAME, LATER, TAG, COLOR, KEY) for what, form in forms_of(text).items()}
    if slug:
        path = f"/tournament/{slug}/competitors.json"
        found["SHA-256 of the request"] = fingerprint("POST", path, REQUEST)[OPERATION_BYTES:].hex().encode()
    form = {"name": NAME, "color": COLOR, "parent": "", "occurrence": "1", "tag 0": TAG}
    line = fingerprint("IMPORT", "competitor", form)[OPERATION_BYTES:]
    found["SHA-256 of the line of an import"] = line.hex().encode()
    return found


def given_away(said: bytes, slug: str = "") -> list[str]:
    """What of it is in some bytes, which may be in hexadecimal."""
    return found_in(said, traces(slug))


async def left_in_database(owner: asyncpg.Connection) -> dict[str, list[str]]:
    """By table, what is left in any of its rows, in whatever column."""
    found: dict[str, list[str]] = {}
    slug = await owner.fetchval("SELECT slug FROM tournament")
    async for table, row in rows(owner):
        if what := given_away(row, slug):
            found[table] = what
    return found


BOARDS: Final = [
    *("", "/tv", "/embed", "/table.json", "/table.csv", "/race.json", "/timeline.json", "/passage.json?at=17"),
    *("?at=17", "/table.csv?at=15", "/table.json?at=17"),
]


async def on_board(season: Season, path: str) -> Answer:
    """What the public gets at a path of the board, in the ranking of the season."""
    query = f"{'&' if '?' in path else '?'}ranking={season.ranking_id}"
    answer = await season.client.send("GET", f"/board/{season.client.tournament}{path}{query}")
    assert answer.status == 200, (path, answer.body)
    return answer


async def answers(season: Season, board: Board) -> dict[str, bytes]:
    """What each path says, for the public too, and of earlier moments where one can be asked for."""
    asked: dict[str, tuple[Any, str]] = {}
    for name in READS:
        path = path_of(name, season) + query_of(name)
        asked[name] = season.client, path
        if "standings.json" in path and "rankings/" in path:
            asked |= {f"{name} at {n}": (season.client, f"{path}?at_sequence={n}") for n in (10, 15)}
    for path in ("competitors.json", "competitors.json?perpage=50", *(f"competitors/{one}.json" for one in season.ids)):
        asked[path] = season.client, path
    asked |= {f"public {path}": (board, path) for path in paths_of(season)}
    said = {f"board{path}": (await on_board(season, path)).body for path in BOARDS}
    said |= {"explained on the board": (await on_board(season, f"/competitors/{season.ids[-1]}")).body}
    for name, (client, path) in asked.items():
        answer = await client.get(path)
        said[name] = answer.body + str(answer.headers).encode()
    return said


CONSOLE_PAGES: Final = ["", "/competitors", "/competitions", "{ranking}", "{ranking}/history", "{ranking}/add"]


async def on_console(season: Season, service: Service) -> dict[str, bytes]:
    """What the pages of the console say, to somebody who may see everything."""
    below = [path.format(ranking=season.path) if "{" in path else path for path in CONSOLE_PAGES]
    below = [f"/{path}" if path and path[0] != "/" else path for path in below]
    below += [f"/{season.path}/competitors/{one}" for one in season.ids]
    below += [f"/competitors/{one}/export" for one in season.ids]
    async with visiting(service, season.client.token) as visitor:
        return {one: (await visitor.page(at(season, one))).encode() for one in below}


async def on_webhook(owner: asyncpg.Connection, service: Service) -> dict[str, bytes]:
    """What a new webhook is sent of all events."""
    head = await owner.fetchval("SELECT sequence FROM head")
    async with receiver_on() as receiver:
        await webhook_to(receiver, owner, service)
        async with delivering(service.database):
            await until(lambda: has_come(receiver, head))
        return {f"message {got.sequence}": got.body for got in receiver.got}


async def webhook_to(receiver: Receiver, owner: asyncpg.Connection, service: Service) -> None:
    async with service.database.connection() as connection:
        await add_webhook(
            connection, await tournament_of(owner), receiver.url, kinds=None, allows_private=True, after=Sequence(0)
        )


async def has_come(receiver: Receiver, sequence: int) -> bool:
    return sequence in receiver.sequences


async def left_anywhere(
    season: Season, board: Board, owner: asyncpg.Connection, service: Service, tallybook: Tallybook
) -> dict[str, dict[str, list[str]]]:
    """What is left, by the kind of place and the place."""
    slug, ranking = season.client.tournament, str(season.ranking_id)
    printed = await tallybook.done("standings", slug, ranking)
    told = {
        "a stream": (await heard(service, season.client)).told,
        "a public stream": (await heard_by_public(service, board.slug)).told,
    }
    said = {
        "an answer": await answers(season, board),
        "a page of the console": await on_console(season, service),
        "a message": await on_webhook(owner, service),
        "a command": {"standings": printed.encode()},
        **{kind: {"": json.dumps(frames, ensure_ascii=False).encode()} for kind, frames in told.items()},
    }
    found = {kind: {place: given_away(one) for place, one in places.items()} for kind, places in said.items()}
    found["a table"] = await left_in_database(owner)
    whole = {kind: {place: what for place, what in places.items() if what} for kind, places in found.items()}
    return {kind: places for kind, places in whole.items() if places}


@pytest.fixture
async def shown(season: Season, board: Board, owner: asyncpg.Connection, service: Service) -> Season:
    """A season with the competitor in its ranking, shown everywhere under both names."""
    client = season.client
    registered = await client.post("competitors.json", REQUEST, keyed("client-chosen"))
    competitor_id = registered.json["competitor"]["id"]
    await client.put(f"{season.path}/participants.json", {"add": competitor_id})
    await client.put(f"{season.path}/add.json", {"participants_delta": deltas((competitor_id, season.unity_id, 7))})
    head = await owner.fetchval("SELECT sequence FROM head")
    await keep_snapshot(owner, await tournament_of(owner), Sequence(head))
    await client.put(f"competitors/{competitor_id}.json", {"name": LATER, "parent": season.ids[0]})
    await change(client, published="true")
    await Worker(service.database).catch_up()
    return await with_points(replace(season, ids=[*season.ids, competitor_id]))


async def tournament_of(owner: asyncpg.Connection) -> TournamentId:
    return TournamentId(await owner.fetchval("SELECT tournament_id FROM tournament"))


async def erase(season: Season) -> Any:
    answer = await season.client.put(f"competitors/{season.ids[-1]}/erase.json")
    assert answer.status == 200, answer.body
    return answer.json["competitor"]


OPERATIONS_PAGE: Final = Path(__file__).parents[2] / "docs" / "OPERATIONS.md"


def documented_finding() -> str:
    """The statement of the documentation that finds a person by any name that they had."""
    page = OPERATIONS_PAGE.read_text(encoding="utf-8")
    begin = page.index("SELECT DISTINCT slug")
    return page[begin : page.index("\n\n", begin)].replace("lovelace", "quillfeather")


def documented_spelling(spelling: str) -> str:
    """The statement of the documentation that finds a part of a name in what people wrote."""
    page = OPERATIONS_PAGE.read_text(encoding="utf-8")
    begin = page.index("SELECT tournament_id, sequence, kind")
    return page[begin : page.index("`", begin)].replace("lovelace", spelling)


async def test_after_an_erasure_nothing_shows_a_name_or_what_it_could_be_guessed_by(
    shown: Season,
    clients_tournament: TournamentId,
    board: Board,
    owner: asyncpg.Connection,
    service: Service,
    peers_client: Client,
    tallybook: Tallybook,
) -> None:
    before = {name for name, said in (await answers(shown, board)).items() if given_away(said)}
    assert {"competitors.json", "board", "board/table.csv", "board?at=17", "explained on the board"} <= before
    assert len(before) > 20
    async with service.database.connection() as connection:
        await defects.note_over(connection, clients_tournament, DefectPart.JUDGING, ValueError(NAME))
    assert set(await left_in_database(owner)) == {"personal", "competitor", "snapshot", "idempotency", "defect"}
    found = [tuple(row) for row in await owner.fetch(documented_finding())]
    assert found == [(shown.client.tournament, shown.ids[-1])]
    await peers_client.get("competitors.json")

    erased, erasures = await erase(shown), REGISTRY.get_sample_value(METRIC)
    who = shown.ids[-1]
    assert (erased["name"], erased["tags"], erased["color"], erased["level"]) == (f"#{who}", [], "000000", 0)
    assert {name: given_away(said) for name, said in (await answers(shown, board)).items() if given_away(said)} == {}
    assert given_away((await peers_client.get("competitors.json")).body) == []
    assert totals(await shown.client.get(f"{shown.path}/standings.json"))[who] == 7

    await Worker(service.database).catch_up()
    assert REGISTRY.get_sample_value(METRIC) == (erasures or 0) + 1
    assert await left_anywhere(shown, board, owner, service, tallybook) == {}
    report = await verified(service.database)
    assert report.differences == []


async def test_the_search_finds_what_is_left(
    shown: Season,
    board: Board,
    owner: asyncpg.Connection,
    service: Service,
    tallybook: Tallybook,
) -> None:
    await erase(shown)
    await shown.client.put(f"{shown.path}/information.json", {"name": NAME})  # where people write, nothing is erased
    await Worker(service.database).catch_up()
    assert set(await left_anywhere(shown, board, owner, service, tallybook)) == PLACES
    for planted in (NAME, json.dumps(LATER), TAG.encode().hex(), base64.b64encode(COLOR.encode()).decode()):
        await owner.execute("UPDATE ranking SET description = $1", f"see {planted} there")
        assert "ranking" in await left_in_database(owner), planted
    assert given_away(f"x{sha256(NAME.encode()).hexdigest()}x".encode())


async def test_the_preview_lists_where_people_wrote_a_name_and_what_is_listed_stays(
    shown: Season, owner: asyncpg.Connection, service: Service, peers_client: Client, tallybook: Tallybook
) -> None:
    client, who = shown.client, shown.ids[-1]
    for name in ("Quillfeather", LATER):
        await client.put(f"competitors/{who}.json", {"name": name})
    added = await client.put(
        f"{shown.path}/add.json",
        {"participants_delta": deltas((who, shown.unity_id, 1)), "reason": f"by {NAME.upper()} alone"},
        keyed("for-QUILLFEATHER-1"),
    )
    renamed = await client.put(f"{shown.path}/information.json", {"name": f"x{LATER}x"}, keyed("Wilhelmina"))
    await client.put(f"{shown.path}/information.json", {"name": TAG, "description": "Zoë, of no other name"})
    path = f"competitors/{who}/erase.json"
    expected = [
        (int(added.headers["Tallybook-Sequence"]), "PointsAdded", "idempotency_key", "for-QUILLFEATHER-1"),
        (int(added.headers["Tallybook-Sequence"]), "PointsAdded", "reason", f"by {NAME.upper()} alone"),
        (int(renamed.headers["Tallybook-Sequence"]), "RankingInformationChanged", "name", f"x{LATER}x"),
    ]
    for asked in (client, peers_client):
        preview = (await asked.get(path)).json["erasure"]
        assert [tuple(one.values()) for one in preview["mentions"]] == expected
        assert preview["mentions_left_out"] == 0
    named = expected[-1][0] + 1
    for part, sequence in (("zoë, of", named), ("zoe\u0308, of", named), ("r-quill", expected[0][0])):
        assert sequence in {row["sequence"] for row in await owner.fetch(documented_spelling(part))}
    dry = await tallybook.json("competitor", "erase", client.tournament, LATER, "--dry-run")
    assert (dry["mentions"], dry["mentions_left_out"]) == (preview["mentions"], 0)
    assert f"x{LATER}x" in await tallybook.done("competitor", "erase", client.tournament, LATER, "--dry-run")
    async with visiting(service, client.token) as visitor:
        page = await visitor.page(at(shown, f"/competitors/{who}/erase"))
    assert f"x{LATER}x" in page
    await erase(shown)
    assert "already erased" in refused_message(await client.get(path))
    assert "already erased" in (await tallybook.refused("competitor", "erase", client.tournament, str(who)))[0]
    named = (await client.get(f"{shown.path}/history.json?competitor={who}")).json["history"]
    assert f"by {NAME.upper()} alone" in {line["reason"] for line in named}


async def test_of_many_mentions_a_hundred_are_listed_and_the_rest_are_counted(shown: Season, bounds: Bounds) -> None:
    bounds(SEARCHED_EVENTS_AT_ONCE=7, CHUNK_EVENTS_MAX=3)
    items = [{"group_id": 1, "location": f"{number} {NAME}"} for number in range(MENTIONS_MAX + 5)]
    await shown.client.post("competitions.json", {"items": json.dumps(items)})
    preview = (await shown.client.get(f"competitors/{shown.ids[-1]}/erase.json")).json["erasure"]
    assert [one["text"] for one in preview["mentions"]] == [f"{number} {NAME}" for number in range(MENTIONS_MAX)]
    assert preview["mentions_left_out"] == 5


async def test_an_erased_competitor_cannot_be_changed_or_erased_and_its_repeated_registration_has_no_name(
    shown: Season,
) -> None:
    client, who = shown.client, shown.ids[-1]
    preview = (await client.get(f"competitors/{who}/erase.json")).json["erasure"]
    assert (preview["competitor"]["name"], preview["rankings"]) == (LATER, [shown.ranking_id])
    await erase(shown)
    for path, form in ((f"competitors/{who}/erase.json", {}), (f"competitors/{who}.json", {"name": "Back"})):
        assert "erased" in refused_message(await client.put(path, form))
    for form in (REQUEST, {"name": "Somebody else"}):
        again = await client.post("competitors.json", form, keyed("client-chosen"))
        assert (again.status, again.json["competitor"]["id"]) == (200, who)
        assert again.json["competitor"]["name"] == f"#{who}"
    assert (await client.post("competitors.json", {"name": "Child", "parent": who})).status == 200


def refused_message(answer: Answer) -> str:
    refused(answer, 409)
    message: str = answer.json["message"]
    return message


async def test_the_public_forgets_at_once_even_what_a_freeze_holds(
    shown: Season, board: Board, service: Service
) -> None:
    await change(shown.client, freeze="now")
    await shown.client.put(f"competitors/{shown.ids[-1]}.json", {"color": "00ffee"})
    assert given_away((await on_board(shown, "")).body)
    spectator = Spectator(NDJSON)
    async with listening(service, board.slug, Accept=NDJSON) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        await erase(shown)
        assert given_away((await on_board(shown, "")).body) == []
        await connection.feed(spectator, lambda: bool(spectator.count("erased")))
    assert ("erased", {"competitor_id": shown.ids[-1]}) in spectator.told
    told = await heard(service, shown.client)
    assert given_away(json.dumps(told.told, ensure_ascii=False).encode()) == []
    assert told.told[-2][0] == "CompetitorErased"


async def test_the_public_stream_tells_a_client_that_was_away_who_was_erased_in_a_freeze(
    shown: Season, board: Board, service: Service
) -> None:
    await change(shown.client, freeze="now")
    spectator = Spectator(NDJSON)
    async with listening(service, board.slug, Accept=NDJSON) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
    await erase(shown)
    spectator.connect()
    resuming = {"Accept": NDJSON, "Last-Event-ID": spectator.last_id or ""}
    async with listening(service, board.slug, **resuming) as connection:
        await connection.feed(spectator, lambda: spectator.count("caught-up") == 2)
    assert spectator.told[-2:] == [("erased", {"competitor_id": shown.ids[-1]}), spectator.told[-1]]
    assert spectator.told[-1] == spectator.told[-3]


async def test_a_stream_keeps_nothing_that_it_read_before_an_erasure(
    shown: Season, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, spectator = shown.client, Spectator(NDJSON)
    has_read, goes_on, read = asyncio.Event(), asyncio.Event(), undecoded.stored_of

    async def held(*asked: Any, **bounds: Any) -> Any:
        found = await read(*asked, **bounds)
        has_read.set()
        await goes_on.wait()
        return found

    async with streams.listening(service, client, Accept=NDJSON) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        monkeypatch.setattr(undecoded, "stored_of", held)
        items = json.dumps([{"name": "Kept"}, {"name": "Zebedee"}])
        registered = (await client.post("competitors.json", {"items": items})).json["competitors"]["competitor"]
        await has_read.wait()
        monkeypatch.setattr(undecoded, "stored_of", read)
        assert (await client.put(f"competitors/{registered[1]['id']}/erase.json")).status == 200
        goes_on.set()
        await connection.feed(spectator, lambda: bool(spectator.count("CompetitorErased")))
    assert "Kept" in str(spectator.told)
    assert "Zebedee" not in str(spectator.told)


async def test_a_webhook_that_is_behind_forgets_what_it_has_not_sent(
    shown: Season, owner: asyncpg.Connection, service: Service, bounds: Bounds
) -> None:
    bounds(SERVED_EVENTS_MAX=1)  # it reads on within 4 s in any case
    async with receiver_on() as receiver, delivering(service.database):
        receiver.open.clear()
        await webhook_to(receiver, owner, service)
        await until(lambda: has_come(receiver, 1))
        await erase(shown)
        await Worker(service.database).catch_up()
        receiver.open.set()
        head = await owner.fetchval("SELECT sequence FROM head")
        await until(lambda: has_come(receiver, head))
    assert [got.sequence for got in receiver.got if given_away(got.body)] == []


async def test_the_key_of_a_request_that_named_the_erased_repeats_that_request_alone(
    shown: Season, owner: asyncpg.Connection
) -> None:
    client, erased = shown.client, shown.ids[-1]
    others = {"items": json.dumps([{"name": "Ann"}, {"name": "Quill"}])}
    ann, quill = (await client.post("competitors.json", others, keyed("two"))).json["competitors"]["competitor"]
    renamed = f"competitors/{erased}.json", {"name": "Feather"}
    assert (await client.put(*renamed, keyed("renamed"))).status == 200
    await client.put(f"competitors/{quill['id']}/erase.json")
    await erase(shown)

    for form, key, ids in ((REQUEST, "client-chosen", [erased]), (others, "two", [ann["id"], quill["id"]])):
        again = await client.post("competitors.json", form, keyed(key))
        assert (again.status, again.headers.get("Idempotency-Replayed")) == (200, "true"), again.body
        found = [again.json["competitor"]] if key != "two" else again.json["competitors"]["competitor"]
        assert [one["id"] for one in found] == ids
    assert (await client.put(*renamed, keyed("renamed"))).headers["Idempotency-Replayed"] == "true"

    async def rest() -> list[object]:
        tables = ("event", "personal", "idempotency", "refusal")
        return [await owner.fetch(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]

    before = await rest()
    different = [
        *(({"items": json.dumps(items)}, "two") for items in ([{"name": "Eve"}, {"name": "Quill"}], [{"name": "Ann"}])),
        ({"name": "Ann"}, "two"),
        (others, "client-chosen"),
        (REQUEST | {"parent": shown.ids[0]}, "client-chosen"),
    ]
    answers = [await client.post("competitors.json", form, keyed(key)) for form, key in different]
    answers.append(await client.put(renamed[0], {"parent": shown.ids[0]}, keyed("renamed")))
    for name in WRITES:
        if name != "POST competitors.json":
            answers += [await ask(name, shown, client, keyed(key)) for key in ("client-chosen", "renamed", "two")]
    for answer in answers:
        refused(answer, 422, "Idempotency-Key")
    assert await rest() == before


async def test_only_an_event_that_says_so_erases_and_only_what_it_is_about(
    shown: Season, owner: asyncpg.Connection
) -> None:
    for change_ in ("DELETE FROM personal", "UPDATE personal SET text = 'x'", "UPDATE block SET text = text || ' '"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await owner.execute(change_)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await owner.execute("UPDATE idempotency SET fingerprint = 'x'")
    others = await owner.fetchval("SELECT count(*) FROM personal")
    digests = await owner.fetch("SELECT last_sequence, digest FROM block ORDER BY last_sequence")
    await erase(shown)
    assert await owner.fetchval("SELECT count(*) FROM personal") == others - 2
    assert digests == (await owner.fetch("SELECT last_sequence, digest FROM block ORDER BY last_sequence"))[:-1]
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await owner.execute("DELETE FROM personal")


async def test_verification_finds_a_name_that_came_back_and_one_that_is_missing(
    shown: Season, owner: asyncpg.Connection, service: Service
) -> None:
    names = "SELECT * FROM personal WHERE competitor_id = $1 ORDER BY sequence"
    (_, first, *_), _ = personals = await owner.fetch(names, shown.ids[-1])
    await erase(shown)
    unfolded = await verified(service.database)  # the tables have the name until a worker comes
    assert unfolded.differences == []
    await Worker(service.database).catch_up()
    await tamper(owner, "INSERT INTO personal VALUES ($1, $2, $3, $4)", *personals[0])
    differences = {(d.sequence, d.field) for d in (await verified(service.database)).differences}
    assert (first, "personal") in differences
    await tamper(owner, "DELETE FROM personal WHERE sequence = 2")
    assert {(2, "personal")} <= {(d.sequence, d.field) for d in (await verified(service.database)).differences}


async def test_archives_made_later_have_no_name_and_earlier_ones_are_still_read(
    shown: Season, service: Service, tallybook: Tallybook, other_dsn: str, tmp_path: Path
) -> None:
    slug, earlier, later = shown.client.tournament, tmp_path / "earlier", tmp_path / "later"
    await tallybook.done("tournament", "export", slug, "--output", str(earlier))
    await tallybook.done("competitor", "erase", slug, LATER, "--dry-run")
    said = await tallybook.json("competitor", "erase", slug, LATER)
    assert (said["id"], said["rankings"]) == (shown.ids[-1], [shown.ranking_id])
    await tallybook.done("tournament", "export", slug, "--output", str(later))
    assert given_away(earlier.read_bytes())
    assert given_away(later.read_bytes()) == []
    other = Tallybook(other_dsn)
    await other.done("tournament", "import", str(later))
    named = {one["id"]: one["name"] for one in await other.json("competitor", "list", slug)}
    assert named[shown.ids[-1]] == f"#{shown.ids[-1]}"
    assert await other.done("verify", slug)


async def test_everything_about_a_competitor_is_exported_and_nothing_of_its_name_after_the_erasure(
    shown: Season, service: Service, tallybook: Tallybook, tmp_path: Path
) -> None:
    slug, who, file = shown.client.tournament, shown.ids[-1], tmp_path / "export.json"
    await shown.client.put(f"competitions/{shown.competition_id}.json", {"location": "Hall 2"})
    await tallybook.done("competitor", "export", slug, LATER, "--output", str(file))
    whole = json.loads(file.read_bytes())
    assert whole["competitor"]["name"] == LATER
    assert [(one["id"], one["unities"][0]["total"]) for one in whole["standings"]] == [(shown.ranking_id, 7)]
    told = [(event["kind"], event["idempotency_key"]) for event in whole["events"]]
    assert told == [
        ("CompetitorRegistered", "client-chosen"),
        *[(kind, None) for kind in ("ParticipantsChanged", "PointsAdded", "CompetitorChanged")],
    ]
    assert whole["events"][0]["event"] == {"competitor_id": who, **REQUEST, "tags": [TAG]}
    assert whole["events"][2]["event"]["deltas"] == [[who, shown.unity_id, 7]]
    paged, after = [], 0
    while after is not None:
        page = (await shown.client.get(f"competitors/{who}/export.json?limit=1&after={after}")).json["export"]
        paged, after = paged + page["events"], page["next"]
    assert paged == whole["events"]
    assert (page["competitor"], page["standings"]["ranking"]) == (whole["competitor"], whole["standings"])
    of_other = (await shown.client.get(f"competitors/{shown.ids[0]}/export.json")).json["export"]["events"]
    assert ("CompetitionChanged", "Hall 2") in [(one["kind"], one["event"].get("location")) for one in of_other]
    assert given_away(json.dumps(of_other).encode()) == []  # its child is somebody else
    await erase(shown)
    erased = await tallybook.done("competitor", "export", slug, f"#{who}")
    assert given_away(erased.encode()) == []
    assert [event["kind"] for event in json.loads(erased)["events"]] == [*dict(told), "CompetitorErased"]


async def test_an_erasure_can_be_proved_and_a_former_name_goes_with_it(
    shown: Season, service: Service, tallybook: Tallybook
) -> None:
    slug, who = shown.client.tournament, shown.ids[-1]
    told = await heard(service, shown.client)
    assert NAME in json.dumps(told.told, ensure_ascii=False)  # a rename left it in the log
    sequence = (await tallybook.json("competitor", "erase", slug, str(who)))["sequence"]
    proof = await tallybook.done("prove", slug, str(sequence))
    assert "CompetitorErased" in proof
    assert given_away(proof.encode(), slug) == []
    added = {"participants_delta": deltas((who, shown.unity_id, 1))}
    assert (await shown.client.put(f"{shown.path}/add.json", added)).status == 200
    assert (await shown.client.put(f"{shown.path}/participants.json", {"remove": who})).status == 200


async def test_the_documented_statement_replaces_the_name_of_a_token(
    owner: asyncpg.Connection, tallybook: Tallybook
) -> None:
    await tallybook.done("token", "create", NAME, "--scope", "write")
    token_id = (await tallybook.json("token", "list"))[-1]["id"]
    await tallybook.done("token", "revoke", str(token_id))
    assert (await tallybook.json("token", "list"))[-1]["name"] == NAME
    page = OPERATIONS_PAGE.read_text(encoding="utf-8")
    statement = page[page.index("UPDATE tallybook.token") : page.index("token_id = 7")]
    await owner.execute(f"{statement}token_id = {token_id}")
    assert (await tallybook.json("token", "list"))[-1]["name"] == "former referee"


async def test_nobody_who_was_erased_is_imported_again(
    season: Season, service: Service, owner: asyncpg.Connection, tallybook: Tallybook
) -> None:
    file = f"name,tags,color\n{NAME},{TAG},{COLOR}\nEve,,\n"
    slug = season.client.tournament
    first = await imported(service, owner, file)
    assert first.made == 2
    await tallybook.done("competitor", "erase", slug, NAME)
    assert await left_in_database(owner) == {}
    again = await imported(service, owner, file)
    assert (again.made, again.ids) == (0, first.ids)


# ── Copies from before ──────────────────────────────────────────────────────────────────────────────────


async def test_a_list_that_was_kept_elsewhere_erases_again_after_a_restore_and_an_import(
    dsn: str, other_dsn: str, tmp_path: Path
) -> None:
    tallybook, other = Tallybook(dsn), Tallybook(other_dsn)
    archive, kept = tmp_path / "archive", tmp_path / "erasures"
    slug = await tallybook.done("tournament", "create", "Cup")
    who = await tallybook.json("competitor", "add", slug, NAME, "--tag", TAG, "--color", COLOR)
    await tallybook.done("competitor", "change", slug, NAME, "--name", LATER)
    await tallybook.done("competitor", "add", slug, "Ann")
    await tallybook.done("tournament", "export", slug, "--output", str(archive))
    assert await tallybook.json("erasures", "keep", str(kept)) == []
    assert await outcomes(tallybook, kept) == []
    async with backup(dsn) as restore:
        await tallybook.done("competitor", "erase", slug, LATER)
        (line,) = await tallybook.json("erasures", "keep", str(kept))
        assert (line["slug"], line["competitor"]) == (slug, who["id"])
        assert given_away(kept.read_bytes()) == []
        assert await tallybook.json("erasures", "keep", str(kept)) == []
        await restore()
        await other.done("tournament", "import", str(archive))
        for of, address in ((tallybook, dsn), (other, other_dsn)):
            assert await left_in(address)
            assert await outcomes(of, kept, "--dry-run") == ["erased"]
            assert await outcomes(of, kept) == ["erased"]
            assert await outcomes(of, kept) == ["already erased"]
            assert await left_in(address) == {}
            assert await of.done("verify")
            assert {one["name"] for one in await of.json("competitor", "list", slug)} == {f"#{who['id']}", "Ann"}
    ann = (await tallybook.json("competitor", "list", slug))[1]["id"]
    strange = [{**line, "tournament": 1}, {**line, "competitor": 99}, {**line, "competitor": ann}]
    strange += [{**line, "competitor": 2**70}, {**line, "tournament": 2**63 - 1}]
    kept.write_text("\n".join(["{", *map(json.dumps, strange)]))
    said = await tallybook("erasures", "apply", str(kept), "--json")
    assert (said.code, "2 lines of the list cannot be read." in said.err) == (1, True)
    assert [one["outcome"] for one in json.loads(said.out)] == [
        "unreadable",
        "unknown tournament",
        *["unknown competitor"] * 2,
        "unreadable",
        "unknown tournament",
    ]
    assert [(one["line"], bool(one["reason"])) for one in json.loads(said.out) if one["reason"]] == [
        (1, True),
        (5, True),
    ]
    assert "line 5: " in said.err
    before = kept.read_bytes()
    assert "not a list of erasures" in (await tallybook.refused("erasures", "keep", str(kept)))[0]
    assert kept.read_bytes() == before
    assert "Ann" in await tallybook.done("competitor", "list", slug)


async def outcomes(tallybook: Tallybook, kept: Path, *options: str) -> list[str]:
    return [one["outcome"] for one in await tallybook.json("erasures", "apply", str(kept), *options)]


async def left_in(dsn: str) -> dict[str, list[str]]:
    """As `left_in_database`, once the tables have followed."""
    async with open_database(dsn, name="test", connections_max=3) as database:
        await Worker(database).catch_up()
    owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    try:
        return await left_in_database(owner)
    finally:
        await owner.close()


def documented_cleaning() -> list[str]:
    """The statements that clean PostgreSQL's files, of the documentation."""
    page = OPERATIONS_PAGE.read_text(encoding="utf-8")
    part = page[page.index("### Cleaning PostgreSQL's files") : page.index("## Failing over")]
    return [line.strip().removesuffix(";") for line in part.split("\n") if line.startswith("    ")]


def left_in_files(data_dir: Path) -> dict[str, list[str]]:
    """By file, what is left in a data directory, in which texts lie in UTF-8."""
    files = [path for path in data_dir.rglob("*") if path.is_file()]
    found = {path.relative_to(data_dir).as_posix(): given_away(path.read_bytes()) for path in files}
    return {path: what for path, what in found.items() if what}


@pytest.mark.long
@pytest.mark.one_postgresql("it is about the files of an embedded one")
async def test_after_the_documented_cleaning_no_file_of_postgresql_has_a_name(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    async with embedded_postgres(data_dir) as embedded:
        await migrate(embedded.dsn)
        tallybook = Tallybook(embedded.dsn)
        slug = await tallybook.done("tournament", "create", "Cup")
        who = await tallybook.json("competitor", "add", slug, NAME, "--tag", TAG, "--color", COLOR)
        await tallybook.done("competitor", "change", slug, NAME, "--name", LATER)
        for n in range(20):  # rows enough for statistics of names
            await tallybook.done("competitor", "add", slug, f"Player {n % 4}")
        owner = await asyncpg.connect(embedded.dsn, server_settings={"search_path": "tallybook"})
        tournament_id = await tournament_of(owner)
        async with open_database(embedded.dsn, name="test", connections_max=3) as database:
            await Worker(database).catch_up()
            await keep_snapshot(owner, tournament_id, await owner.fetchval("SELECT sequence FROM head"))
            await owner.execute("ANALYZE")
            await tallybook.done("competitor", "erase", slug, str(who["id"]))
            await Worker(database).catch_up()
        assert await left_in_database(owner) == {}
        await owner.execute("CHECKPOINT")
        before = left_in_files(data_dir)
        assert {path.split("/")[1] for path in before} == {"base", "pg_wal"}
        statistics = await owner.fetchval("SELECT pg_relation_filepath('pg_statistic')")
        assert f"postgres/{statistics}" in before
        *cleaning, switch, checkpoint = documented_cleaning()
        cleaned_at = await owner.fetchval("SELECT now()")
        for statement in cleaning:
            await owner.execute(statement)
        while True:
            await owner.execute(switch)
            await owner.execute(checkpoint)
            if await owner.fetchval("SELECT min(modification) FROM pg_ls_waldir()") > cleaned_at:
                break
        assert left_in_files(data_dir) == {}
        await owner.execute("COMMENT ON TABLE block IS $c$Zoë Quillfeather$c$")
        await owner.execute(checkpoint)
        assert {path.split("/")[1] for path in left_in_files(data_dir)} == {"base", "pg_wal"}
        await owner.close()


async def test_a_tournament_that_has_stopped_forgets_too(
    shown: Season, service: Service, owner: asyncpg.Connection, tallybook: Tallybook
) -> None:
    tournament_id, slug, who = await tournament_of(owner), shown.client.tournament, shown.ids[-1]
    await Worker(service.database).catch_up()
    sequence = await append_text(owner, tournament_id, "Nonsense", "{}")
    await Worker(service.database).catch_up()
    assert (await shown.client.get("competitors.json")).status == 503  # the process has noticed
    assert (await shown.client.put(f"competitors/{who}/erase.json")).status == 503
    assert (await tallybook.refused("competitor", "erase", slug, LATER))[0]
    assert f"write id:{who}" in (await tallybook.refused("competitor", "erase", slug, str(who)))[0]
    await tallybook.done("competitor", "erase", slug, f"id:{who}")
    assert await left_in_database(owner) == {}
    assert "no competitor" in (await tallybook.refused("competitor", "erase", slug, f"id:{who}"))[0]
    await set_aside(service.database, tournament_id, sequence)
    await Worker(service.database).catch_up()
    report = await verified(service.database)
    assert report.differences == []
    named = {one["id"]: one["name"] for one in await tallybook.json("competitor", "list", slug)}
    assert named[who] == f"#{who}"


async def imported(service: Service, owner: asyncpg.Connection, file: str) -> Imported:
    kind = read_competitors(read_csv(file.encode()))
    async with service.desk.live_pool.pinned(await tournament_of(owner)) as live:
        stop = asyncio.Event()
        return await import_lines(service.desk, live, kind, actor=OPERATOR, stop=stop, progress=lambda *_: None)
