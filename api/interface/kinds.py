"""Well-known kinds of rankings, as data (`kinds.json`): unities, scorings and criteria, by the names of unities.

The command line and the console create one. The other unities, the scorings and the classification are events
after its creation.
The amounts in scorings are in the smallest unit of their unity, as everywhere.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from api.desk.case import Receipt
from api.desk.desk import Desk, changed_already
from engine.domain.awards import Scoring
from engine.domain.commands import AddUnity, Command, CreateRanking, DeclareClassification, DeclareScoring
from engine.domain.events import Criterion, MadeUnity
from engine.domain.expiry import Expiry
from engine.domain.notation import Notation
from engine.domain.options import UnityOptions, as_main_unity, expiry_of, notation_of, options_of
from engine.domain.terms import ActorId, CompetitorId, RankingId, Sequence, Sort, UnityId
from projections.answers.criteria import CriterionShape, criteria_of
from projections.live.tournament import LiveTournament

KindName = Literal[
    "football",
    "football-1980",
    "football-1888",
    "football-per-game",
    "ice-hockey",
    "volleyball",
    "handball",
    "darts",
    "chess",
    "chess-swiss",
    "chess-round-robin",
    "go",
    "rugby",
    "formula-one",
    "sailing",
    "golf",
    "triathlon",
    "race",
    "icpc",
    "swim-gala",
    "medals",
    "masters",
    "tennis",
    "high-score",
    "laps",
]


class KindUnity(UnityOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    sort: Sort = Sort.DESC

    @property
    def notation(self) -> Notation:
        return notation_of(self, self.sort)

    @property
    def expiry(self) -> Expiry | None:
        return expiry_of(self)


class Kind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`about`: a sentence on what counts. `results`: examples of what a competition's result says of a participant, or
    of two. `competitor`, `competition`: what this sport calls them (`sports.py`). `unities`: the main one first.
    `scorings` and `criteria` name unities in the field `unity`."""

    about: str
    results: tuple[str, ...]
    unities: Annotated[tuple[KindUnity, ...], Meta(min_length=1)]
    competitor: str = "competitor"
    competition: str = "competition"
    scorings: tuple[dict[str, Any], ...] = ()
    criteria: tuple[dict[str, Any], ...] = ()

    def scorings_with(self, ids: Mapping[str, UnityId]) -> tuple[Scoring, ...]:
        """The scorings of a ranking whose unities have these ids, by name. Other unities are left out."""
        found = [its | {"awards": [one for one in its["awards"] if one["unity"] in ids]} for its in self.scorings]
        return msgspec.convert(with_ids([its for its in found if its["awards"]], ids.__getitem__), tuple[Scoring, ...])

    def criteria_with(self, ids: Mapping[str, UnityId]) -> tuple[Criterion, ...]:
        """The criteria of the classification; empty: only the main unity decides."""
        return criteria_of(msgspec.convert(with_ids(self.criteria, ids.__getitem__), list[CriterionShape]))


@cache
def kinds() -> Mapping[KindName, Kind]:
    """All kinds."""
    text = Path(__file__).with_name("kinds.json").read_bytes()
    return msgspec.json.decode(text, type=dict[KindName, Kind])


def with_ids(value: Any, id_of: Callable[[Any], UnityId]) -> Any:
    """The same with an id for each name of a unity."""
    if isinstance(value, dict):
        pairs = {key: [id_of(one) for one in value[key]] for key in ("ratio", "per") if key in value}
        others = {key: id_of(part) if key == "unity" else with_ids(part, id_of) for key, part in value.items()}
        return others | pairs
    return [with_ids(part, id_of) for part in value] if isinstance(value, (list, tuple)) else value


async def create_ranking(
    desk: Desk,
    live: LiveTournament,
    kind: Kind,
    *,
    name: str,
    participants: tuple[CompetitorId, ...],
    description: str | None = None,
    actor: ActorId,
    key: str | None = None,
    fingerprint: bytes | None = None,
) -> tuple[MadeUnity, Sequence]:
    """Creates a ranking of this kind. Returns its main unity, and the sequence of the last event. With a key and the
    fingerprint of the request, a repetition adds only what is still missing. Raises as `Desk.submit` does."""
    main, *others = kind.unities
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
            main_unity_name=main.name,
            participants=participants,
            description=description,
            main_unity_sort=main.sort,
            **as_main_unity(main),
        )
    )
    made = _made(receipt)
    ids = {main.name: made.unity_id}
    with changed_already():
        for unity_id, unity in zip(other_ids, others, strict=True):
            its = {"name": unity.name, "sort": unity.sort, **options_of(unity)}
            receipt = await submit(AddUnity(ranking_id=made.ranking_id, unity_id=UnityId(unity_id), **its))
            ids[unity.name] = _made(receipt).unity_id
        if kind.scorings:  # tie-breaks need them
            receipt = await submit(DeclareScoring(ranking_id=made.ranking_id, scorings=kind.scorings_with(ids)))
        if kind.criteria:
            receipt = await submit(DeclareClassification(ranking_id=made.ranking_id, criteria=kind.criteria_with(ids)))
    return made, receipt.last_sequence


def _made(receipt: Receipt) -> MadeUnity:
    made = receipt.event.made_unity
    assert made is not None
    return made
