"""Rankings of well-known kinds: their unities, which totals are better in each, and the criteria of their order.

`ranking create --like` makes one; `competition import --like` fills its unities from scores.
"""

from typing import Final, Literal

from msgspec import Struct

from engine.domain.expiry import ExpiresOn
from engine.domain.notation import TimeUnit
from engine.domain.terms import Counts, Sort

Kind = Literal["football", "chess", "formula-one", "icpc", "tennis", "high-score", "laps"]


class Template(Struct, frozen=True):
    """`unities`: the main one first. `criteria`: as `classification declare` takes them. `decimals`, `time`, `counts`,
    `lasts` and `expires_on` are the main unity's. `scoring`: what scores of two numbers give, by the fields of
    `Scoring`."""

    unities: dict[str, Sort]
    criteria: tuple[str, ...] = ()
    scoring: dict[str, str] = {}
    decimals: int = 0
    time: TimeUnit | None = None
    counts: Counts = Counts.SUM
    lasts: str | None = None
    expires_on: ExpiresOn | None = None


_GOALS: Final = {"goal difference": Sort.DESC, "goals for": Sort.DESC, "goals against": Sort.ASC}
_GAMES: Final = {"played": Sort.DESC, "won": Sort.DESC, "drawn": Sort.DESC, "lost": Sort.ASC}
_PLACES: Final = ("wins", "seconds", "thirds", *(f"{n}ths" for n in range(4, 11)))

TEMPLATES: Final[dict[Kind, Template]] = {
    "football": Template(
        {"points": Sort.DESC, **_GOALS, **_GAMES},
        ("points", "goal difference", "goals for"),
        {name.replace(" ", "_"): name for name in (*_GOALS, *_GAMES)},
    ),
    # Among players with the same points, their games against each other decide, then the number of wins.
    "chess": Template(
        {"points": Sort.DESC, **_GAMES},
        ("points", "points:among=tied", "won"),
        {"win": "1", "draw": "0.5", **dict(zip(_GAMES, _GAMES, strict=True))},
        decimals=1,
    ),
    # Among drivers with the same points, the one with more wins stands first, then with more second places, and so on.
    "formula-one": Template(dict.fromkeys(("points", *_PLACES), Sort.DESC), ("points", *_PLACES)),
    # Penalty time is in minutes.
    "icpc": Template({"solved": Sort.DESC, "penalty": Sort.ASC}, ("solved", "penalty")),
    # On Mondays: the best 19 results of the last 52 weeks.
    "tennis": Template({"points": Sort.DESC}, ("points:best=19",), lasts="P52W", expires_on=ExpiresOn.WEEK),
    # The best attempt counts. (`score` is a column of files of competitions.)
    "high-score": Template({"high score": Sort.DESC}, counts=Counts.BEST),
    # The fastest lap counts.
    "laps": Template({"time": Sort.ASC}, time="ms", counts=Counts.BEST),
}
