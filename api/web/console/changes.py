"""The changes that the console offers, one row each: the operation, its words, and what its form is filled in from.

The operation's row determines what a form takes, what its faults are, and who may send it. Adding points has a separate
page (`ranking_page.py`).
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct, json
from msgspec.structs import replace

from api.access.auth import Scope
from api.desk.conditions import own_tag
from api.http.forms import Form
from api.http.router import PathIds
from api.interface.competition_names import competition_text
from api.interface.declarations import Preview, Write, name_of
from api.interface.fields import DESCRIPTION, FROM_1, ID, ITEMS, SHORT, Field, FieldMisread, Fields
from api.interface.kinds import kinds
from api.interface.names import COMPARED_MAX
from api.interface.operations import OPERATIONS
from api.interface.rendering import encode
from api.web.console.classification_page import (
    classification_page,
    closed_up,
    criteria_form,
    declaration,
)
from api.web.console.frame import Venue, Viewer
from api.web.console.inputs import JSON_FIELD, LOGO_FIELD, NAMES_FIELD, Beginning, Filling, Option
from api.web.console.scoring_part import results_part, scorings_part
from api.web.console.typed_names import typed_text
from engine.domain.errors import Fault
from engine.domain.faults import unacceptable
from engine.domain.names import caseless_key
from engine.domain.presentation import LANGUAGES
from engine.domain.scoring import scores_duels, winner_by_score
from engine.domain.state import CompetitionState
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitorId
from engine.domain.times import timestamp
from projections.answers.competition_results import CompetitionResultsQuestion
from projections.answers.competitors import CompetitorListQuestion
from projections.answers.view import View, ask


async def _empty(_view: View, _ids: PathIds) -> Beginning:
    return Beginning()


def _as_sent(form: Form, _view: View, _ids: PathIds) -> Form:
    return form


TakenForm = Callable[[Form, View, PathIds], Form]
"""The form that an operation takes, from the one that was sent. Raises Unacceptable."""
Page = Callable[[Viewer, Venue, Beginning, Filling, str, str], bytes]
"""Makes the page of a form, from the addresses to which it is sent, and of the page that led here."""


class Change(Struct, frozen=True, kw_only=True):
    """A change. `path`: of its page, below that of the tournament; `back`: of the page that leads to it. After the
    change, `made`, the page of what the event makes, is shown; None: `back`. `fixed`: values that the form sends
    without asking. `asked`: the fields that are shown; None: all. `warning`: the effects. `final`: they cannot be taken
    back. `preview`: shows the effects; `looks_at_form`: only once the form is filled in. `mentions`: shows the texts
    that contain the competitor's name. `tidy`: the form that was sent, as its page shows it again; `read` converts that
    to the form that the operation takes. `page`: shows it, instead of the page that all forms have."""

    path: str
    operation: Write
    title: str
    button: str
    back: str
    made: str | None = None
    begin: Callable[[View, PathIds], Awaitable[Beginning]] = _empty
    fixed: Mapping[str, str] = {}
    asked: tuple[str, ...] | None = None
    warning: str | None = None
    final: bool = False
    preview: Preview | None = None
    looks_at_form: bool = False
    mentions: bool = False
    with_competitors: bool = False
    tidy: Callable[[Form], dict[str, str]] = dict
    read: TakenForm = _as_sent
    page: Page | None = None

    @property
    def scope(self) -> Scope:
        return self.operation.scope

    def fields(self, beginning: Beginning) -> Fields:
        """The fields that the form shows."""
        fields = self.operation.fields if beginning.fields is None else beginning.fields
        return (
            fields
            if self.asked is None
            else tuple([field for field in fields if field.name.partition("[")[0] in self.asked])
        )


_LANGUAGE_NAMES: Final = {"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español"}

# ── Initial states of forms ─────────────────────────────────────────────────────────────────────────────


async def _names(_view: View, _ids: PathIds) -> Beginning:
    return Beginning(fields=(Field(NAMES_FIELD, DESCRIPTION, "", required=True),))


async def _new_competitor(view: View, _ids: PathIds) -> Beginning:
    return Beginning(options=await _parents(view, None))


async def _parents(view: View, of: CompetitorId | None) -> Mapping[str, Items[Option]]:
    """The competitors that another can belong to; empty: there are too many to choose from."""
    found = await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    if found.total > CHOSEN_MAX:
        return {}
    others = [(one, its.name) for one, its in found.competitors.items() if its.erased is None and one != of]
    return {"parent": [Option("", ""), *[Option(f"id:{one}", name) for one, name in others]]}


async def _competitor(view: View, ids: PathIds) -> Beginning:
    found = view.competitor(ids["competitor_id"])
    given = {"name": found.name, "tags": ", ".join(found.tags), "color": found.color}
    if found.parent_id is not None:
        given["parent"] = f"id:{found.parent_id}"
    given["key"] = found.key or ""
    options = await _parents(view, CompetitorId(ids["competitor_id"]))
    return Beginning(about=found.name, given=given, if_match=_tag(own_tag(found)), options=options)


async def _named_competitor(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=view.competitor(ids["competitor_id"]).name)


def _given(view: View, found: CompetitionState, **more: str) -> dict[str, str]:
    """The result and the winner as text; where results give points, no winner that the score says by itself."""
    result = found.result or ""
    if isinstance(result, dict):
        result = encode({f"id:{one}": text for one, text in result.items()}).decode()
    said = winner_by_score(found.participants, result) if view.is_scored else None
    winner = "" if found.winner_id in (None, said) else f"id:{found.winner_id}"
    return {"result": result, "winner": winner} | more


async def _competition(view: View, ids: PathIds) -> Beginning:
    found = view.competition(ids["competition_id"])
    given = _given(
        view,
        found,
        participants=", ".join(typed_text(view, one) for one in found.participants),
        group_id=str(found.group_id),
        scale=found.scale,
        round="" if found.round is None else str(found.round),
        round_name=found.round_name,
        key=found.key or "",
    )
    return Beginning(
        about=competition_text(view.names, found),
        given=given,
        if_match=_tag(own_tag(found)),
        at_once=_is_new(view, found),
    )


def _is_new(view: View, competition: CompetitionState) -> bool:
    """Whether its form corrects nothing, so that there is nothing to look at first."""
    return not view.is_scored or (competition.result is None and competition.winner_id is None)


async def _result(view: View, ids: PathIds) -> Beginning:
    """Of more participants than a form offers, it takes the performances as JSON, and the winner as text."""
    found, names = view.competition(ids["competition_id"]), view.names
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
    for field in RECORD.fields:
        if field.name != "result":
            fields.append(field)
        elif len(found.participants) <= SCORE_PARTICIPANTS_MAX:
            fields.append(Field("result", field.type, "the score"))
        elif not is_short:
            fields.append(Field("result", field.type, "the performances by id or name, as JSON"))
        else:
            fields += [Field(f"result[{one}]", field.type, f"the performance of {name}") for one, name in offered]
    return Beginning(
        about=competition_text(names, found),
        given=given,
        if_match=_tag(own_tag(found)),
        options={"winner": winners} if is_short else {},
        fields=tuple(fields),
        shown=results_part(names, await ask(view, CompetitionResultsQuestion(ids["competition_id"]))),
        at_once=_is_new(view, found),
    )


async def _named_competition(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=competition_text(view.names, view.competition(ids["competition_id"])))


async def _to_strike(view: View, ids: PathIds) -> Beginning:
    """Offers the participants that are not struck. If the competition has none, the form takes ids or names."""
    found, begun = view.competition(ids["competition_id"]), await _named_competition(view, ids)
    left = _boxes(view, [one for one in found.participants if one not in found.struck])
    return replace(begun, fields=(), boxes=left) if left else begun


async def _to_unstrike(view: View, ids: PathIds) -> Beginning:
    struck = _boxes(view, view.competition(ids["competition_id"]).struck)
    return replace(await _named_competition(view, ids), given=dict.fromkeys(struck, "on"), fields=(), boxes=struck)


def _boxes(view: View, competitor_ids: Iterable[CompetitorId]) -> Mapping[str, str]:
    return {f"competitor[{one}]": view.names.competitor(one).name for one in competitor_ids}


async def _new_competition(view: View, _ids: PathIds) -> Beginning:
    """Two sides are chosen where results are of two, else any number. Of many, the form takes names."""
    found = await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    fields = tuple([field for field in _ADD_COMPETITION.fields if field.name in _OF_COMPETITION])
    given = {"group_id": "1"}
    if not 0 < found.total <= CHOSEN_MAX:
        return Beginning(fields=fields, given=given)
    offered = {one: its.name for one, its in found.competitors.items() if its.erased is None}
    fields = tuple([field for field in fields if field.name != "participants"])
    if not _is_of_two(view):
        return Beginning(fields=fields, given=given, boxes=_boxes(view, offered))
    sides = [Option("", ""), *[Option(f"id:{one}", name) for one, name in offered.items()]]
    return Beginning(
        fields=(Field(_HOME, ID, ""), Field(_AWAY, ID, ""), *fields), given=given, options={_HOME: sides, _AWAY: sides}
    )


def _is_of_two(view: View) -> bool:
    """Whether the first ranking that scores results scores those of two."""
    scored = next((one.scorings for one in view.live.board.rankings.values() if one.scorings), ())
    return any(map(scores_duels, scored))


async def _list(view: View, ids: PathIds) -> Beginning:
    """All competitors, those in the ranking chosen. Of many, the form takes the names of those who join or leave."""
    begun, found = await _scored_ranking(view, ids), await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    if found.total > CHOSEN_MAX:
        return begun
    boxes = _boxes(view, [one for one, its in found.competitors.items() if its.erased is None])
    present = _boxes(view, view.live.board.rankings[ids["ranking_id"]].participants)
    return replace(begun, fields=(), given=dict.fromkeys(present, "on"), boxes={**boxes, **present})


async def _presentation(view: View, _ids: PathIds) -> Beginning:
    its = view.publication.presentation
    given = {"zone": its.zone, "language": its.language or "", "accent": its.accent or ""}
    given["listed"] = "true" if its.listed else "false"
    fields = tuple([field for field in PRESENTATION.fields if field.name in given])
    languages = [Option("", "The reader's"), *[Option(one, _LANGUAGE_NAMES[one]) for one in LANGUAGES]]
    return Beginning(given=given, fields=fields, options={"language": languages})


async def _ranking(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=view.ranking(ids["ranking_id"]).name)


async def _scored_ranking(view: View, ids: PathIds) -> Beginning:
    """Where results give nothing, there is nothing to look at first."""
    found = view.ranking(ids["ranking_id"])
    return Beginning(about=found.name, at_once=not found.scorings)


async def _scoring(view: View, ids: PathIds) -> Beginning:
    """The declared scorings, and those of each kind for the unities that have the names of its unities."""
    found = view.ranking(ids["ranking_id"])
    unity_ids = {unity.name: unity.id for unity in found.unities}
    kinds_of_it = {name: kind.scorings_with(unity_ids) for name, kind in kinds().items()}
    options = [
        Option(encode(scorings).decode(), f"{name}: {kinds()[name].about}")
        for name, scorings in kinds_of_it.items()
        if scorings
    ]
    about = f"{found.name}. Its columns: {', '.join(f'{name} ({unity_id})' for name, unity_id in unity_ids.items())}"
    return Beginning(
        about=about,
        given={JSON_FIELD: json.format(encode(found.scorings)).decode()},
        if_match=_tag(own_tag(found)),
        options={LIKE_FIELD.name: [Option("", "As written below"), *options]},
        fields=(
            replace(LIKE_FIELD, about="what results give in this kind, instead of what is written below"),
            *_SCORING.fields,
        ),
        shown=scorings_part(found),
    )


async def _event(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=f"Change {ids['sequence']} of {view.ranking(ids['ranking_id']).name}")


async def _information(view: View, ids: PathIds) -> Beginning:
    found = view.ranking(ids["ranking_id"])
    given = {"name": found.name, "description": found.description or ""}
    return Beginning(about=found.name, given=given, if_match=_tag(own_tag(found)))


async def _new_unity(view: View, ids: PathIds) -> Beginning:
    return Beginning(about=view.ranking(ids["ranking_id"]).name, options={"time": _TIMES})


async def _new_ranking(view: View, _ids: PathIds) -> Beginning:
    return await _with_competitors(view, _CREATE_RANKING.fields, {"main_unity_time": _TIMES})


async def _new_ranking_like(view: View, _ids: PathIds) -> Beginning:
    options = [Option(name, f"{name}: {kind.about}") for name, kind in kinds().items()]
    return await _with_competitors(view, (LIKE_FIELD, *LIKE_FIELDS), {LIKE_FIELD.name: options})


async def _with_competitors(view: View, fields: Fields, options: Mapping[str, Items[Option]]) -> Beginning:
    """Few competitors are chosen from a list, at first all of them; of many, the form takes ids or names."""
    found = await ask(view, CompetitorListQuestion(limit=CHOSEN_MAX))
    if not 0 < found.total <= CHOSEN_MAX:
        return Beginning(fields=fields, options=options)
    boxes = _boxes(view, [one for one, its in found.competitors.items() if its.erased is None])
    fields = tuple([field for field in fields if field.name != "participants"])
    return Beginning(given=dict.fromkeys(boxes, "on"), fields=fields, options=options, boxes=boxes)


async def _places(view: View, _ids: PathIds) -> Beginning:
    names = {f"place[{one}]": name for one, name in view.names.rankings().items()}
    fields = tuple([Field(name, FROM_1, "its place in lists of rankings") for name in names])
    given = {name: str(number) for number, name in enumerate(names, start=1)}
    return Beginning(given=given, fields=fields, labels=names)


# ── Forms as the operations take them ───────────────────────────────────────────────────────────────────


def _chosen(form: Form, _view: View, _ids: PathIds) -> Form:
    """The form with the chosen competitors, in the order of the form, which is that of their registration."""
    rest = {name: text for name, text in form.items() if not _COMPETITOR.fullmatch(name)}
    chosen = [f"id:{found[1]}" for name in form if (found := _COMPETITOR.fullmatch(name))]
    return {"participants": ",".join(chosen)} | rest


def _chosen_competitors(form: Form, view: View, ids: PathIds) -> Form:
    """As `_chosen`, for an operation whose field is called competitors. Some may be typed, too."""
    chosen = _chosen(form, view, ids)
    participants = chosen["participants"]
    return {name: text for name, text in chosen.items() if name != "participants"} | (
        {"competitors": participants} if participants or "competitors" not in form else {}
    )


_NAMES_CITED: Final = 5
CHOSEN_MAX: Final = 500
"""Competitors up to which a form offers them all by name."""
_COMPETITOR: Final = re.compile(r"competitor\[([1-9][0-9]{0,18})\]", re.ASCII)
_TIMES: Final = (Option("", "No"), Option("s", "In seconds"), Option("ms", "In milliseconds"))


def _chosen_scorings(form: Form, _view: View, _ids: PathIds) -> Form:
    """The scorings of the kind that was chosen, or else those that were written."""
    return {JSON_FIELD: form.get(LIKE_FIELD.name) or form.get(JSON_FIELD, "")}


def _order(form: Form, _view: View, _ids: PathIds) -> Form:
    """The rankings, ordered by the places that were sent; equal places keep the order of the form. Raises Unacceptable
    for text that is not a place."""
    places: dict[str, int] = {}
    faults = []
    for name, text in form.items():
        if found := _PLACE.fullmatch(name):
            try:
                places[found[1]] = FROM_1.read(text)
            except FieldMisread as error:
                faults += [Fault(name, fault) for fault in error.faults]
    if faults:
        raise unacceptable(faults)
    return {"order": ",".join(sorted(places, key=places.__getitem__))}


def _named(form: Form, view: View, _ids: PathIds) -> Form:
    """A competitor for each line. Raises Unacceptable for names that are there twice, or already: that is not looked at
    where there are many."""
    names = [line.strip() for line in form.get(NAMES_FIELD, "").splitlines() if line.strip()]
    those = view.live.board.competitors
    there = {caseless_key(one.name) for _, one in those.run(1, len(those))} if len(those) <= COMPARED_MAX else set()
    wrong = list[str]()
    for name in names:
        if caseless_key(name) in there:
            wrong.append(name)
        there.add(caseless_key(name))
    if not names or wrong:
        said = f"{', '.join(wrong[:_NAMES_CITED])}: there already" if wrong else "must have a name on each line"
        raise unacceptable([Fault(NAMES_FIELD, said)])
    return {ITEMS: encode([{"name": name} for name in names]).decode()}


def _meeting(form: Form, view: View, ids: PathIds) -> Form:
    """The participants that were chosen as home and away, or from a list, or typed."""
    rest = {name: text for name, text in form.items() if name not in (_HOME, _AWAY)}
    if _HOME in form or _AWAY in form:
        return rest | {"participants": ",".join(filter(None, (form.get(_HOME), form.get(_AWAY))))}
    return _chosen(rest, view, ids)


def _enrolled(form: Form, view: View, ids: PathIds) -> Form:
    """Who joins and who leaves, from the list of those who are in the ranking; or as it was typed."""
    if "add" in form or "remove" in form:
        return {name: text for name, text in form.items() if not _COMPETITOR.fullmatch(name)}
    chosen = {CompetitorId(int(found[1])) for name in form if (found := _COMPETITOR.fullmatch(name))}
    now = view.ranking(ids["ranking_id"])
    present = set(view.live.board.rankings[now.id].participants)
    return {
        "add": ",".join(f"id:{one}" for one in sorted(chosen - present)),
        "remove": ",".join(f"id:{one}" for one in sorted(present - chosen)),
    }


def _criteria(form: Form, _view: View, _ids: PathIds) -> Form:
    return criteria_form(form)


_PLACE: Final = re.compile(r"place\[([1-9][0-9]{0,18})\]", re.ASCII)


def _tag(tag: str) -> str:
    return f'"{tag}"'


# ── The changes ─────────────────────────────────────────────────────────────────────────────────────────

_BY_NAME: Final = {name_of(operation): operation for operation in OPERATIONS if isinstance(operation, Write)}
_PREVIEWS: Final = {operation.path: operation for operation in OPERATIONS if isinstance(operation, Preview)}
_CORRECTED: Final = _PREVIEWS["competitions/{competition_id}/preview.json"]
_LIST: Final = "rankings/{ranking_id}/participants.json"
_REOPEN: Final = "rankings/{ranking_id}/reopen.json"
_SCORING: Final = _BY_NAME["PUT rankings/{ranking_id}/scoring.json"]
PRESENTATION: Final = _BY_NAME["PUT presentation.json"]
RECORD: Final = _BY_NAME["PUT competitions/{competition_id}.json"]
ADD_POINTS: Final = _BY_NAME["PUT rankings/{ranking_id}/add.json"]
_ADD_COMPETITION: Final = _BY_NAME["POST competitions.json"]
_OF_COMPETITION: Final = ("participants", "round", "round_name", "started_at", "location", "group_id", "scale", "key")
_HOME: Final = "home"
_AWAY: Final = "away"
REGISTER: Final = _BY_NAME["POST competitors.json"]
_CREATE_RANKING: Final = _BY_NAME["POST rankings.json"]
_VISIBILITY: Final = _BY_NAME["PUT rankings/{ranking_id}/visibility.json"]
_PUBLICATION: Final = _BY_NAME["PUT publication.json"]
_REVERSE: Final = "rankings/{ranking_id}/reverse.json"
_VOID: Final = "competitions/{competition_id}/void.json"
_STRIKE: Final = "competitions/{competition_id}/strike.json"
_UNSTRIKE: Final = "competitions/{competition_id}/unstrike.json"
_UNVOID: Final = "competitions/{competition_id}/unvoid.json"

LIKE_FIELD: Final = Field("like", SHORT, "sets its columns, what results give, and the order of the table")
LIKE_FIELDS: Final = tuple(
    [one for one in _CREATE_RANKING.fields if one.name in ("name", "description", "participants")]
)
CREATE_LIKE: Final = Change(
    path="/rankings/like",
    operation=_CREATE_RANKING,
    title="What is played",
    button="Create",
    back="",
    begin=_new_ranking_like,
    with_competitors=True,
    read=_chosen,
)
CONSOLE_CHANGES: Final = (
    Change(
        path="/competitors/names",
        operation=REGISTER,
        title="Add {teams}",
        button="Add",
        back="",
        begin=_names,
        read=_named,
    ),
    Change(
        path="/competitors/new",
        operation=REGISTER,
        title="Add a {team}",
        button="Add",
        back="/competitors",
        begin=_new_competitor,
    ),
    Change(
        path="/competitors/{competitor_id}/change",
        operation=_BY_NAME["PUT competitors/{competitor_id}.json"],
        title="Change a {team}",
        button="Save",
        back="/competitors",
        begin=_competitor,
    ),
    Change(
        path="/competitors/{competitor_id}/erase",
        operation=_BY_NAME["PUT competitors/{competitor_id}/erase.json"],
        title="Erase a {team}",
        button="Erase",
        back="/competitors",
        begin=_named_competitor,
        mentions=True,
        final=True,
        warning=(
            "All names, tags, colours and keys that it ever had are erased, and its parent, at past moments too. "
            "Points and places stay. This cannot be undone."
        ),
    ),
    Change(
        path="/competitions/new",
        operation=_ADD_COMPETITION,
        title="Add a {match}",
        button="Add",
        back="/competitions",
        begin=_new_competition,
        with_competitors=True,
        read=_meeting,
    ),
    Change(
        path="/competitions/{competition_id}/record",
        operation=RECORD,
        title="Result",
        button="Save",
        back="/competitions",
        begin=_result,
        asked=("started_at", "location", "result", "winner"),
        preview=_CORRECTED,
        looks_at_form=True,
    ),
    Change(
        path="/competitions/{competition_id}/change",
        operation=RECORD,
        title="Change a {match}",
        button="Save",
        back="/competitions",
        begin=_competition,
        asked=("participants", "result", "winner", "group_id", "round", "round_name", "scale", "key"),
        with_competitors=True,
        preview=_CORRECTED,
        looks_at_form=True,
    ),
    Change(
        path="/competitions/{competition_id}/void",
        operation=_BY_NAME[f"PUT {_VOID}"],
        title="Do not count a {match}",
        button="Do not count it",
        back="/competitions",
        begin=_named_competition,
        warning="All points that it gave are taken back. It can count again at any time.",
        preview=_PREVIEWS[_VOID],
    ),
    Change(
        path="/competitions/{competition_id}/unvoid",
        operation=_BY_NAME[f"PUT {_UNVOID}"],
        title="Count a {match} again",
        button="Count it again",
        back="/competitions",
        begin=_named_competition,
        warning="The points that it gave are given again.",
        preview=_PREVIEWS[_UNVOID],
    ),
    Change(
        path="/competitions/{competition_id}/strike",
        operation=_BY_NAME[f"PUT {_STRIKE}"],
        title="Do not count a {match} for some",
        button="Do not count it for them",
        back="/competitions",
        begin=_to_strike,
        warning="All points that it gave them are taken back. It can count for them again at any time.",
        preview=_PREVIEWS[_STRIKE],
        looks_at_form=True,
        with_competitors=True,
        read=_chosen_competitors,
    ),
    Change(
        path="/competitions/{competition_id}/unstrike",
        operation=_BY_NAME[f"PUT {_UNSTRIKE}"],
        title="Count a {match} again for some",
        button="Count it again for them",
        back="/competitions",
        begin=_to_unstrike,
        warning="The points that it gave them are given again.",
        preview=_PREVIEWS[_UNSTRIKE],
        looks_at_form=True,
        read=_chosen_competitors,
    ),
    Change(
        path="/rankings/new",
        operation=_CREATE_RANKING,
        title="Create a ranking",
        button="Create",
        back="",
        made="/rankings/{ranking_id}",
        begin=_new_ranking,
        with_competitors=True,
        read=_chosen,
    ),
    Change(
        path="/rankings/order",
        operation=_BY_NAME["PUT rankings.json"],
        title="Order the rankings",
        button="Save",
        back="",
        begin=_places,
        read=_order,
    ),
    Change(
        path="/rankings/{ranking_id}/information",
        operation=_BY_NAME["PUT rankings/{ranking_id}/information.json"],
        title="Name and description",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=_information,
    ),
    Change(
        path="/rankings/{ranking_id}/participants",
        operation=_BY_NAME[f"PUT {_LIST}"],
        title="{Teams} of the ranking",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=_list,
        with_competitors=True,
        preview=_PREVIEWS[_LIST],
        looks_at_form=True,
        read=_enrolled,
    ),
    Change(
        path="/rankings/{ranking_id}/scoring",
        operation=_SCORING,
        title="What results give",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=_scoring,
        preview=_PREVIEWS["rankings/{ranking_id}/scoring/preview.json"],
        looks_at_form=True,
        read=_chosen_scorings,
    ),
    Change(
        path="/rankings/{ranking_id}/classification",
        operation=_BY_NAME["PUT rankings/{ranking_id}/classification.json"],
        title="Order of the table",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=declaration,
        tidy=closed_up,
        read=_criteria,
        page=classification_page,
    ),
    Change(
        path="/rankings/{ranking_id}/unities/new",
        operation=_BY_NAME["POST rankings/{ranking_id}/unities.json"],
        title="Add a column",
        button="Add",
        back="/rankings/{ranking_id}",
        begin=_new_unity,
    ),
    Change(
        path="/rankings/{ranking_id}/undo/{sequence}",
        operation=_BY_NAME[f"PUT {_REVERSE}"],
        title="Undo points",
        button="Undo them",
        back="/rankings/{ranking_id}/history",
        begin=_event,
        asked=(),
        warning="All points that were added together are taken back, in other rankings too. They can be redone.",
        preview=_PREVIEWS[_REVERSE],
    ),
    Change(
        path="/rankings/{ranking_id}/redo/{sequence}",
        operation=_BY_NAME[f"PUT {_REVERSE}"],
        title="Redo points",
        button="Redo them",
        back="/rankings/{ranking_id}/history",
        begin=_event,
        asked=(),
        warning="The points that were taken back are given back.",
        preview=_PREVIEWS[_REVERSE],
    ),
    Change(
        path="/rankings/{ranking_id}/close",
        operation=_BY_NAME["PUT rankings/{ranking_id}/close.json"],
        title="Close the ranking",
        button="Close it",
        back="/rankings/{ranking_id}",
        begin=_ranking,
        warning="Until it is reopened, nothing in it can change.",
    ),
    Change(
        path="/rankings/{ranking_id}/reopen",
        operation=_BY_NAME[f"PUT {_REOPEN}"],
        title="Reopen the ranking",
        button="Reopen it",
        back="/rankings/{ranking_id}",
        begin=_scored_ranking,
        warning="It can be changed again. Results saved meanwhile give their points.",
        preview=_PREVIEWS[_REOPEN],
    ),
    Change(
        path="/rankings/{ranking_id}/hide",
        operation=_VISIBILITY,
        title="Hide the ranking",
        button="Hide it",
        back="/rankings/{ranking_id}",
        begin=_ranking,
        fixed={"hidden": "true"},
        asked=(),
        warning="The public no longer sees it, in past views and during a freeze too.",
    ),
    Change(
        path="/rankings/{ranking_id}/show",
        operation=_VISIBILITY,
        title="Show the ranking again",
        button="Show it",
        back="/rankings/{ranking_id}",
        begin=_ranking,
        fixed={"hidden": "false"},
        asked=(),
        warning="The public sees it as it sees the other rankings.",
    ),
    Change(
        path="/name",
        operation=_BY_NAME["PUT tournament.json"],
        title="Rename the tournament",
        button="Rename it",
        back="",
        warning="Its board has the new name at once. Its address stays.",
    ),
    Change(
        path="/presentation",
        operation=_BY_NAME["PUT presentation.json"],
        title="Change how the tournament looks",
        button="Change it",
        back="",
        begin=_presentation,
        warning="Its board has the new zone, language and colour at once. Days then follow the new zone.",
    ),
    Change(
        path="/logo",
        operation=PRESENTATION,
        title="Change the logo",
        button="Change it",
        back="",
        asked=(LOGO_FIELD,),
        warning="Its board has the new logo at once. Without one, the logo is removed.",
    ),
    Change(
        path="/publication/publish",
        operation=_PUBLICATION,
        title="Publish the tournament",
        button="Publish it",
        back="/publication",
        fixed={"published": "true"},
        asked=(),
        warning="Everybody can see its board: names, colours, tags, rankings, and points with their time and reason. "
        "It can be unpublished, but what people have seen cannot be taken back.",
    ),
    Change(
        path="/publication/unpublish",
        operation=_PUBLICATION,
        title="Unpublish the tournament",
        button="Unpublish it",
        back="/publication",
        fixed={"published": "false"},
        asked=(),
        warning="The public no longer sees it.",
    ),
    Change(
        path="/publication/freeze",
        operation=_PUBLICATION,
        title="Freeze what the public sees",
        button="Freeze it",
        back="/publication",
        fixed={"freeze": "now"},
        asked=(),
        warning="The public keeps seeing the present state. New results stay hidden until you reveal them.",
    ),
    Change(
        path="/publication/freeze-at",
        operation=_PUBLICATION,
        title="Freeze after a change",
        button="Freeze it",
        back="/publication",
        asked=("freeze",),
        warning="Later changes stay hidden from the public until you reveal them. Choose none before the last one that "
        "the public has seen.",
    ),
    Change(
        path="/publication/reveal-to",
        operation=_PUBLICATION,
        title="Reveal up to a change",
        button="Reveal it",
        back="/publication",
        asked=("reveal",),
        final=True,
        warning="The public sees everything up to that change. What people have seen cannot be taken back.",
    ),
    Change(
        path="/publication/reveal-next",
        operation=_PUBLICATION,
        title="Reveal the next {match}",
        button="Reveal it",
        back="/publication",
        fixed={"reveal": "next"},
        asked=(),
        final=True,
        warning="The public sees the points of the next {match}. What people have seen cannot be taken back.",
    ),
    Change(
        path="/publication/reveal-all",
        operation=_PUBLICATION,
        title="Reveal everything",
        button="Reveal it",
        back="/publication",
        fixed={"reveal": "all"},
        asked=(),
        final=True,
        warning="The public sees everything, and new results at once. What people have seen cannot be taken back.",
    ),
)
"""Paths whose last part is fixed come before paths with an id in its place."""
