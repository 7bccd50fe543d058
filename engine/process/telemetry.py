"""The catalogue of log events and metrics. Each is named once, here.

`tracing.py` has the catalogue of spans.

Log events (structlog, one JSON object a line, or on a terminal a line for people; ids as keywords, never bodies or
tokens)

    database_joined / database_ready / listening / keeping_tables / verifying / metrics_shown / no_difference_found
                          what a long-running command says to people on a terminal: address, directory
    library_said          what a library logs or Python warns of: logger, message
    exception_ignored     an exception in a thread or in a destructor, with its traceback
    process_failed        an exception that ends a process, with its traceback
    request               one finished request: request_id, method, route, tournament, status, milliseconds since all
                          of it had come in, actor, and where there is one, sequence, replayed, code, trace_id; none of
                          a health check that is answered 200
    turned_away           requests refused within a second because too many were waiting: requests
    tables_folded         one batch of a worker: tournaments, events, milliseconds
    competitors_erased    tables have forgotten names: tournament_id, competitor_ids
    tables_rebuilt        tables that an older fold had made: tournament_id, events, milliseconds
    append_failed         a batch could not be sent together; its blocks follow alone
    append_resent         a block that was sent alone failed and is sent again
    append_rejected       the database refuses a block: a defect
    node_avoided          a node of a distributed database refuses connections: host, port, error; for ten seconds
                          requests for its tournaments go through the process's own address
    nodes_unknown         the database did not say where tournaments lie: error; the last known places are used
    quotas_unread         the quotas could not be read: error; the last known ones hold
    accepting_paused      no connection could be accepted: error; it is tried again soon
    barrier_failed        an unexpected error of the database; all requests waiting for the barrier failed: error
    commit_unconfirmed    the server committed, but a standby did not confirm
    tournament_stopped    an event cannot be folded; its tournament answers 503 (alarm)
    tournament_defect     an unexpected failure in one tournament: tournament_id, part, error, with its traceback
                          (alarm)
    stop_not_noted        the stop could not be noted in the database: tournament_id, error
    defect_not_noted      the defect could not be noted in the database, where `/readyz` looks: tournament_id, error
    clock_behind          the time of a log is far ahead of the clock, and stands still until the clock has caught up:
                          tournament_id, seconds (alarm)
    log_forked            the log is not the one that was read before (alarm)
    session_refused       guarantees would not hold on a new connection: reason; another is tried (alarm)
    snapshot_ignored      a snapshot cannot be used: answers about the past fold from an earlier one
    expiry_failed         due points could not be expired unasked: tournament_id, error; it is tried again
    request_failed        an unexpected exception in an answer or a stream of one client, with its traceback
    worker_failed         a worker could not fold a batch of tournaments; it tries each alone, or later
    start_refused         a process of a service cannot start: reason
    embedded_ended        the embedded PostgreSQL has ended, so the service exits: reason, with the path of its log
    process_started / process_stopping / process_stopped / process_died
    digests_noted         heads were noted in a file elsewhere: tournaments
    address_parameters_left_out  no connection is made by these parameters of the database address: parameters
    digests_failed        heads could not be noted: reason; the service tries again
    tournament_verified   one tournament by `verify --forever`: tournament, sequence, events, milliseconds, differences
    difference_found      something is not what the log, or a digest, says: tournament, sequence, field, message (alarm)
    webhook_failed        a receiver did not accept a message: tournament_id, webhook_id, sequence (of the event
                          before), failures, problem; it is sent again
    webhook_stopped       a webhook is parked, or its receiver switched it off: tournament_id, webhook_id, state,
                          problem (alarm)
    webhooks_interrupted  deliveries paused, because of errors of the database: errors
    tracing_failed        no spans are made although the environment asks for them: reason
    systemd_not_told      systemd could not be notified: state, reason
    verify_failed         a round of `verify --forever` was interrupted: reason; the next one continues

Metrics (Prometheus; several processes are added up)

    tallybook_build_info{version,python,fold_version}: 1
    tallybook_request_seconds{method,route,status}
    tallybook_errors_total{status}: 400, 401, 403, 404, 405, 406, 408, 409, 412, 413, 414, 415, 422, 429, 431, 500, 503
    tallybook_turned_away_total: requests refused because too many were waiting; not counted above
    tallybook_connections, tallybook_connections_ended_total{why}: silent, unread, crowded_out, refused
    tallybook_appended_events_total: minus tallybook_folded_events_total, it says how far the workers are behind
    tallybook_clock_behind_seconds: how far the time of a log that was appended to is ahead of this clock
    tallybook_listeners: streams that are open
    tallybook_listeners_behind: how many events the slowest of them is behind
    tallybook_listeners_ended_total{why}: client_gone, unread, token_ended, token_unconfirmed, unpublished, reset,
    log_replaced, stopped, defect, deleted, database_unavailable, shutting_down
    tallybook_append_seconds, tallybook_append_blocks, tallybook_append_requests, tallybook_appends_resent_total
    tallybook_barrier_seconds, tallybook_waiting_requests, tallybook_live_tournaments, tallybook_live_bytes
    tallybook_lives_loaded_total, tallybook_lives_loading: begun so far, and in progress
    tallybook_loaded_rows_total: rows of tables read to make boards; it shows that a long loading progresses
    tallybook_stopped_total, tallybook_forked_total
    tallybook_defects_total{part}: judging, reading, streaming, delivering, tables, verifying
    tallybook_pool_connections, tallybook_pool_in_use, tallybook_pool_waiting: connections to the database
    tallybook_quotas_near: bounds of quotas that are used to 80% or more, in memory; `/readyz` names some
    tallybook_durable_elsewhere: 1 if something else than the database's server is trusted to keep commits
    tallybook_nodes_avoided: nodes of a distributed database that refuse connections at the moment
    tallybook_loop_lag_seconds: how much later than due the event loop of a process ran a timer
    process_cpu_seconds_total{pid}, process_resident_memory_bytes{pid} and the others of prometheus_client, for each
    running process of a service, Linux only
    tallybook_folded_events_total, tallybook_rebuilt_events_total, tallybook_fold_seconds
    tallybook_erased_competitors_total
    tallybook_webhooks{state}: active, parked, off
    tallybook_webhooks_behind: how many events the slowest active one is behind
    tallybook_webhook_requests_total{outcome}: taken, failed

    of `verify --forever`, on a port of its own; a service's are 0:
    tallybook_verified_events_total, tallybook_verified_tournaments_total, tallybook_differences_total
    tallybook_differing_tournaments, tallybook_unverified_seconds
"""

