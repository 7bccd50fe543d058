"""The changes that the console offers, one row each: the operation, its words, and what its form is filled in from.

The operation's row determines what a form takes, what its faults are, and who may send it. Adding points has a separate
page (`ranking_page.py`).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.http.forms import Form
from api.http.router import PathIds
from api.interface.declarations import Preview, Write
from api.interface.fields import Fields
from api.interface.operations import OPERATIONS
from api.web.console import beginnings, taken_forms
from api.web.console.beginnings import (
    ADD_COMPETITION,
    BY_NAME,
    CREATE_RANKING,
    PRESENTATION,
    RECORD,
    SCORING_OF_RANKING,
)
from api.web.console.classification_page import (
    classification_page,
    closed_up,
    declaration,
)
from api.web.console.first_steps import STEP_NAMES
from api.web.console.frame import Venue, Viewer
from api.web.console.inputs import LOGO_FIELD, Beginning, Filling
from projections.answers.view import View


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
    without asking. `asked`: the fields that are shown; None: all. `warning`: the effects. `final`: they cannot be
    taken back. `preview`: shows the effects; `looks_at_form`: once the form is filled in, and after what is asked about
    it. `mentions`: shows the texts that contain the competitor's name. `leaves`: afterwards, there is no tournament to
    return to. `tidy`: the form that was sent, as its page shows it again; `read` converts that to the form that the
    operation takes. `step`: of the first steps of a tournament, after which the next one follows. `page`: shows it,
    instead of the page that all forms have."""

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
    leaves: bool = False
    step: int | None = None
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


_PREVIEWS: Final = {operation.path: operation for operation in OPERATIONS if isinstance(operation, Preview)}
_CORRECTED: Final = _PREVIEWS["competitions/{competition_id}/preview.json"]
_LIST: Final = "rankings/{ranking_id}/participants.json"
_REOPEN: Final = "rankings/{ranking_id}/reopen.json"
ADD_POINTS: Final = BY_NAME["PUT rankings/{ranking_id}/add.json"]
REGISTER: Final = BY_NAME["POST competitors.json"]
_VISIBILITY: Final = BY_NAME["PUT rankings/{ranking_id}/visibility.json"]
_PUBLICATION: Final = BY_NAME["PUT publication.json"]
_REVERSE: Final = "rankings/{ranking_id}/reverse.json"
_VOID: Final = "competitions/{competition_id}/void.json"
_STRIKE: Final = "competitions/{competition_id}/strike.json"
_UNSTRIKE: Final = "competitions/{competition_id}/unstrike.json"
_UNVOID: Final = "competitions/{competition_id}/unvoid.json"

