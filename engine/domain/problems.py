"""The problems of a contest in a team's performance. Pure.

`A:43` is problem A, solved in minute 43; `B:120+2` after two wrong tries. `C:-3` is not solved after three tries, `D:?`
or `D:-1?2` has tries that are not judged yet: one, or two after a wrong one. The label may be absent. `-` is nothing.
"""

import re
from typing import Final

from msgspec import Struct

NONE_SOLVED: Final = "-"
"""A performance, or a part of one, without any problem."""
_PROBLEM: Final = re.compile(
    r"(?:([A-Za-z0-9]{1,8}):)?(?:([0-9]{1,6})(?:\+([0-9]{1,4}))?|-([0-9]{1,4})(?:\?([0-9]{0,4}))?|\?([0-9]{0,4}))"
)


class TriedProblem(Struct, frozen=True, kw_only=True):
    """`label`: empty: it has none. `minute`: in which it was solved; None: it is not. `wrong`: tries before, or without
    solving it. `pending`: tries that are not judged yet."""

    label: str = ""
    minute: int | None = None
    wrong: int = 0
    pending: int = 0

    def __str__(self) -> str:
        """The part of a performance."""
        label = f"{self.label}:" if self.label else ""
        if self.minute is not None:
            return f"{label}{self.minute}" + (f"+{self.wrong}" if self.wrong else "")
        pending = "?" + (str(self.pending) if self.pending > 1 else "") if self.pending else ""
        return label + (f"-{self.wrong}" if self.wrong or not pending else "") + pending


def problem_of(part: str) -> TriedProblem | None:
    """The problem that a part of a performance is about; None: it is about none."""
    if (match := _PROBLEM.fullmatch(part)) is None:
        return None
    label, minute, before, wrong, more, only = match.groups()
    pending = only if more is None else more
    return TriedProblem(
        label=label or "",
        minute=None if minute is None else int(minute),
        wrong=int(before or wrong or 0),
        pending=0 if pending is None else int(pending or 1),
    )