import asyncio
import atexit
import logging
import os
import sys
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from collections.abc import Sequence as Items
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, BinaryIO, Final, Literal, TypeVar

import msgspec
from prometheus_client.metrics import Counter as Count
from prometheus_client.metrics import Gauge, Histogram

from engine.process import logs
from engine.process.logs import Logger

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_COUNTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

REQUEST_SECONDS: Final = Histogram(
    "tallybook_request_seconds",
    "Time to answer a request; the count is the number of finished requests",
    ["method", "route", "status"],
    buckets=_SECONDS,
)
ERRORS: Final = Count("tallybook_errors", "Requests answered with an error", ["status"])

APPEND_SECONDS: Final = Histogram("tallybook_append_seconds", "Duration of a group commit", buckets=_SECONDS)
APPEND_BLOCKS: Final = Histogram("tallybook_append_blocks", "Tournaments in a group commit", buckets=_COUNTS)
APPEND_REQUESTS: Final = Histogram("tallybook_append_requests", "Requests in a group commit", buckets=_COUNTS)
APPENDED_EVENTS: Final = Count("tallybook_appended_events", "Events appended to logs")
CLOCK_BEHIND: Final = Gauge(
    "tallybook_clock_behind_seconds",
    "How far a log's latest time is ahead of the clock",
    multiprocess_mode="livemax",
)
APPENDS_RESENT: Final = Count("tallybook_appends_resent", "Blocks that were sent again")

BUILD_INFO: Final = Gauge(
    "tallybook_build_info",
    "Versions of the running service; the value is always 1",
    ["version", "python", "fold_version"],
    multiprocess_mode="livemax",
)
POOL_CONNECTIONS: Final = Gauge(
    "tallybook_pool_connections", "Connections to the database", multiprocess_mode="livesum"
)
POOL_IN_USE: Final = Gauge("tallybook_pool_in_use", "Connections in use", multiprocess_mode="livesum")
POOL_WAITING: Final = Gauge("tallybook_pool_waiting", "Requests waiting for a connection", multiprocess_mode="livesum")
NODES_AVOIDED: Final = Gauge(
    "tallybook_nodes_avoided", "Nodes to which no connection can be made", multiprocess_mode="livemax"
)
QUOTAS_NEAR: Final = Gauge(
    "tallybook_quotas_near", "Bounds of quotas of which 80% or more are used", multiprocess_mode="livemax"
)
DURABLE_ELSEWHERE: Final = Gauge(
    "tallybook_durable_elsewhere",
    "1 if something other than the server is trusted to keep commits",
    multiprocess_mode="livemax",
)
LOOP_LAG: Final = Histogram(
    "tallybook_loop_lag_seconds", "Delay of the event loop: actual minus due time of a timer", buckets=_SECONDS
)

