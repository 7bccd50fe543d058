"""Commands about rankings: their lists of competitors, their unities, and points."""

from collections.abc import Callable, Iterable
from dataclasses import make_dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter
from msgspec import UNSET
from msgspec.structs import fields, replace

from api.cli import printing
from api.cli.changes import changed, record
from api.cli.names import CompetitorTexts, RankingText, UnityText
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.imports import templates
from api.imports.templates import TEMPLATES, Kind, Template
from api.interface.direction import isolated
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
    Command,
    OrderRankings,
    ReopenRanking,
)
from engine.domain.errors import Fault, Unacceptable
from engine.domain.events import Delta
from engine.domain.notation import Notation
from engine.domain.options import OPTIONS, UnityOptions, options_of
from engine.domain.terms import OPERATOR, RankingId, Sort, UnityId
from projections.answers.lookup import ranking_of
from projections.board.board import Ranking

OneOfItsUnities = Annotated[str, Parameter(help="Id or name of the unity.")]
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
    like: Kind | None = None,
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
    given = Template({unity: Sort(sort)}, **options_of(options))
    template = given if like is None else _of_kind(like, given)
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        participants = Names(live.board).competitors(competitors) if competitors else tuple(live.board.competitors)
        created, _ = await templates.create_ranking(
            desk, live, template, name=name, description=description, participants=participants, actor=OPERATOR
        )
    facts = {"id": created.ranking_id, "name": created.name, "unity_id": created.main_unity_id}
    printing.made(str(created.ranking_id), facts, as_json=json)


def _of_kind(kind: Kind, given: Template) -> Template:
    """The template of this kind, with the lifetime of points that was given. Raises Unacceptable if more was given."""
    if replace(given, lasts=None, expires_on=None) != Template({"points": Sort.DESC}):
        *others, last = [f"--{name}" for name in ("unity", "sort", *OPTIONS) if name not in ("lasts", "expires_on")]
        raise Unacceptable(f"--like decides all about unities; leave out {', '.join(others)} and {last}.")
    template = TEMPLATES[kind]
    return replace(
        template,
        lasts=template.lasts if given.lasts is None else given.lasts,
        expires_on=given.expires_on or template.expires_on,
    )


async def rename_ranking(
    slug: Slug, ranking: RankingText, name: NewName, /, *, json: Json = False, where: Where = HERE
) -> None:
    await record(
        slug,
        where,
        lambda names: ChangeRankingInformation(ranking_id=names.ranking(ranking), name=name),
        json=json,
        sentence=lambda command: f"ranking {command.ranking_id} is named {isolated(name.strip())}",
    )


async def describe_ranking(
    slug: Slug,
    ranking: RankingText,
    description: Annotated[str, Parameter(help="The new description. Empty: none any more.")],
    /,
    *,
    json: Json = False,
    where: Where = HERE,
) -> None:
    await record(
        slug,
        where,
        lambda names: ChangeRankingInformation(
            ranking_id=names.ranking(ranking), description=changed(description, str)
        ),
        json=json,
    )


async def add_participants(
    slug: Slug, ranking: RankingText, /, *competitors: CompetitorTexts, json: Json = False, where: Where = HERE
) -> None:
    await record(
        slug,
        where,
        lambda names: ChangeParticipants(ranking_id=names.ranking(ranking), added=names.competitors(competitors)),
        json=json,
    )


async def remove_participants(
    slug: Slug, ranking: RankingText, /, *competitors: CompetitorTexts, json: Json = False, where: Where = HERE
) -> None:
    await record(
        slug,
        where,
        lambda names: ChangeParticipants(ranking_id=names.ranking(ranking), removed=names.competitors(competitors)),
        json=json,
    )


