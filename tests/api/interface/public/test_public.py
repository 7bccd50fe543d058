"""What the public sees of a tournament: just what a log that ends at its public end shows, and nothing of others."""

import asyncio
import json
import re
from collections.abc import Awaitable
from typing import Any
from urllib.parse import parse_qsl

import asyncpg
import pytest

from api.desk.remembered import Slugs
from api.http import problems
from api.http.outgoing import Outgoing
from api.interface.declarations import RecallContext
from api.interface.fields import read_query
from api.interface.public.reads import PUBLIC_READS, PublicRead, _answered
from api.interface.public.view import PublicViews
from engine.domain.commands import ChangePublication
from engine.domain.errors import NotFound, Refusal
from engine.domain.events import PublicationFrozen
from engine.domain.terms import OPERATOR, Sequence, TournamentId
from engine.log import reading
from engine.process.time_slices import TimeSlices
from projections.live.tournament import LiveTournament
from projections.past.past import Past
from tests.api.asking import keyed, refused
from tests.api.cli.conftest import Tallybook
from tests.api.public_boards import NOWHERE, Board, Shorter, change, give, play_on, told
from tests.bounds import Bounds
from tests.desks import desks_at, holding_heads, open_arena, submit, until
from tests.poison import append_text
from tests.project import ROOT
from tests.service import (
    Answer,
    Client,
    Season,
    Service,
    create_ranking,
    deltas,
    listed,
    make_token,
    rankings_deltas,
    serve,
    slug_of,
)
from tests.shares import every
from tests.tournaments import open_new_tournament

JSON = {"Content-Type": "application/json"}


def paths_of(season: Season) -> list[str]:
    """Every public path, for what there is in a season."""
    return [
        operation.path.format(ranking_id=season.ranking_id)
        + (f"?competitor={season.ids[0]}" if "explain" in operation.path else "")
        + ("?until=2100-01-01" if "expiring" in operation.path else "")
        for operation in PUBLIC_READS
    ]


# ── Changes ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_public_sees_is_shown_and_changed(season: Season) -> None:
    client = season.client
    assert (await client.get("publication.json")).json["publication"] == {
        "published": False,
        "frozen_at": None,
        "public_end": None,
    }
    assert (await change(client, published="true"))["published"]
    seen = (await client.get("publication.json")).json["publication"]["public_end"]
    assert await change(client, freeze="now") == {"published": True, "frozen_at": seen, "public_end": seen}
    given = await give(season, 0, 3)
    assert await change(client, reveal=given) == {"published": True, "frozen_at": given, "public_end": given}
    shown = await change(client, reveal="all")
    assert (shown["frozen_at"], shown["public_end"]) == (None, given + 2)
    assert await change(client, published="false") == {"published": False, "frozen_at": None, "public_end": None}


async def test_a_body_of_json_says_the_same(season: Season) -> None:
    for body in (
        *({"freeze": 1}, {"reveal": 2}, {"reveal": "3"}, {"reveal": "all"}),
        *({"published": True}, {"freeze": "now"}, {"reveal": "all"}, {"published": "false"}),
    ):
        answer = await season.client.put("publication.json", json.dumps(body).encode(), JSON)
        assert answer.status == 200, answer.body


@pytest.mark.parametrize(("field", "words"), [("freeze", "now"), ("reveal", "next, all")])
async def test_a_value_of_json_that_is_neither_a_word_nor_a_number_is_told_what_the_field_takes(
    season: Season, field: str, words: str
) -> None:
    for value in (True, [], 1.5):
        answer = await season.client.put("publication.json", json.dumps({field: value}).encode(), JSON)
        assert answer.json["errors"] == [{"field": field, "message": f"must be {words} or a whole number from 1 up"}]


async def test_a_change_that_makes_no_sense_is_refused(season: Season, subtests: pytest.Subtests) -> None:
    for form, field in [
        ({"published": "yes"}, "published"),
        ({"published": "TRUE"}, "published"),
        ({"freeze": "later"}, "freeze"),
        ({"freeze": "0"}, "freeze"),
        ({"reveal": "-1"}, "reveal"),
        ({"reveal": "now"}, "reveal"),
        ({"freeze": "100000"}, "freeze"),
        ({}, "published"),
    ]:
        with subtests.test(str(form)):
            refused(await season.client.put("publication.json", form), 422, field)