CREATE_LIKE: Final = Change(
    path="/rankings/like",
    operation=CREATE_RANKING,
    title="What is played",
    button="Create",
    back="",
    begin=beginnings.new_ranking_like,
    with_competitors=True,
    read=taken_forms.chosen,
)
CONSOLE_CHANGES: Final = (
    Change(
        path="/competitors/names",
        operation=REGISTER,
        title="Add {teams}",
        button="Add",
        back="/competitors",
        begin=beginnings.names,
        step=STEP_NAMES,
        read=taken_forms.named,
    ),
    Change(
        path="/competitors/new",
        operation=REGISTER,
        title="Add a {team}",
        button="Add",
        back="/competitors",
        begin=beginnings.new_competitor,
    ),
    Change(
        path="/competitors/{competitor_id}/change",
        operation=BY_NAME["PUT competitors/{competitor_id}.json"],
        title="Change a {team}",
        button="Save",
        back="/competitors",
        begin=beginnings.competitor,
    ),
    Change(
        path="/competitors/{competitor_id}/erase",
        operation=BY_NAME["PUT competitors/{competitor_id}/erase.json"],
        title="Erase a {team}",
        button="Erase",
        back="/competitors",
        begin=beginnings.named_competitor,
        mentions=True,
        final=True,
        warning=(
            "All names, tags, colours and keys that it ever had are erased, and its parent, at past moments too. "
            "Points and places stay. This cannot be undone."
        ),
    ),
    Change(
        path="/competitions/new",
        operation=ADD_COMPETITION,
        title="Add a {match}",
        button="Add",
        back="/competitions",
        begin=beginnings.new_competition,
        with_competitors=True,
        looks_at_form=True,
        read=taken_forms.meeting,
    ),
    Change(
        path="/competitions/{competition_id}/record",
        operation=RECORD,
        title="Result",
        button="Save",
        back="/competitions",
        begin=beginnings.result,
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
        begin=beginnings.competition,
        asked=("participants", "result", "winner", "group_id", "round", "round_name", "scale", "key"),
        with_competitors=True,
        preview=_CORRECTED,
        looks_at_form=True,
    ),
    Change(
        path="/competitions/{competition_id}/void",
        operation=BY_NAME[f"PUT {_VOID}"],
        title="Do not count a {match}",
        button="Do not count it",
        back="/competitions",
        begin=beginnings.named_competition,
        warning="All points that it gave are taken back. It can count again at any time.",
        preview=_PREVIEWS[_VOID],
    ),
    Change(
        path="/competitions/{competition_id}/unvoid",
        operation=BY_NAME[f"PUT {_UNVOID}"],
        title="Count a {match} again",
        button="Count it again",
        back="/competitions",
        begin=beginnings.named_competition,
        warning="The points that it gave are given again.",
        preview=_PREVIEWS[_UNVOID],
    ),
    Change(
        path="/competitions/{competition_id}/strike",
        operation=BY_NAME[f"PUT {_STRIKE}"],
        title="Do not count a {match} for some",
        button="Do not count it for them",
        back="/competitions",
        begin=beginnings.to_strike,
        warning="All points that it gave them are taken back. It can count for them again at any time.",
        preview=_PREVIEWS[_STRIKE],
        looks_at_form=True,
        with_competitors=True,
        read=taken_forms.chosen_competitors,
    ),
    Change(
        path="/competitions/{competition_id}/unstrike",
        operation=BY_NAME[f"PUT {_UNSTRIKE}"],
        title="Count a {match} again for some",
        button="Count it again for them",
        back="/competitions",
        begin=beginnings.to_unstrike,
        warning="The points that it gave them are given again.",
        preview=_PREVIEWS[_UNSTRIKE],
        looks_at_form=True,
        read=taken_forms.chosen_competitors,
    ),
    Change(
        path="/rankings/new",
        operation=CREATE_RANKING,
        title="Create a ranking",
        button="Create",
        back="",
        made="/rankings/{ranking_id}",
        begin=beginnings.new_ranking,
        with_competitors=True,
        read=taken_forms.chosen,
    ),
    Change(
        path="/rankings/order",
        operation=BY_NAME["PUT rankings.json"],
        title="Order the rankings",
        button="Save",
        back="",
        begin=beginnings.places,
        read=taken_forms.order,
    ),
    Change(
        path="/rankings/{ranking_id}/information",
        operation=BY_NAME["PUT rankings/{ranking_id}/information.json"],
        title="Name, description and zones",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=beginnings.information,
    ),
    Change(
        path="/rankings/{ranking_id}/participants",
        operation=BY_NAME[f"PUT {_LIST}"],
        title="{Teams} of the ranking",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=beginnings.enrolled,
        with_competitors=True,
        preview=_PREVIEWS[_LIST],
        looks_at_form=True,
        read=taken_forms.enrolled,
    ),
    Change(
        path="/rankings/{ranking_id}/scoring",
        operation=SCORING_OF_RANKING,
        title="What results give",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=beginnings.scoring,
        preview=_PREVIEWS["rankings/{ranking_id}/scoring/preview.json"],
        looks_at_form=True,
        read=taken_forms.chosen_scorings,
    ),
    Change(
        path="/rankings/{ranking_id}/classification",
        operation=BY_NAME["PUT rankings/{ranking_id}/classification.json"],
        title="Order of the table",
        button="Save",
        back="/rankings/{ranking_id}",
        begin=declaration,
        tidy=closed_up,
        read=taken_forms.criteria,
        page=classification_page,
    ),
    Change(
        path="/rankings/{ranking_id}/unities/new",
        operation=BY_NAME["POST rankings/{ranking_id}/unities.json"],
        title="Add a column",
        button="Add",
        back="/rankings/{ranking_id}",
        begin=beginnings.new_unity,
    ),
    Change(
        path="/rankings/{ranking_id}/undo/{sequence}",
        operation=BY_NAME[f"PUT {_REVERSE}"],
        title="Undo points",
        button="Undo them",
        back="/rankings/{ranking_id}/history",
        begin=beginnings.event,
        asked=(),
        warning="All points that were added together are taken back, in other rankings too. They can be redone.",
        preview=_PREVIEWS[_REVERSE],
    ),
    Change(
        path="/rankings/{ranking_id}/redo/{sequence}",
        operation=BY_NAME[f"PUT {_REVERSE}"],
        title="Redo points",
        button="Redo them",
        back="/rankings/{ranking_id}/history",
        begin=beginnings.event,
        asked=(),
        warning="The points that were taken back are given back.",
        preview=_PREVIEWS[_REVERSE],
    ),
    Change(
        path="/rankings/{ranking_id}/close",
        operation=BY_NAME["PUT rankings/{ranking_id}/close.json"],
        title="Close the ranking",
        button="Close it",
        back="/rankings/{ranking_id}",
        begin=beginnings.ranking,
        warning="Until it is reopened, nothing in it can change.",
    ),
    Change(
        path="/rankings/{ranking_id}/reopen",
        operation=BY_NAME[f"PUT {_REOPEN}"],
        title="Reopen the ranking",
        button="Reopen it",
        back="/rankings/{ranking_id}",
        begin=beginnings.scored_ranking,
        warning="It can be changed again. Results saved meanwhile give their points.",
        preview=_PREVIEWS[_REOPEN],
    ),
    Change(
        path="/rankings/{ranking_id}/hide",
        operation=_VISIBILITY,
        title="Hide the ranking",
        button="Hide it",
        back="/rankings/{ranking_id}",
        begin=beginnings.ranking,
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
        begin=beginnings.ranking,
        fixed={"hidden": "false"},
        asked=(),
        warning="The public sees it as it sees the other rankings.",
    ),
    Change(
        path="/name",
        operation=BY_NAME["PUT tournament.json"],
        title="Rename the tournament",
        button="Rename it",
        back="",
        begin=beginnings.tournament,
        warning="Its board has the new name at once. Its address stays.",
    ),
    Change(
        path="/presentation",
        operation=BY_NAME["PUT presentation.json"],
        title="Change how the tournament looks",
        button="Change it",
        back="",
        begin=beginnings.presentation,
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
        path="/archive",
        operation=BY_NAME["PUT archive.json"],
        title="Archive the tournament",
        button="Archive it",
        back="",
        warning="Everything in it can still be read. Nothing can be changed until it is restored.",
    ),
    Change(
        path="/restore",
        operation=BY_NAME["PUT restore.json"],
        title="Restore the tournament",
        button="Restore it",
        back="",
        warning="It can be changed again.",
    ),
    Change(
        path="/delete",
        operation=BY_NAME["PUT delete.json"],
        title="Delete the tournament",
        button="Delete it",
        back="",
        begin=beginnings.deletion,
        warning="Its board and its pages are gone at once, for everybody, and no other tournament gets its address. "
        "Only the operator of this service can restore it, until they delete it for good.",
        final=True,
        leaves=True,
    ),
    Change(
        path="/publication/publish",
        operation=_PUBLICATION,
        title="Publish the tournament",
        button="Publish it",
        back="/publication",
        made="",
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
