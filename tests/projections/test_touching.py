"""What the log tells of one competitor: every event that names it, and nothing of others."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, Final, get_args, get_origin, get_type_hints

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from engine.domain.events import Event, Naming, Recorded
from engine.domain.terms import ActorId, CompetitorId, Sequence
from projections.past.touching import touch
from tests.histories import EVENTS

NOW: Final = datetime(2024, 2, 29, tzinfo=UTC)


def named_in(value: Any, hint: Any) -> Iterator[int]:
    """The ids of competitors in a value, by its type alone."""
    if getattr(hint, "__origin__", None) is CompetitorId and hasattr(hint, "__metadata__"):
        if isinstance(value, int):
            yield value
    elif isinstance(value, Struct):
        for name, of_field in get_type_hints(type(value), include_extras=True).items():
            if name in value.__struct_fields__:
                yield from named_in(getattr(value, name), of_field)
    elif isinstance(value, tuple) and get_origin(hint) is tuple:
        kinds = get_args(hint)
        for one, kind in zip(value, repeat(kinds[0]) if kinds[-1] is ... else kinds, strict=False):
            yield from named_in(one, kind)
    elif isinstance(value, dict):
        for possible in get_args(hint):
            if get_origin(possible) is dict:
                yield from [one for key in value for one in named_in(key, get_args(possible)[0])]
    else:
        for possible in get_args(hint):
            yield from named_in(value, possible)


def touched(event: Event, who: int, *, takes_part: bool = False) -> dict[str, Any] | None:
    recorded = Recorded(Sequence(7), NOW, ActorId(0), None, event)
    found = touch(recorded, CompetitorId(who), lambda _: takes_part)
    return None if found is None else found.told


@given(st.fixed_dictionaries(EVENTS), st.data())
def test_an_event_touches_all_that_it_names_and_nobody_else(given_: dict[Any, Event], data: st.DataObject) -> None:
    for kind, event in given_.items():
        named = set(named_in(event, kind))
        nobody = max(named, default=0) + 1
        assert touched(event, nobody) is None
        is_of_competition = kind.__name__.startswith("Competition")
        assert (touched(event, nobody, takes_part=True) is not None) == is_of_competition
        if not named:
            continue
        who = data.draw(st.sampled_from(sorted(named)))
        told = touched(event, who)
        assert told is not None, kind
        lists = [told.get(name, []) for name in ("participants", "added", "removed", "competitors")]
        lines = [
            line
            for name in ("deltas", "results", "totals", "silent", "silent_results", "replaced")
            for line in told.get(name, [])
        ]
        assert {one for ids in lists for one in ids} | {line[0] for line in lines} <= {who}
        if isinstance(event, Naming) and event.competitor_id != who:
            assert not told.keys() & event.personal
