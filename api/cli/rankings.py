"""Commands about rankings: their lists of competitors, their unities, and points."""

from collections.abc import Iterable
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter
from msgspec.structs import fields, replace

from api.cli import printing
from api.cli.arguments import THE_RANKING, Reading, option, positional, several
from api.cli.names import CompetitorTexts, UnityText
from api.cli.verbs import verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface import kinds
from api.interface.kinds import Kind, KindName, KindUnity
from api.interface.names import Names
from api.interface.options import UNITY_OPTIONS
from engine.domain.commands import (
    AddPoints,
    AddUnity,
    ChangeParticipants,
    ChangeRankingInformation,
    ChangeUnity,
    ChangeVisibility,
    CloseRanking,
    OrderRankings,
    ReopenRanking,
)
from engine.domain.errors import Fault, Unacceptable
from engine.domain.events import Delta
from engine.domain.notation import Notation
from engine.domain.options import OPTIONS, UnityOptions, options_of
from engine.domain.terms import OPERATOR, Sort

OneOfItsUnities = Annotated[str, Parameter(help="Id or name of the unity.")]
NewZones = Annotated[
    str,
    Parameter(
        help='Separated by semicolons: "1..4 promotion: Champions League; -3..-1 relegation: Down". Empty: none.'
    ),
]
NewDescription = Annotated[str, Parameter(help="The new description. Empty: removes it.")]
RankingsInOrder = Annotated[str, Parameter(help="Ids or names of rankings. The others follow in their current order.")]
PointsTexts = Annotated[str, Parameter(help='Each COMPETITOR=POINTS, by id or name: "Swansea City=3" "Everton=-10".')]
NewName = Annotated[str, Parameter(help="The new name.")]

if TYPE_CHECKING:
    _Options = UnityOptions
else:  # cyclopts makes options of the command line from the fields of a dataclass
    _DECLARED: Final = {option.name: option for option in fields(UnityOptions)}
    _FIELDS: Final = [
        (row.name, Annotated[_DECLARED[row.name].type, Parameter(help=row.help)], _DECLARED[row.name].default)
        for row in UNITY_OPTIONS
    ]
    _Options = Parameter(name="*")(make_dataclass("_Options", _FIELDS, namespace={"__module__": __name__}))
_NONE_GIVEN: Final = _Options()


