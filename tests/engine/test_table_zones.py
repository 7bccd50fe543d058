"""The zones of a table, whatever people write."""

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain.table_zones import TableZone, declared_zones, zone_at, zones_of

WRITTEN = st.lists(
    st.tuples(
        st.sampled_from(["1", "1-4", "2..3", "-1", "-3..-1", "-2--1", "0", "3..1"]),
        st.sampled_from(["promotion", "play-off:", "Relegation :", "neutral", "up"]),
        st.text(max_size=90),
    ).map(" ".join),
    max_size=12,
)


@example(written=["\u30001 promotion: Up\xa0"], separator="\n")
@example(written=["1 promotion: \xa0Up"], separator="\n")
@given(written=WRITTEN, separator=st.sampled_from(["\n", ";", "\r\n"]))
def test_what_is_declared_is_readable_and_declares_itself(written: list[str], separator: str) -> None:
    with suppress(ValueError):
        if declared := declared_zones(separator.join(written)):
            assert declared_zones(declared) == declared
            assert len(zones_of(declared)) == declared.count("\n") + 1


def test_a_place_is_in_the_first_zone_that_has_it_from_either_end() -> None:
    zones = [
        TableZone(1, 2, "promotion", "Up"),
        TableZone(-2, -2, "neutral", "Stay"),
        TableZone(-3, -1, "relegation", "Down"),
    ]
    for count, expected in (0, []), (1, [0]), (3, [0, 0, 2]), (6, [0, 0, None, 2, 1, 2]):
        assert [zone_at(zones, place, count) for place in range(1, count + 1)] == expected
