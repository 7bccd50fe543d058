"""The spans that a service makes. Importing this needs `opentelemetry-api`; `tracing.py` imports it where it is wanted.

    PUT /tournament/{tournament}/…   a request, from its head to the end of its answer. It belongs to the trace that its
                                     headers name (W3C Trace Context), or begins one.
    group commit                     one sending of blocks to the log. It begins a trace, since it is of many requests,
                                     and links to each of them.
    fold                             one batch of a worker. It begins a trace: the log does not say which request an
                                     event came from.
    delivery                         one message to a webhook, which names it in its headers. It begins a trace.

There is none for each event, row or query. Attributes of HTTP have the names of OpenTelemetry's conventions, others are
those of log lines, after `tallybook.`.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from types import MappingProxyType
from typing import Final, cast

from opentelemetry import context, propagate
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    set_span_in_context,
)

from engine.process.tracing import Attributes, RequestSpan

_SERVER_ERROR: Final = 500
_NO_TRACE: Final = Context()
"""In it, a span begins a trace."""


class Spans:
    """Makes spans with the tracer of a provider."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("tallybook", version("tallybook"))

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """The span of a request, current within the context. `end_request` ends it, which may be later."""
        span = self._tracer.start_span(
            method,
            context=propagate.extract(headers, context=_NO_TRACE),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method},
        )
        token = context.attach(set_span_in_context(span))
        try:
            yield span
        finally:
            context.detach(token)

    def end_request(self, span: Span, method: str, route: str, status: int, facts: Mapping[str, object]) -> None:
        """Ends the span of a request. `facts` are those of its canonical line."""
        if not span.is_recording():
            return
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": status})
        span.set_attributes({f"tallybook.{name}": fact for name, fact in facts.items() if isinstance(fact, str | int)})
        if status >= _SERVER_ERROR:
            span.set_attribute("error.type", str(facts.get("code", status)))
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def trace_id(self, span: Span) -> str:
        """The id of the trace that a span belongs to, in 32 hexadecimal digits."""
        return f"{span.get_span_context().trace_id:032x}"

    def current_request(self) -> RequestSpan | None:
        """The request whose span is current, to be linked to; None: it is not recorded."""
        span = get_current_span()
        return RequestSpan(span.get_span_context()) if span.is_recording() else None

    def group_commit(self, requests: Iterable[RequestSpan], facts: Mapping[str, int]) -> AbstractContextManager[object]:
        links = [Link(cast(SpanContext, request)) for request in requests]
        return self._trace("group commit", links=links, facts=facts)

    def fold(self) -> AbstractContextManager[Attributes]:
        return self._trace("fold")

    @contextmanager
    def delivery(self, headers: MutableMapping[str, str]) -> Iterator[Attributes]:
        with self._trace("delivery", kind=SpanKind.CLIENT) as attributes:
            propagate.inject(headers)
            yield attributes

    @contextmanager
    def _trace(
        self,
        name: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
        facts: Mapping[str, int] = MappingProxyType({}),
    ) -> Iterator[Attributes]:
        """A span that begins a trace. When the context ends, it gets as attributes the `facts` and what was added to
        them, and has failed if there is an `error.type` among them, or the context was left by an error."""
        attributes: Attributes = {**facts}
        with self._tracer.start_as_current_span(
            name, context=_NO_TRACE, kind=kind, links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield attributes
            finally:
                error = sys.exception()
                if error is not None:
                    # Its text is left out: it may hold what clients have sent.
                    attributes["error.type"] = type(error.__cause__ or error).__qualname__
                span.set_attributes(attributes)
                if "error.type" in attributes:
                    span.set_status(Status(StatusCode.ERROR))
