"""What competitors will lose because points expire, as commands show it."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.arguments import REQUIRED, THE_RANKING, option
from api.cli.asking import asking
from api.cli.lines import UNITY_OR_MAIN, WINDOW, windowed
from api.cli.times import end
from engine.domain.times import timestamp
from projections.answers.expiring import Expiring, ExpiringQuestion
from projections.answers.view import View


async def _print(view: View, question: ExpiringQuestion, found: Expiring) -> None:
    names, ranking = view.names, view.names.ranking(question.ranking_id)
    unity = names.unity(question.ranking_id, found.unity_id)
    lines = [
        (
            names.competitor(one.competitor_id).name,
            unity.notation.text(one.total),
            unity.notation.text(one.total_then),
            "" if one.expires_at is None else timestamp(one.expires_at),
        )
        for one in found.expiring
    ]
    columns = ("competitor", "total", "total then", "first expiry")
    printing.table(columns, lines, title=f"{printing.title_of(ranking, unity.name)}, until {timestamp(found.until)}")


expiring = asking(
    ExpiringQuestion,
    THE_RANKING,
    option(
        "until",
        kind=Annotated[datetime, Parameter(converter=end, accepts_keys=False)],
        default=REQUIRED,
        about="Up to this day or time.",
    ),
    UNITY_OR_MAIN,
    *WINDOW,
    make=windowed(ExpiringQuestion),
    prints=_print,
)
