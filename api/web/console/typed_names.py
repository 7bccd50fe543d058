"""Names that people type into forms of the console, in place of the ids that operations take."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from msgspec import structs

from api.http.forms import Form
from api.interface.fields import RESULT, Fields, FormReader
from api.interface.names import COMPARED_MAX, Names
from api.interface.rendering import encode
from engine.domain.errors import Fault, NotFound, Unacceptable
from engine.domain.faults import cited, unacceptable
from engine.domain.steps import Steps
from engine.domain.terms import PARTICIPANTS_MAX, CompetitionId, CompetitorId
from projections.answers.view import View


def with_ids(
    names: Names, command: Callable[..., Any], fields: Fields, form: Form, faults: Items[Fault] = ()
) -> Steps[Form]:
    """The form with ids for the competitors and competitions that it names. `fields`: those of the command. `faults`:
    those that are known already. Raises Unacceptable with these and all others."""
    kinds = {one.name: {*_types_in(one.type)} for one in structs.fields(command)}  # type: ignore[arg-type] # a Struct
    read, found = dict(form), [*faults]
    for field in [one for one in fields if one.name in form]:
        text, kind = form[field.name], kinds[field.argument or field.name]
        try:
            if field.type is RESULT and text.lstrip().startswith("{"):
                read[field.name] = encode((yield from names.performances(text))).decode()
            elif CompetitorId in kind and text.count(",") < PARTICIPANTS_MAX:
                texts = text.split(",") if field.type.is_list else [text]
                read[field.name] = ",".join((yield from _ids(names.competitor_in_steps, texts)))
            elif CompetitionId in kind:
                read[field.name] = ",".join((yield from _ids(names.competition_in_steps, [text])))
        except (NotFound, Unacceptable) as refusal:
            wrong = [fault.message for fault in refusal.faults] or [refusal.message.removesuffix(".")]
            found += [Fault(field.name, message) for message in wrong]
    if found:
        raise unacceptable([*found, *_faults_elsewhere(fields, read, {fault.field for fault in found})])
    return read


def _types_in(kind: Any) -> Iterator[Any]:
    """It, and what a tuple or a choice of types is made of."""
    yield kind
    for part in get_args(kind) if get_origin(kind) in (tuple, Union, UnionType) else ():
        yield from _types_in(part)


def typed_texts(view: View, competitor_ids: Items[CompetitorId]) -> list[str]:
    """What forms take for competitors: their names, or where there are many, ids."""
    those = view.live.board.competitors
    if len(those) > COMPARED_MAX:
        return [f"id:{one}" for one in competitor_ids]
    alike = Counter(its.name for _, its in those.run(1, len(those)))
    return [typed_text(one, those[one].name, alike) for one in competitor_ids]


def typed_text(competitor_id: CompetitorId, name: str, alike: Mapping[str, int]) -> str:
    """Its name, if that can mean nothing else. `alike`: how many have a name."""
    return name if alike[name] == 1 and not _ODD.search(name) else f"id:{competitor_id}"


_ODD: Final = re.compile(r"[,:]|\A[0-9]+\Z")
"""A name that would be several, or an id."""


def _ids(find: Callable[[str], Steps[Any]], texts: Items[str]) -> Steps[list[str]]:
    """The id that each text means; empty ones stay. Raises Unacceptable with the faults of all, also of a text that
    means the same as one before."""
    ids: list[str] = []
    seen: set[str] = set()
    faults: list[Fault] = []
    for text in texts:
        try:
            its_id = str((yield from find(text))) if text.strip() else text
            if its_id.strip() and its_id in seen:
                faults.append(Fault("", f"{cited(text.strip())} is named more than once"))
            seen.add(its_id)
            ids.append(its_id)
        except (NotFound, Unacceptable) as refusal:
            faults.append(Fault("", refusal.message.removesuffix(".")))
        yield
    if faults:
        raise unacceptable(faults)
    return ids


def _faults_elsewhere(fields: Fields, form: Form, wrong: set[str]) -> list[Fault]:
    """The faults of the other fields."""
    try:
        FormReader(fields).read(form)
    except Unacceptable as error:
        return [fault for fault in error.faults if fault.field not in wrong]
    return []
