"""The requests: every address that can be read, with whatever makes the answer laborious, and every operation with as
much as it may take. A form of the console does what its operation does, so of these only the imports are sent."""

import json
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from api.http.reply import JSON
from api.interface.operations import OPERATIONS
from api.interface.public.reads import PUBLIC_READS
from assurance.stalls.worlds import BEST, EXPIRING, FIRST_SMALL, RACE, RANKING, ROLLING, SUM, Scale, long_name
from engine.domain.events import CompetitionAdded, CompetitorRegistered, Event, PointsAdded
from tests.service import FORM

READ: Final = "GET"
_DATE: Final = "2026-03-01"
NOT_ASKED: Final = ("/events", "/docs", "/static", "/console/tokens/{token_id}", "/imports/{import_name}")
"""Parts of addresses that never end, show nothing of a tournament, or show what is not there."""

VARIANTS: Final[Mapping[str, str]] = {
    "last": "last=50",
    "limit": "limit=1000",
    "at_sequence": "at_sequence={half}",
    "on": f"on={_DATE}",
    "since": "since={half}",
    "since_on": f"since_on={_DATE}",
    "tag": "tag=team 1",
    "competitors": "competitors={many}",
    "clock": "clock=world",
    "unity": f"unity={BEST}",
    "name": "name=Competitor",
    "per_page": "per_page=200",
}
"""For each field of a query, what makes the answer laborious."""
PAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "/board/{tournament}": ("at={half}", f"on={_DATE}", "since={half}", "find=Comp", "tag=team 1"),
    "/board/{tournament}/tv": ("at={half}",),
    "/board/{tournament}/competitors/{competitor_id}": ("at={half}", f"on={_DATE}"),
    "/board/{tournament}/table.json": (
        "limit=500",
        "limit=500&at={half}",
        f"limit=500&on={_DATE}",
        "limit=500&find=Comp",
    ),
    "/board/{tournament}/table.csv": ("at={half}", f"on={_DATE}"),
    "/board/{tournament}/leaders": ("clock=world",),
    "/board/{tournament}/picture.png": ("at={half}",),
    "/console/tournament/{tournament}/rankings/{ranking_id}": ("offset=500",),
}
"""For pages, the queries to ask them with as well."""


class Asked(Struct, frozen=True):
    """`name`: what is reported."""

    name: str
    method: str
    target: str
    body: bytes = b""
    media_type: str = FORM

    @property
    def changes(self) -> bool:
        """Whether it can be asked only once."""
        return self.media_type == JSON


