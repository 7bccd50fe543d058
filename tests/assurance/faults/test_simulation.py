"""A share of the simulation; `make faults` plays thousands."""

from collections.abc import Sequence as Items
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from asyncpg import Connection

from assurance.faults.simulation import play_schedules
from engine.log import appending
from engine.log.appending import Appended, Block, NotAppended, OvertakenBy
from tests.shares import every

pytestmark = pytest.mark.filterwarnings("ignore:coroutine")  # of what a simulated crash cut off


@every(2)
def test_whatever_the_schedule_the_log_holds_what_was_promised(dsn: str, step: int) -> None:
    counts = play_schedules(dsn, 12 // step, first_seed=1)
    assert counts.schedules >= 12 // step


def test_schedules_find_it_when_what_was_lost_is_sent_again_as_something_new(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = appending.append

    async def append_again(
        connection: Connection, blocks: Items[Block], **options: Any
    ) -> list[Appended | OvertakenBy | NotAppended]:
        renamed = [msgspec.structs.replace(block, append_id=uuid4().hex) for block in blocks]
        return await append(connection, renamed, **options)

    monkeypatch.setattr(appending, "append", append_again)
    with pytest.raises(AssertionError, match="recorded more than once"):
        play_schedules(dsn, 200, first_seed=3, shrink=False)
