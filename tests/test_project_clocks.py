"""No test of `make test` gives a verdict by the wall clock, which tells how busy the machine is; and none sleeps unless
this page says why.

Speed is judged by the processor time of the thread (`time.thread_time`), by counted steps, or in a test that is marked
`long`. Two things are left for the clock elsewhere: a guard, so that a test that hangs ends, and a lower bound, which a
busy machine cannot miss. A guard is generous: a minute and more. All other uses are listed here, with their reason.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

from tests.project import PACKAGES, ROOT

CLOCKS: Final = {
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "process_time_ns",
    "time_ns",
}
"""`process_time` counts what other threads do, such as those of a service under test."""
CLOCKS_NAMED_TIME: Final = {"time", "loop", "get_running_loop", "get_event_loop"}
"""What has a method `time`."""
WAITS: Final = {"timeout": 0, "timeout_at": 0, "wait_for": 1, "wait": 1, "until": 1}
"""What gives up after some seconds, and which argument says so."""
GUARD_SECONDS_MIN: Final = 60
_FIGURE: Final = re.compile(r"^(\w+): [^=\n]+ = ([\d_]+(?:\.\d+)?)(?: *#.*)?$", re.MULTILINE)
"""A constant of a module. To parse all modules takes seconds."""
ELSEWHERE: Final = ("assurance/faults", "assurance/mutants", "tests/assurance/faults", "tests/wheel")
"""Folders of programs that measure, and of what is made. Those with faults sleep while load or a fault goes on."""

USES: Final = {
    "tests/desks.py:until": "a guard",
    "tests/projections/test_worker.py:test_hints_gather_between_rounds": "at most one round in that many seconds",
    "tests/api/stream/test_stream.py:played": "when events came, for lower bounds",
    "tests/api/stream/test_stream.py:test_the_past_is_played_with_its_pauses_and_none_is_longer_than_five_seconds": (
        "a lower bound"
    ),
    "tests/api/clients/test_calls.py:test_it_waits_as_long_as_it_is_asked_to": "a lower bound",
    "tests/api/clients/test_calls.py:test_keys_are_uuids_of_version_7_that_grow_with_time": "what the key holds",
    "assurance/model/search.py:search": "how long it took, to be printed",
    "tests/outside/recording.py:_append": "when it was asked and answered, for the order of calls",
    "tests/outside/recording.py:_read": "when it was asked and answered, for the order of calls",
    "assurance/traces/recorder.py:write": "the order of what two processes did",
    "assurance/traces/playing.py:_make": "when the database crashed, among what processes did",
    "assurance/traces/playing.py:_fallen_behind": "when the database was replaced, among what processes did",
    "tests/restoring.py:exchange": "when the database was replaced, among what processes did",
    "assurance/traces/__main__.py:main": "how long to go on",
    "tests/api/http/test_front.py:register_when_told": "which came first",
    "tests/api/http/test_front.py:noting_ids": "which came first",
    "tests/api/service/test_processes.py:test_every_process_answers_and_figures_and_failures_are_those_of_all": (
        "at most one failure a second"
    ),
    "tests/api/desk/test_desk.py:hold": "a moment that is over",
    "tests/api/desk/test_desk.py:test_what_a_command_was_kept_from_the_desk_counts_as_its_time": (
        "a moment that is over"
    ),
}
"""Functions that read a clock, and what for."""
SHORT: Final = {
    "tests/api/desk/test_desk.py:"
    "test_what_is_in_the_log_is_answered_when_the_answer_can_be_read_and_not_as_unknown_before": "not done by then",
    "tests/api/http/test_connections.py:drip": "how slowly it is sent",
    "tests/api/interface/test_long.py:test_a_long_answer_waits_for_room_and_is_not_begun_where_there_is_none": (
        "not done by then"
    ),
}
"""Functions that wait for a short time, and what for."""
SLEEPS: Final = {
    "tests/desks.py:until": "before it asks again",
    "tests/conftest.py:_drop_at": "before it tries again, while a node comes back",
    "tests/spectator.py:follow": "before it connects again, as a client does",
    "tests/api/watched.py:_look": "what it measures is how late it wakes up",
    "tests/api/interface/test_long.py:_forty_unread": "between two looks at what is held",
    "tests/api/test_expiry.py:counting": "as long as the product asks for",
    "tests/outside/recording.py:_append": "before it sends the request again, as a client does",
    "tests/projections/test_worker.py:"
    "test_each_node_has_a_worker_that_finds_what_it_has_without_a_hint_and_with_one": "until a short pause is over",
    "assurance/traces/playing.py:read": "before it asks again, as a client does",
    "assurance/traces/playing.py:listen": "before it connects again, as a client does",
    "assurance/traces/playing.py:_ask": "before it sends the request again, as a client does",
}
"""Functions that sleep, and why."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