async def add_unity(
    slug: Slug,
    ranking: RankingText,
    name: str,
    /,
    *,
    sort: Literal["ASC", "DESC"] = "DESC",
    options: _Options = _NONE_GIVEN,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    sort
        Which totals are better: higher ones (DESC) or lower ones (ASC).
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        unity_id = UnityId(await desk.new_id())
        ranking_id = Names(live.board).ranking(ranking)
        command = AddUnity(
            ranking_id=ranking_id,
            unity_id=unity_id,
            name=name,
            sort=Sort(sort),
            **options_of(options),
        )
        await desk.submit(live, command, actor=OPERATOR)
    printing.made(str(unity_id), {"id": unity_id, "name": name.strip(), "sort": sort}, as_json=json)


async def change_unity(
    slug: Slug,
    ranking: RankingText,
    unity: OneOfItsUnities,
    /,
    *,
    name: str | None = None,
    sort: Literal["ASC", "DESC"] | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    name
        The new name.
    sort
        Which totals are better from now on: higher ones (DESC) or lower ones (ASC).
    """
    await record(
        slug,
        where,
        lambda names: ChangeUnity(
            ranking_id=(ranking_id := names.ranking(ranking)),
            unity_id=names.unity(ranking_id, unity),
            name=UNSET if name is None else name,
            sort=UNSET if sort is None else Sort(sort),
        ),
        json=json,
    )


async def add_points(
    slug: Slug,
    ranking: RankingText,
    /,
    *points: Annotated[str, Parameter(help='Each COMPETITOR=POINTS, by id or name: "Swansea City=3" "Everton=-10".')],
    unity: UnityText = None,
    competition: Annotated[str | None, Parameter(help="Id or name of the competition that they are for.")] = None,
    reason: Annotated[str | None, Parameter(help="Why, in a few words; history and explanations show it.")] = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        ranking_id = names.ranking(ranking)
        unity_id = names.unity_or_main(ranking_id, unity)
        notation = ranking_of(live.board, ranking_id).unities[unity_id].notation
        amounts = _amounts(points, notation)
        deltas = tuple(Delta(names.competitor(name), unity_id, amount) for name, amount in amounts)
        cause = None if competition is None else names.competition(competition)
        command = AddPoints(ranking_id=ranking_id, deltas=deltas, competition_id=cause, reason=reason)
        receipt = await desk.submit(live, command, actor=OPERATOR)
    printing.recorded(receipt.sequence, as_json=json)


async def close_ranking(slug: Slug, ranking: RankingText, /, *, json: Json = False, where: Where = HERE) -> None:
    await _change(slug, where, ranking, CloseRanking, "is closed", json=json)


async def reopen_ranking(slug: Slug, ranking: RankingText, /, *, json: Json = False, where: Where = HERE) -> None:
    await _change(slug, where, ranking, ReopenRanking, "is open", json=json)


async def hide_ranking(slug: Slug, ranking: RankingText, /, *, json: Json = False, where: Where = HERE) -> None:
    await _change(slug, where, ranking, partial(ChangeVisibility, hidden=True), "is hidden", json=json)


async def show_ranking(slug: Slug, ranking: RankingText, /, *, json: Json = False, where: Where = HERE) -> None:
    await _change(slug, where, ranking, partial(ChangeVisibility, hidden=False), "is not hidden any more", json=json)


async def _change(
    slug: str, where: Where, ranking: str, command: Callable[..., Command], becomes: str, *, json: bool
) -> None:
    """Submits a command that needs only the ranking, and says what the ranking `becomes`."""
    await record(
        slug,
        where,
        lambda names: command(ranking_id=names.ranking(ranking)),
        json=json,
        sentence=lambda changed: f"ranking {changed.ranking_id} {becomes}",
    )


async def order_rankings(
    slug: Slug,
    /,
    *rankings: Annotated[str, Parameter(help="Ids or names of rankings. The others follow in the order they have.")],
    json: Json = False,
    where: Where = HERE,
) -> None:
    await record(slug, where, lambda names: OrderRankings(rankings=tuple(map(names.ranking, rankings))), json=json)


async def list_rankings(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        hidden = live.board.publication.hidden
        rows = [_row(one, ranking, hidden=one in hidden) for one, ranking in live.board.rankings.items()]
    printing.rows(rows, ("id", "name", "unities", "competitors", "closed_at", "hidden"), as_json=json)


def _row(ranking_id: RankingId, ranking: Ranking, *, hidden: bool) -> dict[str, object]:
    return {
        "id": ranking_id,
        "name": ranking.name,
        "unities": {str(unity_id): unity.name for unity_id, unity in ranking.unities.items()},
        "competitors": len(ranking.participants),
        "closed_at": ranking.closed_at,
        "hidden": hidden,
    }


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
