"""The operations whose costs are compared between sizes: how each is asked, and why the costs of some may grow.

An operation is asked repeatedly, about a different object each time where there is a choice. Before each reading comes
a change that makes the cached answer stale, because resending a cached answer costs the same at any size.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks.sizes.worlds import World
from engine.domain.terms import CompetitorId, UnityId

EXPONENT_MAX: Final = 0.15
STALL_MS_MAX: Final = 20.0
WINDOW_LINES: Final = 10
SPAN: Final = 5
STRIDE: Final = 37
"""The distance from one competitor that is asked about to the next."""


class Kind(StrEnum):
    """`CHANGE`: with a minimal answer. The first three must not grow in any dimension."""

    CHANGE = "change"
    WINDOW = "window"
    READ = "read"
    OTHER = "other"


class Ask(Struct, frozen=True):
    """One request. `path` is below that of the tournament; `form` None: a GET."""

    method: str
    path: str
    form: Mapping[str, object] | None = None
    minimal: bool = True


Asking = Callable[[World, int], Ask]
"""The n-th time that something is asked of a world: 0, 1, …"""


class Measured(Struct, frozen=True, kw_only=True):
    """Something whose cost is compared between sizes. `because`: why it grows, by dimension."""

    name: str
    kind: Kind = Kind.OTHER
    because: Mapping[str, str] = {}

    @property
    def must_be_flat(self) -> bool:
        return self.kind is not Kind.OTHER


class Operation(Measured, frozen=True, kw_only=True):
    """`before`: a request that is sent before each time, and not measured. `times_max`: how often the operation may be
    asked in one world. `is_undone`: every second time undoes the time before, so they come one after another.
    `is_alone`: they come one after another because requests at the same moment would share the work."""

    ask: Asking
    before: Asking | None = None
    times_max: int = 1_000_000
    is_undone: bool = False
    is_alone: bool = False


class Command(Measured, frozen=True, kw_only=True):
    """A command of the command line. Its own processor time is measured, from its start to its end."""

    arguments: Callable[[World], Sequence[str]]


def put(path: str, **form: object) -> Ask:
    return Ask("PUT", path, form)


def post(path: str, **form: object) -> Ask:
    return Ask("POST", path, form)


def get(path: str) -> Ask:
    return Ask("GET", path)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# ── Changes ─────────────────────────────────────────────────────────────────────────────────────────────


def _participant(world: World, n: int) -> CompetitorId:
    return world.participants[(n + 1) * STRIDE % len(world.participants)]


def _ranking(world: World, rest: str = "") -> str:
    return f"rankings/{world.tournament.ranking_id}{rest}.json"


def _deltas(competitor_id: CompetitorId, unity_id: UnityId, amount: int) -> list[dict[str, Any]]:
    return [{"competitor_id": competitor_id, "unities": [{"unity_id": unity_id, "delta": str(amount)}]}]


def add(world: World, n: int) -> Ask:
    return add_to(world, n, 1_000 * (n % 3 - 1) + 1)


def add_to(world: World, n: int, amount: int) -> Ask:
    """That many points for the n-th participant that is asked about."""
    deltas = _deltas(_participant(world, n), world.tournament.unity_ids[0], amount)
    return put(_ranking(world, "/add"), participants_delta=_json(deltas))


def _add_and_show(world: World, n: int) -> Ask:
    return msgspec.structs.replace(add(world, n), minimal=False)


def _add_to_two(world: World, n: int) -> Ask:
    first = {
        "ranking_id": world.tournament.ranking_id,
        "participants_delta": _deltas(_participant(world, n), world.tournament.unity_ids[0], n % 5 - 2),
    }
    second = {
        "ranking_id": world.other_rankings[0],
        "participants_delta": _deltas(world.participants[0], world.other_unities[0], n % 5 - 2),
    }
    return put("points.json", rankings_delta=_json([first, second]))


def _register(_world: World, n: int) -> Ask:
    return post("competitors.json", name=f"Newcomer {n}", tags="guest")


def _register_ten(_world: World, n: int) -> Ask:
    return post("competitors.json", items=_json([{"name": f"One of ten {n}.{place}"} for place in range(10)]))


def _rename(world: World, n: int) -> Ask:
    return put(f"competitors/{_participant(world, n)}.json", name=f"Renamed {n}")


def _add_competition(world: World, n: int) -> Ask:
    pair = f"{_participant(world, n)},{_participant(world, n + 1)}"
    return post("competitions.json", group_id=7, participants=pair, result="2-2")


def _competition(world: World, n: int) -> str:
    """Not the first competition, because that one is voided."""
    competitions = world.tournament.competition_ids
    return f"competitions/{competitions[1 + n * STRIDE % (len(competitions) - 1)]}.json"


def _change_competition(world: World, n: int) -> Ask:
    return put(_competition(world, n), result=f"{n}-{n + 1}")


def _void(world: World, n: int) -> Ask:
    return put(f"competitions/{world.tournament.competition_ids[0]}/{'unvoid' if n % 2 else 'void'}.json")


def _create_ranking(world: World, n: int) -> Ask:
    two = f"{world.participants[0]},{world.participants[1]}"
    return post("rankings.json", name=f"Cup {n}", main_unity_name="points", participants=two)


def _information(world: World, n: int) -> Ask:
    return put(_ranking(world, "/information"), name=f"Season {n}")


def _modify(world: World, n: int) -> Ask:
    listed = ",".join(map(str, world.participants))
    return put(_ranking(world), name=f"Season {n}", main_unity_name="points", participants=listed)


def _add_unity(world: World, n: int) -> Ask:
    return post(_ranking(world, "/unities"), name=f"further {n}")


def _enrol(world: World, n: int) -> Ask:
    return put(_ranking(world, "/participants"), add=world.bystanders[n % len(world.bystanders)])


def _remove(world: World, n: int) -> Ask:
    return put(_ranking(world, "/participants"), remove=world.bystanders[n % len(world.bystanders)])


def _close(world: World, n: int) -> Ask:
    return put(_ranking(world, "/reopen" if n % 2 else "/close"))


# ── Questions ───────────────────────────────────────────────────────────────────────────────────────────


def _window(query: Callable[[World, int], str]) -> Asking:
    return lambda world, n: get(f"{_ranking(world, '/standings')}?{query(world, n)}")


def _some(world: World, n: int) -> str:
    return "competitors=" + ",".join(str(_participant(world, n + place)) for place in range(WINDOW_LINES))


def _half(world: World, _n: int) -> str:
    return f"offset={len(world.participants) // 2}&limit={WINDOW_LINES}"


def _long_ago(world: World, _n: int) -> str:
    """The moment at which half of the points existed that were added before anything was measured."""
    before = len(world.participants) + len(world.bystanders) + len(world.tournament.competition_ids)
    before += 3 + len(world.tournament.unity_ids) + len(world.other_rankings)
    return f"at_sequence={before + (world.size.events + world.size.keys) // 2}"


def _after(world: World, n: int) -> Ask:
    return get(f"competitors.json?after={_participant(world, n)}&per_page={WINDOW_LINES}")


def _explain(world: World, n: int) -> Ask:
    return get(f"{_ranking(world, '/explain')}?competitor={_participant(world, n)}&limit={WINDOW_LINES}")


def _fixed(path: str) -> Asking:
    return lambda _world, _n: get(path)


# ── All of them ─────────────────────────────────────────────────────────────────────────────────────────

_IS_THE_LIST: Final = "the client sends the whole list"
_IS_THE_ANSWER: Final = "it is what the answer consists of"
_IS_READ: Final = "the board of that moment is folded from the nearest snapshot"
_A_PAGE_COUNTS: Final = "a page says how many there are, and its numbers stand for places in a list; `after` is flat"

OPERATIONS: Final = (
    Operation(name="add points", kind=Kind.CHANGE, ask=add),
    Operation(name="add points after a registration", kind=Kind.CHANGE, ask=add, before=_register),
    Operation(name="add points to two rankings", kind=Kind.CHANGE, ask=_add_to_two),
    Operation(name="register a competitor", kind=Kind.CHANGE, ask=_register),
    Operation(name="register ten competitors", kind=Kind.CHANGE, ask=_register_ten, times_max=40),
    Operation(name="rename a competitor", kind=Kind.CHANGE, ask=_rename),
    Operation(name="add a competition", kind=Kind.CHANGE, ask=_add_competition),
    Operation(name="change a competition", kind=Kind.CHANGE, ask=_change_competition),
    Operation(name="void, unvoid a competition", kind=Kind.CHANGE, ask=_void, is_undone=True),
    Operation(name="enrol a competitor", kind=Kind.CHANGE, ask=_enrol, before=_remove),
    Operation(name="remove a competitor", kind=Kind.CHANGE, ask=_remove, before=_enrol),
    Operation(name="rename a ranking", kind=Kind.CHANGE, ask=_information),
    Operation(name="close, reopen a ranking", kind=Kind.CHANGE, ask=_close, is_undone=True),
    Operation(name="top ten", kind=Kind.WINDOW, ask=_window(lambda _w, _n: f"top={WINDOW_LINES}"), before=add),
    Operation(
        name="around a competitor",
        kind=Kind.WINDOW,
        ask=_window(lambda world, n: f"around={_participant(world, n)}&span={SPAN}"),
        before=add,
    ),
    Operation(name="ten competitors", kind=Kind.WINDOW, ask=_window(_some), before=add),
    Operation(name="ten lines from the middle", kind=Kind.WINDOW, ask=_window(_half), before=add),
    Operation(
        name="classification, top ten",
        kind=Kind.WINDOW,
        ask=lambda world, _n: get(f"{_ranking(world, '/classification')}?top={WINDOW_LINES}"),
        before=add,
    ),
    Operation(
        name="top ten after an enrolment",
        kind=Kind.WINDOW,
        ask=_window(lambda _w, _n: f"top={WINDOW_LINES}"),
        before=lambda world, n: (_remove if n % 2 else _enrol)(world, 99),
    ),
    Operation(
        name="a ranking, no competitors",
        kind=Kind.READ,
        ask=lambda world, _n: get(f"{_ranking(world)}?omit=competitors"),
        before=add,
    ),
    Operation(
        name="a competitor",
        kind=Kind.READ,
        ask=lambda world, n: get(f"competitors/{_participant(world, n)}.json"),
        before=_rename,
    ),
    Operation(
        name="a competitor in all rankings",
        kind=Kind.OTHER,
        ask=lambda world, n: get(f"competitors/{_participant(world, n + 5)}/standings.json"),
        before=add,
        because={
            "participants": "a line is looked up in an order, about log n",
            "rankings": _IS_THE_ANSWER,
            "unities": _IS_THE_ANSWER,
        },
    ),
    Operation(
        name="a competition",
        kind=Kind.READ,
        ask=lambda world, n: get(_competition(world, n)),
        before=_change_competition,
    ),
    Operation(
        name="competitors after one",
        kind=Kind.OTHER,
        ask=_after,
        before=_register,
    ),
    Operation(
        name="first page of competitors",
        kind=Kind.OTHER,
        ask=_fixed("competitors.json?per_page=10"),
        before=_register,
        because={"competitors": _A_PAGE_COUNTS, "participants": _A_PAGE_COUNTS},
    ),
    Operation(
        name="first page of competitions",
        kind=Kind.OTHER,
        ask=_fixed("competitions.json?per_page=10"),
        before=_add_competition,
        because={"competitions": _A_PAGE_COUNTS},
    ),
    Operation(
        name="rankings, no competitors",
        kind=Kind.OTHER,
        ask=_fixed("rankings.json?omit=competitors"),
        before=add,
        because={"rankings": _IS_THE_ANSWER, "unities": _IS_THE_ANSWER},
    ),
    Operation(
        name="rankings",
        kind=Kind.OTHER,
        ask=_fixed("rankings.json"),
        before=add,
        because={"rankings": _IS_THE_ANSWER, "participants": _IS_THE_ANSWER, "unities": _IS_THE_ANSWER},
    ),
    Operation(
        name="a ranking",
        kind=Kind.OTHER,
        ask=lambda world, _n: get(_ranking(world)),
        before=add,
        because={"participants": _IS_THE_ANSWER, "unities": _IS_THE_ANSWER},
    ),
    Operation(
        name="whole standings",
        kind=Kind.OTHER,
        ask=lambda world, _n: get(_ranking(world, "/standings")),
        before=add,
        because={"participants": _IS_THE_ANSWER, "unities": _IS_THE_ANSWER},
    ),
    Operation(
        name="add points, whole answer",
        kind=Kind.OTHER,
        ask=_add_and_show,
        because={"participants": _IS_THE_ANSWER, "unities": _IS_THE_ANSWER},
    ),
    Operation(
        name="modify a ranking",
        kind=Kind.OTHER,
        ask=_modify,
        because={"participants": _IS_THE_LIST},
    ),
    Operation(
        name="what voiding would do",
        kind=Kind.OTHER,
        ask=lambda world, _n: get(f"competitions/{world.tournament.competition_ids[0]}/void.json"),
        because={"participants": "it compares two whole standings", "unities": "it compares all standings"},
    ),
    Operation(
        name="top ten of the past",
        kind=Kind.OTHER,
        ask=_window(lambda world, n: f"top={WINDOW_LINES}&{_long_ago(world, n)}"),
        because={
            "competitors": _IS_READ,
            "participants": _IS_READ,
            "rankings": _IS_READ,
            "unities": _IS_READ,
            "competitions": _IS_READ,
            "events": f"{_IS_READ}, at most some thousand events away",
            "keys": f"{_IS_READ}, at most some thousand events away",
        },
    ),
    Operation(
        name="ten lines of history",
        kind=Kind.OTHER,
        ask=lambda world, _n: get(f"{_ranking(world, '/history')}?limit={WINDOW_LINES}"),
        because=dict.fromkeys(("competitors", "participants", "rankings", "competitions"), "its first board is folded"),
    ),
    Operation(
        name="ten steps of an explanation",
        kind=Kind.OTHER,
        ask=_explain,
        because=dict.fromkeys(("competitors", "participants", "rankings", "competitions"), "its first board is folded")
        | dict.fromkeys(("events", "keys"), "it looks for the competitor's few deltas among all"),
    ),
    Operation(name="create a ranking", kind=Kind.CHANGE, ask=_create_ranking, times_max=40),
    Operation(name="add a unity", kind=Kind.CHANGE, ask=_add_unity, times_max=9),
)
"""In this order: enrolments are removed again, and lasting changes come last."""

_EACH_EVENT: Final = "it reads and folds every event"

COMMANDS: Final = (
    Command(
        name="tallybook verify",
        arguments=lambda world: ["verify", world.tournament.slug],
        because=dict.fromkeys(
            ("competitors", "participants", "rankings", "competitions", "events", "keys"), _EACH_EVENT
        ),
    ),
    Command(
        name="tallybook what-if",
        arguments=lambda world: [
            *("what-if", world.tournament.slug, str(world.tournament.ranking_id)),
            *("--without-competition", str(world.tournament.competition_ids[0])),
        ],
        because=dict.fromkeys(("competitors", "participants", "competitions", "events", "keys"), _EACH_EVENT)
        | {"unities": "it compares all standings"},
    ),
    Command(
        name="tallybook competitor list",
        arguments=lambda world: ["competitor", "list", world.tournament.slug],
        because=dict.fromkeys(("competitors", "participants"), "it prints a line for each")
        | {"competitions": "the board is folded first"},
    ),
)
FIRST_ANSWER: Final = Measured(
    name="first answer of a process",
    because=dict.fromkeys(
        ("competitors", "participants", "rankings", "unities", "competitions"), "what is not in memory is read"
    ),
)
IDLENESS: Final = Measured(
    name="a second in which nothing is asked",
    because={"tournaments": "a worker looks at every tournament now and then, in case a hint was lost"},
)
ROWS: Final = (*OPERATIONS, FIRST_ANSWER, IDLENESS, *COMMANDS)
"""All that is compared."""