async def create_ranking(
    slug: Slug,
    name: str,
    /,
    *competitors: Annotated[
        str, Parameter(help="Ids or names of its competitors. Without any, all of the tournament.")
    ],
    like: KindName | None = None,
    unity: str = "points",
    sort: Literal["ASC", "DESC"] = "DESC",
    options: _Options = _NONE_GIVEN,
    description: str | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    like
        Kind of ranking to make, with its unities, sorts and criteria, instead of options about unities; only --lasts
        and --expires-on can be added. The criteria and further unities are events after the creation.
    unity
        Name of its main unity.
    sort
        Which totals are better in the main unity: higher ones (DESC) or lower ones (ASC).
    description
        A description, of any number of lines.
    """
    given = KindUnity(name=unity, sort=Sort(sort), **options_of(options))
    kind = Kind(about="", results=(), unities=(given,)) if like is None else _of_kind(like, given)
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        participants = (
            Names(view.live.board).competitors(competitors) if competitors else tuple(view.live.board.competitors)
        )
        made, _ = await kinds.create_ranking(
            desk, view.live, kind, name=name, description=description, participants=participants, actor=OPERATOR
        )
        name = view.live.board.rankings[made.ranking_id].name
    facts = {"id": made.ranking_id, "name": name, "unity_id": made.unity_id}
    printing.made(str(made.ranking_id), facts, as_json=json)


def _of_kind(like: KindName, given: KindUnity) -> Kind:
    """The kind, with the lifetime of points that was given. Raises Unacceptable if more was given."""
    if replace(given, lasts=None, expires_on=None) != KindUnity(name="points"):
        *others, last = [f"--{name}" for name in ("unity", "sort", *OPTIONS) if name not in ("lasts", "expires_on")]
        raise Unacceptable(f"--like already sets the unities; leave out {', '.join(others)} and {last}.")
    kind = kinds.kinds()[like]
    main, *others_of_kind = kind.unities
    lasts = main.lasts if given.lasts is None else given.lasts
    main = replace(main, lasts=lasts, expires_on=given.expires_on or main.expires_on)
    return replace(kind, unities=(main, *others_of_kind))


rename_ranking = verb(
    ChangeRankingInformation, THE_RANKING, positional("name", NewName), says="ranking {ranking_id} is named {name}"
)
describe_ranking = verb(ChangeRankingInformation, THE_RANKING, positional("description", NewDescription))
set_zones = verb(ChangeRankingInformation, THE_RANKING, positional("zones", NewZones))
close_ranking = verb(CloseRanking, THE_RANKING, says="ranking {ranking_id} is closed")
reopen_ranking = verb(ReopenRanking, THE_RANKING, says="ranking {ranking_id} is open")
hide_ranking = verb(ChangeVisibility, THE_RANKING, fixed={"hidden": True}, says="ranking {ranking_id} is hidden")
show_ranking = verb(
    ChangeVisibility, THE_RANKING, fixed={"hidden": False}, says="ranking {ranking_id} is no longer hidden"
)
order_rankings = verb(OrderRankings, several("rankings", RankingsInOrder))
add_participants = verb(ChangeParticipants, THE_RANKING, several("competitors", CompetitorTexts, "added"))
remove_participants = verb(ChangeParticipants, THE_RANKING, several("competitors", CompetitorTexts, "removed"))
add_unity = verb(
    AddUnity,
    THE_RANKING,
    positional("name", str),
    option(
        "sort",
        kind=Literal["ASC", "DESC"],
        default="DESC",
        about="Which totals are better: higher ones (DESC) or lower ones (ASC).",
    ),
    option("options", kind=_Options, default=_NONE_GIVEN),
    makes="unity_id",
    shows=("name", "sort"),
    make=lambda options, **given: AddUnity(**given, **options_of(options)),
)
change_unity = verb(
    ChangeUnity,
    THE_RANKING,
    positional("unity", OneOfItsUnities, "unity_id"),
    option("name", about="The new name."),
    option(
        "sort",
        kind=Literal["ASC", "DESC"] | None,
        about="Which totals are better from now on: higher ones (DESC) or lower ones (ASC).",
    ),
)


def _deltas(reading: Reading, points: Iterable[str]) -> tuple[Delta, ...]:
    """Raises Unacceptable and NotFound."""
    ranking_id, names = reading.fields["ranking_id"], reading.names
    unity_id = names.unity_or_main(ranking_id, reading.given["unity"])
    notation = reading.view.ranking(ranking_id).unity(unity_id).notation
    return tuple([Delta(names.competitor(name), unity_id, amount) for name, amount in _amounts(points, notation)])


add_points = verb(
    AddPoints,
    THE_RANKING,
    several("points", PointsTexts, "deltas", read=_deltas),
    option("unity", kind=UnityText),
    option("competition", "competition_id", about="Id or name of the competition that they are for."),
    option("reason", about="Why, in a few words; history and explanations show it."),
    make=lambda unity=None, **given: AddPoints(**given),
)


async def list_rankings(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        rows: list[dict[str, object]] = [
            {
                "id": ranking.id,
                "name": ranking.name,
                "unities": {str(unity.id): unity.name for unity in ranking.unities},
                "competitors": ranking.competitors,
                "closed_at": ranking.closed_at,
                "hidden": ranking.hidden,
            }
            for ranking in await view.rankings()
        ]
    printing.rows(rows, ("id", "name", "unities", "competitors", "closed_at", "hidden"), as_json=json)


def _amounts(points: Iterable[str], notation: Notation) -> list[tuple[str, int]]:
    """Whom, and how many. Raises Unacceptable, naming every text that does not say both."""
    found, faults = [], []
    for text in points:
        name, is_given, amount = text.rpartition("=")
        try:
            found.append((name, notation.number(amount)))
            fault = None if is_given else "must be COMPETITOR=POINTS"
        except ValueError as error:
            fault = f"must be COMPETITOR=POINTS, and the points {error}"
        if fault is not None:
            faults.append(Fault(text, fault))
    if faults:
        raise Unacceptable("These points cannot be read.", faults)
    return found
