"""The answers of operations, rendered without a server, and the document that describes them."""

from functools import cache
from typing import Any, Final

from api.http.outgoing import Later
from api.interface import openapi
from api.interface.declarations import Operation, Read, Write, name_of
from api.interface.operations import OPERATIONS
from api.interface.rendering import BoardNow, TaggedBody

BY_NAME: Final[dict[str, Operation]] = {name_of(operation): operation for operation in OPERATIONS}
ADD: Final = "PUT rankings/{ranking_id}/add.json"


def answered(view: BoardNow, name: str, of: Any) -> bytes | TaggedBody | Later:
    """What the operation of this name answers to a question, or to the event that it led to."""
    operation = BY_NAME[name]
    assert isinstance(operation, Read | Write)
    shows_all = isinstance(operation, Write) and operation.shows_all
    return operation.render(view, operation.answer, [of] if shows_all else of)


@cache
def openapi_document() -> Any:
    """The OpenAPI document. To make it takes as long as some twenty requests."""
    return openapi.described()
