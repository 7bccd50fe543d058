"""Arguments that name competitors, competitions, rankings and unities, and their names as columns show them."""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

from cyclopts import Parameter
from rich.cells import cell_len, set_cell_size

_NUMBER: Final = "A number may be either; id:4 and name:4 say which."
_KEY: Final = "key:4 is the one with the key 4."
_K = TypeVar("_K", bound=int)

RankingText = Annotated[str, Parameter(help=f"Id or name of the ranking. {_NUMBER}")]
CompetitorText = Annotated[str, Parameter(help=f"Id or name of the competitor. {_NUMBER} {_KEY}")]
CompetitorTexts = Annotated[str, Parameter(help=f"Ids or names of competitors. {_NUMBER} {_KEY}")]
CompetitionText = Annotated[
    str,
    Parameter(
        help='Id of the competition, or its one or two participants by name: "Swansea City - Norwich City". '
        f"{_NUMBER} {_KEY}"
    ),
]
UnityText = Annotated[str | None, Parameter(help="Id or name of the unity. Without it, the main one.")]
OneUnityText = Annotated[str | None, Parameter(help="Only the unity with this id or name.")]


def cut_apart(names: Mapping[_K, str], cells_max: int) -> dict[_K, str]:
    """The names, those wider than `cells_max` cut. One that would look like another name then stays whole."""
    cut = {
        name: name if cell_len(name) <= cells_max else set_cell_size(name, cells_max - 1).rstrip() + "…"
        for name in names.values()
    }
    alike = Counter(cut.values())
    return {key: cut[name] if alike[cut[name]] == 1 else name for key, name in names.items()}
