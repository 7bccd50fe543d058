"""How a tournament presents itself: its time zone, the language and colour of its board, its logo, and whether the
first page of the service leads to it."""

from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.interface.declarations import NoQuestion, Operation, Read, Write
from api.interface.fields import BOOLEAN, COLOR, Field, FieldMisread, one_of, text_type
from api.interface.rendering import Answer, BoardNow, encode, tagged_body
from engine.domain.commands import ChangePresentation
from engine.domain.presentation import LANGUAGES, LOGO_BYTES_MAX, LOGO_PIXELS_MAX, ZONE_PATTERN
from projections.answers.zones import unknown_zone


class PresentationShape(Struct, kw_only=True):
    """`logo`: the event that has it. `language`, `accent`, `logo` null: none was declared."""

    zone: str
    language: str | None
    accent: str | None
    logo: int | None
    listed: bool


def _zone(text: str) -> str:
    if (fault := unknown_zone(text)) is not None:
        raise FieldMisread(fault)
    return text


ZONE: Final = text_type(ZONE_PATTERN, _zone, examples=["UTC", "Europe/Berlin", "America/New_York"])
_BASE64: Final = text_type(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
    contentEncoding="base64",
    contentMediaType="image/png",
)


def _render(view: BoardNow, answer: Answer, _of: object) -> bytes:
    its = view.board.publication.presentation
    shape = PresentationShape(zone=its.zone, language=its.language, accent=its.accent, logo=its.logo, listed=its.listed)
    return answer.body(encode(shape))


_PRESENTATION: Final = Answer("presentation", PresentationShape)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "presentation.json",
        "Show the time zone, language, colour and logo of the tournament",
        operation_id="showPresentation",
        question=NoQuestion,
        answer=_PRESENTATION,
        render=lambda view, answer, question: tagged_body(_render(view, answer, question)),
    ),
    Write(
        "PUT",
        "presentation.json",
        "Change the time zone, language, colour and logo of the tournament",
        operation_id="changePresentation",
        command=ChangePresentation,
        answer=_PRESENTATION,
        render=_render,
        fields=(
            Field(
                "zone", ZONE, "the IANA name of its time zone; empty: UTC. Days in queries, files and pages follow it"
            ),
            Field(
                "language",
                one_of(*LANGUAGES),
                "the language of its board; empty: the language that the reader's browser prefers",
            ),
            Field("accent", COLOR, "the colour of its board, in hexadecimal; pages adjust it to stay readable"),
            Field(
                "logo",
                _BASE64,
                f"a PNG in base64, up to {LOGO_BYTES_MAX:,} bytes and {LOGO_PIXELS_MAX:,} pixels wide and high",
            ),
            Field("listed", BOOLEAN, "true: while it is published, the first page of the service leads to its board"),
        ),
        scope=Scope.ADMIN,
        example={"zone": "Europe/Berlin"},
    ),
)