async def test_what_was_shown_stays_shown(season: Season, board: Board) -> None:
    client = season.client
    await change(client, published="true")
    seen = await board.sequence()
    refused(await client.put("publication.json", {"freeze": seen - 1}), 422, "freeze")
    await change(client, published="false")
    refused(await client.put("publication.json", {"freeze": seen - 1}), 422, "freeze")
    await change(client, freeze=seen)
    await give(season, 0, 3)
    await change(client, published="true")
    assert await board.sequence() == seen


async def test_a_season_can_be_hidden_before_it_is_published(season: Season, board: Board) -> None:
    await change(season.client, freeze=3)
    await change(season.client, published="true")
    assert await board.sequence() == 3
    assert (await board.get("tournament.json")).json["tournament"]["rankings"] == []
    assert (await board.get(f"{season.path}.json")).status == 404


async def test_the_next_competition_is_revealed_with_all_that_it_gave(season: Season, board: Board) -> None:
    client, duel = season.client, {"participants": listed(season.ids[:2])}
    first, second = [
        (await client.post("competitions.json", {"group_id": 3} | duel)).json["competition"]["id"] for _ in range(2)
    ]
    await change(client, published="true")
    held = (await change(client, freeze="now"))["frozen_at"]
    await give(season, 0, 1)
    await give(season, 0, 3, competition_id=first)
    last = await give(season, 1, 1, competition_id=first)
    after = await give(season, 1, 3, competition_id=second)
    await client.put(f"competitions/{first}/void.json")
    assert await board.sequence() == held
    assert (await change(client, reveal="next"))["public_end"] == last
    assert (await change(client, reveal="next"))["public_end"] == after
    assert (await change(client, reveal="next"))["public_end"] == after + 3  # voided, and both reversed
    refused(await client.put("publication.json", {"reveal": "next"}), 409)
    assert await board.sequence() == after + 3


_DIGEST = "SELECT digest FROM block WHERE tournament_id = $1 AND last_sequence = $2"


async def test_every_event_is_known_to_belong_to_its_request(
    dsn: str,
    owner: asyncpg.Connection,
    season: Season,
    client: Client,
    clients_tournament: TournamentId,
    service: Service,
) -> None:
    """Also where one commit appends several requests, and where an event is set aside."""
    other = service.client(client.tournament, await make_token(service.database))
    rankings = [await create_ranking(client, season.ids) for _ in range(2)]
    given = [(one["id"], deltas((season.ids[0], one["unities"][0]["id"], 1))) for one in rankings]
    cause = {"competition_id": season.competition_id}
    add = {"rankings_delta": rankings_deltas(dict(given))} | cause
    several = json.dumps({"items": [{"name": "Eve"}, {"name": "Flo"}]}).encode()
    path, as_json = f"competitions/{season.competition_id}", JSON
    new = {"group_id": 3}
    a_round = {"items": json.dumps([new, {"competition": season.competition_id, "location": "Bari"}, new])}
    lasts: dict[int, int] = {}  # the last event of each request, with the number of its events

    async def sent(number: int, asked: Awaitable[Answer]) -> int:
        answer = await asked
        assert answer.status == 200, answer.body
        last = int(answer.headers["Tallybook-Sequence"])
        lasts[last] = number
        return last

    async with holding_heads(dsn, [clients_tournament]):
        together = [
            asyncio.create_task(sent(number, asked))
            for number, asked in (
                (2, client.put("points.json", add)),
                (2, client.put("points.json", add)),
                (1, client.put(f"rankings/{given[0][0]}/add.json", {"participants_delta": given[0][1]} | cause)),
                (2, client.post("competitors.json", several, as_json | keyed("two"))),
                (2, client.post("competitors.json", several, as_json | keyed("two-more"))),
                (1, client.post("competitors.json", {"name": "Gus"})),
                (1, client.post("competitions.json", new, keyed("three"))),
                (1, client.put(f"{path}.json", {"location": "Rome"})),
                (1, other.put(f"{path}.json", {"location": "Oslo"})),
            )
        ]
        await until(lambda: len(service.desk._under_way) == len(together))
    points, *_ = await asyncio.gather(*together)
    undone = await sent(2, client.put(f"rankings/{given[0][0]}/reverse.json", {"sequence": points}))
    await sent(2, client.put(f"rankings/{given[0][0]}/reverse.json", {"sequence": undone}))
    rounds = [await sent(3, client.put("results.json", a_round, headers)) for headers in ({}, keyed("round"))]
    striking = {"competitors": season.ids[0]}
    for change_of, form in (("strike", striking), ("unstrike", striking), ("void", {}), ("unvoid", {})):
        await sent(6, client.put(f"{path}/{change_of}.json", form))
    digest: bytes = await owner.fetchval(_DIGEST, clients_tournament, rounds[0])
    set_aside = {"sequence": rounds[0] - 1, "digest": digest.hex()}
    await append_text(owner, clients_tournament, "EventSetAside", json.dumps(set_aside, separators=(",", ":")))
    async with service.database.connection() as connection:
        for last, number in lasts.items():
            for event in range(last - number + 1, last + 1):
                of_event = connection, clients_tournament, Sequence(event)
                assert await reading.end_of_request(*of_event) == last
                assert await reading.begin_of_request(*of_event) == last - number + 1


