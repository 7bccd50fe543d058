"""The initial states of the console's forms: what they are filled in with, and what their fields offer."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Final

from msgspec import json
from msgspec.structs import replace

from api.desk.conditions import own_tag
from api.http.router import PathIds
from api.interface.competition_names import competition_text
from api.interface.declarations import Write, name_of
from api.interface.fields import DESCRIPTION, FROM_1, ID, SHORT, Field, Fields
from api.interface.kinds import KindName, kinds
from api.interface.operations import OPERATIONS
from api.interface.rendering import encode
from api.interface.sports import sport_of
from api.web.console.inputs import JSON_FIELD, NAMES_FIELD, Beginning, Option
from api.web.console.scoring_part import results_part, scorings_part
from api.web.console.taken_forms import AWAY, HOME, LIKE
from api.web.console.typed_names import typed_texts
from api.web.words import Words
from engine.domain.presentation import LANGUAGES
from engine.domain.scoring import scores_duels, winner_by_score
from engine.domain.state import CompetitionState
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitorId
from engine.domain.times import timestamp
from projections.answers.competition_results import CompetitionResultsQuestion
from projections.answers.competitors import CompetitorListQuestion
from projections.answers.view import View, ask

BY_NAME: Final = {name_of(operation): operation for operation in OPERATIONS if isinstance(operation, Write)}
SCORING_OF_RANKING: Final = BY_NAME["PUT rankings/{ranking_id}/scoring.json"]
PRESENTATION: Final = BY_NAME["PUT presentation.json"]
RECORD: Final = BY_NAME["PUT competitions/{competition_id}.json"]
ADD_COMPETITION: Final = BY_NAME["POST competitions.json"]
_OF_COMPETITION: Final = ("participants", "round", "round_name", "started_at", "location", "group_id", "scale", "key")
CREATE_RANKING: Final = BY_NAME["POST rankings.json"]
LIKE_FIELD: Final = Field(LIKE, SHORT, "sets its columns, what results give, and the order of the table")
LIKE_FIELDS: Final = tuple(
    [one for one in CREATE_RANKING.fields if one.name in ("name", "description", "participants")]
)
_LANGUAGE_NAMES: Final = {"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español"}
_NAMES: Final = Field(NAMES_FIELD, DESCRIPTION, "", required=True)
CHOSEN_MAX: Final = 500
"""Competitors up to which a form offers them all by name."""
_TIMES: Final = (Option("", "No"), Option("s", "In seconds"), Option("ms", "In milliseconds"))


async def names(_view: View, _ids: PathIds) -> Beginning:
    return Beginning(fields=(_NAMES,))


def kind_texts() -> Iterator[tuple[KindName, str, str]]:
    """Each kind, what it is called, and what is said about it."""
    for name, kind in kinds().items():
        yield name, name.replace("-", " ").capitalize(), kind.about


async def new_competitor(view: View, _ids: PathIds) -> Beginning:
    return Beginning(options=await _parents(view, None))


async def _parents(view: View, of: CompetitorId | None) -> Mapping[str, Items[Option]]:
    """The competitors that another can belong to; empty: there are too many to choose from."""
    found = await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    if found.total > CHOSEN_MAX:
        return {}
    others = [(one, its.name) for one, its in found.competitors.items() if its.erased is None and one != of]
    return {"parent": [Option("", ""), *[Option(f"id:{one}", name) for one, name in others]]}


async def competitor(view: View, ids: PathIds) -> Beginning:
    found = view.competitor(ids["competitor_id"])
    given = {"name": found.name, "tags": ", ".join(found.tags), "color": found.color}
    if found.parent_id is not None:
        given["parent"] = f"id:{found.parent_id}"
    given["key"] = found.key or ""
    options = await _parents(view, CompetitorId(ids["competitor_id"]))
    return Beginning(about=found.name, given=given, if_match=_tag(own_tag(found)), options=options)


async def named_competitor(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=view.competitor(ids["competitor_id"]).name)


def _given(view: View, found: CompetitionState, **more: str) -> dict[str, str]:
    """The result and the winner as text; where results give points, no winner that the score says by itself."""
    result = found.result or ""
    if isinstance(result, dict):
        result = encode({f"id:{one}": text for one, text in result.items()}).decode()
    said = winner_by_score(found.participants, result) if view.is_scored else None
    winner = "" if found.winner_id in (None, said) else f"id:{found.winner_id}"
    return {"result": result, "winner": winner} | more


async def competition(view: View, ids: PathIds) -> Beginning:
    found = view.competition(ids["competition_id"])
    given = _given(
        view,
        found,
        participants=", ".join(typed_texts(view, found.participants)),
        group_id=str(found.group_id),
        scale=found.scale,
        round="" if found.round is None else str(found.round),
        round_name=found.round_name,
        key=found.key or "",
    )
    return Beginning(
        about=_text(view, ids),
        given=given,
        if_match=_tag(own_tag(found)),
        at_once=_is_new(view, found),
    )


def _text(view: View, ids: PathIds) -> str:
    """The competition in a line, in the words of the sport."""
    of_many = sport_of(view.live.board.rankings.values())("{Match} of {number}")
    return competition_text(view.names, view.competition(ids["competition_id"]), of_many)


def _is_new(view: View, competition: CompetitionState) -> bool:
    """Whether its form corrects nothing, so that there is nothing to look at first."""
    return not view.is_scored or (competition.result is None and competition.winner_id is None)


async def result(view: View, ids: PathIds) -> Beginning:
    """Of more participants than a form offers, it takes the performances as JSON, and the winner as text."""
    found, names = view.competition(ids["competition_id"]), view.names
    words = Words("en", view.publication.presentation.zone)
    is_short = len(found.participants) <= CHOSEN_MAX
    given = _given(view, found, started_at="" if found.date is None else timestamp(found.date), location=found.location)
    if is_short and isinstance(found.result, dict):
        del given["result"]
        given |= {f"result[{one}]": text for one, text in found.result.items()}
    offered = [(one, names.competitor(one).name) for one in found.participants] if is_short else []
    winners = [
        Option("", "by the score" if view.is_scored else ""),
        *[Option(f"id:{one}", name) for one, name in offered],
    ]
    fields: list[Field] = []
    labels: dict[str, str] = {}
    for field in RECORD.fields:
        if field.name != "result":
            fields.append(field)
        elif len(found.participants) <= SCORE_PARTICIPANTS_MAX:
            fields.append(Field("result", field.type, "the score"))
        elif not is_short:
            fields.append(Field("result", field.type, "the performances by id or name, as JSON"))
        else:
            labels = {f"result[{one}]": name for one, name in offered}
            fields += [Field(name, field.type, "") for name in labels]
    return Beginning(
        about=_text(view, ids),
        given=given,
        if_match=_tag(own_tag(found)),
        options={"winner": winners} if is_short else {},
        fields=tuple(fields),
        labels=labels,
        shown=results_part(words, names, await ask(view, CompetitionResultsQuestion(ids["competition_id"]))),
        at_once=_is_new(view, found),
    )


async def named_competition(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=_text(view, ids))


async def to_strike(view: View, ids: PathIds) -> Beginning:
    """Offers the participants that are not struck. If the competition has none, the form takes ids or names."""
    found, begun = view.competition(ids["competition_id"]), await named_competition(view, ids)
    left = _boxes(view, [one for one in found.participants if one not in found.struck])
    return replace(begun, fields=(), boxes=left) if left else begun


async def to_unstrike(view: View, ids: PathIds) -> Beginning:
    struck = _boxes(view, view.competition(ids["competition_id"]).struck)
    return replace(await named_competition(view, ids), given=dict.fromkeys(struck, "on"), fields=(), boxes=struck)


def _boxes(view: View, competitor_ids: Iterable[CompetitorId]) -> Mapping[str, str]:
    return {f"competitor[{one}]": view.names.competitor(one).name for one in competitor_ids}


async def new_competition(view: View, _ids: PathIds) -> Beginning:
    """Two sides are chosen where results are of two, else any number. Of many, the form takes names."""
    found = await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    fields = tuple([field for field in ADD_COMPETITION.fields if field.name in _OF_COMPETITION])
    given = {"group_id": "1"}
    if not 0 < found.total <= CHOSEN_MAX:
        return Beginning(fields=fields, given=given, at_once=True)
    offered = {one: its.name for one, its in found.competitors.items() if its.erased is None}
    fields = tuple([field for field in fields if field.name != "participants"])
    if not _is_of_two(view):
        return Beginning(fields=fields, given=given, boxes=_boxes(view, offered), at_once=True)
    sides = [Option("", ""), *[Option(f"id:{one}", name) for one, name in offered.items()]]
    return Beginning(
        fields=(Field(HOME, ID, ""), Field(AWAY, ID, ""), *fields),
        given=given,
        options={HOME: sides, AWAY: sides},
        at_once=True,
    )


def _is_of_two(view: View) -> bool:
    """Whether the first ranking that scores results scores those of two."""
    scored = next((one.scorings for one in view.live.board.rankings.values() if one.scorings), ())
    return any(map(scores_duels, scored))


async def enrolled(view: View, ids: PathIds) -> Beginning:
    """All competitors, those in the ranking chosen. Of many, the form takes the names of those who join or leave."""
    begun, found = await scored_ranking(view, ids), await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    if found.total > CHOSEN_MAX:
        return begun
    boxes = _boxes(view, [one for one, its in found.competitors.items() if its.erased is None])
    present = _boxes(view, view.live.board.rankings[ids["ranking_id"]].participants)
    return replace(begun, fields=(), given=dict.fromkeys(present, "on"), boxes={**boxes, **present})


async def tournament(view: View, _ids: PathIds) -> Beginning:
    return Beginning(given={"name": await view.name()})


async def presentation(view: View, _ids: PathIds) -> Beginning:
    its = view.publication.presentation
    given = {"zone": its.zone, "language": its.language or "", "accent": its.accent or ""}
    given["listed"] = "true" if its.listed else "false"
    fields = tuple([field for field in PRESENTATION.fields if field.name in given])
    languages = [Option("", "The reader's"), *[Option(one, _LANGUAGE_NAMES[one]) for one in LANGUAGES]]
    return Beginning(given=given, fields=fields, options={"language": languages})


async def ranking(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=view.ranking(ids["ranking_id"]).name)


async def deletion(view: View, _ids: PathIds) -> Beginning:
    return Beginning(labels={"slug": f"To delete it, type {view.live.slug}"})


async def scored_ranking(view: View, ids: PathIds) -> Beginning:
    """Where results give nothing, there is nothing to look at first."""
    found = view.ranking(ids["ranking_id"])
    return Beginning(about=found.name, at_once=not found.scorings)


async def scoring(view: View, ids: PathIds) -> Beginning:
    """The declared scorings, and those of each kind for the unities that have the names of its unities."""
    found = view.ranking(ids["ranking_id"])
    unity_ids = {unity.name: unity.id for unity in found.unities}
    kinds_of_it = {name: kind.scorings_with(unity_ids) for name, kind in kinds().items()}
    options = [Option(encode(kinds_of_it[name]).decode(), *texts) for name, *texts in kind_texts() if kinds_of_it[name]]
    about = f"{found.name}. Its columns: {', '.join(f'{name} ({unity_id})' for name, unity_id in unity_ids.items())}"
    return Beginning(
        about=about,
        given={JSON_FIELD: json.format(encode(found.scorings)).decode()},
        if_match=_tag(own_tag(found)),
        options={LIKE_FIELD.name: [Option("", "As written below"), *options]},
        fields=(
            replace(LIKE_FIELD, about="what results give in this kind, instead of what is written below"),
            *SCORING_OF_RANKING.fields,
        ),
        shown=scorings_part(found),
    )


async def event(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=f"Change {ids['sequence']} of {view.ranking(ids['ranking_id']).name}")


async def information(view: View, ids: PathIds) -> Beginning:
    found = view.ranking(ids["ranking_id"])
    zones = view.live.board.rankings[found.id].zones
    given = {"name": found.name, "description": found.description or "", "zones": zones or ""}
    return Beginning(about=found.name, given=given, if_match=_tag(own_tag(found)))


async def new_unity(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=view.ranking(ids["ranking_id"]).name, options={"time": _TIMES})


async def new_ranking(view: View, _ids: PathIds) -> Beginning:
    return await _with_competitors(view, CREATE_RANKING.fields, {"main_unity_time": _TIMES})


async def new_ranking_like(view: View, _ids: PathIds) -> Beginning:
    """Where nobody is registered yet, it takes the names."""
    fields, options = (LIKE_FIELD, *LIKE_FIELDS), {LIKE_FIELD.name: [Option(name, *one) for name, *one in kind_texts()]}
    begun = await _with_competitors(view, fields, options)
    if not view.live.board.competitors:
        others = [field for field in LIKE_FIELDS if field.name != "participants"]
        begun = replace(begun, fields=(LIKE_FIELD, _NAMES, *others))
    labels = {NAMES_FIELD: "Who plays", "name": "Name of the table"}
    return replace(begun, given={**begun.given, "name": "Table"}, labels=labels)


async def _with_competitors(view: View, fields: Fields, options: Mapping[str, Items[Option]]) -> Beginning:
    """Few competitors are chosen from a list, at first all of them; of many, the form takes ids or names."""
    found = await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    if not 0 < found.total <= CHOSEN_MAX:
        return Beginning(fields=fields, options=options)
    boxes = _boxes(view, [one for one, its in found.competitors.items() if its.erased is None])
    fields = tuple([field for field in fields if field.name != "participants"])
    return Beginning(given=dict.fromkeys(boxes, "on"), fields=fields, options=options, boxes=boxes)


async def places(view: View, _ids: PathIds) -> Beginning:
    names = {f"place[{one}]": name for one, name in view.names.rankings().items()}
    fields = tuple([Field(name, FROM_1, "its place in lists of rankings") for name in names])
    given = {name: str(number) for number, name in enumerate(names, start=1)}
    return Beginning(given=given, fields=fields, labels=names)


def _tag(tag: str) -> str:
    return f'"{tag}"'
