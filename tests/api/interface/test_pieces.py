"""The shapes of competitors are rendered when they are shown, and again only when they have changed."""

import json
from typing import Any

import pytest

from api.interface.paging import PageQuestion
from api.interface.rendering import TaggedBody, whole
from api.interface.resources.competitors import competitor_pieces, participants_json
from api.interface.resources.rankings import RankingQuestion
from engine.domain.events import CompetitorChanged
from engine.domain.terms import CompetitorId, RankingId
from projections.live.tournament import LiveTournament
from tests.api.crowds import crowd, go_on, live_of, points, recorded
from tests.api.rendered import ADD, answered
from tests.bounds import Bounds
from tests.projections.forests import moved, registered

MANY = 60_000
"""Competitors whose pieces take more room than rendered answers may."""


def kept(live: LiveTournament) -> int:
    return len(live.cache.small._pieces)


def page(live: LiveTournament, number: int, per_page: int = 200) -> Any:
    made = answered(live, "GET competitors.json", PageQuestion(number, per_page))
    assert isinstance(made, TaggedBody)
    return json.loads(made.body)["competitors"]["competitor"]


@pytest.mark.parametrize("below", [None, 1])
def test_a_page_renders_the_competitors_that_it_shows_and_no_others(below: int | None) -> None:
    live = live_of(recorded([registered(n, below if n == 2 else None) for n in range(1, MANY + 1)]))
    assert [one["id"] for one in page(live, 200)] == list(range(39_801, 40_001))
    assert kept(live) == 200
    first = competitor_pieces(live)[CompetitorId(39_801)]
    go_on(live, recorded([registered(MANY + 1)], live.head.sequence))
    assert page(live, 200)[0]["lft"] == 2 * 39_801 - 1
    assert competitor_pieces(live)[CompetitorId(39_801)] is first
    assert kept(live) == 200


def test_a_change_leaves_the_pieces_of_others_as_they_are() -> None:
    live = live_of(recorded(crowd(10)))
    assert [one["name"] for one in page(live, 1)][:2] == ["competitor 1", "competitor 2"]
    before = [competitor_pieces(live)[CompetitorId(n)] for n in range(1, 11)]
    rename = CompetitorChanged(competitor_id=CompetitorId(1), name="renamed")
    go_on(live, recorded([rename], live.head.sequence))
    assert [one["name"] for one in page(live, 1)][:2] == ["renamed", "competitor 2"]
    after = [competitor_pieces(live)[CompetitorId(n)] for n in range(1, 11)]
    assert [a is b for a, b in zip(before, after, strict=True)] == [False] + 9 * [True]
    go_on(live, recorded([moved(3, 2)], live.head.sequence))
    assert [(one["level"], one["lft"], one["rgt"]) for one in page(live, 1)][:3] == [(0, 1, 2), (0, 3, 6), (1, 4, 5)]


def test_a_new_root_leaves_the_list_of_a_ranking_as_it_was_rendered_and_a_new_child_does_not() -> None:
    live = live_of(recorded(crowd(10)))
    ranking_id, ranking = RankingId(1), live.board.rankings[RankingId(1)]
    before = participants_json(live, ranking_id, ranking)
    go_on(live, recorded([registered(11)], live.head.sequence))
    assert participants_json(live, ranking_id, ranking) is before
    go_on(live, recorded([registered(12, 1)], live.head.sequence))
    assert json.loads(participants_json(live, ranking_id, ranking))[0]["rgt"] == 4


def test_of_a_unity_only_its_last_version_is_kept() -> None:
    live, seen = live_of(recorded(crowd(10, unities=2))), set()
    for amount in range(1, 5):
        go_on(live, recorded([points(amount=amount)], live.head.sequence))
        answered(live, ADD, RankingQuestion(RankingId(1)))
        seen.add(len(live.cache._pieces))
    assert len(seen) == 1


def test_what_is_kept_of_competitors_is_bounded_and_what_is_not_kept_is_shown_all_the_same(
    bounds: Bounds,
) -> None:
    bounds(PIECES_BYTES_MAX=2_000)
    live = live_of(recorded(crowd(50)))
    assert [one["id"] for one in page(live, 1)] == list(range(1, 51))
    assert 0 < kept(live) < 10
    assert live.cache.small.size_bytes <= 2_000
    for n in range(1, 51):
        go_on(live, recorded([CompetitorChanged(competitor_id=CompetitorId(n), name="b")], live.head.sequence))
    assert kept(live) == live.cache.small.size_bytes == 0
    assert {one["name"] for one in page(live, 1)} == {"b"}


def test_answers_begun_before_a_change_show_what_was_and_leave_nothing_of_it_behind() -> None:
    live = live_of(recorded(crowd(5_000)))
    long = answered(live, ADD, RankingQuestion(RankingId(1)))
    assert not isinstance(long, bytes | TaggedBody)
    chunks = long().chunks()
    begun = next(chunks)
    changes = [CompetitorChanged(competitor_id=CompetitorId(4_999), name="renamed"), moved(4_998, 1), points()]
    go_on(live, recorded(changes, live.head.sequence))
    now = json.loads(whole(answered(live, ADD, RankingQuestion(RankingId(1)))))["ranking"]
    then = json.loads(begun + b"".join(chunks))["ranking"]
    assert [one["name"] for one in (then["competitors"][4_998], now["competitors"][4_998])] == [
        "competitor 4999",
        "renamed",
    ]
    assert [one["level"] for one in (then["competitors"][4_997], now["competitors"][4_997])] == [0, 1]
    assert page(live, 25)[-2]["name"] == "renamed"