class Found:
    """What a test file does with time; of tests that are `long`, only whether they sleep."""

    def __init__(self, path: Path, root: Path = ROOT) -> None:
        self.name = path.relative_to(root).as_posix()
        self.clocks: dict[str, int] = {}
        self.short: dict[str, int] = {}
        self.sleeps: dict[str, int] = {}
        self._look(parsed(path), "", is_long=False)

    def _look(self, node: ast.AST, function: str, *, is_long: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = map(ast.unparse, child.decorator_list)
                self._look(child, child.name, is_long=is_long or any("mark.long" in mark for mark in marks))
                continue
            if isinstance(child, ast.Attribute | ast.Name) and is_clock(child) and not is_long:
                self.clocks.setdefault(f"{self.name}:{function}", child.lineno)
            if isinstance(child, ast.Call) and is_short(child) and not is_long:
                self.short.setdefault(f"{self.name}:{function}", child.lineno)
            if isinstance(child, ast.Call) and is_sleep(child):
                self.sleeps.setdefault(f"{self.name}:{function}", child.lineno)
            self._look(child, function, is_long=is_long)


def is_clock(node: ast.Attribute | ast.Name) -> bool:
    if isinstance(node, ast.Name):
        return node.id in CLOCKS
    if node.attr == "time":
        of = node.value.func if isinstance(node.value, ast.Call) else node.value
        return (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) in CLOCKS_NAMED_TIME
    return node.attr in CLOCKS


def is_sleep(call: ast.Call) -> bool:
    """Whether it does more than give others a turn."""
    return ast.unparse(call.func).endswith("sleep") and ast.unparse(call.args[0]) != "0"


def is_short(call: ast.Call) -> bool:
    """Whether it gives up sooner than a guard does."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in WAITS or (name == "wait" and not ast.unparse(call.func).startswith("asyncio.")):
        return False
    given = [one.value for one in call.keywords if one.arg in ("timeout", "delay", "seconds")] or call.args[
        WAITS[name] :
    ][:1]
    parts = [part for one in given for part in ast.walk(one)]
    return bool(given) and (any(isinstance(part, ast.Div) for part in parts) or not any(map(is_generous, parts)))


def is_generous(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None or (isinstance(node.value, int | float) and node.value >= GUARD_SECONDS_MIN)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return min(_figures().get(name, [0.0])) >= GUARD_SECONDS_MIN


@cache
def _figures() -> dict[str, list[float]]:
    """What the constants of all modules are, by name, where that is a figure."""
    figures: dict[str, list[float]] = {}
    for folder in ("tests", "assurance", *PACKAGES):
        for path in (ROOT / folder).rglob("*.py"):
            for name, figure in _FIGURE.findall(path.read_text(encoding="utf-8")):
                figures.setdefault(name, []).append(float(figure))
    return figures


def test_no_test_judges_by_the_clock_gives_up_before_it_is_sure_or_sleeps_without_a_reason() -> None:
    found = [
        Found(path)
        for folder in ("tests", "assurance")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(ELSEWHERE) and path != Path(__file__)
    ]
    for seen, expected in (
        ({use: line for one in found for use, line in one.clocks.items()}, USES),
        ({use: line for one in found for use, line in one.short.items()}, SHORT),
        ({use: line for one in found for use, line in one.sleeps.items()}, SLEEPS),
    ):
        assert {f"{use} (line {line})" for use, line in seen.items() if use not in expected} == set()
        assert expected.keys() <= seen.keys(), "a use that is no longer there"


EXAMPLES: Final = [
    ("async def test_a() -> None:\n    assert time.monotonic() - began < 1\n", 1, 0, 0),
    ("def test_a() -> None:\n    from time import perf_counter\n    assert perf_counter() < 1\n", 1, 0, 0),
    ("async def test_a() -> None:\n    assert asyncio.get_running_loop().time() < until\n", 1, 0, 0),
    ("async def test_a() -> None:\n    async with asyncio.timeout(2):\n        pass\n", 0, 1, 0),
    ("async def test_a() -> None:\n    await until(lambda: True, seconds=3)\n", 0, 1, 0),
    ("async def test_a() -> None:\n    await asyncio.wait_for(it, SOON)\n", 0, 1, 0),
    ("async def test_a() -> None:\n    await asyncio.wait_for(it, GUARD_SECONDS)\n", 0, 0, 0),
    ("async def test_a() -> None:\n    await asyncio.wait([it])\n    event.wait()\n", 0, 0, 0),
    ("def test_a() -> None:\n    assert thread_time() - began < 1\n    assert event.time\n", 0, 0, 0),
    ("@pytest.mark.long\ndef test_a() -> None:\n    assert time.monotonic() - began < 1\n", 0, 0, 0),
    ("@pytest.mark.long\nasync def test_a() -> None:\n    await asyncio.sleep(0)\n    await sleep(2)\n", 0, 0, 1),
]
"""A test, and how many clocks, short waits and sleeps are found in it."""


def test_what_is_looked_for_is_found(tmp_path: Path) -> None:
    for number, (text, clocks, short, sleeps) in enumerate(EXAMPLES):
        path = tmp_path / f"test_{number}.py"
        path.write_text(text)
        one = Found(path, tmp_path)
        assert (len(one.clocks), len(one.short), len(one.sleeps)) == (clocks, short, sleeps), text
