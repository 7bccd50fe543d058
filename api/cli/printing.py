"""What the command line prints: data on standard output, as tables or JSON, and talk on standard error.

A terminal, or whoever else reads, may have an encoding that lacks a character of a name. It is written as JSON escapes
it then (ë as \\u00eb), in tables and sentences as in JSON, which thereby stays JSON.
"""

import codecs
import io
import json as stdlib_json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Final, Protocol

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from api.http.auth import Token
from api.interface import answers, shapes
from engine.domain.errors import Refusal, TallybookError
from engine.domain.terms import RankingId, Sequence, TournamentId
from projections.board.board import Ranking
from projections.board.standing import standings as lines_of
from projections.live.live import Live

OnReady = Callable[[str], None]


class Advance(Protocol):
    """Moves a bar to how much is `done`, where it is known now `of` how much."""

    def __call__(self, done: int, of: int | None = None) -> None: ...


PIPED_COLUMNS: Final = 200
"""Width of a table that does not go to a terminal."""
_ESCAPING: Final = "tallybook.escaping"
"""Name under which Python knows what is done about characters that an encoding lacks."""


def in_any_encoding() -> None:
    """Has both standard streams escape what their encoding lacks, from now on, whoever writes to them."""
    codecs.register_error(_ESCAPING, _escaped)
    for stream in sys.stdout, sys.stderr:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPING)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return stdlib_json.dumps(error.object[error.start : error.end])[1:-1], error.end


@cache
def talk() -> Console:
    return Console(stderr=True, soft_wrap=True, emoji=False)


@cache
def data() -> Console:
    return Console(width=None if sys.stdout.isatty() else PIPED_COLUMNS, emoji=False)


def say(sentence: str) -> None:
    talk().print(sentence, markup=False, highlight=False)


def line(text: str) -> None:
    write(f"{text}\n")


def write(text: str) -> None:
    """As rich does it for tables: who has read enough and gone makes this the end, and no error of ours."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def json(value: object) -> None:
    line(msgspec.json.encode(value).decode())


def rows(values: Items[Mapping[str, object]], columns: Items[str], *, as_json: bool) -> None:
    """A table of `columns`, or an array of objects."""
    if as_json:
        json(values)
        return
    table = Table(*columns)
    for value in values:
        table.add_row(*(_cell(value[column]) for column in columns))
    data().print(table, markup=False)


def refused(error: TallybookError) -> None:
    """The reason, with every fault."""
    say(error.message)
    if isinstance(error, Refusal):
        for fault in error.faults:
            say(f"  {fault.field}: {fault.message}")


def moment(value: datetime | None) -> str | None:
    return None if value is None else answers.timestamp(value)


def ranking_row(ranking_id: RankingId, ranking: Ranking) -> dict[str, object]:
    return {
        "id": ranking_id,
        "name": ranking.name,
        "unities": {str(unity_id): unity.name for unity_id, unity in ranking.unities.items()},
        "competitors": len(ranking.participants),
        "closed_at": moment(ranking.closed_at),
    }


def token_row(token: Token, slugs: Mapping[TournamentId, str]) -> dict[str, object]:
    bound = None if token.tournament_ids is None else sorted(slugs.get(t, str(t)) for t in token.tournament_ids)
    return {
        "id": token.token_id,
        "name": token.name,
        "scope": token.scope.text,
        "tournaments": bound,
        "created_at": moment(token.created_at),
        "expires_at": moment(token.expires_at),
        "revoked_at": moment(token.revoked_at),
    }


def standings(live: Live, ranking_id: RankingId, only: str | None = None) -> None:
    """A table for each unity of the ranking, or for the one named `only`."""
    ranking = live.board.rankings[ranking_id]
    for unity in ranking.unities.values():
        if only in (None, unity.name):
            table = Table("position", "competitor", "total", title=Text(f"{ranking.name}: {unity.name}"))
            for standing in lines_of(ranking.participants, unity.totals, unity.sort):
                name = live.board.competitors[standing.competitor_id].name
                table.add_row(str(standing.position), _cell(name), str(standing.total))
            data().print(table, markup=False)


def standings_json(
    live: Live, ranking_id: RankingId, only: str | None, sequence: Sequence, recorded_at: datetime
) -> None:
    """The modification shape of the interface, with the sequence it is of and the time of that event."""
    shape = msgspec.json.decode(answers.whole(answers.modified_ranking(live, ranking_id)))["ranking"]
    shape["unities"] = [unity for unity in shape["unities"] if only in (None, unity["name"])]
    json(shape | {"sequence": sequence, "recorded_at": moment(recorded_at)})


def comparison(rankings: Items[shapes.ComparedRanking]) -> None:
    """A table for each unity; who moves is marked with by how many positions."""
    for ranking in rankings:
        for unity in ranking.unities:
            table = Table(
                "position", "was", "", "competitor", "total", "was", title=Text(f"{ranking.name}: {unity.name}")
            )
            for move in unity.moves:
                table.add_row(
                    _cell(move.position_after),
                    _cell(move.position_before),
                    _moved(move),
                    _cell(move.name),
                    _cell(move.total_after),
                    _cell(move.total_before),
                )
            data().print(table, markup=False)
    if not rankings:
        say("no ranking changes")


def _moved(move: shapes.Move) -> str:
    if move.position_before is None or move.position_after is None:
        return "" if move.position_before == move.position_after else "in" if move.position_before is None else "out"
    up = move.position_before - move.position_after
    return "" if up == 0 else f"▲ {up}" if up > 0 else f"▼ {-up}"


@contextmanager
def progress(what: str, *, total: int | None = None, data_there: bool = False) -> Iterator[Advance]:
    """A bar on a terminal, unless the data itself goes there; it is told how much is done, and perhaps of how much."""
    with Progress(console=talk(), disable=data_there or not talk().is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, of=None: bar.update(task, completed=done, total=of)


def imported(registered: int, already_registered: int) -> None:
    if not already_registered:
        say(f"{registered} competitors registered")
    elif registered:
        say(f"{registered} competitors registered; {already_registered} of the file were registered already")
    else:
        say(f"nothing to do: all {already_registered} competitors of the file are registered already")


def listening(address: str) -> None:
    say(f"Listening on {address}. Stop with Ctrl-C.")


def demo(token: str, slug: str, ranking_id: RankingId, live: Live, address: str) -> None:
    """Three lines to try."""
    ranking = live.board.rankings[ranking_id]
    competitor_id, unity_id = ranking.participants[0], next(iter(ranking.unities))
    at = f"{address}/tournament/{slug}"
    bearer = f"-H 'Authorization: Bearer {token}'"
    delta = f'[{{"competitor_id":{competitor_id},"unities":[{{"unity_id":{unity_id},"delta":"5"}}]}}]'
    say(f"\nA token for a week:\n\n  {token}\n\nTry:\n")
    say(f"  curl {bearer} {at}/rankings.json")
    say(f"  curl {bearer} '{at}/competitions.json?per_page=3'")
    say(f"  curl {bearer} -X PUT --data-urlencode 'participants_delta={delta}' {at}/rankings/{ranking_id}/add.json\n")
    listening(address)


def _cell(value: object) -> str:
    match value:
        case None:
            text = ""
        case list():
            text = ", ".join(map(str, value))
        case dict():
            text = ", ".join(f"{key} {of_key}" for key, of_key in value.items())
        case _:
            text = str(value)
    # Escaped before the columns are laid out, so that they are as wide as what is in them.
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == _ESCAPING:
        return text.encode(stream.encoding, _ESCAPING).decode(stream.encoding)
    return text
