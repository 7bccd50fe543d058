"""Rankings of well-known kinds: their unities, which totals are better in each, and the criteria of their order.

The command line and the console create one. The other unities and the classification are events after its creation.
An import fills its unities from scores.
"""

from itertools import count
from typing import Final, Literal

from msgspec import Struct, field

from api.desk.case import Receipt
from api.desk.desk import Desk
from engine.domain.commands import AddUnity, Command, CreateRanking, DeclareClassification
from engine.domain.events import Criterion, MadeUnity
from engine.domain.expiry import ExpiresOn
from engine.domain.options import UnityOptions, as_main_unity
from engine.domain.terms import ActorId, CompetitorId, Counts, RankingId, Sequence, Sort, UnityId
from projections.live.tournament import LiveTournament

Kind = Literal["football", "chess", "formula-one", "icpc", "tennis", "high-score", "laps"]


class By(Struct, frozen=True):
    """A criterion: the totals of a unity. `best`: only this many results count. `among_tied`: only competitions among
    the tied count."""

    unity: str
    best: int | None = None
    among_tied: bool = False


class Template(UnityOptions, frozen=True):
    """`unities`: the main one first, which has the options. `criteria`: of the classification. `scoring`: what scores
    of two numbers give, by the fields of `ScoreRule`."""

    unities: dict[str, Sort]
    criteria: tuple[By, ...] = ()
    scoring: dict[str, str] = field(default_factory=dict)


_GOALS: Final = {"goal difference": Sort.DESC, "goals for": Sort.DESC, "goals against": Sort.ASC}
_GAMES: Final = {"played": Sort.DESC, "won": Sort.DESC, "drawn": Sort.DESC, "lost": Sort.ASC}
_PLACES: Final = ("wins", "seconds", "thirds", *(f"{n}ths" for n in range(4, 11)))

TEMPLATES: Final[dict[Kind, Template]] = {
    "football": Template(
        {"points": Sort.DESC, **_GOALS, **_GAMES},
        (By("points"), By("goal difference"), By("goals for")),
        {name.replace(" ", "_"): name for name in (*_GOALS, *_GAMES)},
    ),
    # Among players with the same points, their games against each other decide, then the number of wins.
    "chess": Template(
        {"points": Sort.DESC, **_GAMES},
        (By("points"), By("points", among_tied=True), By("won")),
        {"win": "1", "draw": "0.5", **dict(zip(_GAMES, _GAMES, strict=True))},
        decimals=1,
    ),
    # Among drivers with the same points, the one with more wins stands first, then with more second places, and so on.
    "formula-one": Template(dict.fromkeys(("points", *_PLACES), Sort.DESC), tuple(map(By, ("points", *_PLACES)))),
    # Penalty time is in minutes.
    "icpc": Template({"solved": Sort.DESC, "penalty": Sort.ASC}, (By("solved"), By("penalty"))),
    # On Mondays: the best 19 results of the last 52 weeks.
    "tennis": Template({"points": Sort.DESC}, (By("points", best=19),), lasts="P52W", expires_on=ExpiresOn.WEEK),
    # The best attempt counts. (`score` is a column of files of competitions.)
    "high-score": Template({"high score": Sort.DESC}, counts=Counts.BEST),
    # The fastest lap counts.
    "laps": Template({"time": Sort.ASC}, time="ms", counts=Counts.BEST),
}


async def create_ranking(
    desk: Desk,
    live: LiveTournament,
    template: Template,
    *,
    name: str,
    participants: tuple[CompetitorId, ...],
    description: str | None = None,
    actor: ActorId,
    key: str | None = None,
    fingerprint: bytes | None = None,
) -> tuple[MadeUnity, Sequence]:
    """Creates a ranking of the template. Returns its main unity, and the sequence of the last event. With a key and the
    fingerprint of the request, a repetition adds only what is still missing. Raises as `Desk.submit` does."""
    (main, sort), *others = template.unities.items()
    ranking_id, main_id, *other_ids = await desk.new_ids(2 + len(others))
    steps = count(1)

    async def submit(command: Command) -> Receipt:
        its_key = None if key is None else f"{key}-{next(steps)}"
        return await desk.submit(live, command, actor=actor, idempotency_key=its_key, fingerprint=fingerprint)

    receipt = await submit(
        CreateRanking(
            ranking_id=RankingId(ranking_id),
            main_unity_id=UnityId(main_id),
            name=name,
            main_unity_name=main,
            participants=participants,
            description=description,
            main_unity_sort=sort,
            **as_main_unity(template),
        )
    )
    made = _made(receipt)
    ids = {main: made.unity_id}
    for unity_id, (other, its_sort) in zip(other_ids, others, strict=True):
        receipt = await submit(
            AddUnity(ranking_id=made.ranking_id, unity_id=UnityId(unity_id), name=other, sort=its_sort)
        )
        ids[other] = _made(receipt).unity_id
    if template.criteria:
        criteria = tuple(
            [
                Criterion(unity_id=ids[by.unity], best=by.best, among="tied" if by.among_tied else None)
                for by in template.criteria
            ]
        )
        receipt = await submit(DeclareClassification(ranking_id=made.ranking_id, criteria=criteria))
    return made, receipt.last_sequence


def _made(receipt: Receipt) -> MadeUnity:
    made = receipt.event.made_unity
    assert made is not None
    return made
