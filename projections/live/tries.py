"""How often a read that changes of its tournament overtake is made."""

from typing import Final

from engine.domain.errors import Overtaken

READS_MAX: Final = 2


class Tries:
    """The tries of one read. If even the last one was overtaken, read a board that does not change
    (`View.at_rest` in `projections/answers/view.py`)."""

    def __init__(self) -> None:
        self._made = 0

    def over(self) -> bool:
        """Counts a try. Returns whether it was the last."""
        self._made += 1
        return self._made >= READS_MAX

    def again(self) -> None:
        """Counts a try. Raises Overtaken if it was the last."""
        if self.over():
            raise Overtaken
