"""Clients that fold events see what the service shows, whatever unities count: those of the stream, receivers of
webhooks, and the script of the board, which goes back too."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.interface.rendering import encode
from api.stream.frames import Frame, StreamFormat
from api.stream.public_frames import PUBLIC_LOG
from api.web.moments import passage_shape
from api.web.words import ENGLISH
from api.webhooks.totals import TotalsWindow
from engine.domain.events import Event, Points, Recorded, changed_by
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, CompetitorId, Counts, Sequence, Sort
from engine.log import codec
from engine.log.undecoded import Stored
from projections.answers.passages import told
from projections.board.board import Board, Revisions, Unity, fold
from tests.histories import OPENED, passage_of, result_histories, unhurried
from tests.positions import ENROLLED, POSITIONS, standings
from tests.project import ROOT
from tests.spectator import Lines, Spectator

BEGIN: Final = datetime(2024, 3, 1, tzinfo=UTC)
FOLD: Final = ROOT / "api" / "web" / "static" / "fold.js"
SCRIPT: Final = """
import { Passage } from %s;
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { told, visits } = JSON.parse(line);
  const passage = new Passage(told);
  const tables = visits.map((sequence) => {
    passage.goTo(sequence);
    return passage.unities.map((_, number) =>
      passage.lines([number]).map(({ competitor, position, values }) => [
        position,
        Number(passage.competitors[competitor].id),
        values[0] === null ? null : String(values[0]),
      ]),
    );
  });
  console.log(JSON.stringify(tables));
}
"""


def run_of(history: list[Event]) -> list[Recorded]:
    return [
        Recorded(Sequence(n), BEGIN + timedelta(minutes=n), OPERATOR, None, event)
        for n, event in enumerate([OPENED, *history], start=1)
    ]


def stored_of(recorded: Recorded) -> Stored:
    kind, body = recorded.event.tag, codec.text_of(recorded.event)
    return Stored(recorded.sequence, recorded.recorded_at, recorded.actor, kind, body, b"\1" * 32)


def tables_of(board: Board) -> dict[tuple[int, str], Lines]:
    """The standings of all unities, as they are shown."""
    return {
        (ranking_id, unity.name): lines_of(board, ranking_id, unity)
        for ranking_id, ranking in board.rankings.items()
        for unity in ranking.unities.values()
    }


def lines_of(board: Board, ranking_id: Any, unity: Unity) -> Lines:
    lines = standings(board.rankings[ranking_id].participants, unity.totals, unity.sort)
    return [(line.position, line.competitor_id, unity.notation.shown(line.total)) for line in lines]


@unhurried
@given(result_histories(), st.sampled_from(StreamFormat))
def test_a_client_of_a_stream_folds_what_is_shown(history: list[Event], form: StreamFormat) -> None:
    board, whole, public = Board(), Spectator(form), Spectator(form)
    for recorded in run_of(history):
        fold(board, Revisions(), recorded)
        stored = stored_of(recorded)
        whole.feed(Frame(stored).sent_as(form))
        public.feed(Frame(stored, PUBLIC_LOG).sent_as(form))
        if isinstance(recorded.event, Points):
            assert whole.standings() == public.standings() == tables_of(board)
    assert whole.standings() == public.standings() == tables_of(board)


@unhurried
@given(result_histories(), st.data())
def test_a_message_has_the_totals_after_its_event(history: list[Event], data: st.DataObject) -> None:
    run = run_of(history)
    moment = data.draw(st.integers(0, len(run)))
    board, end = Board(), Board()
    for recorded in run:
        fold(end, Revisions(), recorded)
        if recorded.sequence <= moment:
            fold(board, Revisions(), recorded)
    unities = {id_: unity for ranking in end.rankings.values() for id_, unity in ranking.unities.items()}
    begun = {id_: unity for ranking in board.rankings.values() for id_, unity in ranking.unities.items()}
    named = {
        (line.unity_id, line.competitor_id)
        for recorded in run[moment:]
        if isinstance(recorded.event, Points)
        for line in changed_by(recorded.event)
    }
    totals = {key: begun[key[0]].totals.get(key[1]) if key[0] in begun else 0 for key in named}
    of_results = {id_: (one.counts, one.sort) for id_, one in unities.items() if one.counts_results}
    window = TotalsWindow(Sequence(moment), Sequence(len(run)), totals, of_results)
    for recorded in run[moment:]:
        fold(board, Revisions(), recorded)
        lines = window.lines_after(stored_of(recorded))
        if not isinstance(recorded.event, Points):
            assert not lines
            continue
        last = {(line.unity_id, line.competitor_id): line for line in lines}
        assert last.keys() == {(line.unity_id, line.competitor_id) for line in changed_by(recorded.event)}
        for (unity_id, competitor_id), line in last.items():
            unity = board.rankings[recorded.event.ranking_id].unities[unity_id]
            assert line.total == unity.notation.shown(unity.totals.get(competitor_id))
            assert (line.delta is None) is (unity.counts is not Counts.SUM)


@pytest.fixture(scope="module")
def folded_by_script() -> Iterator[Callable[[object, list[int]], list[Any]]]:
    """What the script of the board shows of a passage at these sequences, one after the other."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: the script that folds was not run")
    script = SCRIPT % json.dumps(FOLD.as_uri())
    with subprocess.Popen(
        [node, "--no-warnings", "--input-type=module", "--eval", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        into, out = process.stdin, process.stdout

        def ask(shape: object, visits: list[int]) -> list[Any]:
            into.write(b'{"told":%b,"visits":%b}\n' % (encode(shape), encode(visits)))
            into.flush()
            tables: list[Any] = json.loads(out.readline())
            return tables

        yield ask
        into.close()


@pytest.mark.parametrize(("totals", "sort", "then"), POSITIONS)
def test_the_script_of_the_board_follows_the_position_rule(
    folded_by_script: Callable[[object, list[int]], list[Any]],
    totals: dict[CompetitorId, int],
    sort: Sort,
    then: list[tuple[CompetitorId, int, int]],
) -> None:
    unity = {
        "id": "1",
        "name": "points",
        "sort": sort,
        "notation": {},
        "totals": [str(totals.get(c, 0)) for c in ENROLLED],
    }
    competitors = [(str(one), "", "") for one in ENROLLED]
    passage = {"first": 1, "last": 1, "competitors": competitors, "unities": [unity], "criteria": [0], "steps": []}
    ((lines,),) = folded_by_script(passage, [1])
    assert lines == [[position, competitor_id, str(total)] for competitor_id, position, total in then]


@unhurried
@given(result_histories(), st.data())
def test_the_script_of_the_board_folds_forwards_and_back(
    folded_by_script: Callable[[object, list[int]], list[Any]], history: list[Event], data: st.DataObject
) -> None:
    run = run_of(history)
    boards, board = {}, Board()
    for recorded in run:
        fold(board, Revisions(), recorded)
        boards[recorded.sequence] = tables_of(board)
    for ranking_id in board.rankings:
        begun, rest = Board(), iter(run)
        while ranking_id not in begun.rankings:
            recorded = next(rest)
            fold(begun, Revisions(), recorded)
        found = passage_of(begun, recorded.sequence, rest, ranking_id, len(run))
        ranking = found.board.rankings[ranking_id]
        visits = data.draw(st.lists(st.integers(found.first, found.last), min_size=1, max_size=6))
        shape = finished(passage_shape(ENGLISH, asyncio.run(told(found, ranking_id, Sequence(len(run))))))
        for sequence, tables in zip(visits, folded_by_script(shape, visits), strict=True):
            for unity, lines in zip(ranking.unities.values(), tables, strict=True):
                shown = [(p, c, None if total is None else int(total)) for p, c, total in lines]
                assert shown == boards[Sequence(sequence)][ranking_id, unity.name]