@pytest.mark.parametrize("form", ["freeze", "reveal", "next"])
async def test_the_public_sees_no_points_that_had_expired_when_they_were_recorded(
    season: Season, client: Client, board: Board, form: str
) -> None:
    form_of = {"name": "Rolling", "main_unity_name": "points", "participants": listed(season.ids)}
    expiring = {"main_unity_lasts": "P1D", "main_unity_expires_on": "day"}
    ranking = (await client.post("rankings.json", form_of | expiring)).json["ranking"]
    ids = {"group_id": 3, "started_at": "2001-01-01 12:00:00", "participants": listed(season.ids)}
    competition = (await client.post("competitions.json", ids)).json["competition"]
    if form != "freeze":
        await change(client, freeze="now")
    points = deltas((season.ids[0], ranking["unities"][0]["id"], 5))
    given = {"participants_delta": points, "competition_id": competition["id"]}
    answer = await client.put(f"rankings/{ranking['id']}/add.json", given)
    last = int(answer.headers["Tallybook-Sequence"])
    named = {"freeze": {"freeze": last - 1}, "reveal": {"reveal": last - 1}, "next": {"reveal": "next"}}[form]
    await change(client, **named)
    assert (await change(client, published="true"))["public_end"] == last
    shown = await board.get(f"rankings/{ranking['id']}/standings.json")
    assert [line["total"] for line in shown.json["standings"]["standings"]] == [0, 0, 0]


async def test_a_retry_of_a_reveal_reveals_no_more(season: Season, peers_client: Client) -> None:
    client = season.client
    await change(client, freeze="now")
    for _ in range(2):
        other = (await client.post("competitions.json", {"group_id": 3})).json["competition"]["id"]
        await give(season, 0, 3, competition_id=other)
    first = await client.put("publication.json", {"reveal": "next"}, keyed("k"))
    again = await peers_client.put("publication.json", {"reveal": "next"}, keyed("k"))
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json == first.json


# ── Who may see what, when ──────────────────────────────────────────────────────────────────────────────


async def test_what_is_not_published_is_as_what_does_not_exist(
    service: Service, season: Season, board: Board, subtests: pytest.Subtests
) -> None:
    """Before it is published, when it is frozen, and after it was taken away; for every path, for good questions and
    for bad ones."""
    nowhere = Board(service, NOWHERE)
    asked = [*paths_of(season), f"{season.path}/standings.json?top=x", "rankings/x/standings.json", "rankings/1.json"]

    async def look(state: str) -> None:
        for path in asked:
            with subtests.test(f"{state}: {path}"):
                answer = await board.get(path)
                assert answer.status in (400, 404)
                assert told(answer) == told(await nowhere.get(path))

    await look("never published")
    await change(season.client, freeze="now")
    await look("frozen")
    await change(season.client, published="true")
    assert [(await board.get(path)).status for path in paths_of(season)] == [200] * len(PUBLIC_READS)
    await change(season.client, published="false")
    await look("taken away")
    await change(season.client, reveal="all")
    await look("taken away, and not frozen")


async def test_a_tournament_that_has_stopped_is_as_one_that_does_not_exist(
    service: Service, season: Season, board: Board, owner: asyncpg.Connection, clients_tournament: TournamentId
) -> None:
    await change(season.client, published="true")
    await append_text(owner, clients_tournament, "Nonsense", "{}")
    assert told(await board.get("tournament.json")) == told(await Board(service, NOWHERE).get("tournament.json"))