BARRIER_SECONDS: Final = Histogram("tallybook_barrier_seconds", "Duration of a query for log heads", buckets=_SECONDS)
WAITING_REQUESTS: Final = Gauge("tallybook_waiting_requests", "Writes in progress", multiprocess_mode="livesum")
TURNED_AWAY: Final = Count("tallybook_turned_away", "Requests refused because too many were waiting")
CONNECTIONS: Final = Gauge("tallybook_connections", "Clients connected", multiprocess_mode="livesum")
CONNECTIONS_ENDED: Final = Count("tallybook_connections_ended", "Connections that the server closed", ["why"])
LISTENERS: Final = Gauge("tallybook_listeners", "Open streams", multiprocess_mode="livesum")
LISTENERS_BEHIND: Final = Gauge(
    "tallybook_listeners_behind", "Events that the slowest stream is behind", multiprocess_mode="livemax"
)
LISTENERS_ENDED: Final = Count("tallybook_listeners_ended", "Streams ended", ["why"])
WEBHOOKS: Final = Gauge("tallybook_webhooks", "Webhooks", ["state"], multiprocess_mode="livesum")
WEBHOOKS_BEHIND: Final = Gauge(
    "tallybook_webhooks_behind", "Events that the slowest active webhook is behind", multiprocess_mode="livemax"
)
WEBHOOK_REQUESTS: Final = Count("tallybook_webhook_requests", "Messages sent to webhooks", ["outcome"])
LIVE_TOURNAMENTS: Final = Gauge("tallybook_live_tournaments", "Tournaments in memory", multiprocess_mode="livesum")
LIVE_BYTES: Final = Gauge(
    "tallybook_live_bytes", "Estimated bytes of tournaments in memory", multiprocess_mode="livesum"
)
LIVES_LOADED: Final = Count("tallybook_lives_loaded", "Tournaments loaded into memory")
LIVES_LOADING: Final = Gauge(
    "tallybook_lives_loading", "Tournaments being loaded into memory", multiprocess_mode="livesum"
)
LOADED_ROWS: Final = Count("tallybook_loaded_rows", "Table rows read to load tournaments")
DEFECTS: Final = Count("tallybook_defects", "Unexpected failures in single tournaments", ["part"])
STOPPED: Final = Count("tallybook_stopped", "Times that an event could not be folded")
FORKED: Final = Count("tallybook_forked", "Times that a log did not continue as it was read before")

ERASED: Final = Count("tallybook_erased_competitors", "Competitors erased from the tables and snapshots")

FOLDED_EVENTS: Final = Count("tallybook_folded_events", "Events folded into tables")
REBUILT_EVENTS: Final = Count(
    "tallybook_rebuilt_events", "Events folded again because an older version had made the tables"
)
FOLD_SECONDS: Final = Histogram("tallybook_fold_seconds", "Duration of folding a batch into tables", buckets=_SECONDS)

VERIFIED_EVENTS: Final = Count("tallybook_verified_events", "Events verified")
VERIFIED_TOURNAMENTS: Final = Count("tallybook_verified_tournaments", "Verifications of tournaments")
DIFFERENCES: Final = Count("tallybook_differences", "Differences found; a lasting one counts at each verification")
DIFFERING: Final = Gauge("tallybook_differing_tournaments", "Tournaments with differences", multiprocess_mode="livesum")
UNVERIFIED_SECONDS: Final = Gauge(
    "tallybook_unverified_seconds",
    "Longest time since a tournament was last verified",
    multiprocess_mode="livemax",
)


_K = TypeVar("_K")
_M = TypeVar("_M", Count, Gauge)


def by_kind(metric: _M, kinds: Iterable[_K]) -> Mapping[_K, _M]:
    """The metric for each value of its label. Each is shown as 0 from the start: Prometheus sees no increase in the
    first value of a series, so that no alert would fire for it."""
    return {kind: metric.labels(kind) for kind in kinds}


_observed: Final[dict[Histogram, list[float]]] = {}
_counted: Final[dict[Count, list[float]]] = {}


def observer(histogram: Histogram) -> Callable[[float], None]:
    """A function that notes a value, which `histogram` counts at the next `settle`: counting each immediately would
    take longer than judging a command. For processes that settle ten times a second, as a desk does."""
    return _observed.setdefault(histogram, []).append


def adder(counter: Count) -> Callable[[float], None]:
    """A function that notes a number, which is added to `counter` at the next `settle`, for the same reason."""
    return _counted.setdefault(counter, []).append


def settle() -> None:
    """Counts all noted values and numbers. Call it some times a second, and before figures are shown."""
    for counter, numbers in _counted.items():
        if numbers:
            counter.inc(sum(numbers))
            numbers.clear()
    for histogram, values in _observed.items():
        if values:
            observe_all(histogram, values)
            values.clear()


