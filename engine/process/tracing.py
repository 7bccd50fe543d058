"""The spans that a service makes for OpenTelemetry.

    PUT /tournament/{tournament}/…   a request, from its head to the end of its answer. It belongs to the trace that its
                                     headers name (W3C Trace Context), or begins one.
    group commit                     one sending of blocks to the log. It begins a trace, because it serves many
                                     requests, and links to each of them.
    fold                             one batch of a worker. It begins a trace: the log does not say which request an
                                     event came from.
    delivery                         one message to a webhook, which names it in its headers. It begins a trace.

There is none for each event, row or query. Attributes of HTTP have the names of OpenTelemetry's conventions, others are
those of log lines, after `tallybook.`.

Spans are made if a tracer provider is configured: if OTEL_TRACES_EXPORTER names an exporter, each process of a service
creates one with the SDK. Otherwise nothing of OpenTelemetry is imported, and a request only checks `spans`.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NewType, cast

from engine.process.logs import Logger
from engine.process.version import version

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from opentelemetry.trace import Link, Span, SpanContext, SpanKind, TracerProvider

EXPORTER_VARIABLE: Final = "OTEL_TRACES_EXPORTER"
"""Where spans go: names of exporters, with commas between them. Unset, or `none`: nowhere."""
_PROTOCOL_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""The exporters that the name `otlp` stands for, by protocol."""

RequestSpan = NewType("RequestSpan", object)
"""The data of a link to the span of a request, opaque to code that only carries it."""
Attributes = dict[str, str | int]
"""The attributes that a span gets when its context ends."""

_SERVER_ERROR: Final = 500

spans: "Spans | None" = None
"""The maker of spans; None: tracing is off."""
_logger: Final = Logger()


def configure() -> None:
    """Begins to trace if a tracer provider is configured. Missing or wrong settings are only logged, because no service
    depends on tracing."""
    exporters = os.environ.get(EXPORTER_VARIABLE, "none")
    try:
        from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider  # noqa: PLC0415 - of an extra

        configured = get_tracer_provider()
        if not isinstance(configured, ProxyTracerProvider):  # which stands for one that may come
            use(configured)
        elif exporters != "none":
            use(_provider_of_sdk(exporters.split(",")))
    except (ImportError, LookupError, ValueError, TypeError, RuntimeError, OSError) as error:
        if exporters != "none":
            _logger.warning("tracing_failed", reason=repr(error))


def use(provider: "TracerProvider | None") -> None:
    """Traces with this provider from now on; None: not at all."""
    global spans  # noqa: PLW0603 - OpenTelemetry's own provider is one for the process, too
    spans = None if provider is None else Spans(provider)


def _provider_of_sdk(exporters: Iterable[str]) -> "TracerProvider":
    """A provider that sends its spans to these exporters. It reads all other settings from the environment:
    OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and so on. Raises ImportError and LookupError."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the operator installs it
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider()
    for name in exporters:
        provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip()).load()()))
    return provider


def _exporter(name: str) -> "EntryPoint":
    """Where the exporter of this name is installed. `otlp`: that of the protocol in the environment, or any. Raises
    LookupError."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - large

    names = [name]
    if name == "otlp":
        protocol = next(filter(None, map(os.environ.get, _PROTOCOL_VARIABLES)), None)
        names = [_OTLP.get(protocol, protocol)] if protocol else list(_OTLP.values())
    for one in names:
        for found in entry_points(group="opentelemetry_traces_exporter", name=one):
            return found
    raise LookupError(f"no exporter named {' or '.join(names)} is installed")


def fold() -> AbstractContextManager[Attributes]:
    """The span of a batch that a worker folds into tables."""
    return nullcontext({}) if spans is None else spans.fold()


def delivery(headers: MutableMapping[str, str]) -> AbstractContextManager[Attributes]:
    """The span of a message to a webhook that is sent with `headers`, which then name the span."""
    return nullcontext({}) if spans is None else spans.delivery(headers)


class Spans:
    """Makes spans with the tracer of a provider."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import context, propagate, trace  # noqa: PLC0415 - of an extra

        self._context, self._propagate, self._trace = context, propagate, trace
        self._no_trace = context.Context()  # in it, a span begins a trace
        self._tracer = provider.get_tracer("tallybook", version())

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator["Span"]:
        """The span of a request, current within the context. `end_request` ends it, which may be later."""
        span = self._tracer.start_span(
            method,
            context=self._propagate.extract(headers, context=self._no_trace),
            kind=self._trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
        )
        token = self._context.attach(self._trace.set_span_in_context(span))
        try:
            yield span
        finally:
            self._context.detach(token)

    def end_request(self, span: "Span", method: str, route: str, status: int, facts: Mapping[str, object]) -> None:
        """Ends the span of a request. `facts` are those of its canonical line."""
        if not span.is_recording():
            return
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": status})
        span.set_attributes({f"tallybook.{name}": fact for name, fact in facts.items() if isinstance(fact, str | int)})
        if status >= _SERVER_ERROR:
            span.set_attribute("error.type", str(facts.get("code", status)))
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end()

    def trace_id(self, span: "Span") -> str:
        """The id of the trace that a span belongs to, in 32 hexadecimal digits."""
        return f"{span.get_span_context().trace_id:032x}"

    def current_request(self) -> RequestSpan | None:
        """The request whose span is current, to be linked to; None: it is not recorded."""
        span = self._trace.get_current_span()
        return RequestSpan(span.get_span_context()) if span.is_recording() else None

    def group_commit(self, requests: Iterable[RequestSpan], facts: Mapping[str, int]) -> AbstractContextManager[object]:
        links = [self._trace.Link(cast("SpanContext", request)) for request in requests]
        return self._begin("group commit", links=links, facts=facts)

    def fold(self) -> AbstractContextManager[Attributes]:
        return self._begin("fold")

    @contextmanager
    def delivery(self, headers: MutableMapping[str, str]) -> Iterator[Attributes]:
        with self._begin("delivery", kind=self._trace.SpanKind.CLIENT) as attributes:
            self._propagate.inject(headers)
            yield attributes

    @contextmanager
    def _begin(
        self,
        name: str,
        *,
        kind: "SpanKind | None" = None,
        links: "Sequence[Link]" = (),
        facts: Mapping[str, int] = MappingProxyType({}),
    ) -> Iterator[Attributes]:
        """A span that begins a trace. When the context ends, it gets as attributes the `facts` and what was added to
        them, and has failed if there is an `error.type` among them, or the context was left by an error."""
        attributes: Attributes = {**facts}
        with self._tracer.start_as_current_span(
            name,
            context=self._no_trace,
            kind=kind or self._trace.SpanKind.INTERNAL,
            links=links,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield attributes
            finally:
                error = sys.exception()
                if error is not None:
                    # Its text is left out, because it may hold data that clients sent.
                    attributes["error.type"] = type(error.__cause__ or error).__qualname__
                span.set_attributes(attributes)
                if "error.type" in attributes:
                    span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
