"""Spans: which there are, what they belong and link to, and that a service without OpenTelemetry runs as ever."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Final

import asyncpg
import pytest
from aiohttp import ClientSession
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from api.webhooks import webhooks
from engine.process import tracing
from projections.tables.worker import Worker
from tests.api.receiver import delivering, receiver_on
from tests.desks import Arena, open_arena, until
from tests.running import Running, environment, said, started
from tests.service import Answer, Client, Service, deltas, make_token, slug_of

ADD: Final = "PUT /tournament/{tournament}/rankings/{ranking_id}/add.json"
TRACE_ID: Final = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID: Final = "b7ad6b7169203331"
TRACED: Final = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
UNSAMPLED: Final = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-00"}
EXPORTER: Final = """
import os
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

class FileExporter(SpanExporter):
    def export(self, spans):
        with open(os.environ["SPANS_FILE"], "a") as file:
            file.writelines(f"{span.resource.attributes['service.name']} {span.name}\\n" for span in spans)
        return SpanExportResult.SUCCESS
"""
"""What an operator installs, which the SDK finds by its entry point."""


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of this process that have ended."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)
    yield exporter
    tracing.use(None)


@pytest.fixture
async def arena(spans: InMemorySpanExporter, service: Service) -> tuple[Arena, Client]:
    """A tournament of a service that was started after `spans` began; nothing of its making is among them."""
    arena = await open_arena(service.database)
    client = service.client(await slug_of(service.database, arena.tournament_id), await make_token(service.database))
    return arena, client


async def add(arena: tuple[Arena, Client], headers: Mapping[str, str], key: str | None = None) -> Answer:
    """Gives a point to the first competitor."""
    of, client = arena
    form = {"participants_delta": deltas((of.competitors[0], of.unity_id, 1))}
    return await client.put(f"rankings/{of.ranking_id}/add.json", form, headers)


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def ids(span: ReadableSpan) -> tuple[str, str | None]:
    """The trace of a span, and its parent there."""
    assert span.context is not None
    return format_trace_id(span.context.trace_id), span.parent and format_span_id(span.parent.span_id)


async def test_a_request_belongs_to_the_trace_that_its_headers_name_and_its_commit_links_to_it(
    spans: InMemorySpanExporter, arena: tuple[Arena, Client], log_lines: BytesIO
) -> None:
    answer = await add(arena, TRACED)
    request, commit = sorted(spans.get_finished_spans(), key=lambda span: span.kind is not SpanKind.SERVER)

    assert request.name == ADD
    assert ids(request) == (TRACE_ID, PARENT_ID)
    assert request.attributes is not None
    assert request.attributes["http.request.method"] == "PUT"
    assert f"PUT {request.attributes['http.route']}" == ADD
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["tallybook.request_id"] == answer.headers["X-Request-Id"]
    assert request.status.status_code is StatusCode.UNSET
    line = json.loads(log_lines.getvalue().splitlines()[-1])
    assert (line["event"], line["trace_id"]) == ("request", TRACE_ID)

    assert (commit.name, commit.parent) == ("group commit", None)
    assert [link.context for link in commit.links] == [request.context]
    assert commit.attributes == {"tallybook.blocks": 1, "tallybook.requests": 1}


async def test_a_commit_links_to_every_request_that_it_commits(
    spans: InMemorySpanExporter, arena: tuple[Arena, Client]
) -> None:
    await asyncio.gather(*(add(arena, {}) for _ in range(20)))
    requests = [span.context.span_id for span in named(spans, ADD) if span.context]
    commits = named(spans, "group commit")
    linked = [[link.context.span_id for link in commit.links] for commit in commits]
    assert len(set(requests)) == 20
    assert sorted(chain(*linked)) == sorted(requests)
    assert [commit.attributes and commit.attributes["tallybook.requests"] for commit in commits] == list(
        map(len, linked)
    )


async def test_what_is_not_recorded_is_not_linked_to(spans: InMemorySpanExporter, arena: tuple[Arena, Client]) -> None:
    assert (await add(arena, UNSAMPLED)).status == 200
    (commit,) = spans.get_finished_spans()
    assert (commit.name, list(commit.links)) == ("group commit", [])


@pytest.mark.parametrize("traceparent", ["", "00", f"ff-{TRACE_ID}-{PARENT_ID}-01", f"00-{'0' * 32}-{PARENT_ID}-01"])
async def test_headers_that_name_no_trace_begin_one(
    spans: InMemorySpanExporter, arena: tuple[Arena, Client], traceparent: str
) -> None:
    assert (await add(arena, {"traceparent": traceparent})).status == 200
    (request,) = named(spans, ADD)
    assert request.parent is None
    assert ids(request)[0] != TRACE_ID


async def test_only_what_the_service_owes_has_failed(
    spans: InMemorySpanExporter, arena: tuple[Arena, Client], owner: asyncpg.Connection
) -> None:
    _, client = arena
    assert (await client.get("nothing.json")).status == 404
    (refused,) = spans.get_finished_spans()
    assert refused.name == "GET none"
    assert refused.status.status_code is StatusCode.UNSET
    spans.clear()
    await owner.execute("ALTER TABLE append_lock RENAME TO hidden")
    try:
        assert (await add(arena, {})).status >= 500
    finally:
        await owner.execute("ALTER TABLE hidden RENAME TO append_lock")
    (request,) = named(spans, ADD)
    assert request.status.status_code is StatusCode.ERROR
    assert request.attributes is not None
    assert request.attributes["error.type"] == request.attributes["tallybook.code"]
    assert {span.status.status_code for span in named(spans, "group commit")} == {StatusCode.ERROR}
    assert not [event for span in spans.get_finished_spans() for event in span.events]  # which might quote clients


async def test_a_batch_of_a_worker_is_one_span_whatever_it_folds(
    spans: InMemorySpanExporter, service: Service, arena: tuple[Arena, Client]
) -> None:
    for _ in range(3):
        await add(arena, TRACED)
    spans.clear()
    events = await Worker(service.database).catch_up()
    first, *others = spans.get_finished_spans()
    assert {span.name for span in [first, *others]} == {"fold"}
    assert (first.kind, first.parent) == (SpanKind.INTERNAL, None)
    assert first.attributes == {"tallybook.tournaments": 1, "tallybook.events": events}
    assert ids(first)[0] != TRACE_ID
    assert events > 3


async def test_a_message_to_a_webhook_names_its_span(
    spans: InMemorySpanExporter, service: Service, arena: tuple[Arena, Client]
) -> None:
    tournament_id = arena[0].tournament_id
    async with receiver_on() as receiver:
        async with service.database.connection() as connection:
            webhook_id, *_ = await webhooks.add_webhook(
                connection, tournament_id, receiver.url, kinds=None, allows_private=True, after=None
            )
        receiver.statuses = [500]
        await add(arena, TRACED)
        await Worker(service.database).catch_up()
        async with delivering(service.database):
            await until(lambda: len(named(spans, "delivery")) == 2)
    failed, taken = named(spans, "delivery")
    for span, got in zip((failed, taken), receiver.got, strict=True):
        assert (span.kind, span.parent) == (SpanKind.CLIENT, None)
        assert span.context is not None
        trace_id, span_id = format_trace_id(span.context.trace_id), format_span_id(span.context.span_id)
        assert got.headers["traceparent"].startswith(f"00-{trace_id}-{span_id}-")
    told = {"tallybook.tournament_id": tournament_id, "tallybook.webhook_id": webhook_id}
    assert taken.attributes == told
    assert failed.attributes == told | {"error.type": "answered 500"}
    assert (failed.status.status_code, taken.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)


def installed(folder: Path, **exporters: str) -> Path:
    """Where Python finds exporters of these names: classes of EXPORTER."""
    there = folder / "installed"
    information = there / "spans_in_a_file-1.dist-info"
    information.mkdir(parents=True)
    (there / "spans_in_a_file.py").write_text(EXPORTER)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: spans-in-a-file\nVersion: 1\n")
    lines = [f"{name} = spans_in_a_file:{made}\n" for name, made in exporters.items()]
    (information / "entry_points.txt").write_text("".join(["[opentelemetry_traces_exporter]\n", *lines]))
    return there


@pytest.mark.parametrize(
    ("variables", "exporters", "taken"),
    [
        ({}, ("otlp_proto_http", "otlp_proto_grpc"), "otlp_proto_http"),
        ({}, ("otlp_proto_grpc",), "otlp_proto_grpc"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("otlp_proto_http", "otlp_proto_grpc"), "otlp_proto_grpc"),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            ("otlp_proto_http", "otlp_proto_grpc"),
            "otlp_proto_http",
        ),
    ],
)
def test_otlp_is_the_exporter_that_is_installed_for_its_protocol(
    variables: dict[str, str], exporters: tuple[str, ...], taken: str, tmp_path: Path
) -> None:
    """`otlp` is the name by which the specification calls all of them, and often the name of none."""
    there = installed(tmp_path, **dict.fromkeys(exporters, "FileExporter"))
    program = (
        "from importlib.metadata import EntryPoint; load = EntryPoint.load\n"
        "EntryPoint.load = lambda self: (print(self.name), load(self))[1]\n"
        "from engine.process import tracing; tracing.configure(); print(tracing.spans is not None)\n"
    )
    variables |= {"PYTHONPATH": str(there), "SPANS_FILE": str(tmp_path / "spans"), "OTEL_TRACES_EXPORTER": " otlp "}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment(**variables), capture_output=True, check=True, text=True)
    assert [line for line in done.stdout.splitlines() if line.startswith(("otlp", "True"))] == [taken, "True"]


# ── Processes ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_the_processes_of_a_service_send_spans_where_the_environment_says(tmp_path: Path) -> None:
    there = installed(tmp_path, file="FileExporter")
    sent = tmp_path / "spans"
    variables = {"PYTHONPATH": str(there), "SPANS_FILE": str(sent), "OTEL_SERVICE_NAME": "of-this-test"}
    assert said("tournament", "create", "Cup", "--data-dir", str(tmp_path / "data")).code == 0  # which is to be folded
    status, running = await asked_once(tmp_path, "tables_folded", OTEL_TRACES_EXPORTER="file,console", **variables)
    assert status == 200
    assert set(sent.read_text().splitlines()) >= {"of-this-test GET /healthz", "of-this-test fold"}
    assert '"name": "GET /healthz"' in running.err  # what a process prints is not kept from anybody
    assert "tracing_failed" not in running.err


@pytest.mark.long
async def test_a_service_that_cannot_be_traced_says_why_and_runs(tmp_path: Path) -> None:
    status, running = await asked_once(tmp_path, OTEL_TRACES_EXPORTER="console,nowhere")
    assert status == 200
    reasons = [line["reason"] for line in running.log if line["event"] == "tracing_failed"]
    assert len(reasons) == 2  # of its two processes
    assert all("no exporter named nowhere is installed" in reason for reason in reasons)


@pytest.mark.long
async def test_a_service_runs_without_opentelemetry(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text('raise ImportError("it is not installed")')
    status, running = await asked_once(tmp_path, PYTHONPATH=str(tmp_path), OTEL_TRACES_EXPORTER="otlp")
    assert status == 200
    reasons = [line["reason"] for line in running.log if line["event"] == "tracing_failed"]
    assert len(reasons) == 2
    assert all("it is not installed" in reason for reason in reasons)


def test_unless_it_is_asked_for_nothing_is_traced_or_said() -> None:
    program = "from engine.process import tracing; tracing.configure(); print(tracing.spans)"
    variables = environment(OTEL_TRACES_EXPORTER="none")
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, check=True, text=True)
    assert (done.stdout, done.stderr) == ("None\n", "")


async def asked_once(folder: Path, until_said: str = "", **variables: str) -> tuple[int, Running]:
    """Starts a service, asks how it is, and stops it when it has said that."""
    with started(folder, "serve", "--port", "0", "--data-dir", str(folder / "data"), **variables) as running:
        async with ClientSession() as session, session.get(f"{await running.address()}/healthz") as answer:
            status = answer.status
        await running.has_said(until_said)
        assert await running.stopped() == 0
    return status, running
