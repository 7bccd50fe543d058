"""The command that lists every delta of a ranking."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive

from api.cli.arguments import THE_RANKING, fields_read, function_of, option
from api.cli.history_text import Format, history_text
from api.cli.lines import ONE_UNITY, Count
from api.cli.progress import progress
from api.cli.times import Since, Until
from api.cli.where import Where, desk_at, tournament_at
from api.cli.writing import written_to
from projections.answers.history import HistoryQuestion

_FORM: Final = Group("Form", validator=mutually_exclusive)


_HISTORY: Final = (
    THE_RANKING,
    ONE_UNITY,
    option("competitor", "competitor_id", about="Only the competitor with this id or name."),
    option("competition", "competition_id", about="Only deltas that the competition with this id or name caused."),
    option(
        "actor",
        kind=Annotated[int | None, Parameter(validator=Number(gte=0))],
        about="Only changes made with the token of this id; 0 means on the command line.",
    ),
    option("from_sequence", "first", Count, about="Only from the event with this sequence on."),
    option("to_sequence", "last", Count, about="Only up to the event with this sequence."),
    option(
        "from_time",
        "since",
        Since,
        about="Only from this time on: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.",
    ),
    option("to_time", "until", Until, about="Only up to this time, written in the same way."),
)


async def _history(
    slug: str,
    *,
    format: Format,  # noqa: A002 - the name of the option
    json: bool,
    output: Path | None,
    where: Where,
    **given: Any,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        question = HistoryQuestion(**fields_read(view, HistoryQuestion, _HISTORY, given, {}))
        ranking, last = view.ranking(question.ranking_id), view.live.head.sequence
        found, on_terminal = await question.whole(view), output is None and sys.stdout.isatty()
        text = history_text("ndjson" if json else format, view.names, ranking, last)
        with (
            written_to(output) as write,
            progress("reading", total=found.events, data_there=on_terminal) as advance,
        ):
            write(text.header)
            async for read, lines in found.chunks:
                if lines:
                    write(text.rows(lines))
                advance(read)


history = function_of(
    (
        *_HISTORY,
        option(
            "format",
            kind=Annotated[Format, Parameter(group=_FORM)],
            default="table",
            about="A table for people, CSV for spreadsheets (excel: with semicolons and decimal commas, for Excel in "
            "most of Europe), or one JSON object per line for programs.",
        ),
        option(
            "json",
            kind=Annotated[bool, Parameter(negative="", group=_FORM)],
            default=False,
            about="Print one JSON object per line: ndjson.",
        ),
        option("output", kind=Path | None, about="File to write to instead of standard output."),
    ),
    _history,
)