def reads(templates: Mapping[str, set[str]], slug: str, facts: Items[Event]) -> Iterator[Asked]:
    """What can be read of a tournament in which that has happened: now, and in the middle of its points."""
    points = _points(facts)
    half = points[len(points) // 2]
    race = max(
        (fact for fact in facts if isinstance(fact, CompetitionAdded)), key=lambda fact: len(fact.participants)
    ).competition_id
    competitors = sum(isinstance(fact, CompetitorRegistered) for fact in facts)
    many = ",".join(map(str, range(1, min(competitors, 499) + 1)))
    needed = {
        "explain.json": "competitor=1",
        "expiring.json": "until=2100-01-01",
        "passage.json": f"ranking={RANKING}&at={{half}}",
        "reverse.json": "sequence={half}",
        "strike.json": "competitors={many}",
        "unstrike.json": "competitors={many}",
    }
    fields = {f"/tournament/{{tournament}}/{one.path}": one.fields for one in OPERATIONS if not hasattr(one, "method")}
    fields |= {f"/board/{{tournament}}/{one.path}": one.fields for one in PUBLIC_READS}
    for template, methods in templates.items():
        if READ not in methods or any(part in template for part in NOT_ASKED):
            continue
        path = template.format(
            tournament=slug, ranking_id=RANKING, unity_id=SUM, competitor_id=1, competition_id=race, sequence=half,
            webhook_id=1,
        )  # fmt: skip
        first = needed.get(template.rpartition("/")[2], "")
        queries = [first, *PAGES.get(template, ())]
        queries += [VARIANTS[one.name] for one in fields.get(template, ()) if one.name in VARIANTS]
        for query in dict.fromkeys(queries):
            text = "&".join(part for part in (first, query if query != first else "") if part)
            text = text.format(half=half, many=many).replace(" ", "%20")
            yield Asked(f"GET {template} {query[:40]}".rstrip(), READ, f"{path}?{text}" if text else path)


def _line(unity_id: int) -> dict[str, object]:
    return {"competitor_id": 1, "unities": [{"unity_id": unity_id, "delta": 1}]}


def _points(facts: Items[Event]) -> list[int]:
    """The sequences of the points in `RANKING`; the first event opens the tournament."""
    return [
        sequence
        for sequence, fact in enumerate(facts, start=2)
        if isinstance(fact, PointsAdded) and fact.ranking_id == RANKING
    ]


def writes(slug: str, scale: Scale, facts: Items[Event]) -> Iterator[Asked]:
    """Every operation that changes something, with as much as it may take. What they change, the next ones find."""
    everybody = range(1, scale.competitors + 1)
    ids, lines = ",".join(map(str, everybody)), [*everybody][: scale.lines]
    of_all = {
        unity: json.dumps(
            [{"competitor_id": one, "unities": [{"unity_id": unity, "delta": one % 50}]} for one in lines],
            separators=(",", ":"),
        )
        for unity in (SUM, BEST, EXPIRING)
    }
    smalls = [
        {"ranking_id": number, "participants_delta": [_line(1_000 * number)]}
        for number in range(FIRST_SMALL, scale.rankings + 1)
    ]
    names = [{"name": f"New {n} " + "n" * 200, "tags": [f"{k}" for k in range(20)]} for n in range(scale.items)]
    matches = [{"group_id": 1, "participants": [1, 2], "result": "2:1", "location": f"{n}"} for n in range(scale.items)]
    performances = json.dumps({f"{one}": "9.8" for one in everybody}, separators=(",", ":"))
    forms: list[tuple[str, str, Mapping[str, object]]] = [
        ("PUT", f"rankings/{RANKING}/add.json", {"participants_delta": of_all[SUM]}),
        ("PUT", f"rankings/{RANKING}/add.json", {"participants_delta": of_all[BEST]}),
        ("PUT", f"rankings/{ROLLING}/add.json", {"participants_delta": of_all[EXPIRING], "competition_id": RACE}),
        ("PUT", "points.json", {"rankings_delta": json.dumps(smalls)}),
        ("POST", "rankings.json", {"name": "Further", "main_unity_name": "p", "participants": ids}),
        ("PUT", f"rankings/{RANKING}.json", {"main_unity_name": "points", "participants": ids}),
        ("PUT", f"rankings/{RANKING}/participants.json", {"remove": ids.partition(",")[2]}),
        ("PUT", f"rankings/{RANKING}/participants.json", {"add": ids.partition(",")[2]}),
        ("PUT", f"rankings/{RANKING}/information.json", {"description": "d" * 9_000}),
        ("POST", f"rankings/{RANKING}/unities.json", {"name": "further", "counts": "best"}),
        ("PUT", f"rankings/{RANKING}/unities/{SUM}.json", {"sort": "ASC"}),
        ("PUT", f"rankings/{RANKING}/visibility.json", {"hidden": "true"}),
        ("PUT", "rankings.json", {"order": ",".join(str(n) for n in range(scale.rankings, 0, -1))}),
        ("POST", "competitors.json", {"items": json.dumps(names)}),
        ("PUT", "competitors/2.json", {"name": "Other " + "o" * 200, "tags": ",".join(str(n) for n in range(100))}),
        ("POST", "competitions.json", {"items": json.dumps(matches)}),
        ("POST", "competitions.json", {"group_id": 1, "participants": ids, "result": performances}),
        ("PUT", f"competitions/{RACE}.json", {"result": performances}),
        ("PUT", "results.json", {"group_id": 1, "key": "R1", "participants": ids, "result": performances}),
        ("PUT", f"competitions/{RACE}.json", {"started_at": "2026-01-04T15:00:00Z"}),
        ("PUT", f"competitions/{RACE}/strike.json", {"competitors": ids}),
        ("PUT", f"competitions/{RACE}/unstrike.json", {"competitors": ids}),
        ("PUT", f"competitions/{RACE}/void.json", {}),
        ("PUT", f"competitions/{RACE}/unvoid.json", {}),
        ("PUT", f"rankings/{RANKING}/add.json", {"participants_delta": of_all[BEST], "competition_id": RACE}),
        ("PUT", f"rankings/{RANKING}/add.json", {"participants_delta": of_all[BEST]}),
        ("PUT", f"rankings/{RANKING}/classification.json", {"criteria": f'[{{"unity":{SUM},"best":3}}]'}),
        (
            "PUT",
            f"rankings/{RANKING}/scoring.json",
            {"scorings": f'[{{"awards":[{{"unity":{SUM},"from":"outcome"}}]}}]'},
        ),
        ("PUT", f"rankings/{RANKING}/reverse.json", {"sequence": _points(facts)[0]}),
        ("PUT", f"rankings/{ROLLING}/close.json", {}),
        ("PUT", f"rankings/{ROLLING}/reopen.json", {}),
        ("PUT", "presentation.json", {"zone": "Europe/Berlin"}),
        ("PUT", "publication.json", {"freeze": "now"}),
        ("PUT", "tournament.json", {"name": "Other"}),
        ("PUT", "competitors/3/erase.json", {}),
        ("PUT", "archive.json", {}),
        ("PUT", "restore.json", {}),
        ("PUT", "delete.json", {"slug": slug}),
    ]
    for number, (method, path, form) in enumerate(forms):
        said = ",".join(form)
        yield Asked(
            f"{number:02} {method} {path} {said}", method, f"/tournament/{slug}/{path}", json.dumps(form).encode(), JSON
        )


def imports(slug: str, scale: Scale) -> Iterator[Asked]:
    """Texts of all kinds for the two imports of the console, as long as a body may be."""
    n = scale.items
    unknown = "".join(f"2026-05-03 15:00,{long_name(50_000 + k)}|{long_name(60_000 + k)},2:1\n" for k in range(n))
    competitions = {
        "known names": "\n" + "".join(f"2026-05-03,Competitor {k}|Competitor {k + 1},2:1\n" for k in range(1, n)),
        "unknown names": "\n" + unknown,
        "one line of unknown names": "\n2026-05-03," + "|".join(f"Nobody {k}" for k in range(9 * n)) + ",2:1\n",
        "too many lines": "\n" + "a|b,c\n" * (100 * n),
        "too many fields": "\n" + "," * (1_000 * n),
        "too many columns": ",a" * (500 * n),
    }
    competitors = {
        "competitors": "\n" + "".join(f"New {k}\n" for k in range(n)),
        "too many competitors": "\n" + "a\n" * (250 * n),
        "too many fields of competitors": "\n" + "," * (1_000 * n),
        "empty lines": "\n" * (300 * n),
        "a line in quotes": '\n"' + "\n" * (300 * n) + '"',
    }
    for below, first, texts in (
        (f"rankings/{RANKING}", "date,participants,score", competitions),
        ("competitors", "name", competitors),
    ):
        for name, text in texts.items():
            body = f"key=k&csv={quote(first + text, safe=',|:')}".encode()
            yield Asked(f"import of {name}", "POST", f"/console/tournament/{slug}/{below}/import", body)


def brought(slug: str, scale: Scale) -> Iterator[Asked]:
    """Files of other programs, as long as a body may be."""
    n = 5 * scale.items
    matches = ",".join(f'{{"team1":"A{k}","team2":"B{k}","score":{{"ft":[1,0]}}}}' for k in range(n))
    run = "<Result><Status>OK</Status><Time>{k}</Time></Result>"
    runs = "".join(
        f"<PersonResult><Person><Name><Family>F{k}</Family></Name></Person>{run.format(k=k)}</PersonResult>"
        for k in range(n)
    )
    teams = "".join(f'{{"type":"teams","id":"{k}","data":{{"id":"{k}","name":"T{k}"}}}}\n' for k in range(3 * n // 2))
    texts = {
        "CSV": "home,away,score\n" + "".join(f"A{k},B{k},2:1\n" for k in range(4 * n)),
        "football.json": f'{{"name":"S","matches":[{matches}]}}',
        "IOF XML": '<ResultList xmlns="http://www.orienteering.org/datastandard/3.0"><ClassResult>'
        f"<Class><Name>C</Name></Class>{runs}</ClassResult></ResultList>",
        "an event feed": '{"type":"contest","id":null,"data":{"id":"c","name":"C"}}\n' + teams,
        "TRF": "012 T\n" + "".join(f"001 {k:>4}      Player {k}\n" for k in range(1, min(8 * n, 9_999))),
    }
    for name, text in texts.items():
        body = f"like=football&file={quote(text, safe=',:/')}".encode()
        yield Asked(f"bringing {name} ({len(body):,} bytes)", "POST", f"/console/tournament/{slug}/bring", body)
