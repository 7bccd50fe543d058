"""The requests of a load: thousands of different ones, rendered as the bytes that clients send.

Half of the bodies are encoded as browsers do it (compact JSON, `encodeURIComponent`), half as Python's `requests` does
(JSON with blanks, which become `+`). Deltas are signed, some with an explicit plus, and every second request names a
competition if the tournament has any. Everything is drawn from a seed.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from benchmarks.world import DELTA_SHOWN_MAX, Tournament

REQUESTS: Final = 8_192
"""How many different requests a load has; wrk starts again when it has sent them all."""
LARGE_REQUESTS: Final = 256
"""The same number for requests of some hundred kilobytes each."""
PER_PAGE: Final = 100
MOVE_MAX: Final = 5_000
"""Deltas on a leaderboard are within ±MOVE_MAX; a million totals are spread over a million."""

RESULT_SHOWN_MAX: Final = 1_000_000
"""Results on a leaderboard are from 0 to this, and so are its initial totals."""

_HEAD: Final = (
    "{method} {path} HTTP/1.1\r\n"
    "Host: 127.0.0.1\r\n"
    "User-Agent: python-requests/2.32\r\n"
    "Accept-Encoding: identity\r\n"
    "Accept: application/json\r\n"
    "Connection: keep-alive\r\n"
    "Authorization: Bearer {token}\r\n"
)
_BODY_HEAD: Final = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"
_MINIMAL: Final = "Prefer: return=minimal\r\n"
_KEY: Final = "Idempotency-Key: {key}\r\n"

Request = bytes
"""One request, head and body."""
Delta = tuple[int, int, int]
"""Competitor, unity, amount."""


def get(path: str, token: str) -> Request:
    return f"{_HEAD.format(method='GET', path=path, token=token)}\r\n".encode()


def put(path: str, token: str, body: bytes, *, minimal: bool = False, key: str = "") -> Request:
    """`minimal`: the answer says only that the request was done. `key`: an idempotency key; empty: none."""
    head = _HEAD.format(method="PUT", path=path, token=token) + _BODY_HEAD.format(length=len(body))
    head += _MINIMAL if minimal else ""
    head += _KEY.format(key=key) if key else ""
    return f"{head}\r\n".encode() + body


def keyed(requests: list[Request], keys: Iterable[str]) -> list[Request]:
    """One request for each idempotency key, made of `requests` in turn."""
    parts = [request.partition(b"\r\n\r\n") for request in requests]
    return [
        b"%b\r\n%b\r\n%b" % (head, _KEY.format(key=key).encode(), body)
        for (head, _, body), key in zip(cycle(parts), keys, strict=False)
    ]


def body_of(request: Request) -> bytes:
    """The body of a rendered request."""
    return request.partition(b"\r\n\r\n")[2]


def is_add(request: Request) -> bool:
    return request.startswith(b"PUT ")


def store(requests: list[Request], file: Path) -> Path:
    """Writes the file of requests that loads read: each request after its length in four bytes, the highest first."""
    file.write_bytes(b"".join(len(request).to_bytes(4, "big") + request for request in requests))
    return file


def stored(file: Path) -> Iterator[Request]:
    """The requests of such a file."""
    with file.open("rb") as source:
        while length := source.read(4):
            yield source.read(int.from_bytes(length, "big"))


# ── Loads ───────────────────────────────────────────────────────────────────────────────────────────────


def adds(
    tournaments: Iterable[Tournament], token: str, *, seed: int, deltas: int = 1, spread: bool = False
) -> list[Request]:
    """One add.json to each of `tournaments`, in their order.

    It has `deltas` deltas, each of a drawn competitor; with `spread`, one delta for every competitor of the ranking
    instead.
    """
    draw = random.Random(seed)
    return [
        put(
            tournament.add_path,
            token,
            encoded(
                _all_deltas(tournament, draw) if spread else [_delta(tournament, draw) for _ in range(deltas)],
                draw.choice(tournament.competition_ids) if tournament.competition_ids and draw.random() < 0.5 else None,
                style=draw.choice((_as_browser, _as_requests)),
                explicit_plus=draw.random() < 0.25,
            ),
        )
        for tournament in tournaments
    ]


def rankings(tournaments: Iterable[Tournament], token: str) -> list[Request]:
    """GET rankings.json of each."""
    return [get(f"{tournament.path}/rankings.json", token) for tournament in tournaments]


def competitions(tournaments: Iterable[Tournament], token: str) -> list[Request]:
    """GET competitions.json of each, every full page of 100."""
    return [
        get(f"{tournament.path}/competitions.json?page={page}&per_page={PER_PAGE}", token)
        for tournament in tournaments
        for page in range(1, len(tournament.competition_ids) // PER_PAGE + 1)
    ]


def leaderboard_adds(tournament: Tournament, token: str, *, count: int, seed: int) -> list[Request]:
    """`count` add.json of one delta each, to members of one ranking, who move some thousand places; with minimal
    answers."""
    draw = random.Random(seed)
    members, (unity_id, *_) = tournament.competitor_ids, tournament.unity_ids
    deltas = [(draw.choice(members), unity_id, draw.randint(-MOVE_MAX, MOVE_MAX)) for _ in range(count)]
    return [
        put(tournament.add_path, token, encoded([delta], None, style=_as_requests), minimal=True) for delta in deltas
    ]


def leaderboard_results(tournament: Tournament, token: str, *, count: int, seed: int) -> list[Request]:
    """Like `leaderboard_adds`, with results, about half of which improve nothing."""
    draw = random.Random(seed)
    members, (unity_id, *_) = tournament.competitor_ids, tournament.unity_ids
    results = [(draw.choice(members), unity_id, draw.randint(0, RESULT_SHOWN_MAX)) for _ in range(count)]
    return [
        put(tournament.add_path, token, encoded([result], None, style=_as_requests), minimal=True) for result in results
    ]


def board_results(board: Tournament, token: str, draw: random.Random, count: int) -> Request:
    """One add.json with a result for each of `count` members of the board."""
    members, (unity_id, *_) = draw.sample(board.competitor_ids, count), board.unity_ids
    results: list[Delta] = [(member, unity_id, draw.randint(0, RESULT_SHOWN_MAX)) for member in members]
    return put(board.add_path, token, encoded(results, None, style=_as_requests), minimal=True)


def keyed_add(tournament: Tournament, token: str, member: int, points: int, *, key: str) -> Request:
    """One add.json of points in the main unity, with an idempotency key and a minimal answer."""
    body = encoded([(member, tournament.unity_ids[0], points)], None, style=_as_requests)
    return put(tournament.add_path, token, body, minimal=True, key=key)


def windows(tournament: Tournament, token: str, queries: Iterable[str]) -> list[Request]:
    """GET standings.json of one ranking with each of these queries."""
    path = f"{tournament.path}/rankings/{tournament.ranking_id}/standings.json"
    return [get(f"{path}?{query}", token) for query in queries]


def mixed(reads: list[Request], writes: list[Request], *, reads_share: float, count: int, seed: int) -> list[Request]:
    """`count` requests in a random order, of which `reads_share` are reads."""
    draw = random.Random(seed)
    reads_count = round(count * reads_share)
    chosen = draw.choices(reads, k=reads_count) + draw.sample(writes, count - reads_count)
    draw.shuffle(chosen)
    return chosen


# ── Bodies ──────────────────────────────────────────────────────────────────────────────────────────────


def encoded(
    deltas: list[Delta],
    competition_id: int | None,
    *,
    style: Callable[[object, int | None], bytes],
    explicit_plus: bool = False,
) -> bytes:
    """The form of one add.json."""
    lines = [
        {"competitor_id": c, "unities": [{"unity_id": u, "delta": f"{amount:+d}" if explicit_plus else str(amount)}]}
        for c, u, amount in deltas
    ]
    return style(lines, competition_id)


def nothing_added(tournament: Tournament) -> bytes:
    """A form that adds nothing, and is recorded like any other. Its answer shows the current state."""
    return encoded([(tournament.competitor_ids[0], tournament.unity_ids[0], 0)], None, style=_as_browser)


def _as_browser(lines: object, competition_id: int | None) -> bytes:
    form = "participants_delta=" + quote(json.dumps(lines, separators=(",", ":")), safe="!~*'()")
    return (form if competition_id is None else f"{form}&competition_id={competition_id}").encode()


def _as_requests(lines: object, competition_id: int | None) -> bytes:
    fields = {"participants_delta": json.dumps(lines)}
    return urlencode(fields if competition_id is None else fields | {"competition_id": competition_id}).encode()


def _delta(tournament: Tournament, draw: random.Random) -> Delta:
    return draw.choice(tournament.competitor_ids), draw.choice(tournament.unity_ids), _amount(draw)


def _all_deltas(tournament: Tournament, draw: random.Random) -> list[Delta]:
    return [(competitor_id, tournament.unity_ids[0], _amount(draw)) for competitor_id in tournament.competitor_ids]


def _amount(draw: random.Random) -> int:
    return draw.randint(-DELTA_SHOWN_MAX, DELTA_SHOWN_MAX)