async def test_other_processes_see_the_same_at_once(
    service: Service, peer: Service, season: Season, board: Board
) -> None:
    other = Board(peer, board.slug)
    for form in ({"published": "true"}, {"freeze": "now"}, {"reveal": "all"}, {"published": "false"}):
        await change(season.client, **form)
        await give(season, 0, 1)
        for path in paths_of(season):
            assert told(await other.get(path)) == told(await board.get(path))


async def test_nobody_and_nothing_secret_is_named(season: Season, board: Board) -> None:
    await give(season, 0, 3, competition_id=season.competition_id, reason="fair play")
    await change(season.client, published="true")
    keys: set[str] = set()

    def names(value: Any) -> None:
        if isinstance(value, dict):
            keys.update(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            names(item)

    for path in paths_of(season):
        names((await board.get(path)).json)
    assert keys == {
        *("status", "message", "tournament", "ranking", "standings", "classification", "form", "history"),
        *("id", "name", "color", "tags", "description", "closed_at", "sequence", "recorded_at", "rankings", "unities"),
        *(
            "sort",
            "general",
            "criteria",
            "declared",
            "zones",
            "unity",
            "lines",
            "competitors",
            "competitions",
            "started_at",
        ),
        *("location", "participants", "result", "voided", "unity_id", "competitor_id", "competition_id", "position"),
        *(
            "version",
            "total",
            "total_before",
            "values",
            "decided_by",
            "sum",
            "delta",
            "position_before",
            "position_after",
            "reverses",
            "reason",
        ),
        "reversal",
        *("next", "explanation", "from", "to", "steps", "cause", "took_place", "overtakings", "overtakings_left_out"),
        *("leaders", "clock", "until", "reigns", "since", "led", "times", "seconds", "shared_seconds", "days", "weeks"),
        *("runs", "longest", "differing", "differences", "expiring", "total_then", "expires_at"),
    } | ({"who", "whom", "level", "who_total", "whom_total", "log", "world"} & keys)


def test_every_public_path_is_documented() -> None:
    page = (ROOT / "docs" / "PATHS.md").read_text(encoding="utf-8")
    paths = re.findall(r"^    GET +/(\S+)$", page[page.index("## For the public") :], re.MULTILINE)
    assert {path.replace("<id>", "{ranking_id}") for path in paths} == {one.path for one in PUBLIC_READS}


async def test_the_public_and_who_has_a_token_ask_the_same_one_after_the_other(season: Season, board: Board) -> None:
    """Answers are kept for all who ask the same: not for those who are answered in another shape."""
    await change(season.client, published="true")
    path, unities = (
        f"{season.path}/standings.json",
        (f"unity={season.unity_id}&top=1", f"unity={season.unity_id}&top=2"),
    )
    for query, order in zip(unities, ((board, season.client), (season.client, board)), strict=True):
        for _ in range(2):
            for one in order:
                answer = await one.get(f"{path}?{query}")
                assert (answer.status, list(answer.json)[2]) == (200, "standings" if one is board else "ranking")


async def test_the_sender_of_an_event_is_shown_only_with_a_token(season: Season, board: Board) -> None:
    await change(season.client, published="true")
    assert (await season.client.get(f"{season.path}/history.json?actor=0")).status == 200
    refused(await board.get(f"{season.path}/history.json?actor=0"), 400, "actor")


async def test_nothing_public_is_changed_or_asked_otherwise(service: Service, season: Season, board: Board) -> None:
    await change(season.client, published="true")
    for path in paths_of(season):
        for method in ("POST", "PUT", "DELETE"):
            answer = await service.client(board.slug, None).send(method, f"/board/{board.slug}/{path}")
            assert answer.status == 405


async def test_the_requests_of_an_address_are_counted_where_those_of_tokens_are(dsn: str, season: Season) -> None:
    await change(season.client, published="true")
    async with serve(dsn, requests_per_second=2) as careful:
        board = Board(careful, season.client.tournament)
        statuses = [(await board.get("tournament.json")).status for _ in range(4)]
        assert (statuses[:2], 429 in statuses) == ([200, 200], True)
        token_alone = careful.client(board.slug, season.client.token)
        assert (await token_alone.get("publication.json")).status == 200


# ── Just what a log that ends there shows ───────────────────────────────────────────────────────────────


@every(6)
async def test_what_is_seen_is_just_what_a_log_that_ends_there_shows(
    service: Service,
    season: Season,
    board: Board,
    owner: asyncpg.Connection,
    clients_tournament: TournamentId,
    other_dsn: str,
    other_owner: asyncpg.Connection,
    step: int,
) -> None:
    """After each `step` blocks of a small history, for every path and many questions: the same bytes, and the same
    ETags, as are made of the live of another database, whose log ends just there."""
    await play_on(season)
    shorter = Shorter(owner, other_owner, clients_tournament)
    ends = [row[0] for row in await owner.fetch("SELECT last_sequence FROM block ORDER BY last_sequence")]
    await change(season.client, freeze=1)
    await change(season.client, published="true")
    await shorter.begin()
    compared = 0
    async with serve(other_dsn) as other:
        for number, end in enumerate(ends, start=1):
            await shorter.add_block(end)
            if number % step:
                continue
            if end > 1:
                await change(season.client, reveal=end)
            for operation in PUBLIC_READS:
                for query in questions(operation, season, end):
                    path = operation.path.format(ranking_id=season.ranking_id)
                    seen = await board.get(f"{path}?{query}")
                    shown = await shown_at_the_head(other, clients_tournament, operation, season, query)
                    assert (seen.status, seen.headers.get("ETag"), seen.body) == shown, (end, path, query)
                    compared += seen.status == 200
    assert compared > 20 * len(ends) // step


async def test_of_a_hidden_ranking_the_public_sees_nothing_at_any_moment_frozen_or_not(
    service: Service, season: Season, peers_client: Client, peer: Service, board: Board
) -> None:
    """At once, in the other process too; and all of it again when it is shown."""
    client, hidden = season.client, season.ranking_id
    await give(season, 0, 3)
    await client.put("rankings.json", {"order": f"{season.closed_ranking_id},{hidden}"})
    await change(client, published="true")
    of_ranking = [path for path in paths_of(season) if "{ranking_id}" in path or f"rankings/{hidden}" in path]
    earlier = [f"{path}{'&' if '?' in path else '?'}at_sequence=8" for path in of_ranking if "standings" in path]
    pages = [
        f"/board/{board.slug}{below}ranking={hidden}" for below in ("?", "/tv?", "/table.json?at=8&", "/race.json?")
    ]
    pages += [
        f"/board/{board.slug}/passage.json?at=8&ranking={hidden}",
        f"/board/{board.slug}/competitors/1?ranking={hidden}",
    ]
    both = [Board(one, board.slug) for one in (service, peer)]

    async def seen() -> list[int]:
        return [
            answer.status
            for one in both
            for answer in [
                *[await one.get(path) for path in (*of_ranking, *earlier)],
                *[await one._client.send("GET", page) for page in pages],
            ]
        ]

    async def listed() -> list[list[int]]:
        tournaments = [(await one.get("tournament.json")).json["tournament"] for one in both]
        return [[ranking["id"] for ranking in one["rankings"]] for one in tournaments]

    assert set(await seen()) == {200}
    assert await listed() == [[season.closed_ranking_id, hidden]] * 2
    for frozen in (False, True):
        if frozen:
            await change(client, freeze="now")
        assert (await client.put(f"{season.path}/visibility.json", {"hidden": "true"})).json["ranking"]["hidden"]
        assert set(await seen()) == {404}
        assert await listed() == [[season.closed_ranking_id]] * 2
        assert (await peers_client.get("rankings.json?omit=competitors")).json["rankings"]["ranking"][1]["hidden"]
        await client.put(f"{season.path}/visibility.json", {"hidden": "false"})
        assert set(await seen()) == {200}
        assert await listed() == [[season.closed_ranking_id, hidden]] * 2


def questions(operation: PublicRead, season: Season, end: int) -> list[str]:
    taken = {field.name for field in operation.fields}
    asked = [""]
    if "at_sequence" in taken:
        asked += [f"at_sequence={at}" for at in (1, end // 2 + 1, end, end + 1)]
    if "on" in taken:
        asked += ["on=2024-03-09", f"on=2100-01-01&at_sequence={end // 2 + 1}", f"on=2024-03-09&at_sequence={end + 1}"]
        asked += ["top=1", f"around={season.ids[0]}&span=1", "at_time=2100-01-01", f"competitors={season.ids[1]}"]
    if "since" in taken:
        asked += [f"since={at}" for at in (end // 2 + 1, end, end + 1)]
        asked += ["tag=doubles", "tag=new", f"at_sequence={end}&since={end // 2 + 1}", "since_on=2024-03-09"]
    if "clock" in taken:
        asked += ["clock=world", "limit=1", "until=2024-03-09", f"clock=world&at_sequence={end}&offset=1"]
    if "after" in taken:
        asked += ["limit=1", f"to_sequence={end + 5}", f"from_sequence={end}", f"competitor={season.ids[1]}"]
    asked = [one for one in asked if taken.issuperset(name for name, _ in parse_qsl(one))]
    if "expiring" in operation.path:
        return ["until=2100-01-01", f"until=2100-01-01&competitors={season.ids[1]}"]
    if "explain" in operation.path:
        asked = [f"competitor={one}{more}" for one in season.ids for more in ("", f"&to={end}", f"&to={end + 1}")]
    return asked


async def shown_at_the_head(
    other: Service, tournament_id: TournamentId, operation: PublicRead, season: Season, query: str
) -> tuple[int, str | None, bytes]:
    """Status, ETag and body of what is made of the live, whatever is published."""
    asked = read_query(parse_qsl(query), operation.fields)
    if "{ranking_id}" in operation.path:
        asked["ranking_id"] = season.ranking_id
    outgoing = Outgoing(TimeSlices())
    async with other.desk.live_pool.pinned(tournament_id) as live:
        await other.desk.live_pool.make_current(live)
        context = RecallContext(live, Past(other.database), outgoing.time_slices, begin=outgoing.begun)
        try:
            answered = await _answered(operation, context, operation.question(**asked))
        except Refusal as refusal:
            status = problems.STATUSES[type(refusal)]
            return status, None, problems.body(status, refusal.message, refusal.faults)
        return 200, f'"{answered.etag}"', answered.body


# ── While it changes ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def views(service: Service) -> PublicViews:
    return PublicViews(service.desk, Slugs(service.database), Outgoing(TimeSlices()))


async def test_a_freeze_holds_for_the_answer_that_was_being_made(
    season: Season, board: Board, views: PublicViews, clients_tournament: TournamentId
) -> None:
    """The board goes on while an answer is made of it, and may be beyond the public end when the answer looks again."""
    await change(season.client, published="true")
    ends: list[int] = []

    async def render(context: RecallContext) -> int:
        if not ends:
            ends.append((await change(season.client, freeze="now"))["public_end"])
            beyond = await give(season, 0, 3)
            assert context.live.head.sequence == beyond > ends[0]
        return context.live.head.sequence

    assert await views.answer(board.slug, render) == ends[0]


async def test_a_refusal_does_not_tell_what_is_beyond_either(
    season: Season, board: Board, views: PublicViews, clients_tournament: TournamentId
) -> None:
    await change(season.client, published="true")
    held = await board.sequence()
    tried: list[int] = []

    async def render(context: RecallContext) -> int:
        if not tried:
            await change(season.client, freeze="now")
            await give(season, 0, 3)
        tried.append(context.live.head.sequence)
        raise NotFound(f"The log ends at {tried[-1]}.")

    with pytest.raises(NotFound, match=f"The log ends at {held}"):
        await views.answer(board.slug, render)
    assert tried == [held + 2, held]


async def test_what_is_taken_away_meanwhile_is_not_answered(
    season: Season, board: Board, views: PublicViews, clients_tournament: TournamentId
) -> None:
    await change(season.client, published="true")

    async def render(context: RecallContext) -> None:
        await change(season.client, published="false")

    with pytest.raises(NotFound):
        await views.answer(board.slug, render)


async def test_of_two_who_reveal_the_next_at_once_one_does(season: Season, peers_client: Client, board: Board) -> None:
    client = season.client
    await change(client, published="true")
    for attempt in range(5):
        await change(client, freeze="now")
        others = [(await client.post("competitions.json", {"group_id": 3})).json["competition"]["id"] for _ in range(2)]
        first, _ = [await give(season, 0, 1, competition_id=other) for other in others]
        answers = await asyncio.gather(
            *(one.put("publication.json", {"reveal": "next"}) for one in (client, peers_client))
        )
        statuses = sorted(answer.status for answer in answers)
        if statuses == [200, 409]:
            assert await board.sequence() == first
        else:  # one was answered before the other looked
            assert statuses == [200, 200], attempt
            assert await board.sequence() == first + 1
        await change(client, reveal="all")


async def test_a_freeze_among_many_adds_hides_only_what_came_later(
    season: Season, peers_client: Client, board: Board
) -> None:
    """Whatever was answered to the public before the freeze is at or before it."""
    await change(season.client, published="true")
    stop = asyncio.Event()

    async def add(client: Client) -> None:
        while not stop.is_set():
            line = deltas((season.ids[0], season.unity_id, 1))
            assert (await client.put(f"{season.path}/add.json", {"participants_delta": line})).status == 200

    seen: list[int] = []

    async def look() -> None:
        while not stop.is_set():
            seen.append(await board.sequence())

    async with asyncio.TaskGroup() as tasks:
        for client in (season.client, peers_client):
            tasks.create_task(add(client))
        tasks.create_task(look())
        await until(lambda: len(seen) >= 20)
        held = (await change(season.client, freeze="now"))["public_end"]
        after = len(seen) + 2  # one may have been under way
        await until(lambda: len(seen) >= after + 10)
        stop.set()
    assert seen == sorted(seen)
    assert set(seen[after:]) == {held}


# ── What is kept ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_frozen_tournament_is_made_once_for_all_who_ask(
    season: Season, board: Board, views: PublicViews
) -> None:
    await change(season.client, published="true")
    await change(season.client, freeze="now")

    async def render(context: RecallContext) -> LiveTournament:
        return context.live

    first, *others = await asyncio.gather(*(views.answer(board.slug, render) for _ in range(10)))
    await give(season, 0, 3)
    others.append(await views.answer(board.slug, render))
    assert all(other is first for other in others)
    await change(season.client, reveal=first.head.sequence + 1)
    assert (await views.answer(board.slug, render)).head.sequence == first.head.sequence + 1
    assert len(views._frozen) == 1
    await change(season.client, reveal="all")
    await views.answer(board.slug, render)
    assert not views._frozen


async def test_the_bytes_kept_of_frozen_tournaments_are_limited(
    service: Service, token: str, views: PublicViews, bounds: Bounds
) -> None:
    async def render(context: RecallContext) -> int:
        return context.live.size_bytes()

    slugs = []
    for _ in range(3):
        slugs.append(await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)))
        await change(service.client(slugs[-1], token), freeze="now")
        await change(service.client(slugs[-1], token), published="true")
    sizes = [await views.answer(slug, render) for slug in slugs]
    assert len(views._frozen) == 3
    bounds(FROZEN_BYTES_MAX=sum(sizes) - 1)
    await change(service.client(slugs[0], token), reveal=2)
    await views.answer(slugs[0], render)
    assert len(views._frozen) == 2


async def test_an_answer_has_not_changed_while_what_is_public_has_not(season: Season, board: Board) -> None:
    await change(season.client, published="true")
    await change(season.client, freeze="now")
    tags = {path: (await board.get(path)).headers["ETag"] for path in paths_of(season)}
    await give(season, 0, 3)
    await season.client.put(f"competitors/{season.ids[0]}.json", {"name": "Adele"})
    for path, tag in tags.items():
        answer = await board.get(path, {"If-None-Match": tag})
        assert (answer.status, answer.headers["ETag"], answer.headers["Cache-Control"]) == (304, tag, "no-cache")
    await change(season.client, reveal="all")
    unchanged = [path for path, tag in tags.items() if (await board.get(path, {"If-None-Match": tag})).status == 304]
    assert unchanged == [f"{season.path}.json"]  # which shows no points


# ── Over several processes ──────────────────────────────────────────────────────────────────────────────


async def test_a_freeze_is_judged_at_the_very_event_before_it(dsn: str) -> None:
    """Another process has appended what the one that freezes has not heard of: the public may have seen that."""
    async with desks_at(dsn) as (one, other):
        arena = await open_arena(one.database)
        await submit(one, arena.tournament_id, ChangePublication(published=True))
        await submit(other, arena.tournament_id, arena.points())
        frozen = await submit(one, arena.tournament_id, ChangePublication(freeze="now"))
        assert frozen.event == PublicationFrozen(at=Sequence(frozen.sequence - 1))


async def test_verification_names_a_freeze_that_hides_what_was_shown(
    service: Service, season: Season, owner: asyncpg.Connection, clients_tournament: TournamentId, tallybook: Tallybook
) -> None:
    await change(season.client, published="true")
    hidden = await append_text(owner, clients_tournament, "PublicationFrozen", '{"at":2}', structural=True)
    said = await tallybook("verify", season.client.tournament)
    assert said.code != 0
    assert f"freeze must be at least {hidden - 1}: the public has already seen that event" in said.out
    assert said.out.count(" at sequence ") == 1
