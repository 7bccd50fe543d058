"""A time slice that is always over."""

import asyncio


class AlwaysOver:
    """A time slice that is over after each step. Then `meanwhile` happens."""

    over = True

    @staticmethod
    def meanwhile() -> None: ...

    async def give_way(self) -> None:
        await asyncio.sleep(0)
        AlwaysOver.meanwhile()
