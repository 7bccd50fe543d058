"""Whether this process makes spans for OpenTelemetry. `spans.py` has the spans.

They are made where a tracer provider is configured: if OTEL_TRACES_EXPORTER names an exporter, each process of a
service has the SDK make one. Otherwise nothing of OpenTelemetry is needed, and a request costs a look at `spans`.
"""

import os
from collections.abc import Iterable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, NewType

import structlog

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from engine.process.spans import Spans

EXPORTER_VARIABLE: Final = "OTEL_TRACES_EXPORTER"
"""Where spans go: names of exporters, with commas between them. Unset, or `none`: nowhere."""

RequestSpan = NewType("RequestSpan", object)
"""What a link to the span of a request is made of, for those who only carry it."""
Attributes = dict[str, str | int]
"""What a span says when its context ends."""

spans: "Spans | None" = None
"""What makes the spans; None: tracing is off."""
_logger = structlog.get_logger()


def configure() -> None:
    """Begins to trace if a tracer provider is configured. What is missing or wrong is logged: no service depends on
    being traced."""
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
    if provider is None:
        spans = None
    else:
        from engine.process.spans import Spans  # noqa: PLC0415 - it needs the extra

        spans = Spans(provider)


def _provider_of_sdk(exporters: Iterable[str]) -> "TracerProvider":
    """A provider that sends what it gets to these exporters, by the names under which they are installed. All else it
    reads from the environment: OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and so on. Raises ImportError and LookupError."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the operator installs it
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider()
    for name in exporters:
        found = entry_points(group="opentelemetry_traces_exporter", name=name)
        if not found:
            raise LookupError(f"no exporter of the name {name} is installed")
        provider.add_span_processor(BatchSpanProcessor(next(iter(found)).load()()))
    return provider


def fold() -> AbstractContextManager[Attributes]:
    """The span of a batch that a worker folds into tables."""
    return nullcontext({}) if spans is None else spans.fold()


def delivery(headers: MutableMapping[str, str]) -> AbstractContextManager[Attributes]:
    """The span of a message to a webhook that is sent with `headers`, which then name the span."""
    return nullcontext({}) if spans is None else spans.delivery(headers)
