"""The tournament whose requests and answers the documentation shows, and how they are recorded.

Each step is run as the page shows it: by a shell and curl. What a step needs of earlier ones stands in variables, as in
the reader's shell.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from api.cli.tournaments import open_tournament
from api.interface.declarations import TOURNAMENT
from api.interface.public.reads import PUBLIC
from api.web.docs.examples import Example, folded
from api.webhooks.webhooks import add_webhook
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.domain.terms import TournamentId
from tests.api.receiver import receiver_on
from tests.api.rendered import openapi_document
from tests.service import Service, make_token, serve

RECORDED: Final = Path(__file__).parents[2] / "api/web/docs/examples.json"
TOURNAMENT_NAME: Final = "Chess Club Ladder"
CUT_CHARACTERS: Final = 200
CUT: Final = ("showDocument", "showDocumentation")
"""Of answers to these, only the beginning is shown."""
_HEADERS: Final = ("Tallybook-Sequence", "Idempotency-Replayed", "ETag")
"""Which headers of answers are shown."""


class Step(Struct, frozen=True, kw_only=True):
    """A request to be recorded. `ids`: the variables of its path. `body`: a variable in it is a string like "$ANA".
    `minimal`: the answer may be. `keeps`: under which names what is found in the answer is kept. `lines`: after so
    many, the command is ended, because its answer has no end."""

    operation_id: str
    about: str = ""
    ids: Mapping[str, str] = {}
    query: str = ""
    body: Any = None
    key: str = ""
    minimal: bool = False
    lines: int = 0
    keeps: Mapping[str, tuple[str | int, ...]] = {}


def _points(*lines: tuple[str | int, str, int]) -> list[Any]:
    """The participants_delta for lines of competitor, unity and delta."""
    return [{"competitor_id": who, "unities": [{"unity_id": unity, "delta": delta}]} for who, unity, delta in lines]


_LADDER: Final = {"ranking_id": "$LADDER"}
_JUNIORS: Final = {"ranking_id": "$JUNIORS"}
_ANA: Final = {"competitor_id": "$ANA"}
_MATCH: Final = {"competition_id": "$MATCH"}
_FIRST_EVENING: Final = {
    "participants_delta": _points(("$ANA", "$POINTS", 3), ("$BEN", "$POINTS", 1)),
    "reason": "first evening",
}
_UNITY: Final = "$JUNIOR_POINTS"
_SCORINGS: Final = [{"awards": [{"unity": _UNITY, "from": "outcome", "table": {"win": 3, "draw": 1, "loss": 0}}]}]

STORY: Final = (
    Step(
        operation_id="registerCompetitor",
        about="Several at once. The answer names no more than their ids, because that is preferred.",
        body={"items": [{"name": "Ana"}, {"name": "Ben"}, {"name": "Cleo", "tags": ["junior"]}]},
        key="members",
        minimal=True,
        keeps={name: ("ids", number) for number, name in enumerate(("ANA", "BEN", "CLEO"))},
    ),
    Step(
        operation_id="createRanking",
        about="The answer names no more than the ids of the ranking and of its main unity.",
        body={"name": "Ladder", "main_unity_name": "points", "participants": ["$ANA", "$BEN", "$CLEO"]},
        key="ladder",
        minimal=True,
        keeps={"LADDER": ("id",), "POINTS": ("unity_id",)},
    ),
    Step(
        operation_id="addPoints",
        about="Done, and on disk.",
        ids=_LADDER,
        body=_FIRST_EVENING,
        key="evening-1",
        minimal=True,
    ),
    Step(operation_id="showStandings", ids=_LADDER),
    Step(operation_id="explain", ids=_LADDER, query="competitor=$BEN"),
    Step(
        operation_id="addPoints",
        about="The same again with the same key: nothing is added twice. This is the whole answer.",
        ids=_LADDER,
        body=_FIRST_EVENING,
        key="evening-1",
    ),
    Step(
        operation_id="addPoints",
        about="A refusal: nothing of it is done, and every fault is named.",
        ids=_LADDER,
        body={"participants_delta": _points(("$ANA", "$POINTS", 2), (999, "$POINTS", 1)), "reason": "second evening"},
        key="evening-2",
    ),
    Step(
        operation_id="showStandings",
        about="A window: Ben's line, with one above it and one below it.",
        ids=_LADDER,
        query="around=$BEN&span=1",
    ),
    Step(
        operation_id="registerCompetitor",
        about="One alone, and the whole answer.",
        body={"name": "Dan", "color": "ffaa00"},
        key="dan",
        keeps={"DAN": ("competitor", "id")},
    ),
    Step(operation_id="listCompetitors", query="tag=junior"),
    Step(operation_id="changeCompetitor", ids=_ANA, body={"color": "0044ff"}),
    Step(operation_id="showCompetitor", ids=_ANA),
    Step(
        operation_id="addCompetition",
        body={
            "group_id": 1,
            "started_at": "2026-05-02T19:00:00+02:00",
            "participants": ["$ANA", "$CLEO"],
            "result": "0-1",
            "winner": "$CLEO",
        },
        key="match",
        keeps={"MATCH": ("competition", "id")},
    ),
    Step(operation_id="changeCompetition", ids=_MATCH, body={"location": "Hall 2"}),
    Step(operation_id="showCompetition", ids=_MATCH),
    Step(operation_id="listCompetitions", query="competitor=$CLEO&has_result=true"),
    Step(
        operation_id="addUnity",
        ids=_LADDER,
        body={"name": "wins", "decimals": 1, "lasts": "P52W", "expires_on": "week"},
        keeps={"WINS": ("unity", "id")},
    ),
    Step(operation_id="changeUnity", ids=_LADDER | {"unity_id": "$WINS"}, body={"name": "victories"}),
    Step(
        operation_id="createRanking",
        about="Another one, of Cleo alone.",
        body={"name": "Juniors", "main_unity_name": "points", "participants": ["$CLEO"]},
        key="juniors",
        keeps={"JUNIORS": ("ranking", "id"), "JUNIOR_POINTS": ("ranking", "unities", 0, "id")},
    ),
    Step(
        operation_id="addPointsToRankings",
        body={
            "competition_id": "$MATCH",
            "rankings_delta": [
                {"ranking_id": "$LADDER", "participants_delta": _points(("$CLEO", "$POINTS", 3))},
                {"ranking_id": "$JUNIORS", "participants_delta": _points(("$CLEO", "$JUNIOR_POINTS", 1))},
            ],
        },
        key="match-points",
    ),
    Step(operation_id="changeParticipants", ids=_JUNIORS, body={"add": ["$DAN"]}),
    Step(
        operation_id="modifyRanking",
        ids=_JUNIORS,
        body={"name": "Juniors 2026", "main_unity_name": "points", "participants": ["$DAN", "$CLEO"]},
    ),
    Step(operation_id="changeRankingInformation", ids=_JUNIORS, body={"description": "born after 2008"}),
    Step(operation_id="showRanking", ids=_JUNIORS),
    Step(operation_id="listRankings", query="omit=competitors"),
    Step(operation_id="listKinds"),
    Step(
        operation_id="declareClassification",
        ids=_LADDER,
        body={"criteria": [{"unity": "$POINTS"}, {"unity": "$POINTS", "among": "tied"}, {"unity": "$WINS"}]},
    ),
    Step(operation_id="showClassification", ids=_LADDER, query="top=2"),
    Step(
        operation_id="previewDeclareScoring",
        about="Points for wins and draws of all competitions, earlier ones included.",
        ids=_JUNIORS,
        query=f"scorings={quote(json.dumps(_SCORINGS).replace(' ', ''), safe='$:,')}".replace(
            f"%22{_UNITY}%22", _UNITY
        ),
    ),
    Step(operation_id="declareScoring", ids=_JUNIORS, body={"scorings": _SCORINGS}),
    Step(operation_id="showScoring", ids=_JUNIORS),
    Step(
        operation_id="recordResult",
        about="A new competition, with the standings after it. With the same key, its result is corrected.",
        query="ranking=$JUNIORS",
        body={"key": "J1", "group_id": 2, "participants": ["$CLEO", "$DAN"], "result": "1-0"},
        key="j1",
    ),
    Step(operation_id="listResults", ids=_MATCH),
    Step(
        operation_id="previewChangeCompetition", about="If it had been a draw.", ids=_MATCH, query="result=1-1&winner="
    ),
    Step(operation_id="previewChangeParticipants", ids=_JUNIORS, query="remove=$DAN"),
    Step(operation_id="showForm", ids=_LADDER, query="last=3"),
    Step(operation_id="showLeaders", ids=_LADDER, query="clock=world&until=2026-05-31"),
    Step(operation_id="showExpiring", ids=_LADDER, query="until=2999-01-01&unity=$WINS&top=2"),
    Step(operation_id="showCompetitorStandings", ids={"competitor_id": "$CLEO"}),
    Step(operation_id="listHistory", ids=_LADDER, query="competitor=$CLEO"),
    Step(
        operation_id="previewReversePoints",
        about="Event 6 added the points of the first evening.",
        ids=_LADDER,
        query="sequence=6",
    ),
    Step(operation_id="reversePoints", about="They are undone.", ids=_LADDER, body={"sequence": 6}),
    Step(operation_id="previewStrikeCompetitors", ids=_MATCH, query="competitors=$CLEO"),
    Step(operation_id="strikeCompetitors", ids=_MATCH, body={"competitors": ["$CLEO"]}),
    Step(operation_id="previewUnstrikeCompetitors", ids=_MATCH, query="competitors=$CLEO"),
    Step(operation_id="unstrikeCompetitors", ids=_MATCH, body={"competitors": ["$CLEO"]}),
    Step(operation_id="previewVoidCompetition", ids=_MATCH),
    Step(operation_id="voidCompetition", ids=_MATCH),
    Step(operation_id="previewUnvoidCompetition", ids=_MATCH),
    Step(operation_id="unvoidCompetition", ids=_MATCH),
    Step(operation_id="orderRankings", body={"order": ["$JUNIORS", "$LADDER"]}),
    Step(operation_id="changeVisibility", ids=_JUNIORS, body={"hidden": True}),
    Step(operation_id="closeRanking", ids=_JUNIORS),
    Step(operation_id="previewReopenRanking", ids=_JUNIORS),
    Step(operation_id="reopenRanking", ids=_JUNIORS),
    Step(
        operation_id="followEvents",
        about="It goes on with each event as it is committed. These are the first.",
        query="after=31",
        lines=3,
    ),
    Step(operation_id="changePresentation", body={"zone": "Europe/Berlin", "accent": "1a56b0"}),
    Step(operation_id="showPresentation"),
    Step(operation_id="exportCompetitor", ids={"competitor_id": "$DAN"}, query="limit=2"),
    Step(operation_id="previewEraseCompetitor", ids={"competitor_id": "$DAN"}),
    Step(operation_id="eraseCompetitor", ids={"competitor_id": "$DAN"}),
    Step(operation_id="renameTournament", body={"name": "Summer ladder"}),
    Step(operation_id="createTicket"),
    Step(operation_id="testWebhook", ids={"webhook_id": "1"}),
    Step(operation_id="changePublication", body={"published": True}),
    Step(operation_id="showPublication"),
    Step(operation_id="showPublicTournament"),
    Step(operation_id="showPublicRanking", ids=_LADDER),
    Step(operation_id="showPublicStandings", ids=_LADDER, query="top=1"),
    Step(operation_id="showPublicClassification", ids=_LADDER, query="top=1"),
    Step(operation_id="showPublicForm", ids=_LADDER, query="top=1"),
    Step(operation_id="listPublicHistory", ids=_LADDER, query="limit=1"),
    Step(operation_id="explainPublic", ids=_LADDER, query="competitor=$CLEO"),
    Step(operation_id="showPublicExpiring", ids=_LADDER, query="until=2026-05-31&top=1"),
    Step(operation_id="showPublicLeaders", ids=_LADDER, query="clock=world&until=2026-05-31"),
    Step(
        operation_id="followPublicEvents",
        about="As with a token, but it does not say who sent something. These are the first.",
        query="after=0",
        lines=2,
    ),
    Step(operation_id="archiveTournament"),
    Step(operation_id="showTournament"),
    Step(operation_id="restoreTournament"),
    Step(
        operation_id="createTournament",
        about="With a token for all tournaments.",
        body={"name": "Winter ladder", "zone": "Europe/Berlin"},
        key="winter",
    ),
    Step(operation_id="listTournaments"),
    Step(
        operation_id="createToken",
        about="For the new tournament alone.",
        body={"name": "club", "scope": "write", "tournaments": ["winter-ladder"], "expires_in_days": 90},
        keeps={"CLUB": ("token", "id")},
    ),
    Step(operation_id="revokeToken", ids={"token_id": "$CLUB"}),
    Step(operation_id="listTokens"),
    Step(
        operation_id="deleteTournament", about="With a token for all tournaments.", body={"slug": "chess-club-ladder"}
    ),
    Step(operation_id="showHealth"),
    Step(operation_id="showReadiness"),
    Step(operation_id="showDocument"),
    Step(operation_id="showDocumentation"),
)


# ── What a reader types ─────────────────────────────────────────────────────────────────────────────────


def command_of(step: Step) -> str:
    """The command of a shell that sends the request of this step."""
    method, path, needs_token = _declared()[step.operation_id]
    for where, variable in _PLACES.items():
        path = path.replace(where, variable)
    path = path.format(**step.ids)
    is_stated = method != "GET" and (method, step.body is None) != ("POST", False)  # curl posts what it is given
    options = " -N" if step.lines else f" -X {method}" if is_stated else ""
    lines = [f'curl{options} "{path}{"?" if step.query else ""}{step.query}"']
    if needs_token:
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if step.minimal:
        lines.append('-H "Prefer: return=minimal"')
    if step.key:
        lines.append(f'-H "Idempotency-Key: {step.key}"')
    ending = ""
    if step.body is not None:
        text = re.sub(r'"(\$[A-Z_]+)"', r"\1", folded(step.body))
        lines.append('-H "Content-Type: application/json"')
        if "$" in text:
            lines.append("-d @- <<END")
            ending = f"\n{text}\nEND"
        else:
            lines.append(f"-d '{text}'")
    return " \\\n  ".join(lines) + ending


_PLACES: Final = {TOURNAMENT: "$TOURNAMENT/", PUBLIC: "$BOARD/"}


def _declared() -> dict[str, tuple[str, str, bool]]:
    """Method and path of each operation, and whether it needs a token, by its id."""
    return {
        operation["operationId"]: (
            method.upper(),
            path if path.startswith((TOURNAMENT, PUBLIC)) else f"$HOST{path}",
            "security" not in operation,
        )
        for path, operations in openapi_document()["paths"].items()
        for method, operation in operations.items()
    }


# ── What is answered ────────────────────────────────────────────────────────────────────────────────────


async def told(service: Service, address: str = "", *, streams: bool = True) -> AsyncIterator[Example]:
    """Runs all steps, one after the other, against a service whose database counts from one. `address`: of a proxy in
    front of it. Without `streams`, those steps are left out."""
    opened, address = await open_tournament(service.desk, TOURNAMENT_NAME), address or service.url
    kept: dict[str, str] = {
        "HOST": address,
        "TOURNAMENT": f"{address}/tournament/{opened.slug}",
        "BOARD": f"{address}/board/{opened.slug}",
        "TOKEN": await make_token(service.database),
    }
    async with _webhook(service, opened.tournament_id):
        for step in STORY if streams else [step for step in STORY if not step.lines]:
            status, headers, body = await _run(command_of(step), kept, lines=step.lines)
            keeps = {name: _at(json.loads(body), where) for name, where in step.keeps.items()}
            kept |= {name: str(value) for name, value in keeps.items()}
            cut = step.operation_id in CUT
            yield Example(
                operation_id=step.operation_id,
                about=step.about,
                command=command_of(step),
                status=status,
                headers={name: headers[name] for name in _HEADERS if name in headers},
                body=body[:CUT_CHARACTERS] if cut else body,
                keeps=keeps,
                cut=cut,
            )


@asynccontextmanager
async def _webhook(service: Service, tournament_id: TournamentId) -> AsyncIterator[None]:
    """The tournament has a webhook, the first of its database, and somebody receives what it sends."""
    async with receiver_on() as receiver:
        async with service.database.connection_for(tournament_id) as connection:
            await add_webhook(connection, tournament_id, receiver.url, kinds=None, allows_private=True, after=None)
        yield


async def _run(command: str, variables: Mapping[str, str], *, lines: int) -> tuple[int, dict[str, str], str]:
    """Has a shell run the command. Returns status, headers and body of the answer, up to `lines` lines of it if it
    has no end."""
    with TemporaryDirectory() as folder:
        head = Path(folder) / "head"
        (Path(folder) / ".curlrc").write_text(f'silent\ndump-header = "{head}"\n')
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            env=os.environ | dict(variables) | {"CURL_HOME": folder},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout
        if lines:
            body = b"".join([await process.stdout.readline() for _ in range(lines)])
            process.kill()
        else:
            body = await process.stdout.read()
        await process.wait()
        first, *others = head.read_bytes().decode().removesuffix("\r\n\r\n").split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", maxsplit=1) for line in others), body.decode()


def _at(value: Any, where: tuple[str | int, ...]) -> int:
    for part in where:
        value = value[part]
    assert isinstance(value, int)
    return value


# ── Recorded, and compared ──────────────────────────────────────────────────────────────────────────────

_VOLATILE: Final = {
    re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"): "time",
    re.compile(r'("id":"\d+-)[0-9a-f]{8}"'): r'\1digest"',
    re.compile(r'"ticket":"[^"]+"'): '"ticket":"…"',
    re.compile(r'"text":"tb_[^"]+"'): '"text":"…"',
    re.compile(r"\d{10,}"): "tournament",
    re.compile("/static/[0-9a-f]{16}/"): "/static/digest/",
}
"""What differs each time, and what stands for it."""


def settled(example: Example) -> Example:
    """What is the same each time: times, digests and tickets are not."""
    body = example.body
    for volatile, its in _VOLATILE.items():
        body = volatile.sub(its, body)
    headers = {name: "…" if name == "ETag" else value for name, value in example.headers.items()}
    return msgspec.structs.replace(example, body=body, headers=headers)


def kept_examples() -> list[Example]:
    """Those that the documentation shows."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=list[Example])


async def record() -> None:
    """Writes them again. Those that are the same stay as they are."""
    async with fresh() as service:
        found = [example async for example in told(service)]
    kept = [(settled(example), example) for example in kept_examples()] if RECORDED.exists() else []
    found = [next((before for same, before in kept if same == settled(new)), new) for new in found]
    RECORDED.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


@asynccontextmanager
async def fresh() -> AsyncIterator[Service]:
    """A service on a database of its own."""
    with TemporaryDirectory() as folder:
        async with embedded_postgres(Path(folder) / "pg") as cluster:
            await migrate(cluster.dsn)
            async with serve(cluster.dsn) as service:
                yield service