def observe_all(histogram: Histogram, values: Items[float]) -> None:
    """Does what `Histogram.observe` would do for each of `values`, in the time of one or two calls.

    The library has no such method, so this uses its private parts; a test compares it with `Histogram.observe`.
    """
    histogram._sum.inc(sum(values))
    for bucket, count in Counter(bisect_left(histogram._upper_bounds, value) for value in values).items():
        histogram._buckets[bucket].inc(count)


LogLevel = Literal["info", "warning", "error"]
"""The least urgent lines that a log has."""


class Lines:
    """Writes log lines to `stream`. All lines of one round of the event loop go together, because a block's requests
    are answered in one round. Without a loop each line is written at once. What still waits is written at exit.

    structlog's loggers write to it. `event` bypasses them for the one line that every request pays for: they would take
    three times as long as the line itself. It is of level info, and not written if the log begins at a higher `level`.
    """

    def __init__(self, stream: BinaryIO, level: LogLevel = "info") -> None:
        self._for_people = stream.isatty()
        self.render = _for_people if self._for_people else _line
        self._stream = stream
        self._takes_events = level == "info"
        self._waiting: list[msgspec.Raw | dict[str, object]] = []
        atexit.register(self.write)

    def msg(self, line: bytes) -> None:
        self._waiting.append(msgspec.Raw(line))
        if len(self._waiting) == 1:
            self._write_soon()

    def event(self, event: str, /, **fields: object) -> None:
        if not self._takes_events:
            return
        fields["event"] = event
        if self._for_people:
            self.msg(_for_people(None, "info", fields))
            return
        fields["level"], fields["timestamp"] = "info", datetime.now(UTC)
        waiting = self._waiting
        waiting.append(fields)  # made a line with all others
        if len(waiting) == 1:
            self._write_soon()

    debug = info = warning = error = critical = msg

    def _write_soon(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self.write)
        except RuntimeError:
            self.write()

    def write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._stream.write(_encode_lines(waiting))
            self._stream.flush()


def log_to(stream: BinaryIO | None = None, *, level: LogLevel = "info") -> Lines:
    """Configures structlog to write one JSON object a line to `stream` or standard error; to a terminal, lines for
    people. Returns the `Lines` in between. To standard error, all that libraries and Python would write there comes as
    such lines, too."""
    lines = Lines(stream or sys.stderr.buffer, level)
    if stream is None:
        _take_in_others()
    logs.configure(
        lambda structlog: structlog.configure(
            processors=[lines.render],
            wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
            logger_factory=lambda *_: lines,
            cache_logger_on_first_use=True,
        )
    )
    return lines


def _take_in_others() -> None:
    logging.basicConfig(handlers=[_OfLibraries()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    threading.excepthook = lambda ended: _log_exception("exception_ignored", ended.exc_value)
    sys.unraisablehook = lambda ignored: _log_exception("exception_ignored", ignored.exc_value)
    sys.excepthook = lambda _, error, __: _log_exception("process_failed", error)


class _OfLibraries(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):  # its arguments do not fit it
            message = str(record.msg)
        level = min(record.levelno // 10 * 10, logging.CRITICAL)  # libraries may have levels in between
        Logger().log(level, "library_said", logger=record.name, message=message, exc_info=record.exc_info)


def _log_exception(event: str, error: BaseException | None) -> None:
    Logger().error(event, exc_info=error)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=repr)
_encode: Final = _ENCODER.encode
_encode_lines: Final = _ENCODER.encode_lines


def _line(logger: object, level: str, fields: MutableMapping[str, Any]) -> bytes:
    fields["level"] = level
    fields["timestamp"] = datetime.now(UTC)
    if "exc_info" in fields:
        fields = import_module("structlog.processors").format_exc_info(logger, level, fields)
    return _encode(fields)


_COLORS: Final = {"warning": "\x1b[33m", "error": "\x1b[31m"}


def _for_people(logger: object, level: str, fields: MutableMapping[str, Any]) -> bytes:
    """The line as people read it: time, level, event, facts, and below them a traceback."""
    if "exc_info" in fields:
        fields = import_module("structlog.processors").format_exc_info(logger, level, fields)
    event, traceback = fields.pop("event"), str(fields.pop("exception", ""))
    facts = "".join([f"  {name}={_printable(str(fact))}" for name, fact in fields.items() if fact is not None])
    below = "".join([f"\n    {_printable(line)}" for line in traceback.splitlines()])
    line = f"{datetime.now(UTC):%H:%M:%SZ}  {level:<7}  {event}{facts}{below}"
    colored = level in _COLORS and "NO_COLOR" not in os.environ
    return (f"{_COLORS[level]}{line}\x1b[0m" if colored else line).encode(errors="backslashreplace")


def _printable(text: str) -> str:
    """The text, with what could steer a terminal escaped: some of it comes from clients."""
    return "".join([c if c.isprintable() else f"\\x{ord(c):02x}" for c in text])
