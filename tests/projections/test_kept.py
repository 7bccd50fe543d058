"""What is read once and then kept current, against what the log says, whatever happens while it is read."""

import asyncio
from contextlib import suppress
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import Overtaken
from engine.domain.events import CompetitorRegistered, Event, RankingClosed, RankingCreated, Recorded
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence, UnityId
from projections.live.kept import Kept, KeptOfRankings, Update, unfollowed
from tests.histories import unhurried
from tests.projections.classified import NOW, RecordedLive

Step = Literal["followed", "indifferent", "unfollowed", "replaced", "fails", "rest"]


class Lost(Exception):
    pass


class Log:
    """A log of events, each of which a value follows or not. The value: the sequences of those followed."""

    def __init__(self) -> None:
        self.kinds: list[Step] = []
        self.reads = 0
        self.fails = False
        self.kept = Kept(self.update_by)

    def said(self, upto: int) -> list[int]:
        return [n for n, kind in enumerate(self.kinds[:upto], start=1) if kind == "followed"]

    def update_by(self, recorded: Recorded) -> Update[list[int]] | None:
        match self.kinds[recorded.sequence - 1]:
            case "followed":
                return lambda value: value.append(recorded.sequence)
            case "unfollowed":
                return unfollowed
            case _:
                return None

    def take(self, step: Step) -> None:
        if step == "fails":
            self.fails = True
        elif step == "replaced":  # the log has events that nobody is passed
            self.kinds.append("followed")
            self.kept.clear()
        elif step != "rest":
            self.kinds.append(step)
            event = RankingClosed(ranking_id=RankingId(1))
            self.kept.follow(Recorded(Sequence(len(self.kinds)), NOW, OPERATOR, None, event))

    async def read(self) -> list[int]:
        self.reads += 1
        value = list[int]()
        for said in self.said(len(self.kinds)):
            value.append(said)
            await asyncio.sleep(0)
            if self.fails:
                self.fails = False
                raise Lost
        return value


steps = st.lists(st.sampled_from(["followed", "followed", "indifferent", "unfollowed", "replaced", "fails", "rest"]))


@unhurried
@given(before=steps, meanwhile=steps)
def test_a_value_is_what_the_log_says_or_is_not_there(before: list[Step], meanwhile: list[Step]) -> None:
    """Whether events are folded, the board is replaced, or reading fails, while it is read or afterwards."""

    async def play() -> None:
        log = Log()
        for step in before:
            log.take(step)
        asking = asyncio.create_task(log.kept.look_up(log.read))
        for step in meanwhile:
            await asyncio.sleep(0)
            log.take(step)
            assert log.kept.value in (None, log.said(len(log.kinds)))
        with suppress(Lost):
            await asking
        log.fails = False
        assert await log.kept.current(log.read) == log.said(len(log.kinds))

    asyncio.run(play())


def test_a_value_is_read_once_for_all_who_ask_and_the_one_who_leaves_takes_it_from_nobody() -> None:
    async def ask() -> None:
        log = Log()
        log.kinds = ["followed", "followed"]
        first, *others = [asyncio.create_task(log.kept.look_up(log.read)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(*others)
        assert (log.reads, log.kept.value) == (1, [1, 2])

    asyncio.run(ask())


def test_a_reading_that_fails_fails_for_all_who_ask_and_is_made_again_for_the_next() -> None:
    async def ask() -> None:
        log = Log()
        log.kinds, log.fails = ["followed"], True
        found = await asyncio.gather(*[log.kept.look_up(log.read) for _ in range(2)], return_exceptions=True)
        assert [type(one) for one in found] == [Lost, Lost]
        log.take("followed")
        assert await log.kept.current(log.read) == [1, 2]
        assert log.reads == 2

    asyncio.run(ask())


def test_a_value_that_every_reading_finds_outdated_is_given_up() -> None:
    async def ask() -> None:
        log = Log()

        async def overtaken() -> list[int]:
            log.take("unfollowed")
            return await log.read()

        with pytest.raises(Overtaken):
            await log.kept.current(overtaken)
        assert log.reads == 2
        assert log.kept.value is None

    asyncio.run(ask())


def test_of_the_values_of_rankings_each_follows_its_own_and_all_follow_the_rest() -> None:
    live, one, other = RecordedLive(), RankingId(1), RankingId(2)
    values = KeptOfRankings[list[int]](live, lambda _board, _ranking, event: lambda value: value.append(event.sequence))

    async def read() -> list[int]:
        return []

    def named(ranking_id: RankingId) -> Event:
        return RankingCreated(
            ranking_id=ranking_id, name="R", participants=(), main_unity_id=UnityId(ranking_id), main_unity_name="U"
        )

    for ranking_id in (one, other):
        asyncio.run(values.of(ranking_id).look_up(read))
    live.append(named(one), named(other), CompetitorRegistered(competitor_id=CompetitorId(1), name="Ann"))
    assert (values.get(one), values.get(other), values.get(RankingId(3))) == ([1, 3], [2, 3], None)
    values.clear()
    assert (values.get(one), values.get(other)) == (None, None)
