"""What forms of the console say about fields, in the words of organisers. Operations describe the same fields to
programs. Texts have places for the words of the sport (`api/interface/sports.py`)."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.domain.options import MAIN_UNITY
from engine.domain.terms import Counts


class FieldWords(Struct, frozen=True):
    """`label` empty: the field's own name. `about` empty: nothing."""

    label: str = ""
    about: str = ""


COUNTS_TEXTS: Final = {Counts.SUM: "The sum", Counts.BEST: "The best result", Counts.LAST: "The last result"}
_SINCE_WHEN: Final = "an older one no longer counts; this cannot be changed later"
_COLUMN: Final = {
    "sort": FieldWords("What is better"),
    "decimals": FieldWords("Decimals", "how many digits follow the point, such as 1 for half points"),
    "time": FieldWords("Is it a time?", "shown as 2:03:17"),
    "counts": FieldWords("What counts", "cannot be changed later"),
    "lasts": FieldWords("Points count for", _SINCE_WHEN),
    "expires_on": FieldWords("Their last moment", "only where points do not count for ever"),
    "absent": FieldWords("Without a result", "cannot be changed later"),
}
FIELD_WORDS: Final[Mapping[str, FieldWords]] = {
    "name": FieldWords(),
    "names": FieldWords("Names", "one a line"),
    "tags": FieldWords(about="with commas between them, such as juniors, north"),
    "color": FieldWords("Colour"),
    "parent": FieldWords("Belongs to", "such as the club of a {team}"),
    "key": FieldWords("Your own number or key", "such as a match number; no two have the same one"),
    "participants": FieldWords("{Teams}", "their names, with commas between them"),
    "group_id": FieldWords("Division", "a number: 1 if there is only one"),
    "round": FieldWords(about="its number; empty: all of one date are a round"),
    "round_name": FieldWords("Name of the round", "such as Final"),
    "started_at": FieldWords("Start", "in the time zone of the tournament"),
    "location": FieldWords("Place", "where it is played"),
    "scale": FieldWords("Counts as", "such as sprint, where some count differently; usually empty"),
    "result": FieldWords(about="the score, such as 2:1"),
    "winner": FieldWords(about="only where the score does not say it, such as after a walkover"),
    "description": FieldWords(about="a sentence or two below the name"),
    "zones": FieldWords(about="one a line, such as 1..4 promotion: Champions League, or -3..-1 relegation: Down"),
    "main_unity_name": FieldWords("What is counted", "the first column, such as points"),
    **_COLUMN,
    **{MAIN_UNITY + name: words for name, words in _COLUMN.items()},
    "like": FieldWords("Sport"),
    "scorings": FieldWords("As written"),
    "add": FieldWords("Who joins", "their names, with commas between them"),
    "remove": FieldWords("Who leaves", "their names, as above; their points count again if they return"),
    "competitors": FieldWords("Who", "their names, with commas between them"),
    "keeps_results": FieldWords("What it has played"),
    "slug": FieldWords("The end of its address"),
    "zone": FieldWords("Time zone", "such as Europe/Berlin; empty: UTC"),
    "language": FieldWords(about="of its board"),
    "accent": FieldWords("Colour", "of its board, such as aa0000"),
    "listed": FieldWords("On the first page", "whether the first page of this service leads to its board"),
    "logo": FieldWords(about="a PNG picture of at most 32 KB"),
    "freeze": FieldWords("Last change to show", "its number in the history"),
    "reveal": FieldWords("Last change to show", "its number in the history"),
    "participants_delta": FieldWords("Points"),
    "competition_id": FieldWords("{Match}", "the one that the points are for; empty: none"),
    "reason": FieldWords(about="why they are added, for everybody to read"),
}
