"""The publication of a tournament: its state, and its changes."""

from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.interface.declarations import NoQuestion, Operation, Read, Write
from api.interface.fields import BOOLEAN, Field, number_or
from api.interface.rendering import Answer, BoardNow, encode, tagged_body
from engine.domain.commands import ChangePublication


class PublicationShape(Struct, kw_only=True):
    """`frozen_at`: the event at which the public view is frozen; null: it is not. `public_end`: the last event that the
    public sees; null: it sees none, because the tournament is not published."""

    published: bool
    frozen_at: int | None
    public_end: int | None


def render_publication(view: BoardNow, answer: Answer, _of: object) -> bytes:
    publication = view.board.publication
    shape = PublicationShape(
        published=publication.published,
        frozen_at=publication.frozen_at,
        public_end=publication.public_end(view.head.sequence),
    )
    return answer.body(encode(shape))


_PUBLICATION: Final = Answer("publication", PublicationShape)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "publication.json",
        "Show what the public sees of the tournament",
        operation_id="showPublication",
        question=NoQuestion,
        answer=_PUBLICATION,
        render=lambda view, answer, question: tagged_body(render_publication(view, answer, question)),
    ),
    Write(
        "PUT",
        "publication.json",
        "Publish or unpublish the tournament; freeze what the public sees, or reveal more",
        operation_id="changePublication",
        command=ChangePublication,
        answer=_PUBLICATION,
        render=render_publication,
        fields=(
            Field("published", BOOLEAN, "true: the public sees the tournament; false: it sees nothing of it"),
            Field("freeze", number_or("now"), "freezes the public view where it is (now) or at this event"),
            Field(
                "reveal",
                number_or("next", "all"),
                "moves the frozen view forward to this event or through the next competition, or releases it (all)",
            ),
        ),
        scope=Scope.ADMIN,
        example={"published": True},
    ),
)
