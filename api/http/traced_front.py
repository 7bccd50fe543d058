"""The front of a process that is traced: each request has a span, which its canonical line names."""

from typing import TYPE_CHECKING, Any

from api.http.front import Front, method_label
from api.http.reply import Reply
from api.http.router import IncomingRequest

if TYPE_CHECKING:
    from engine.process.spans import Spans


class TracedFront(Front):
    """A Front whose requests are in spans. Bytes that are no request have none."""

    def __init__(self, spans: "Spans", *means: Any, **more: Any) -> None:
        super().__init__(*means, **more)
        self._spans = spans

    async def _answered(self, incoming: IncomingRequest) -> Reply:
        request = incoming.request
        with self._spans.request(method_label(request.method), request.headers) as incoming.span:
            incoming.facts["trace_id"] = self._spans.trace_id(incoming.span)
            return await super()._answered(incoming)

    def _note(self, incoming: IncomingRequest, status: int) -> None:
        super()._note(incoming, status)
        if hasattr(incoming, "span"):
            facts = incoming.facts | {"request_id": incoming.request_id}
            self._spans.end_request(incoming.span, method_label(incoming.request.method), incoming.path, status, facts)
